"""A compile as a process: limits, crashes, Ctrl-C, the death of its parent. Nothing may be left running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_jobs import HERE, job

from chipwise.compiled.cache import Cache
from chipwise.compiled.compiler import WAITING, compile_job
from chipwise.compiled.job import Compiled
from chipwise.compiled.worker.process import Limits
from patience import PATIENCE_S, until

pytestmark = pytest.mark.compiler("tpu")
ASK = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
sys.path.insert(0, {str(HERE)!r})
from real_jobs import job
from chipwise.compiled.compiler import compile_job
if __name__ == "__main__":
    outcome = compile_job(job(sys.argv[1]), progress=lambda stage, _: print(stage, file=sys.stderr))
    print(type(outcome).__name__, *outcome.notes, sep="; ", flush=True)
"""


@pytest.fixture
def pids(tmp_path, monkeypatch):
    """Where a program writes its process ids."""
    path = tmp_path / "pids"
    monkeypatch.setenv("CHIPWISE_TEST_COUNT", str(path))
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a killed process leaves its folder
    return Cache(tmp_path / "cache")


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ask(name):
    """Another process that compiles a program."""
    line = [sys.executable, "-c", ASK, name]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_compile_past_its_time_is_stopped_with_all_it_started(cache, pids):
    limit_s = 3.0
    while not pids.exists():  # a busy machine has not begun the import within the first limit
        limit_s *= 2
        refused = compile_job(job("odd:hangs"), Limits(seconds=limit_s, bytes=None), cache=cache)
    assert refused.stage == "limit"
    assert "time limit" in refused.reason
    assert "importing" in refused.reason
    assert not any(running(pid) for pid in pids.read_text().split())
    assert cache.entries() == []


def test_a_compile_past_its_memory_is_stopped(cache):
    refused = compile_job(job("odd:grows"), Limits(seconds=PATIENCE_S, bytes=1_500_000_000), cache=cache)
    assert refused.stage == "limit"
    assert "1.40 GiB of this machine's memory" in refused.reason
    assert cache.entries() == []


@pytest.mark.parametrize(("name", "said"), [("segfaults", "SIGSEGV"), ("aborts", "Check failed: shape.rank() == 2")])
def test_a_crash_is_told_with_its_last_line_and_not_kept(cache, name, said):
    refused = compile_job(job(f"odd:{name}"), cache=cache)
    assert (refused.stage, refused.repeatable) == ("compile", False)
    assert said in refused.reason
    assert "SIG" in refused.reason
    assert cache.entries() == []


def test_a_check_that_fails_inside_the_compiler_is_told(cache):
    option = "xla_tpu_enable_cross_module_binomial_all_reduce"  # ends libtpu 0.0.42 on more than one device
    outcome = compile_job(job("odd:summed", on="v5p:4", options={option: "true"}, mesh={"data": 4}), cache=cache)
    if isinstance(outcome, Compiled):
        pytest.skip("this version of libtpu takes the option")
    assert "SIGABRT" in outcome.reason
    assert "Check failed" in outcome.reason
    assert not outcome.repeatable


def test_stages_are_told_and_nothing_is_printed(cache, capfd):
    reports = []
    outcome = compile_job(job("odd:noisy"), progress=lambda *report: reports.append(report), cache=cache)
    assert isinstance(outcome, Compiled)
    stages = list(dict.fromkeys(stage for stage, _ in reports))
    slow_start = stages[:1] == ["starting"]  # a worker that a busy machine starts late is told as that
    assert stages[slow_start:] == ["importing", "tracing", "compiling", "reading"]
    assert [seconds for _, seconds in reports] == sorted(seconds for _, seconds in reports)
    assert capfd.readouterr() == ("", "")


def test_control_c_stops_the_worker(cache, pids):
    with ask("odd:hangs") as asking:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        asking.send_signal(signal.SIGINT)
        asking.communicate(timeout=PATIENCE_S)
    until(lambda: not any(running(pid) for pid in pids.read_text().split()))
    assert asking.returncode != 0


def test_the_worker_dies_with_its_parent(cache, pids):
    with ask("odd:hangs") as asking:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        worker, child = pids.read_text().split()
        asking.kill()
        asking.communicate(timeout=PATIENCE_S)
    until(lambda: not running(worker))
    os.kill(int(child), signal.SIGKILL)  # started by the user's program: beyond what the kernel ends for us


def test_flags_in_the_environment_are_said_not_to_count(cache, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_tpu_enable_nothing=true")
    outcome = compile_job(job("odd:plain"), cache=cache)
    assert isinstance(outcome, Compiled)
    assert any("XLA_FLAGS" in note for note in outcome.notes)


def test_two_checks_at_once_compile_once(cache, pids, monkeypatch):
    monkeypatch.setenv("CHIPWISE_TEST_SLEEP", "2")
    asking = [ask("odd:counted") for _ in range(2)]
    said = [each.communicate(timeout=PATIENCE_S) for each in asking]
    assert [out for out, _ in said] == ["Compiled\n", "Compiled\n"], said
    assert len(pids.read_text().split()) == 1
    assert sum(WAITING in err for _, err in said) == 1
    assert len(cache.entries()) == 1


def test_a_lock_is_free_once_its_holder_was_killed(cache, pids, monkeypatch):
    monkeypatch.setenv("CHIPWISE_TEST_SLEEP", "600")
    with ask("odd:counted") as asking:
        until(lambda: pids.exists() and pids.read_text().split())
        monkeypatch.setenv("CHIPWISE_TEST_SLEEP", "0")
        with ask("odd:counted") as second:
            time.sleep(1.0)
            assert second.poll() is None
            asking.kill()
            told = second.communicate(timeout=PATIENCE_S)
        asking.communicate(timeout=PATIENCE_S)
    assert told[0] == "Compiled\n", told


def _in_own_mounts(script):
    """Run a shell script where it may mount without touching the rest of the machine."""
    flags = ["-m"] if os.geteuid() == 0 else ["-Urm"]
    return subprocess.run(
        ["unshare", *flags, "sh", "-ec", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def _may_mount(folder):
    try:
        return _in_own_mounts(f"mount -t tmpfs -o size=16k tmpfs {folder}").returncode == 0
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "said"), [("size=8k", "No space left on device"), ("size=1m,ro", "Read-only file system")]
)
def test_a_cache_folder_that_can_not_be_written_still_answers(tmp_path, options, said):
    folder = tmp_path / "cache"
    folder.mkdir()
    if not _may_mount(folder):
        pytest.skip("this system lets nobody mount a small disk")
    (tmp_path / "ask.py").write_text(ASK)
    script = f"""
    mount -t tmpfs -o {options} tmpfs {folder}
    CHIPWISE_CACHE={folder} {sys.executable} {tmp_path / "ask.py"} odd:plain
    find {folder} -type f -size +0 -o -name 'part-*'
    """
    done = _in_own_mounts(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Compiled; not cached: {said} ({folder})\n"


def test_a_full_temporary_folder_is_said(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    if not _may_mount(folder):
        pytest.skip("this system lets nobody mount a small disk")
    (tmp_path / "ask.py").write_text(ASK.replace("*outcome.notes", "outcome.reason"))
    script = f"""
    mount -t tmpfs -o size=8k tmpfs {folder}
    TMPDIR={folder} CHIPWISE_CACHE={tmp_path / "cache"} {sys.executable} {tmp_path / "ask.py"} odd:plain
    find {folder} -mindepth 1
    """
    done = _in_own_mounts(script)
    assert done.stdout.startswith("Refused; the result could not be written: No space left on device"), done
    assert done.stdout.count("\n") == 1
