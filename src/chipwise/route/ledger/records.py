"""The rows of the ledger, as plain data. Times are seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job
from chipwise.route.names import JOB_STATES
from chipwise.route.option import Infeasible, Option

# states of a job: it waits; has an attempt under way; ended well; was given up with a reason; was cancelled
PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED = JOB_STATES
OVER = frozenset({SUCCEEDED, FAILED, CANCELLED})
# states of an attempt: written down, submitted to the backend, running; then how it ended
INTENDED, SUBMITTED = "intended", "submitted"
UNDER_WAY = frozenset({INTENDED, SUBMITTED, RUNNING})
ENDS = frozenset({"succeeded", "failed", "lost", "cancelled", "preempted", "refused"})


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job on its way into the ledger, with what it would take in every pool or why it can't run there."""

    job: Job
    options: tuple[Option, ...]
    infeasible: tuple[Infeasible, ...] = ()
    team: str = ""  # of its owner
    scoped: bool = False  # its key is its owner's alone: other owners may have the same


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with where it stands."""

    id: str
    job: Job
    state: str
    submitted: float
    options: tuple[Option, ...]
    infeasible: tuple[Infeasible, ...]
    done: float = 0.0  # share of the work that checkpoints hold
    spent: float = 0.0  # USD of the attempts so far
    reason: str = ""  # why it waits, or why it failed
    failures: int = 0  # attempts that failed by the job's own fault
    failed_at: tuple[str, str] | None = None  # pool and variant of the last attempt, if that failed or was lost
    not_before: float = 0.0  # it waits until then before it is tried again
    cancel: bool = False  # asked for, not yet carried out
    changed: float = 0.0
    submitter: str = ""  # who submitted it, as proven; empty in ledgers of before
    team: str = ""  # of its owner, by the pools file at its submission

    @property
    def user(self) -> str:
        """Whose it is: its owner, else who submitted it."""
        return self.job.owner or self.submitter


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One try at running a job."""

    id: str  # unique over all ledgers; carried by the backend's job
    job_id: str
    number: int
    pool: str
    variant: str
    option: Option
    state: str
    router: str  # who looks after it, while its lease runs
    lease: float
    backend_id: str = ""
    intended: float = 0.0
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    where: str = ""
    reason: str = ""
    restarts: int = 0  # by the backend itself
    stop: str = ""  # asked for, not yet carried out: "cancel", "preempt", "move" or "budget"
    spent: float = 0.0  # USD, once it has ended
    digest: str = ""  # of what was launched: SHA-256 of its launch file
    seen: float = 0.0  # seconds that routers have seen it run, by clocks that no one sets
    expected: Estimate | None = None  # seconds from its start to its end, by what its steps took; None: nobody told


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended, and what becomes of its job."""

    state: str  # one of ENDS
    next: str = PENDING  # of its job: pending, succeeded, failed or cancelled
    reason: str = ""
    not_before: float = 0.0
    done: float | None = None  # share of the job's work that checkpoints hold
    spent: float = 0.0  # USD of this attempt
    exit_code: int | None = None
    started: float | None = None  # as its backend says
    ended: float | None = None
    where: str = ""  # nodes, as its backend says: nobody may have seen it run


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision with the policy that made it."""

    id: int
    at: float
    policy: str
    router: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node of a pool that was drained at some time."""

    pool: str
    node: str
    drained: bool  # no job is to start there; else it was resumed
    reason: str
    since: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    id: int
    at: float
    job_id: str
    attempt: str
    kind: str  # submitted, decided, intended, running, ended, failed, cancelled, retried, ...
    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BackendRow:
    """How a backend has answered of late."""

    name: str
    ok: bool
    since: float
    failures: int = 0  # in a row
    error: str = ""
    next_try: float = 0.0


@dataclass(frozen=True, slots=True)
class RouterRow:
    """A router that has written to the ledger."""

    id: str
    host: str
    pid: int
    policy: str
    started: float
    seen: float
    stopped: float | None = None
