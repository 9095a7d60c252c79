"""What jobs met while they held chips, as plain data. Times are seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from chipwise.catalog.economics import Assumption
from chipwise.observe.rates.power import Drawn, Use


class Figure(StrEnum):
    """The assumption that something measured stands in place of."""

    FAILURES = "failure_chip_hour"
    INTERRUPTIONS = "spot_per_hour"
    UTILIZATION = "utilization"
    WATTS = "chip_watts"
    IDLE_WATTS = "chip_idle_watts"


class Cause(StrEnum):
    """What ended an attempt, as far as it bears on rates."""

    NOTHING = "nothing"  # it succeeded, still runs, or was stopped on purpose
    PROGRAM = "program"  # its own fault
    FAILURE = "failure"  # of a chip, its node or its network
    INTERRUPTION = "interruption"  # spot chips were taken away
    SCHEDULER = "scheduler"  # its backend stopped it for another


class LeftOut(StrEnum):
    """Why the time of a pool does not count."""

    NO_POOL = "no_pool"  # the pools file has none of that name
    NO_CLOUD = "no_cloud"  # nobody says whose chips they are
    NO_CHIP = "no_chip"  # a pool without accelerators


@dataclass(slots=True, kw_only=True)
class Exposure:
    """What was met, in how much time."""

    figure: Figure
    cloud: str = ""  # "owned" for one's own; of watts the chip; empty of a figure that knows no clouds
    hours: float = 0.0  # of chips; of instances or slices for interruptions; paid for, for utilization
    count: float = 0.0  # failures or interruptions; hours used, for utilization; kWh, for watts
    began: float = float("inf")
    ended: float = 0.0
    devices: int = 0  # for watts
    days: int = 0
    weeks: list[tuple[float, float]] = field(default_factory=list)  # paid and used hours of each, for utilization

    def add(self, hours: float, began: float, ended: float, count: float = 0.0) -> None:
        """Count time and what was met in it."""
        self.hours += hours
        self.count += count
        self.began, self.ended = min(self.began, began), max(self.ended, ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """All that a ledger says, with what could not be counted."""

    ledger: str
    exposures: tuple[Exposure, ...]
    left_out: tuple[tuple[str, LeftOut, float], ...] = ()  # pool, why, chip-hours
    by_instance: tuple[tuple[str, int], ...] = ()  # spot pools, and how many chips of theirs go together
    restarts: int = 0  # by backends themselves
    unread: int = 0  # attempts that failed, and whose output is not to be had
    attempts: int = 0
    bad_rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A figure as it is assumed, and as it is with what was met."""

    exposure: Exposure
    assumed: Assumption
    value: float  # median
    low: float  # of the 90 % interval
    high: float

    @property
    def name(self) -> str:
        """The assumption that it is of."""
        where = self.exposure.cloud
        return f"{self.exposure.figure}.{where}" if where else self.exposure.figure.value


class Untold(StrEnum):
    """Why what a device drew does not count."""

    SICK = "sick"
    THROTTLED = "throttled"  # for the hours in which heat kept its clocks down


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLeftOut:
    """A device whose power does not count, or not for some hours."""

    host: str
    device: str
    pool: str
    why: Untold
    what: str = ""  # it has
    hours: float | None = None  # None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPower:
    """What the devices of a pool drew."""

    pool: str
    chip: str
    use: Use
    drawn: Drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMet:
    """What a store says of power, with what could not be counted."""

    store: str
    pools: tuple[PoolPower, ...] = ()
    left_out: tuple[DeviceLeftOut, ...] = ()
    unplaced: int = 0  # devices of hosts that no pool has
    problems: tuple[str, ...] = ()  # of backends that don't tell their nodes
