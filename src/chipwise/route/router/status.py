"""How routing stands, from the ledger alone."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.route.ledger import Ledger
from chipwise.route.ledger.liveness import liveness
from chipwise.route.ledger.records import PENDING, BackendRow, JobRow, RouterRow


@dataclass(frozen=True, slots=True)
class Status:
    """How it stands."""

    at: float
    ledger: str
    routers: tuple[tuple[RouterRow, str], ...]  # each with "alive", "dead" or "stopped"
    backends: tuple[BackendRow, ...]
    jobs: dict[str, int]  # by state
    attempts: dict[str, int]  # by state
    drained: dict[str, str]
    oldest: JobRow | None  # the job that has waited for longest
    trouble: tuple[str, ...]  # what is inconsistent in the ledger


def router_status(ledger: Ledger, now: float) -> Status:
    """How routing stands now."""
    totals = ledger.totals()
    waiting = ledger.jobs(state=PENDING)
    return Status(
        now,
        ledger.where,
        tuple((row, liveness(row, now)) for row in ledger.routers()),
        tuple(ledger.backends()),
        {state: int(n) for state, n in totals["jobs"].items()},
        {state: int(n) for state, n in totals["attempts"].items()},
        ledger.drained(),
        min(waiting, key=lambda row: row.submitted, default=None),
        tuple(ledger.check()),
    )
