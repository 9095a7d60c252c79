"""One way to run a job, with what it would take; or why it can't be."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.predict.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Option:
    """A variant of a job in a pool: what the whole run takes there."""

    pool: str
    variant: str
    chips: int  # occupied, hence paid for
    topology: str  # of a slice; empty elsewhere
    seconds: Estimate  # of the whole run from its start, expected interruptions included
    usd_hour: float  # of all its chips
    watts: float  # of all its chips
    layout: str = ""  # the split that was timed
    usd_once: float = 0.0  # paid whatever the time: data moved
    note: str = ""  # what the estimate rests on, where that is not obvious

    @property
    def usd(self) -> float:
        """What the whole run costs."""
        return self.usd_hour * self.seconds.value / 3600 + self.usd_once


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A variant that can't run in a pool: why, and what would change that."""

    pool: str
    variant: str
    reason: str
    unlock: str = ""
