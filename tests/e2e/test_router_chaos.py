"""Routers killed with SIGKILL at random while real processes run, on SQLite and, two at once, on PostgreSQL."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import chaos
import pytest
from local_pools import OPTIONS, SECONDS, local

from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S, leave

pytestmark = pytest.mark.service


def storm(there, number, kills, seed, routers=1):
    there.warm()
    outcome = chaos.run(
        there.router,
        there.url,
        chaos.jobs(there.folder / "logs", number, OPTIONS, SECONDS, seed, kills=kills),
        kills,
        seed,
        there.hurt,
        folder=there.folder,
        logs=there.folder / "logs",
        routers=routers,
        backend_attempts=there.ran,
        env=chaos.environment(),
    )
    print(f"{number} jobs, {outcome.kills} kills, {outcome.seconds:.0f} s, attempts {outcome.attempts}")
    assert outcome.problems == [], outcome.problems[:20]
    assert there.shared() == []
    assert outcome.states == {"succeeded": number} and outcome.kills >= kills and outcome.attempts.get("lost", 0) >= 1
    return outcome


def test_fifty_jobs_end_once_each_though_the_router_is_killed_six_times(tmp_path):
    with local(tmp_path, str(tmp_path / "ledger.db")) as there:
        storm(there, 50, 6, seed=7)


@pytest.mark.slow
def test_five_hundred_jobs_end_once_each_though_the_router_is_killed_thirty_times(tmp_path):
    with local(tmp_path, str(tmp_path / "ledger.db")) as there:
        storm(there, 500, 30, seed=11)


@pytest.mark.slow
def test_two_routers_on_postgresql_share_forty_jobs_though_they_are_killed(tmp_path, postgres):
    with local(tmp_path, postgres.database("few")) as there:
        storm(there, 40, 5, seed=13, routers=2)


@pytest.mark.slow
def test_two_routers_on_postgresql_share_five_hundred_jobs_though_they_are_killed(tmp_path, postgres):
    with local(tmp_path, postgres.database("many")) as there:
        outcome = storm(there, 500, 30, seed=17, routers=2)
        with open_ledger(there.url) as ledger:
            assert len({a.router for a in ledger.attempts()}) == 2, outcome.attempts  # both did their part


def test_a_router_killed_at_each_line_that_matters_loses_and_repeats_nothing(tmp_path):
    """See deadly_router.py: killed before and after every word to the ledger and to the backend."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("deadly_router.py")), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=chaos.environment(),
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) >= 20
    assert [each for each in found if each["problems"]] == []
    assert [each["point"] for each in found if not each["killed"]] == []


def test_sigterm_leaves_in_good_order_and_jobs_go_on(tmp_path):
    with local(tmp_path, str(tmp_path / "ledger.db")) as there:
        there.warm()
        with open_ledger(there.url) as ledger:
            ids = ledger.submit(chaos.jobs(tmp_path / "logs", 3, OPTIONS, (1.0,)), time.time())
            router = chaos.RouterProcess(there.router(0), tmp_path / "router.txt", chaos.environment())
            until = time.monotonic() + PATIENCE_S
            while not any(a.state == "running" for a in ledger.attempts()) and time.monotonic() < until:
                time.sleep(0.02)
            assert leave(router.process) == 0 and "stopped after" in router.said()
            assert ledger.routers()[0].stopped is not None
            last = chaos.RouterProcess(there.router(0), tmp_path / "router.txt", chaos.environment())
            assert last.process.wait(PATIENCE_S) == 0
            assert {ledger.job(each).state for each in ids} == {"succeeded"} and ledger.check() == []
            assert all(len((tmp_path / "logs" / f"{n}.log").read_text().split("\n")) == 3 for n in range(3))
            assert os.environ.get("CHIPWISE_ATTEMPT") is None
