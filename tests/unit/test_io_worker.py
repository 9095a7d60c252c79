"""Worker processes: real ones, which talk, fall silent, crash and leave others behind."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from chipwise.io.worker import Worker, with_package
from patience import PATIENCE_S


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a worker whose module has this code after `send` is there."""

    def started(code):
        lines = (
            "import os, subprocess, sys, time\nfrom chipwise.io.worker import connect\nsend = connect(*sys.argv[-2:])\n"
        )
        (tmp_path / "child.py").write_text(lines + textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return Worker("child", ["given"], os.environ, tmp_path / "log.txt")

    return started


def heard(worker):
    return [message for message in worker.messages() if message is not None]


def gone(pid):
    """Whether a process ends; waits for it."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_messages_come_in_order_and_the_status_is_the_workers(start):
    with start("send(first=sys.argv[1])\nsend(second=[1, 2])\nsys.exit(7)") as worker:
        assert heard(worker) == [{"first": "given"}, {"second": [1, 2]}]
        assert worker.status == 7


def test_what_was_said_just_before_a_crash_is_not_lost(start):
    with start("for i in range(2000): send(i=i)\nos.abort()") as worker:
        assert [message["i"] for message in heard(worker)] == list(range(2000))
    assert worker.status == -6


def test_a_worker_that_has_closed_its_pipe_is_followed_to_its_end(start, tmp_path):
    wait = f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)"
    with start(f"send(last=True)\nos.close(int(sys.argv[-2]))\n{wait}\nsys.exit(3)") as worker:
        said, ticks_after = [], 0
        for message in worker.messages():
            said += [message] if message else []
            ticks_after += worker.closed
            if ticks_after:
                (tmp_path / "go").touch()
        assert said == [{"last": True}] and ticks_after > 0 and worker.status == 3


def test_nothing_is_left_running_whether_the_worker_ended_or_not(start):
    child = "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], pass_fds=())\n"
    with start(child + "send(pid=child.pid)") as worker:
        left = heard(worker)[0]["pid"]
    assert gone(left)
    with start("send(pid=os.getpid())\ntime.sleep(600)") as worker:
        running = next(message for message in worker.messages() if message)["pid"]
    assert gone(running) and worker.status == -9


def test_last_lines_leave_out_noise_and_blanks(start):
    with start("print('one\\n\\nnoise here\\ntwo', flush=True)\nprint('three', file=sys.stderr)") as worker:
        heard(worker)
    assert worker.last_lines(2, ("noise",)) == "two\nthree"
    assert worker.last_lines(9) == "one\nnoise here\ntwo\nthree"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whether a process lives")
def test_a_worker_dies_with_its_parent_however_that_dies(tmp_path):
    (tmp_path / "child.py").write_text(
        "import os, sys, time\nfrom chipwise.io.worker import connect\n"
        "send = connect(*sys.argv[1:])\nsend(pid=os.getpid())\ntime.sleep(600)\n"
    )
    parent = (
        "import os, pathlib, signal\nfrom chipwise.io.worker import Worker\n"
        f"worker = Worker('child', [], os.environ, pathlib.Path({str(tmp_path / 'log.txt')!r}))\n"
        "print(next(message for message in worker.messages() if message)['pid'], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = with_package({**os.environ, "PYTHONPATH": str(tmp_path)})
    done = subprocess.run(
        [sys.executable, "-c", parent], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == -9, done.stderr
    assert gone(int(done.stdout))
