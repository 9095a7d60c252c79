"""What a program starts ends with it: real shims, real programs that hide what they leave behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chipwise.route.backends import shim
from patience import PATIENCE_S

SAID = 'while [ ! -s "$PIDS" ]; do sleep 0.02; done'
# a program that leaves a process behind, says its pid in a file and goes
LEAVES = {
    "in the background": 'sleep 300 & echo $! > "$PIDS"',
    "in a session of its own": 'setsid sh -c "echo \\$\\$ > $PIDS; exec sleep 300" & ' + SAID,
    "twice removed": '(setsid sh -c "echo \\$\\$ > $PIDS; exec sleep 300" &); ' + SAID,
    "without its variables": '(env -i setsid sh -c "echo \\$\\$ > $PIDS; exec sleep 300" &); ' + SAID,
    "deaf to signals": "(setsid sh -c \"trap '' TERM HUP INT; echo \\$\\$ > $PIDS; while :; do sleep 1; done\" &); "
    + SAID,
}


def started(folder, command, **more):
    """A shim that runs a shell's command in an attempt's folder."""
    folder.mkdir(exist_ok=True)
    launch = {"attempt": "uid-1-1", "argv": ["sh", "-c", command], "cwd": str(folder), **more}
    launch["environment"] = {"PIDS": str(folder / "pids"), "PATH": os.environ["PATH"]}
    (folder / "launch.json").write_text(json.dumps(launch), encoding="ascii")
    return subprocess.Popen([sys.executable, "-I", "-S", shim.__file__, str(folder), "by"], start_new_session=True)


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def gone(pid):
    until = time.monotonic() + PATIENCE_S
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not runs(pid)


def pid_of(folder):
    until = time.monotonic() + PATIENCE_S
    path = folder / "pids"
    while time.monotonic() < until and not (path.exists() and path.read_text().strip()):
        time.sleep(0.01)
    return int(path.read_text())


@pytest.mark.parametrize("how", LEAVES)
def test_what_a_program_leaves_behind_has_ended_before_its_end_is_written(how, tmp_path):
    process = started(tmp_path / "a", LEAVES[how])
    assert process.wait(PATIENCE_S) == 0
    end = json.loads((tmp_path / "a" / "end").read_bytes())
    assert end["exit_code"] == 0 and not runs(pid_of(tmp_path / "a"))


def test_a_cgroup_is_used_where_there_is_one_and_removed(tmp_path):
    scope = shim.Scope("uid-9-9", str(tmp_path))
    path = scope.path
    scope.leave()
    assert not path or not Path(path).exists()
    process = started(tmp_path / "a", f"{LEAVES['twice removed']}; cat /proc/self/cgroup")
    assert process.wait(PATIENCE_S) == 0 and not runs(pid_of(tmp_path / "a"))
    assert ("/chipwise-uid-1-1" in (tmp_path / "a" / "output").read_text()) == bool(path)
    assert not path or not Path(path.replace("uid-9-9", "uid-1-1")).exists()


def test_without_cgroups_nothing_is_left_either(tmp_path, monkeypatch):
    source = Path(shim.__file__).read_text("utf-8").replace("/proc/self/mountinfo", "/proc/self/no-such-file")
    other = tmp_path / "shim.py"
    other.write_text(source, encoding="utf-8")
    monkeypatch.setattr(shim, "__file__", str(other))
    process = started(tmp_path / "a", f"{LEAVES['without its variables']}; cat /proc/self/cgroup")
    assert process.wait(PATIENCE_S) == 0 and not runs(pid_of(tmp_path / "a"))
    assert "/chipwise-uid-1-1" not in (tmp_path / "a" / "output").read_text()


def test_an_end_has_its_space_though_the_disk_has_filled_up(tmp_path, monkeypatch):
    """Who waits for space may be killed before there is any: work that is done would be done again."""
    source = Path(shim.__file__).read_text("utf-8")
    full = source.replace('atomic_write(os.path.join(folder, "end"), end)', 'raise OSError(errno.ENOSPC, "full")')
    assert full != source
    (tmp_path / "shim.py").write_text(full, encoding="utf-8")
    monkeypatch.setattr(shim, "__file__", str(tmp_path / "shim.py"))
    assert started(tmp_path / "a", "exit 3").wait(PATIENCE_S) == 3
    assert json.loads((tmp_path / "a" / "end").read_bytes())["exit_code"] == 3
    assert not list((tmp_path / "a").glob(".*"))


def test_a_program_that_removes_what_it_does_not_know_has_its_end(tmp_path):
    assert started(tmp_path / "a", "rm -rf .[a-z]* *; exit 4").wait(PATIENCE_S) == 4
    assert json.loads((tmp_path / "a" / "end").read_bytes())["exit_code"] == 4
    assert not list((tmp_path / "a").glob(".*"))


def test_one_that_is_told_to_stop_takes_its_children_with_it(tmp_path):
    process = started(tmp_path / "a", f"trap '' TERM; {LEAVES['deaf to signals']}; sleep 300", grace=0.3)
    left = pid_of(tmp_path / "a")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == shim.BY_SIGNAL + signal.SIGKILL
    assert not runs(left)


def test_a_program_does_not_outlive_a_shim_that_is_killed(tmp_path):
    process = started(tmp_path / "a", 'echo $$ > "$PIDS"; exec sleep 300')
    pid = pid_of(tmp_path / "a")
    assert runs(pid)
    process.kill()
    process.wait(PATIENCE_S)
    assert gone(pid) and not (tmp_path / "a" / "end").exists()


def test_what_an_attempt_writes_is_its_owners_alone(tmp_path):
    assert started(tmp_path / "a", "echo hello").wait(PATIENCE_S) == 0
    for name in ("claim", "end", "output", "alive"):
        assert (tmp_path / "a" / name).stat().st_mode & 0o077 == 0, name


def test_orphans_of_a_long_program_are_waited_for(tmp_path):
    many = 'for i in $(seq 50); do (setsid true &) ; done; sleep 0.5; echo 1 > "$PIDS"; sleep 300'
    process = started(tmp_path / "a", many)
    pid_of(tmp_path / "a")
    assert len(shim.descendants(process.pid)) == 2  # the shell and its sleep: nothing waits to be waited for
    process.terminate()
    assert process.wait(PATIENCE_S) == shim.BY_SIGNAL + signal.SIGTERM


def test_two_ranks_of_an_attempt_on_one_node_do_not_end_each_other(tmp_path):
    """Ray runs the hosts of a gang under one attempt, and two of them may be on one machine."""
    first, second = tmp_path / "attempt", tmp_path / "attempt" / "rank-1"
    long = started(first, "sleep 1; exit 7")
    short = started(second, "exit 5")
    assert short.wait(PATIENCE_S) == 5
    assert long.wait(PATIENCE_S) == 7
