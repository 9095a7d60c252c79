"""Local pools of a ledger, and what can be done to them."""

import signal
import subprocess
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import chaos

from chipwise.route.backend import RUNNING
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.launch import claim_of, end_of
from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S

POOLS = """
folder: {folder}
pools:
  - {{name: near, backend: local, chip: cpu, count: {count}}}
  - {{name: far, backend: local, chip: cpu, count: {count}}}
"""
OPTIONS = [chaos.option("near", 0.3), chaos.option("far", 0.2)]
SECONDS = (0.0, 0.05, 0.1, 0.4, 1.0)


class Local:
    """Local pools of a ledger, and what can be done to them."""

    def __init__(self, folder: Path, url: str, chips: int = 6) -> None:
        """`chips`: of each of the two pools."""
        self.folder, self.url = folder, url
        self.pools = folder / "pools.yaml"
        self.pools.write_text(POOLS.format(folder=folder / "state", count=chips), encoding="utf-8")
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
            "12s",
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
            for pid, start in processes.left_behind(
                self.backend.attempts / attempt, claim.pid, claim.start, claim.boot
            ):
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
        return chaos.known_to(self.backend)


@contextmanager
def local(folder, url):
    """Local pools; nothing of theirs runs on afterwards."""
    found = Local(folder, url)
    try:
        yield found
    finally:
        found.kill()
