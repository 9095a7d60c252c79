import random
import subprocess
import sys
import time

from chipwise.route.backend import BackendDown
from chipwise.route.ledger import open_ledger
from chipwise.route.router.health import Health
from chipwise.route.router.watchdog import EXIT, LEAST_S, Watchdog
from patience import PATIENCE_S

HANGS = """
import os, threading
from chipwise.route.router.watchdog import Watchdog
with Watchdog(0.3, "vm-1", step_s=0.05) as dog:
    {what}
"""


def run(what):
    return subprocess.run(
        [sys.executable, "-c", HANGS.format(what=what)], capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_a_router_that_hangs_is_ended_and_says_where():
    done = run("threading.Lock().acquire() and threading.Event().wait()")
    assert done.returncode == EXIT, done.stderr
    first, *rest = done.stderr.splitlines()
    assert first.startswith("chipwise: router vm-1 has made no scheduling pass for")
    assert any("threading.py" in line and "in wait" in line for line in rest)


def test_a_pipe_that_nobody_writes_to_is_no_place_to_hide(tmp_path):
    what = f"os.mkfifo({str(tmp_path / 'pipe')!r}); os.open({str(tmp_path / 'pipe')!r}, os.O_RDONLY)"
    assert run(what).returncode == EXIT


def test_nobody_need_read_what_it_has_to_say(tmp_path):
    """A pipe that is full and never read must not keep it from ending the router."""
    fill = (
        "os.set_blocking(2, False)\n"
        "    try:\n"
        "        while True: os.write(2, b'x' * 65536)\n"
        "    except BlockingIOError: os.set_blocking(2, True)\n"
        "    threading.Event().wait()"
    )
    with subprocess.Popen([sys.executable, "-c", HANGS.format(what=fill)], stderr=subprocess.PIPE) as process:
        assert process.wait(PATIENCE_S) == EXIT


def test_one_that_makes_passes_goes_on():
    ended = []
    with Watchdog(3.0, "vm-1", ended.append, step_s=0.02) as dog:
        for _ in range(35):
            time.sleep(0.1)
            dog.passed()
    assert ended == []


def test_time_for_which_the_process_itself_was_stopped_does_not_count():
    """Its own looks are what it counts: after a SIGSTOP of hours it has seen a second or two."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal, subprocess, time\n"
            "from chipwise.route.router.watchdog import Watchdog\n"
            "with Watchdog(1.5, 'vm-1', step_s=0.1):\n"
            "    subprocess.Popen(['sh', '-c', f'sleep 3; kill -CONT {os.getpid()}'])\n"
            "    os.kill(os.getpid(), signal.SIGSTOP)\n"
            "    time.sleep(0.2)\n",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr


def test_three_leases_but_never_less_than_a_slow_pass():
    assert Watchdog.of_lease(60.0, "a").limit_s == 180.0 and Watchdog.of_lease(1.0, "a").limit_s == LEAST_S
    assert Watchdog.of_lease(5.0, "a", call_s=600.0).limit_s > 600.0


def test_each_call_to_a_backend_has_its_own_time(tmp_path):
    """Ten slow backends, each within its time-out, must not end the router that serves an eleventh."""
    told = []
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:
        health = Health(ledger, random.Random(1))
        health.asking = lambda: told.append(1)

        def slow():
            raise BackendDown("no answer in 60 s")

        assert health.ask("slurm", 0.0, slow) is None and len(told) == 2
