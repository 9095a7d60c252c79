"""What a replay leaves behind: what became of every job, who held which chips when, and what it was all based on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

SUCCEEDED, PREEMPTED, INTERRUPTED, FAILED = "succeeded", "preempted", "interrupted", "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """Chips that a job held, from a start to whatever ended it."""

    job: int  # its index among the outcome's jobs
    pool: str
    variant: str
    chips: int
    start: float
    end: float
    how: str  # succeeded, preempted, interrupted (spot chips taken away) or failed (a node)
    usd: float
    joules: float
    lost: float = 0.0  # seconds of it that gave no lasting work: repeated later, or spent on restarting


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a job."""

    id: str
    arrival: float
    owner: str
    deadline: float  # inf: none
    alone: float  # seconds of its fastest way, had it the pools to itself; nan where it can't run
    end: float | None  # when it was done; None: it never was
    refused: str = ""  # why it wasn't taken, or never started
    first: float | None = None  # when it first held chips
    weight: float = 1.0

    @property
    def jct(self) -> float | None:
        """Seconds from its arrival to its end."""
        return None if self.end is None else self.end - self.arrival

    @property
    def missed(self) -> bool:
        """Whether it had a deadline and didn't meet it."""
        return self.deadline < inf and (self.end is None or self.end > self.deadline)


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pool as the replay saw it."""

    name: str
    chip: str
    chips: int
    usd_per_chip_hour: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy's replay of a trace. Times are seconds since the trace's start."""

    policy: str
    fates: tuple[Fate, ...]
    runs: tuple[Run, ...]
    pools: tuple[PoolUse, ...]
    cpu_s: float  # of the replay alone: reading and predicting are not in it
    decisions: int  # scheduling passes
    downs: int = 0  # nodes that failed
