"""Where a run's time went by its log: each second counted once, each in the class that its lines say."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chipwise as cw
from chipwise.observe.clock import Clock
from chipwise.observe.goodput.from_log import Span, seconds_by_use
from chipwise.observe.goodput.records import Account, Use
from chipwise.observe.log import read_lines
from chipwise.observe.text import lines_of

START = 1793610000.0  # 2026-11-02 09:00 UTC


class Script:
    """Lines of a log, with a clock."""

    def __init__(self):
        self.at, self.lines = START, []

    def say(self, words, after=0.0):
        self.at += after
        stamp = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        self.lines.append(f"[{stamp}] {words}")
        return self

    def steps(self, first, last, seconds=5.0, own=True):
        for number in range(first, last + 1):
            took = seconds if not callable(seconds) else seconds(number)
            ms = f" elapsed time per iteration (ms): {took * 1e3:.1f} |" if own else ""
            self.say(f"iteration {number}/ 500 |{ms} lm loss: 2.5E+00 |", took)
        return self

    def uses(self, **span):
        return seconds_by_use(read_lines(self.lines), Span(**span))


def approx(**uses):
    return pytest.approx({Use(name): seconds for name, seconds in uses.items()}, abs=1e-3)


def test_a_run_by_hand():
    run = Script().say("setting up").say("building the model", 60)
    run.steps(1, 1, 45).steps(2, 40)
    run.say("saving checkpoint at iteration 40 to /data").say("successfully saved checkpoint", 30).steps(41, 60)
    run.say("CANCELLED DUE TO PREEMPTION", 10)
    run.say("starting again", 300).steps(41, 41, 45).steps(42, 80).say("done", 12)
    assert run.uses() == approx(
        productive=80 * 5, start_up=60, compile=40 + 40, checkpoint=30, lost_work=20 * 5, recovery=310, shut_down=12
    )


def test_every_second_is_counted_once():
    for file in ("slow.log", "maxtext.log", "titan.log"):
        log = read_lines(lines_of(f"examples/logs/{file}"))
        assert sum(seconds_by_use(log).values()) == pytest.approx(log.ended - log.began)


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(1, 40), st.floats(0, 600), st.floats(0.1, 20)), min_size=1, max_size=4
    ),
    st.lists(
        st.sampled_from(["saving checkpoint", "Running evaluation", "waiting for data", "", "CUDA out of memory"])
    ),
    st.floats(0, 5000),
)
def test_every_second_of_any_run_is_counted_once(parts, words, end):
    run = Script().say("begin")
    for first, count, pause, seconds in parts:
        run.say("start", pause).steps(first, first + count, seconds)
        for word in words:
            run.say(word, 1.5)
        words = words[1:]
    run.say("end", end)
    uses = run.uses()
    assert sum(uses.values()) == pytest.approx(run.at - START, abs=1e-3) and min(uses.values()) > 0


def test_slower_steps_go_to_what_made_them_slow():
    slow = Script().steps(1, 60).steps(61, 120, 6.0)
    assert slow.uses() == approx(productive=119 * 5 + 0.0, slow_down=60.0)
    hot = Script().steps(1, 60).say("GPU 0: thermal throttling active").steps(61, 120, 6.0)
    assert hot.uses()[Use.THROTTLING] == pytest.approx(60, abs=2) and Use.SLOW_DOWN not in hot.uses()


def test_pauses_go_to_what_lines_say():
    run = Script().steps(1, 20).say("Running evaluation").steps(21, 21, lambda n: 65.0).steps(22, 30)
    run.say("dataloader is slow: waiting for batch").steps(31, 31, lambda n: 15.0).steps(32, 40).say("").steps(
        41, 41, 25
    )
    uses = run.uses()
    assert (uses[Use.EVALUATION], uses[Use.DATA], uses[Use.PAUSE]) == pytest.approx((60, 10, 20), abs=0.01)


def test_a_hang_is_no_shut_down():
    run = Script().steps(1, 30).say("Watchdog caught collective operation timeout", 1800)
    assert run.uses()[Use.HANG] == pytest.approx(1800, abs=0.01)
    assert Script().steps(1, 30).uses(ended=START + 150 + 3600)[Use.HANG] == pytest.approx(3600, abs=0.01)
    assert Script().steps(1, 30).uses(ended=START + 150 + 100, stopped=True)[Use.LOST_WORK] == pytest.approx(
        100, abs=0.01
    )


def test_what_comes_after_says_which_steps_were_lost():
    run = Script().say("begin").steps(1, 30)
    assert run.uses(redone_from=21)[Use.LOST_WORK] == pytest.approx(50, abs=0.01)
    assert run.uses(goes_on=True, began=START - 40)[Use.RECOVERY] == pytest.approx(40, abs=0.01)


def test_waiting_for_a_straggler_is_not_productive():
    run = Script()
    for step in range(1, 41):
        run.steps(step, step)
        run.lines += ["times across ranks (ms):", "  forward-compute:"]
        run.lines += [f"     rank {rank:2d}: {1500.0 if rank == 3 else 1000.0 + rank:.2f}" for rank in range(8)]
    assert run.uses()[Use.STRAGGLER] == pytest.approx(40 * 0.4965, rel=0.05)


def test_without_stamps_what_steps_say_is_counted():
    lines = [f"iteration {n}/ 9 | elapsed time per iteration (ms): {5000 if n > 1 else 45000}.0 |" for n in range(1, 9)]
    assert seconds_by_use(read_lines(lines)) == approx(productive=40, compile=40)
    assert seconds_by_use(read_lines(["step: 4 loss: 2.5", "step: 5 loss: 2.4"])) is None


def test_an_account_prices_what_is_held():
    account = Account()
    account.add(Use.WAITING, 100.0, 8, 0.01)
    account.add(Use.PRODUCTIVE, 30.0, 8, 0.01)
    account.add(Use.COMPILE, 10.0, 8, 0.01)
    assert account.goodput == pytest.approx(0.75) and account.elapsed == 140 and account.share(Use.WAITING) is None
    assert account.usd == pytest.approx({Use.PRODUCTIVE: 0.3, Use.COMPILE: 0.1})


def test_the_answer_is_a_document_and_rows():
    run = cw.measure_goodput("examples/logs/slow.log", on="h100:8")
    document = json.loads(json.dumps(run.to_dict()))
    assert sum(use["seconds"] for use in document["uses"]) == pytest.approx(document["elapsed_seconds"])
    assert sum(use["share"] for use in document["uses"]) == pytest.approx(1.0)
    assert sum(row["usd"] for row in run.flat_rows()) == pytest.approx(document["usd"])
    with pytest.raises(cw.Refusal, match="no step"):
        cw.measure_goodput("examples/logs/kernel.log")


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("[2026-11-02 09:00:00.250000] iteration 1", START + 0.25),
        ("2026-11-02T09:00:00,250 INFO x", START + 0.25),
        ("2026-11-02T10:00:00+01:00 x", START),
        ("2026-11-02 04:00:00-0500 x", START),
        ("I1102 09:00:00.250000 7 x.py:1] y", START + 0.25),
        ("INFO 11-02 09:00:00 [loggers.py:271] Engine 000", START),
        ("Nov  2 09:00:00 node17 kernel: x", START),
        (':::MLLOG {"namespace": "", "time_ms": 1793610000250, "key": "x"}', START + 0.25),
        ("INFO 02-30 09:00:00 x", None),
        ("10%|# | 1/9 [26:01<00:22, 1.2it/s]", None),
        ("no stamp at all", None),
    ],
)
def test_a_stamp_is_read_as_its_program_prints_it(line, at):
    clock = Clock(datetime.fromtimestamp(START, UTC).date())
    assert clock.read(line) == (at if at is None else pytest.approx(at))


def test_stamps_without_a_year_go_on_over_new_year():
    clock = Clock(datetime(2026, 1, 3, tzinfo=UTC).date())
    before, after = clock.read("I1231 23:59:59.0 1 x"), clock.read("I0101 00:00:01.0 1 x")
    assert after - before == 2.0 and datetime.fromtimestamp(after, UTC).year == 2026
