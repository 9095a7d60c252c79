"""The state of routing, from the ledger alone: routers, backends, jobs by state, what is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Table, Text
from chipwise.present.columns import Column, record, table
from chipwise.present.numbers import duration, plural
from chipwise.present.result import Result
from chipwise.route.ledger import LedgerView, RemoteLedger, open_view
from chipwise.route.ledger.codec import unpack
from chipwise.route.ledger.liveness import liveness
from chipwise.route.ledger.records import PENDING, BackendRow, JobRow, NodeRow, RouterRow

TOGETHER_S = 1.0  # jobs submitted within it have waited equally long, as far as people care


@dataclass(frozen=True, slots=True, repr=False)
class RouterStatus(Result):
    """How routing stands."""

    VERB: ClassVar[str] = "router status"
    at: float  # seconds since 1970
    ledger: str
    routers: tuple[tuple[RouterRow, str], ...]  # each with "alive", "dead" or "stopped"
    backends: tuple[BackendRow, ...]
    jobs: dict[str, int]  # by state
    attempts: dict[str, int]  # by state
    drained: dict[str, str]
    nodes: tuple[NodeRow, ...]  # that are drained
    oldest: JobRow | None  # the job that has waited for longest
    inconsistencies: tuple[str, ...]  # of the ledger
    as_old: int = 0  # pending jobs that were submitted within a second of the oldest

    @property
    def oldest_wait_s(self) -> float | None:
        """Seconds that the job has waited which has waited for longest."""
        return None if self.oldest is None else max(0.0, self.at - self.oldest.submitted)

    @property
    def router_columns(self) -> list[Column[tuple[RouterRow, str]]]:
        """The columns of a router."""
        return [
            Column("id", lambda r: r[0].id, "router", words=True),
            Column("liveness", lambda r: r[1], "liveness", words=True),
            Column("host", lambda r: r[0].host, "host", words=True),
            Column("pid", lambda r: r[0].pid, "pid"),
            Column("policy", lambda r: r[0].policy, "policy", words=True),
            Column("started", lambda r: r[0].started),
            Column("seen", lambda r: r[0].seen, "seen", lambda r: f"{duration(self.at - r[0].seen)} ago"),
            Column("stopped", lambda r: r[0].stopped),
        ]

    @property
    def backend_columns(self) -> list[Column[BackendRow]]:
        """The columns of a backend."""

        def next_try(row: BackendRow) -> str:
            return "" if row.ok else f"in {duration(row.next_try - self.at)}"

        return [
            Column("name", lambda b: b.name, "backend", words=True),
            Column("ok", lambda b: b.ok, "answers", lambda b: "yes" if b.ok else "no", words=True),
            Column("since", lambda b: b.since, "since", lambda b: f"{duration(self.at - b.since)} ago"),
            Column("failures", lambda b: b.failures, "failures"),
            Column("next_try", lambda b: None if b.ok else b.next_try, "next try", next_try),
            Column("error", lambda b: b.error, "error", words=True),
        ]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "at": self.at,
            "ledger": self.ledger,
            "routers": [record(self.router_columns, router) for router in self.routers],
            "backends": [record(self.backend_columns, backend) for backend in self.backends],
            "jobs": self.jobs,
            "attempts": self.attempts,
            "drained": self.drained,
            "drained_nodes": [{"pool": row.pool, "node": row.node, "reason": row.reason} for row in self.nodes],
            "oldest_wait_seconds": self.oldest_wait_s,
            "oldest_pending_job": None if self.oldest is None else self.oldest.id,
            "inconsistencies": self.inconsistencies,
        }

    def blocks(self) -> list[Block]:
        """For people."""
        routers, backends = self.routers, self.backends
        jobs = [[state, str(count)] for state, count in self.jobs.items()] or [["none", "0"]]
        none = Text("No router has run on this ledger.")
        wrong = self.inconsistencies
        return [
            Text(f"ledger {self.ledger}"),
            table(self.router_columns, routers, title="Routers") if routers else none,
            *([table(self.backend_columns, backends, title="Backends")] if backends else []),
            Table(["jobs", "count"], jobs, frozenset({"jobs"}), title="Jobs"),
            *(Text(f"Pool {pool} is drained: {reason}") for pool, reason in self.drained.items()),
            *(Text(f"Node {row.node} of {row.pool} is drained: {row.reason}") for row in self.nodes),
            *_oldest(self),
            Text("The ledger is NOT consistent:" if wrong else "The ledger is consistent."),
            *(Text(f"  {line}") for line in wrong),
        ]


def _oldest(status: RouterStatus) -> list[Block]:
    oldest, waited = status.oldest, status.oldest_wait_s
    if oldest is None or waited is None:
        return []
    if status.as_old:
        others = f"job {oldest.id} and {plural(status.as_old, 'other')} submitted with it"
        return [Text(f"The longest wait is {duration(waited)}: {others} ({oldest.reason})")]
    return [Text(f"Job {oldest.id} has waited for longest: {duration(waited)} ({oldest.reason})")]


def router_status(ledger: str = "") -> RouterStatus:
    """How routing stands now."""
    with open_view(ledger, create=False) as book:
        if isinstance(book, RemoteLedger):
            return replace(unpack(RouterStatus, book.status()), ledger=book.where)
        return status_at(book, time.time())


def status_at(ledger: LedgerView, now: float) -> RouterStatus:
    """How routing stood at a time, by a ledger that is open."""
    totals = ledger.totals()
    pending = ledger.jobs(state=PENDING)
    oldest = min(pending, key=lambda row: row.submitted, default=None)
    return RouterStatus(
        now,
        ledger.where,
        tuple((row, liveness(row, now)) for row in ledger.routers()),
        tuple(ledger.backends()),
        {state: int(n) for state, n in totals["jobs"].items()},
        {state: int(n) for state, n in totals["attempts"].items()},
        ledger.drained(),
        tuple(row for row in ledger.nodes() if row.drained),
        oldest,
        tuple(ledger.check()),
        0 if oldest is None else sum(row.submitted - oldest.submitted < TOGETHER_S for row in pending) - 1,
    )
