"""What the verbs of jobs need of a ledger, be it the database itself or a service in front of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from chipwise.route.ledger.records import AttemptRow, BackendRow, DecisionRow, Event, JobRow, NodeRow, RouterRow


class LedgerView(Protocol):
    """A ledger that is read, and changed by its users' commands."""

    where: str  # for messages; passwords masked
    uid: str  # the ledger's own name; empty where a service does not tell

    @property
    def bad_rows(self) -> Mapping[str, Exception]:
        """Rows left out of lists, as they can't be read, by what they are: "job 7"."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def job(self, job_id: str) -> JobRow:
        """One job."""

    def jobs(
        self, state: str | None = None, owner: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[JobRow]:
        """Jobs, newest first."""

    def change(self, what: str, job_ids: Sequence[str], now: float) -> None:
        """Cancel several jobs ("cancel"), or try them again ("retry"): all of them, or none."""

    def attempts(self, job_id: str | None = None) -> list[AttemptRow]:
        """Attempts, in the order of jobs and numbers."""

    def decisions(self, job_id: str, limit: int | None = None) -> list[DecisionRow]:
        """Decisions about a job, oldest first; the last `limit` of them."""

    def events(self, job_id: str | None = None) -> list[Event]:
        """Events, oldest first."""

    def routers(self) -> list[RouterRow]:
        """Routers that have written to this ledger, the last seen first."""

    def backends(self) -> list[BackendRow]:
        """How backends have answered of late."""

    def drain(self, pool: str, on: bool, reason: str, now: float) -> None:
        """Let no job start in a pool, or let them again. What runs there goes on."""

    def drained(self) -> dict[str, str]:
        """Pools in which no job is to start, with the reason."""

    def drain_nodes(self, pool: str, nodes: Sequence[str], on: bool, reason: str, now: float) -> None:
        """Let no job start on some nodes of a pool, or let them again. What runs there goes on."""

    def nodes(self) -> list[NodeRow]:
        """Nodes that were drained or resumed, as they stand now."""

    def totals(self) -> dict[str, dict[str, float]]:
        """Jobs and attempts by state, chips held by pool, dollars spent by pool."""

    def check(self) -> list[str]:
        """What is inconsistent in the ledger, one line each; nothing, in a sound one."""
