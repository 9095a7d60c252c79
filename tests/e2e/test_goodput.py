"""Goodput of a router's jobs: by the attempts of a real ledger, and by what they printed."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from command import chipwise_here
from ledger_cases import POOLS, start, submission

from chipwise.observe.goodput.fleet import By, fleet_goodput
from chipwise.observe.goodput.records import Use
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import AttemptEnd

NOON = datetime(2026, 10, 31, 12, tzinfo=UTC).timestamp()
HOUR = 3600.0


def attempt(ledger, job, pool, began, ended, state, following, done, spent=0.0):
    """An attempt that waited until it began; times in hours after noon."""
    (row,) = ledger.decide("r1", "fastest", [start(job, pool)], NOON, 30.0, POOLS)
    ledger.mark_submitted(row.id, "4711", NOON)
    ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=NOON + began * HOUR), NOON + began * HOUR)
    how = AttemptEnd(state, following, done=done, spent=spent, ended=NOON + ended * HOUR)
    ledger.end(row.id, how, NOON + ended * HOUR)
    return row.id


@pytest.fixture
def book(tmp_path):
    """A ledger of two jobs: one preempted and tried again, and one that succeeded on another pool."""
    url = str(tmp_path / "ledger.db")
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", NOON, 30.0)
        (first,) = ledger.submit([replace(submission("first", owner="ada"), team="vision")], NOON)
        (second,) = ledger.submit([replace(submission("second", owner="bo"), team="text")], NOON)
        names = [
            attempt(ledger, first, "h100", 1.0, 1.5, "preempted", "pending", 0.3, spent=3.0),
            attempt(ledger, first, "h100", 2.5, 3.2, "succeeded", "succeeded", 1.0, spent=4.2),
            attempt(ledger, second, "v5e", 0.0, 2.0, "succeeded", "succeeded", 1.0, spent=9.6),
        ]
    return url, tmp_path, names


def test_attempts_say_what_was_kept_and_what_was_lost(book):
    answer = fleet_goodput(book[0], By.JOB)
    first, second = answer.groups
    assert (first.name, first.attempts, second.attempts) == ("1 first", 2, 1)
    assert first.account.seconds == pytest.approx(
        {Use.WAITING: 2 * HOUR, Use.PRODUCTIVE: (0.3 + 0.7) * HOUR, Use.LOST_WORK: 0.2 * HOUR}
    )
    assert first.goodput == pytest.approx(1.0 / 1.2) and second.goodput == 1.0
    assert sum(first.account.usd.values()) == pytest.approx(7.2)
    assert answer.total.held == pytest.approx(2 * 1.2 * HOUR + 4 * 2 * HOUR)


@pytest.mark.parametrize(
    ("by", "names"),
    [("pool", ["h100", "v5e"]), ("team", ["vision", "text"]), ("owner", ["ada", "bo"]), ("month", ["2026-10"])],
)
def test_jobs_are_counted_together_by_what_is_asked_for(book, by, names):
    answer = fleet_goodput(book[0], By(by))
    assert [group.name for group in answer.groups] == names
    assert sum(g.account.elapsed for g in answer.groups) == pytest.approx(answer.total.elapsed)


def test_time_over_the_end_of_a_month_is_split(tmp_path):
    url = str(tmp_path / "ledger.db")
    with open_ledger(url) as ledger:
        (job,) = ledger.submit([submission()], NOON)
        attempt(ledger, job, "h100", 0.0, 16.0, "succeeded", "succeeded", 1.0, spent=16.0)
    answer = fleet_goodput(url, By.MONTH)
    assert [(g.name, sum(g.account.seconds.values()) / HOUR) for g in answer.groups] == [
        ("2026-10", pytest.approx(12)),
        ("2026-11", pytest.approx(4)),
    ]
    assert sum(fleet_goodput(url, By.POOL, month="2026-11").total.usd.values()) == pytest.approx(4.0)


def lines(began, first, last, seconds=60.0):
    out = []
    at = began + 600.0  # of start-up
    for step in range(first, last + 1):
        at += seconds
        stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        out.append(f"[{stamp}] iteration {step}/ 40 | elapsed time per iteration (ms): {seconds * 1e3:.1f} |")
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("zone", [0.0, -5 * HOUR])
def test_what_attempts_printed_says_more(book, zone):
    url, folder, names = book
    for name, began, first, last in ((names[0], 1.0, 1, 20), (names[1], 2.5, 13, 40)):
        place = folder / "attempts" / name
        place.mkdir(parents=True)
        (place / "output").write_text(lines(NOON + began * HOUR + zone, first, last), encoding="utf-8")
    answer = fleet_goodput(url, By.JOB, logs=True)
    assert (answer.logs_read, answer.logs_absent) == (2, 1)
    seconds = answer.groups[0].account.seconds
    assert sum(seconds.values()) == pytest.approx((2.0 + 1.2) * HOUR)
    assert seconds[Use.PRODUCTIVE] == pytest.approx(40 * 60) and seconds[Use.WAITING] == pytest.approx(2 * HOUR)
    assert seconds[Use.START_UP] == pytest.approx(600) and seconds[Use.RECOVERY] == pytest.approx(600)
    assert seconds[Use.LOST_WORK] == pytest.approx(8 * 60)  # steps 13 to 20 were done again


def test_the_command_says_it(book):
    env = {"CHIPWISE_LEDGER": book[0]}
    table = chipwise_here("observe", "goodput", "--by", "team", env=env).stdout
    assert "vision" in table and "goodput 96.2 %" in table and "lost work 16.7 %" in table
    document = json.loads(chipwise_here("observe", "goodput", "--month", "2026-10", "-o", "json", env=env).stdout)
    assert document["by"] == "pool" and {use["use"] for use in document["uses"]} == {
        "productive",
        "waiting",
        "lost_work",
    }
    for wrong, words in ((["--month", "october"], "2026-11"), (["--until", "now"], "FILE"), (["--by", "chip"], "team")):
        done = chipwise_here("observe", "goodput", *wrong, env=env)
        assert done.returncode == 2 and words in done.stderr
