"""What `cost` answers: one bill for each kind of terms, side by side, with ranges and all that was assumed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators
from chipwise.catalog.economics import Assumption
from chipwise.cost.commitment import BreakEven
from chipwise.cost.onprem import Owned
from chipwise.cost.spot import Expected

if TYPE_CHECKING:
    from chipwise.compare.serving.row import ServingRow
    from chipwise.compare.training.comparer import TrainingRow
    from chipwise.cost.port import Port
    from chipwise.workload.model import Workload
    from chipwise.workload.serve import ServingWorkload

ONDEMAND, ONE_YEAR, THREE_YEARS, SPOT, OWNED = "on demand", "1 year", "3 years", "spot", "on-premises"
KINDS = (ONDEMAND, ONE_YEAR, THREE_YEARS, SPOT, OWNED)
PARTS = ("compute", "storage", "egress", "energy", "staff", "port")


@dataclass(frozen=True, slots=True)
class Spread:
    """Where an amount lies: below `p10` once in ten times, below `p90` nine times."""

    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class Split:
    """US dollars by what they pay for. On-premises `compute` is servers, space and upkeep."""

    compute: float
    storage: float
    egress: float
    energy: float  # 0 where it is part of the price of a chip
    staff: float  # who runs the servers; 0 where that is part of the price
    port: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.compute + self.storage + self.egress + self.energy + self.staff + self.port


@dataclass(frozen=True, slots=True)
class Source:
    """Where the price of a chip-hour comes from."""

    cloud: str  # "" where chips are owned
    region: str
    instance: str
    usd_per_chip_hour: float  # as listed; of owned chips, of a used hour
    date: str
    source: str
    stale: bool
    note: str
    list_usd_per_chip_hour: float | None = None  # of the same source on demand; None where it names none
    chips: float = 1.0  # of one instance or server, where that is known
    own: bool = False  # a company's own price, not a list price

    def __str__(self) -> str:
        name = " ".join(part for part in (self.cloud, self.region, self.instance) if part) or self.source
        return f"{name} (own price)" if self.own else name


@dataclass(frozen=True, slots=True)
class TermCost:
    """What the work costs on one kind of terms, at the median of every input, and the range of the total."""

    kind: str  # one of KINDS
    source: Source
    split: Split
    usd: Spread  # of the total
    hours: float  # from beginning to end; of a service, of the month
    hours_range: Spread
    chip_hours: float  # paid for
    kwh: float  # at the meter of the building
    kg_co2: float
    per: tuple[tuple[str, float], ...]  # (unit, US dollars): "run", "epoch", "step", "1M tokens"...
    tornado: tuple[Swing, ...]
    expected: Expected | None  # checkpoints, interruptions and what they cost; None of a service
    interruptions_h: float  # of all chips together, each hour
    utilisation: float  # of the hours paid for; 1 where only used hours are

    @property
    def total(self) -> float:
        """US dollars at the median of every input."""
        return self.split.total


@dataclass(frozen=True, slots=True)
class Swing:
    """How far a total goes when one input goes from its 10th to its 90th percentile and the others stay."""

    name: str
    low: float  # the input at its 10th percentile
    high: float
    usd_low: float  # the total there
    usd_high: float

    @property
    def swing(self) -> float:
        """US dollars between the two."""
        return abs(self.usd_high - self.usd_low)


@dataclass(frozen=True, slots=True)
class Missing:
    """A kind of terms without an honest bill, and why."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rival:
    """A price of a cloud against which owning breaks even at a share of hours used; above 1: never."""

    kind: str
    source: Source
    utilisation: float


@dataclass(frozen=True, slots=True)
class Purchase:
    """Owning the chips: its parts, a used chip-hour over the share of hours used, and where it meets the clouds."""

    owned: Owned
    chip_w: float
    curve: tuple[tuple[float, float], ...]
    rivals: tuple[Rival, ...]  # the cheapest of every cloud on each kind of terms
    offers: tuple[Rival, ...] = ()  # every offer and commitment that could hold the work


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """The whole answer for one set of chips."""

    workload: Workload | ServingWorkload
    accelerators: Accelerators
    answer: TrainingRow | ServingRow  # what the hours come from
    basis: str  # "run", "job" or "month": what every total is for
    evidence: str
    because: str
    terms: tuple[TermCost, ...]
    missing: tuple[Missing, ...]
    commitments: tuple[BreakEven, ...]
    purchase: Purchase | None
    port: Port
    used: tuple[Assumption, ...]  # every assumption behind the numbers, with its source
    notes: tuple[str, ...]
    today: date
    draws: int
    seed: int

    @property
    def cheapest(self) -> TermCost | None:
        """The terms with the least total at the median."""
        return min(self.terms, key=lambda term: term.total, default=None)

    def on(self, kind: str) -> TermCost | None:
        """The bill on one kind of terms, where there is one."""
        return next((term for term in self.terms if term.kind == kind), None)
