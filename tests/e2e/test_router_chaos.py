"""Routers killed with SIGKILL at random while real processes run, on SQLite and, two at once, on PostgreSQL."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import chaos
import pytest

from chipwise.route.backend import RUNNING
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.launch import claim_of, end_of
from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S

pytestmark = pytest.mark.service

POOLS = """
folder: {folder}
pools:
  - {{name: near, backend: local, chip: cpu, count: 6}}
  - {{name: far, backend: local, chip: cpu, count: 6}}
"""
OPTIONS = [chaos.option("near", 0.3), chaos.option("far", 0.2)]
SECONDS = (0.0, 0.05, 0.1, 0.4, 1.0)


class Local:
    """Local pools of a ledger, and what can be done to them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.pools = folder / "pools.yaml"
        self.pools.write_text(POOLS.format(folder=folder / "state"), encoding="utf-8")
        with open_ledger(url) as ledger:
            self.backend = LocalBackend(folder / "state" / ledger.uid)

    def router(self, n: int):
        return chaos.command(
            "router",
            "run",
            "--pools",
            self.pools,
            "--ledger",
            self.url,
            "--policy",
            "fastest",
            "--interval",
            "0.1s",
            "--lease",
            "5s",
            "--until-idle",
        )

    def warm(self):
        """Compile what placing needs: a router that is killed while it compiles starts over."""
        subprocess.run(self.router(0), check=True, capture_output=True, env=chaos.environment(), timeout=PATIENCE_S)

    def hurt(self, what: str):
        """The far pool goes down with all that runs there, and comes back."""
        until = time.monotonic() + PATIENCE_S
        while what == "down" and not self.kill("far") and time.monotonic() < until:
            time.sleep(0.01)  # until something runs there
        with open_ledger(self.url) as ledger:
            ledger.drain("far", what == "down", "its node is down", time.time())
        if what == "down":
            self.kill("far")

    def kill(self, pool: str = "") -> int:
        """Kill shims and programs; how many shims."""
        claims = {
            s.attempt: claim_of(self.backend.attempts / s.attempt) for s in self.backend.list() if s.state == RUNNING
        }
        theirs = {attempt: claim for attempt, claim in claims.items() if not pool or claim.pool == pool}
        for attempt, claim in theirs.items():
            processes.send(claim.pid, claim.start, signal.SIGKILL)
            for pid, start in processes.left_behind(attempt, claim.pid, claim.start, claim.boot):
                processes.send(pid, start, signal.SIGKILL)
        return len(theirs)

    def shared(self) -> list[str]:
        """Chips that two attempts had at a time."""
        by_chip = {}
        for folder in self.backend.attempts.iterdir():
            claim, end = claim_of(folder), end_of(folder)
            for chip in claim.chips if claim is not None and end is not None else ():
                by_chip.setdefault((claim.pool, chip), []).append((claim.at, end.ended, folder.name))
        return [
            f"{one[2]} and {two[2]} both had {chip}"
            for chip, held in by_chip.items()
            for one, two in pairwise(sorted(held))
            if two[0] < one[1]
        ]

    def ran(self) -> set[str]:
        return {seen.attempt for seen in self.backend.list()}


@contextmanager
def local(folder, url):
    """Local pools; nothing of theirs runs on afterwards."""
    found = Local(folder, url)
    try:
        yield found
    finally:
        found.kill()


def storm(there, number, kills, seed, routers=1):
    there.warm()
    outcome = chaos.run(
        there.router,
        there.url,
        chaos.jobs(there.folder / "logs", number, OPTIONS, SECONDS, seed),
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
            router.process.send_signal(signal.SIGTERM)
            assert router.process.wait(60) == 0 and "stopped after" in router.said()
            assert ledger.routers()[0].stopped is not None
            last = chaos.RouterProcess(there.router(0), tmp_path / "router.txt", chaos.environment())
            assert last.process.wait(100) == 0
            assert {ledger.job(each).state for each in ids} == {"succeeded"} and ledger.check() == []
            assert all(len((tmp_path / "logs" / f"{n}.log").read_text().split("\n")) == 3 for n in range(3))
            assert os.environ.get("CHIPWISE_ATTEMPT") is None
