"""Steps that a loop of one's own tells by `chipwise.observe.step`: what is printed, when, by whom, and how it is read."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chipwise as cw
from chipwise.errors import InputError
from chipwise.observe import own_loop, step
from chipwise.observe.log import read_lines

LOOP = """
import sys
import time
from chipwise.observe import step
for n in range(6):
    time.sleep(0.02)
    step(tokens=1000, loss=3 - n / 2, every=0{more})
print([name for name in ("numpy", "yaml", "typer", "torch", "jax") if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def loop(monkeypatch):
    """A loop that has not begun, of a process that has no rank."""
    monkeypatch.setattr(own_loop, "_LOOP", own_loop._Loop())
    for name in own_loop.RANKS:
        monkeypatch.delenv(name, raising=False)


def program(more="", **environment):
    line = [sys.executable, "-c", LOOP.format(more=more)]
    return subprocess.run(line, capture_output=True, text=True, check=True, env={**os.environ, **environment})


def test_a_loop_of_ones_own_is_read_as_any_trainers():
    done = program()
    log = read_lines(done.stdout.splitlines())
    assert (log.format, log.unread, log.faults, [s.step for s in log.steps]) == ("chipwise", 0, [], [1, 2, 3, 4, 5, 6])
    assert [s.loss for s in log.steps] == [3.0, 2.5, 2.0, 1.5, 1.0, 0.5]
    assert log.steps[0].step_seconds is None  # what came before the first isn't known
    for each in log.steps[1:]:
        assert each.step_seconds >= 0.02 and each.tokens_per_s * each.step_seconds == pytest.approx(1000, rel=1e-4)
    assert None not in [s.at for s in log.steps] and log.ended > log.began
    assert done.stderr == "[]\n"  # nothing else was loaded


def test_several_steps_share_a_line_and_its_mean():
    out = io.StringIO()
    step(10, tokens=5, every=0, to=out)
    for n in range(11, 20):
        step(n, tokens=5, every=1e6, to=out)
    step(20, tokens=5, every=0, to=out)
    first, last = read_lines(out.getvalue().splitlines()).steps
    assert (first.step, last.step) == (10, 20)
    assert last.step_seconds * last.tokens_per_s == pytest.approx(5.0, rel=1e-4)


class OnDevice:
    """A loss whose value takes a wait."""

    fetched = 0

    def __float__(self):
        OnDevice.fetched += 1
        return 1.25


def test_a_loss_on_a_device_is_fetched_for_a_line_alone():
    out = io.StringIO()
    for _ in range(50):
        step(loss=OnDevice(), every=1e6, to=out)
    assert (OnDevice.fetched, out.getvalue().count("\n")) == (1, 1) and "loss=1.25" in out.getvalue()


@pytest.mark.parametrize("name", own_loop.RANKS)
def test_the_first_of_a_jobs_processes_tells(monkeypatch, name):
    out = io.StringIO()
    monkeypatch.setenv(name, "3")
    step(1, to=out)
    assert not out.getvalue()
    step(1, all_ranks=True, to=out)
    assert read_lines([out.getvalue()]).steps[0].rank == "3"
    monkeypatch.setenv(name, "0")
    monkeypatch.setattr(own_loop, "_LOOP", own_loop._Loop())
    step(1, to=out)
    assert out.getvalue().splitlines()[1].split()[1:] == ["[rank0]:", "chipwise", "step=1"]


def test_a_slow_rank_of_a_loop_of_ones_own_is_told_apart():
    lines = []
    for rank, pause in ((0, 0.01), (1, 0.01), (2, 0.05)):
        more = f", all_ranks=True) or time.sleep({pause}"
        lines += program(more, RANK=str(rank)).stdout.splitlines()
    times = {rank: read_lines([x for x in lines if f"[rank{rank}]" in x]).typical("step_seconds") for rank in range(3)}
    assert times[2] > max(times[0], times[1])


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"number": -1}, "number: '-1'"),
        ({"number": 1.5}, "number: '1.5'"),
        ({"number": True}, "number: 'True'"),
        ({"every": -1.0}, "every: "),
        ({"every": float("nan")}, "every: "),
        ({"tokens": -5}, "tokens: "),
        ({"tokens": float("inf")}, "tokens: "),
    ],
)
def test_what_is_no_step_is_refused(words, field):
    with pytest.raises(InputError, match=field):
        step(**words, to=io.StringIO())


@given(
    number=st.one_of(st.integers(0, 10**12), st.integers(0, 2**31 - 1).map(np.int32)),
    loss=st.floats(-1e30, 1e30),
    mfu=st.floats(0, 1),
    tflops=st.floats(0, 1e5),
)
def test_what_is_told_is_read_back(number, loss, mfu, tflops):
    out = io.StringIO()
    step(number, loss=loss, mfu=mfu, tflops_per_device=tflops, every=0, to=out)
    (read,) = read_lines(out.getvalue().splitlines(), "chipwise").steps
    assert read.step == number
    for amount, back in ((loss, read.loss), (mfu, read.mfu), (tflops, read.tflops_per_device)):
        assert back == pytest.approx(amount, rel=1e-5, abs=1e-300)


def test_a_loss_that_is_no_number_any_more_is_told_and_read_as_none():
    out = io.StringIO()
    step(1, loss=float("nan"), to=out)
    assert out.getvalue().endswith("loss=nan\n") and read_lines([out.getvalue()]).steps[0].loss is None


def test_a_tensor_is_a_loss(capsys):
    torch = pytest.importorskip("torch")
    step(7, loss=torch.tensor(0.5, requires_grad=True))
    assert capsys.readouterr().out.endswith("chipwise step=7 loss=0.5\n")


def test_a_file_of_it_is_found_by_itself(tmp_path):
    path = tmp_path / "log"
    path.write_text(program().stdout, encoding="utf-8")
    read = cw.read_log(path).to_dict()
    assert read["format"] == "chipwise" and len(read["steps"]) == 6
