"""Jobs with when they arrive and every way to run them: what a replay starts from, whatever file they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

from chipwise.predict.estimate import Estimate
from chipwise.route.job import Job
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that arrives. `calm` is what each option takes while its chips are not taken away."""

    id: str
    at: float  # seconds since the trace's start
    job: Job
    options: tuple[Option, ...]
    infeasible: tuple[Infeasible, ...] = ()
    calm: tuple[Estimate, ...] = ()  # as `options`; empty: the same as they

    @property
    def alone(self) -> float:
        """Seconds of its fastest way; nan where there is none."""
        return min((o.seconds.value for o in self.options), default=nan)

    def refusal(self) -> str:
        """Why it can't run anywhere, pool by pool; empty where it can."""
        if self.options:
            least = min(o.usd for o in self.options)
            dear = f"costs ${least:,.2f} at least; its budget is ${self.job.budget:,.2f}"
            return dear if least > self.job.budget else ""
        return "; ".join(f"{u.pool} ({u.variant}): {u.reason}" for u in self.infeasible) or "no pool takes it"


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrivals in the order of time, the pools they meet, and what was assumed in making them."""

    name: str
    kind: str  # "jobs" or "recorded"
    arrivals: tuple[Arrival, ...]
    pools: tuple[Pool, ...]
    assumptions: tuple[str, ...] = field(default=())
    weights: Mapping[str, float] = field(default_factory=dict)  # of policies, as far as the pools file sets them


def in_order(arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """By time; those of one moment as they stood."""
    return tuple(sorted(arrivals, key=lambda a: a.at))
