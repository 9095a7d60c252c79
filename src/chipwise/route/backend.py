"""The interface of a backend, and the data that pass through it. Backends keep no state: the ledger does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from chipwise.errors import ChipwiseError
from chipwise.route.job import Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

# states of an attempt as a backend sees it
PENDING, RUNNING, SUCCEEDED, FAILED, LOST, CANCELLED = "pending", "running", "succeeded", "failed", "lost", "cancelled"
ENDED = frozenset({SUCCEEDED, FAILED, LOST, CANCELLED})
# seconds that one listing may take where it comes in pages (Kubernetes), with the last page and the waits for it
LONGEST_LISTING_S = 240.0


class BackendDown(ChipwiseError):
    """The backend did not answer, answered too late, or answered nonsense: nothing is known; try again later."""


class BackendRefused(ChipwiseError):
    """The backend answered that it will not take this launch: its own words."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One attempt, ready for a backend. `attempt` is unique over all ledgers and is carried by the backend's job."""

    attempt: str  # letters, digits and dashes alone
    number: int  # 1 for the first
    job_id: str
    job: Job
    variant: Variant
    pool: Pool
    option: Option
    folder: Path  # of the attempt: its launch file, claim, output and end; shared with the nodes that run it
    environment: Mapping[str, str]  # complete, but for secrets
    time_limit: float | None = None  # seconds after which the backend may stop it
    digest: str = ""  # of its launch file, which the shim compares before it runs anything


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """An attempt as its backend shows it."""

    attempt: str
    backend_id: str
    state: str  # one of the states above
    exit_code: int | None = None
    started: float | None = None  # seconds since 1970
    ended: float | None = None
    where: str = ""  # nodes
    reason: str = ""  # the backend's own words
    restarts: int = 0  # times that the backend itself has started it again


@dataclass(frozen=True, slots=True)
class Capacity:
    """Chips of a pool."""

    total: int  # that work
    free: int  # that nobody has now
    down: int = 0
    note: str = ""


class Backend(Protocol):
    """A backend. Every call may raise `BackendDown`; none waits longer than its time-out.

    One that can start several attempts without waiting for each has `submit_all` besides (see `Together`).
    """

    name: str

    def render(self, launch: Launch) -> str:
        """What would be submitted, for people to read."""

    def submit(self, launch: Launch) -> str:
        """Submit an attempt; the backend's own id of it. `BackendRefused` where it won't have it."""

    def list(self) -> Sequence[AttemptStatus]:
        """Every attempt of this ledger that is under way; ended ones for as long as the backend shows them.

        Its cost must not grow with what is kept of attempts that ended long ago: `status` is asked for those.
        """

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """Some attempts (attempt, backend id or empty), also those `list` has forgotten; unknown ones are absent."""

    def cancel(self, backend_id: str) -> None:
        """Stop one. It is no error if it has ended."""

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips of each pool."""

    def predicted_start(self, launch: Launch) -> float | None:
        """When it would start, seconds since 1970; None where the backend can't tell."""


@runtime_checkable
class Nodes(Protocol):
    """A backend whose jobs keep off the nodes that a pool is to `avoid`."""

    def node_names(self, pool: Pool) -> Sequence[str]:
        """The nodes of a pool; none where they have no names that a job could be kept off by."""


@runtime_checkable
class Together(Protocol):
    """A backend that starts several attempts at once."""

    def submit_all(self, launches: Sequence[Launch]) -> Sequence[str | BackendDown | BackendRefused]:
        """Submit attempts; of each the backend's own id, or what went wrong with it alone."""
