"""The columns of the planning program by what they mean, and what each of them pays, takes and works."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.fleet.mip import MixedIntegerProgram
from chipwise.fleet.problem import Limit, Problem

EPS = 1e-9
CONSTANT = -1  # the column of what is paid anyway


@dataclass(frozen=True, slots=True)
class Pay:
    """Dollars per unit of a column: in which period (None: after the plan), what for, and for which supply or pool."""

    column: int
    usd: float
    period: int | None
    kind: str
    supply: str


@dataclass(frozen=True, slots=True)
class Take:
    """Units at once per unit of a column; `block` None: in all of them. Those of one `queue` never come together."""

    column: int
    units: float
    supply: str
    period: int
    block: int | None
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """Unit-hours per unit of a column in a pool: paid for, and at work."""

    column: int
    pool: str
    period: int
    paid: float
    used: float


@dataclass(slots=True)
class Model:
    """A problem built as a program, with the columns by what they mean."""

    problem: Problem
    limits: tuple[Limit, ...]
    program: MixedIntegerProgram = field(default_factory=MixedIntegerProgram)
    x: dict[tuple[int, str, int, int], int] = field(default_factory=dict)
    hired: dict[tuple[str, int, int], int] = field(default_factory=dict)
    begun: dict[tuple[str, int], int] = field(default_factory=dict)
    held: dict[tuple[str, int], int] = field(default_factory=dict)
    chosen: dict[tuple[int, int], int] = field(default_factory=dict)
    active: dict[tuple[int, int, int], int] = field(default_factory=dict)
    part: dict[tuple[int, int, int], tuple[int, float]] = field(default_factory=dict)
    pays: list[Pay] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    covers: list[tuple[list[tuple[int, float]], float]] = field(default_factory=list)  # units that must carry a load
    limit_rows: dict[int, tuple[int, int | None]] = field(default_factory=dict)  # row -> limit, period
    broken: dict[str, tuple[int, list[tuple[int, float]]]] = field(default_factory=dict)  # relaxed: switch, slacks

    def pay(self, column: int, usd: float, period: int | None, kind: str, supply: str) -> None:
        """A cost of a column; of nothing where it is 0."""
        if usd:
            self.pays.append(Pay(column, usd, period, kind, supply))
            if column != CONSTANT:
                self.program.cost[column] += usd

    @property
    def constant(self) -> float:
        """Dollars that are paid whatever is decided."""
        return sum(p.usd for p in self.pays if p.column == CONSTANT)


def all_limits(problem: Problem) -> tuple[Limit, ...]:
    """The limits of a problem and those of its supplies, which have the name ``quota of SUPPLY``."""
    own = (
        Limit(f"quota of {s.id}", "units", s.limit, (s.id,))
        for s in problem.supplies
        if s.limit is not None and s.pricing != "existing"
    )
    return (*problem.limits, *own)


def constraint_names(problem: Problem) -> list[str]:
    """Every constraint that could give way: limits, exclusives, loads of services and deadlines of runs."""
    return [
        *dict.fromkeys(limit.name for limit in all_limits(problem)),
        *(e.name for e in problem.exclusives),
        *(f"load of {s.name}" for s in problem.services),
        *(f"deadline of {r.name}" for r in problem.runs),
    ]


def slack(model: Model, name: str, most: float) -> list[tuple[int, float]]:
    """A column by which a constraint may be broken up to `most`; none in a program that is not elastic."""
    if name not in model.broken or most <= 0:
        return []
    switch, slacks = model.broken[name]
    column = model.program.column(most)
    model.program.row([(column, 1.0), (switch, -most)], high=0.0)
    slacks.append((column, 1 / most))
    return [(column, 1.0)]
