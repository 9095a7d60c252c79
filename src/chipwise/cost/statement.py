"""What `cost` answers: one bill for each pricing model, side by side, with ranges and all that was assumed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from chipwise.catalog import Accelerators
from chipwise.catalog.economics import Assumption
from chipwise.cost.commitment import BreakEven
from chipwise.cost.onprem import Owned
from chipwise.cost.spot import Expected
from chipwise.io.brief import brief
from chipwise.prices import STALE_DAYS, price_record, quote_record

if TYPE_CHECKING:
    from chipwise.compare.serving.row import ServingRow
    from chipwise.compare.training.row import TrainingRow
    from chipwise.cost.migration import Migration
    from chipwise.workload.model import Workload
    from chipwise.workload.serve import ServingWorkload

ONDEMAND, ONE_YEAR, THREE_YEARS, SPOT, OWNED = "on demand", "1 year", "3 years", "spot", "on-premises"
PRICING_MODELS = (ONDEMAND, ONE_YEAR, THREE_YEARS, SPOT, OWNED)
PARTS = ("compute", "storage", "egress", "energy", "staff", "migration")


@dataclass(frozen=True, slots=True)
class Spread:
    """Where an amount lies: below `p10` once in ten times, below `p90` nine times."""

    p10: float
    p50: float
    p90: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; a percentile that is never reached is null."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Split:
    """US dollars by what they pay for. On-premises `compute` is servers, space and upkeep."""

    compute: float
    storage: float
    egress: float
    energy: float  # 0 where it is part of the price of a chip
    staff: float  # who runs the servers; 0 where that is part of the price
    migration: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.compute + self.storage + self.egress + self.energy + self.staff + self.migration

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the price of a chip-hour comes from."""

    cloud: str  # "" where chips are owned
    region: str
    instance: str
    usd_per_chip_hour: float  # as listed; of owned chips, of a used hour
    date: str
    source: str
    age_days: int
    note: str
    list_usd_per_chip_hour: float | None = None  # of the same source on demand; None where it names none
    chips: float = 1.0  # of one instance or server, where that is known
    own: bool = False  # a company's own price, not a list price

    def __str__(self) -> str:
        name = " ".join(part for part in (self.cloud, self.region, self.instance) if part) or self.source
        return f"{name} (own price)" if self.own else name

    @property
    def stale(self) -> bool:
        """Whether the price is older than STALE_DAYS."""
        return self.age_days > STALE_DAYS

    @property
    def price(self) -> str:
        """US dollars a chip-hour for people; a star marks an old price."""
        return f"{self.usd_per_chip_hour:.2f}{'*' if self.stale else ''}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        price = price_record(
            self.usd_per_chip_hour, self.date, self.age_days, own=self.own, source=self.source, note=self.note
        )
        return quote_record(self.cloud, self.region, self.instance, price)


@brief
@dataclass(frozen=True, slots=True)
class CostOption:
    """What the work costs by one pricing model, at the median of every input, and the range of the total."""

    pricing: str  # one of PRICING_MODELS
    source: Source
    split: Split
    usd: Spread  # of the total
    hours: float  # from beginning to end; of a service, of the month
    hours_range: Spread
    chip_hours: float  # paid for
    kwh: float  # at the meter of the building
    kg_co2: float
    per: tuple[tuple[str, float], ...]  # (unit, US dollars): "run", "epoch", "step", "1M tokens"...
    tornado: tuple[Swing, ...]  # the largest swing first
    expected: Expected | None  # checkpoints, interruptions and what they cost; None of a service
    interruptions_per_hour: float  # of all chips together, each hour
    utilization: float  # of the hours paid for; 1 where only used hours are

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

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "input": self.name,
            "low": self.low,
            "high": self.high,
            "usd_low": self.usd_low,
            "usd_high": self.usd_high,
        }


@dataclass(frozen=True, slots=True)
class Missing:
    """A pricing model without an honest bill, and why."""

    pricing: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rival:
    """A price of a cloud against which owning breaks even at a share of hours used; above 1: never."""

    pricing: str
    source: Source
    utilization: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"pricing": self.pricing, **self.source.to_dict(), "utilization": self.utilization}


@brief
@dataclass(frozen=True, slots=True)
class Purchase:
    """Owning the chips: its parts, a used chip-hour over the share of hours used, and where it meets the clouds."""

    owned: Owned
    chip_w: float
    curve: tuple[tuple[float, float], ...]
    rivals: tuple[Rival, ...]  # the cheapest of every cloud on each pricing model
    offers: tuple[Rival, ...] = ()  # every offer and commitment that could hold the work

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: dollars of one server."""
        o = self.owned
        return {
            "server": o.server.id,
            "servers": o.servers,
            "racks": o.racks,
            "chips": o.chips,
            "years": o.years,
            "capex_usd": o.capex_usd,
            "residual_usd": o.residual_usd,
            "payment_usd_per_month": o.payment_usd_month,
            "maintenance_usd_per_month": o.maintenance_usd_month,
            "colocation_usd_per_month": o.colocation_usd_month,
            "staff_usd_per_month": o.staff_usd_month,
            "energy_usd_per_hour": o.energy_usd_per_hour(self.chip_w),
            "idle_energy_usd_per_hour": o.idle_usd_per_hour,
            "watts": o.server_w(self.chip_w),
            "rack_units": o.server.rack_units,
            "curve": [{"utilization": share, "usd_per_chip_hour": usd} for share, usd in self.curve],
            "break_even": self.offers,
            "date": o.server.price_date,
            "source": o.server.price_source,
            "note": o.server.note,
        }


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """The whole answer for one set of chips."""

    workload: Workload | ServingWorkload
    accelerators: Accelerators
    answer: TrainingRow | ServingRow  # what the hours come from
    basis: str  # "run", "job" or "month": what every total is for
    evidence: str
    because: str
    options: tuple[CostOption, ...]
    missing: tuple[Missing, ...]
    commitments: tuple[BreakEven, ...]
    purchase: Purchase | None
    migration: Migration
    used: tuple[Assumption, ...]  # every assumption behind the numbers, with its source
    notes: tuple[str, ...]
    today: date
    draws: int
    seed: int

    @property
    def cheapest(self) -> CostOption | None:
        """The option with the least total at the median."""
        return min(self.options, key=lambda option: option.total, default=None)

    def by(self, pricing: str) -> CostOption | None:
        """The bill by one pricing model, where there is one."""
        return next((option for option in self.options if option.pricing == pricing), None)
