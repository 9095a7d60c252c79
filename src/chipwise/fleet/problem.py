"""The planning problem as plain numbers: it knows nothing of how fast a chip is or who sells it.

A *pool* is a place where units (nodes, or hosts of a slice) are alike and can stand in for each other. *Supplies* are
the terms on which a pool's units can be had. Services and training runs use units of pools.

Units of a pool are **held** for whole periods (commitments, purchases, what exists already) or rented **by the hour**
(on demand, spot). A service takes units of both kinds; a training run lies on held units of a pool, or on one supply
by the hour, whole for every hour that it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

HOURLY = ("ondemand", "spot")
COMMITTED = ("year1", "year3")
PRICING = (*HOURLY, *COMMITTED, "owned", "existing")
FAMILIES = ("gpu", "tpu", "other")
LIMITS = ("units", "chips", "kw", "rack_units", "usd", "kg")


@dataclass(frozen=True, slots=True)
class Period:
    """A month or a quarter."""

    name: str  # "2027-03" or "2027 Q3"
    hours: float


@dataclass(frozen=True, slots=True)
class Block:
    """Hours of the day that are alike, such as those of the peak; the shares of all blocks add up to 1."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Pool:
    """Units that are alike: one chip, one cloud and region (or site), one size."""

    id: str
    chip: str
    family: str  # of FAMILIES
    chips: int  # in one unit
    region: str = ""
    watts_idle: float = 0.0  # of a unit that is held and idle, cooling included
    watts_busy: float = 0.0  # of a unit at work
    usd_per_kwh: float = 0.0  # 0 where energy is in the price
    kg_per_kwh: float = 0.0  # CO2 of a kWh

    def energy_usd(self, busy: bool) -> float:
        """US dollars of energy for an hour of one unit."""
        return (self.watts_busy if busy else self.watts_idle) / 1000 * self.usd_per_kwh

    def carbon_kg(self, busy: bool) -> float:
        """Kilograms of CO2 for an hour of one unit."""
        return (self.watts_busy if busy else self.watts_idle) / 1000 * self.kg_per_kwh


@dataclass(frozen=True, slots=True)
class Supply:
    """A pricing model by which units of a pool can be had."""

    id: str
    pool: str
    pricing: str  # of PRICING
    usd_per_unit_hour: float = 0.0  # per unit-hour: when rented, or at all hours of a commitment
    term: int = 0  # periods that a commitment or a purchase lasts; 0: to the end of the plan and beyond
    capex: float = 0.0  # US dollars per unit, paid when ordered
    resale: float = 0.0  # US dollars that a unit is worth when it is new
    keeps: float = 1.0  # share of its worth that it keeps from one period to the next
    usd_period: float = 0.0  # per unit and period while held: space, maintenance, staff
    rack_units: float = 0.0  # per unit, on premises
    lead: int = 0  # periods between an order and the first use
    existing: tuple[int, ...] = ()  # units per period, for "existing"
    idle_usd: tuple[float, ...] = ()  # beside them: dollars per period for units that are not there for all of it
    limit: int | None = None  # most units at once; None: as many as are wanted

    @property
    def hourly(self) -> bool:
        """Whether it is paid by the hour."""
        return self.pricing in HOURLY

    @property
    def started(self) -> bool:
        """Whether units begin in one period and last for several."""
        return self.pricing in (*COMMITTED, "owned")

    def ends(self, begin: int, periods: int) -> int:
        """The period after the last in which units that begin in `begin` are held, within the plan."""
        return min(periods, begin + self.term) if self.term else periods

    def worth(self, held: int) -> float:
        """US dollars that a unit is worth after so many periods.

        >>> Supply("s", "p", "owned", capex=120.0, resale=100.0, keeps=0.5).worth(2)
        25.0
        """
        return self.resale * self.keeps**held


@dataclass(frozen=True, slots=True)
class Option:
    """A way to run a training run: so many units at once for so many hours.

    `supply` is empty for held units of the pool, or names a supply that is paid by the hour. `spare` units stand by.
    """

    pool: str
    supply: str
    units: int
    hours: float
    spare: int = 0
    paid: float = 1.0  # share of the hours that is billed: spot chips that are waited for are not

    @property
    def takes(self) -> int:
        """Units at once, those that stand by included."""
        return self.units + self.spare


@dataclass(frozen=True, slots=True)
class Run:
    """Training to be done within a window of periods. Runs of one `queue` take turns: never two at a time."""

    name: str
    first: int  # the first period in which it may run
    last: int  # the last one
    options: tuple[Option, ...]
    split: bool = False  # whether it may move between options
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """Requests to be answered: the load in each period and block, and what one replica in a pool carries."""

    name: str
    load: tuple[tuple[float, ...], ...]  # [period][block]
    carries: tuple[tuple[str, float], ...]  # pool and load per replica
    spare_share: float = 0.0  # load carried beyond the demand
    spare_units: int = 0  # replicas that may fail with the load still carried: the largest that it uses in the plan
    spans: tuple[tuple[str, int], ...] = ()  # pool and units of one replica, where it takes more than one

    def units(self, pool: str) -> int:
        """Units of one replica in a pool; several smaller replicas within a unit count as one."""
        return dict(self.spans).get(pool, 1)

    def need(self, period: int, block: int) -> float:
        """The load with its spare share."""
        return self.load[period][block] * (1 + self.spare_share)


@dataclass(frozen=True, slots=True)
class Limit:
    """A named cap on what some supplies use: units at once, power, rack units, dollars paid, or CO2.

    It holds in each of `periods` (empty: all) by itself; with `total`, dollars or CO2 are capped over them together.
    """

    name: str
    kind: str  # of LIMITS
    amount: float
    supplies: tuple[str, ...] = ()  # empty: all
    periods: tuple[int, ...] = ()
    total: bool = False


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Of these sets of supplies at most one may be used: commitments that shut each other out."""

    name: str
    sides: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that a plan is made from."""

    periods: tuple[Period, ...]
    blocks: tuple[Block, ...]
    pools: tuple[Pool, ...]
    supplies: tuple[Supply, ...]
    runs: tuple[Run, ...] = ()
    services: tuple[Service, ...] = ()
    limits: tuple[Limit, ...] = ()
    exclusives: tuple[Exclusive, ...] = ()
    prorate: bool = False  # count of a commitment only what is paid within the plan
    overrun_hours: float = 730.0  # hours of a period beyond the plan

    def pool(self, name: str) -> Pool:
        """The pool of that id."""
        return next(p for p in self.pools if p.id == name)

    def supply(self, name: str) -> Supply:
        """The supply of that id."""
        return next(s for s in self.supplies if s.id == name)

    def only(self, families: tuple[str, ...]) -> Problem:
        """The problem with new units of these families alone; what exists already stays, and is paid."""
        allowed = {p.id for p in self.pools if p.family in families}
        supplies = tuple(s for s in self.supplies if s.pool in allowed or s.pricing == "existing")
        names = {s.id for s in supplies}
        runs = tuple(
            replace(r, options=tuple(o for o in r.options if o.pool in allowed and (not o.supply or o.supply in names)))
            for r in self.runs
        )
        services = tuple(replace(s, carries=tuple(c for c in s.carries if c[0] in allowed)) for s in self.services)
        return replace(self, supplies=supplies, runs=runs, services=services)

    def scaled(self, demand: float = 1.0, price: float = 1.0) -> Problem:
        """The problem with all demand or all prices of new rentals and purchases multiplied."""
        runs = tuple(
            replace(r, options=tuple(replace(o, hours=o.hours * demand) for o in r.options)) for r in self.runs
        )
        services = tuple(
            replace(s, load=tuple(tuple(x * demand for x in row) for row in s.load)) for s in self.services
        )
        supplies = tuple(
            s
            if s.pricing == "existing"
            else replace(
                s, usd_per_unit_hour=s.usd_per_unit_hour * price, capex=s.capex * price, resale=s.resale * price
            )
            for s in self.supplies
        )
        return replace(self, runs=runs, services=services, supplies=supplies)
