"""A plan: units by supply and period, what lies on them, what is paid, and how good it is proved to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from chipwise.fleet.advice import Advice
from chipwise.fleet.problem import Option, Problem

K = TypeVar("K")
COSTS = {  # kinds of cost as people read them, and their keys in JSON
    "on demand": "ondemand",
    "spot": "spot",
    "commitments": "commitments",
    "capex": "capex",
    "value left": "residual_value",
    "space, upkeep, staff, interest": "upkeep",
    "energy": "energy",
    "existing": "existing",
}


@dataclass(frozen=True, slots=True)
class Holding:
    """Units of one supply in one period."""

    supply: str
    period: int
    units: int  # the most at once
    started: int  # commitments that start, or purchases that are ordered, in this period
    unit_hours: float  # paid for
    usd: float  # paid in this period


@dataclass(frozen=True, slots=True)
class Serving:
    """Units of a pool that answer for a service during one block of a period."""

    service: str
    period: int
    block: int
    pool: str
    units: int


@dataclass(frozen=True, slots=True)
class Running:
    """Hours of one option of a training run in one period."""

    run: str
    period: int
    option: Option
    hours: float


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars of one kind; `period` is None for what falls after the plan's end."""

    period: int | None
    kind: str  # of COSTS
    supply: str
    usd: float


@dataclass(frozen=True, slots=True)
class Usage:
    """How a pool is used in a period."""

    pool: str
    period: int
    held: int
    rented: float  # units by the hour, mean over the period
    used_hours: float  # unit-hours at work
    paid_hours: float
    kw: float  # the most at once
    kg: float

    @property
    def utilization(self) -> float:
        """Share of the unit-hours paid for that are at work."""
        return self.used_hours / self.paid_hours if self.paid_hours else 0.0


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What to rent and buy, and what runs where. `bound` is what no plan can undercut, proved by the solver."""

    problem: Problem
    usd: float
    bound: float
    seconds: float  # of solving
    timed_out: bool
    holdings: tuple[Holding, ...]
    serving: tuple[Serving, ...]
    running: tuple[Running, ...]
    costs: tuple[Cost, ...]
    usage: tuple[Usage, ...]
    peak_kw: tuple[float, ...]  # in each period, in the hours of the day in which all pools together take most

    @property
    def gap(self) -> float:
        """By what share of its cost the plan may at most be undercut."""
        return max(0.0, (self.usd - self.bound) / self.usd) if self.usd > 0 else 0.0

    def by_kind(self) -> dict[str, float]:
        """US dollars by kind of cost, those that occur."""
        sums = _sums((c.kind, c.usd) for c in self.costs)
        return {kind: sums[kind] for kind in COSTS if sums.get(kind)}

    def by_period(self) -> tuple[float, ...]:
        """US dollars paid in each period (what falls after the end is left out)."""
        sums = _sums((c.period, c.usd) for c in self.costs if c.period is not None)
        return tuple(sums.get(t, 0.0) for t in range(len(self.problem.periods)))

    def after(self) -> float:
        """US dollars that fall after the plan's end: what commitments still ask for, less what purchases are worth."""
        return sum(c.usd for c in self.costs if c.period is None)

    def units(self, supply: str) -> tuple[int, ...]:
        """The most units at once in each period."""
        out = [0] * len(self.problem.periods)
        for h in self.holdings:
            if h.supply == supply:
                out[h.period] = h.units
        return tuple(out)

    def used(self) -> tuple[str, ...]:
        """Supplies of which the plan has units, in the order of the problem."""
        some = {h.supply for h in self.holdings if h.units}
        return tuple(s.id for s in self.problem.supplies if s.id in some)

    def utilization(self) -> float:
        """Share of all unit-hours paid for that are at work, weighted by chips."""
        chips = {p.id: p.chips for p in self.problem.pools}
        paid = sum(u.paid_hours * chips[u.pool] for u in self.usage)
        return sum(u.used_hours * chips[u.pool] for u in self.usage) / paid if paid else 0.0

    def kw(self) -> tuple[float, ...]:
        """Power in each period, in the hours of the day in which it is highest."""
        return self.peak_kw

    def kg(self) -> tuple[float, ...]:
        """CO2 in each period."""
        sums = _sums((u.period, u.kg) for u in self.usage)
        return tuple(sums.get(t, 0.0) for t in range(len(self.problem.periods)))

    def mix(self) -> dict[str, float]:
        """Share of the chip-hours paid for, by chip."""
        pools = {p.id: p for p in self.problem.pools}
        sums = _sums((pools[u.pool].chip, u.paid_hours * pools[u.pool].chips) for u in self.usage)
        total = sum(sums.values())
        return {chip: hours / total for chip, hours in sums.items() if hours > 0} if total else {}


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan under another condition: its name, the plan, or why there is none."""

    name: str  # "GPU only", "TPU only", "mixed"
    plan: FleetPlan | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Shadow:
    """What loosening one limit saves: re-solved, not read off the duals."""

    limit: str
    period: int | None  # None: the limit spans the plan
    amount: float  # how much was added
    unit: str
    saves: float  # US dollars over the plan; 0 below the gap
    proved: bool  # whether the saving is larger than what the gaps of both plans leave open
    words: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The plan solved again with demand, prices or speeds changed."""

    name: str  # "demand +20 %"
    plan: FleetPlan | None
    why: str
    change: str  # what changes in the mix, in words


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One of the named constraints of an infeasible demand that has to give way, and by how much."""

    name: str
    amount: float
    unit: str
    words: str
    proved: bool = True  # whether no smaller set would do; False where the time ran out before that was known


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """Everything that `chipwise fleet plan` says."""

    plan: FleetPlan | None  # None: infeasible
    alternatives: tuple[Alternative, ...] = ()
    shadows: tuple[Shadow, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()
    relax: tuple[Relaxation, ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()  # work, pool or chip, reason
    assumptions: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()  # on interconnect and storage, for what runs where


def _sums(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    out: dict[K, float] = defaultdict(float)
    for key, value in pairs:
        out[key] += value
    return dict(out)
