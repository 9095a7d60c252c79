"""What was wanted in the past, and what is expected, as plain data. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a workload asks for."""

    RUNS = "runs"  # training, or anything that ends: so many a month
    SERVICE = "service"  # requests a second


class Case(StrEnum):
    """Which demand of those that are likely a plan is to meet."""

    LIKELY = "likely"  # the median
    LOW = "low"  # the ends of the 90 % interval
    HIGH = "high"


class LeftOut(StrEnum):
    """Why jobs are no part of a demand that can be planned for."""

    NO_WORKLOAD = "no_workload"  # nobody knows what they would take elsewhere
    UNREAD = "unread"  # a service that printed nothing that can be read: how much was asked of it is not known
    OFFLINE = "offline"  # an offline job of serving: a plan knows services and training runs
    MANY = "many"  # a plan takes a hundred workloads: these are the smallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A month, or the part of it that was seen."""

    index: int  # months since year 0
    share: float  # of it that was seen
    amount: float  # runs in it, or the mean of requests a second

    @property
    def name(self) -> str:
        """As people write it."""
        return month_name(self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The hours of a day in which most is asked."""

    times: float  # of the day's mean
    begin: int  # hours, UTC
    end: int

    @property
    def hours(self) -> str:
        """As a demand file has it."""
        return f"{self.begin}-{self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was asked of chips for a workload."""

    name: str
    kind: Kind
    workload: Mapping[str, object]  # the contents of its file
    months: Sequence[Month]
    jobs: int
    chip_hours: float
    run_seconds: float | None = None  # a run held its chips for, at the median of those that ended well
    chips: Sequence[int] = ()  # that runs held
    peak: Peak | None = None
    declared: bool = False  # the rate is the workload's own: none was read
    counted: bool = False  # by counters of its servers that a store has, where they printed nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Jobs that are left out."""

    name: str
    why: LeftOut
    jobs: int
    chip_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a month to come asks for: the median, and the ends of the 90 % interval."""

    index: int
    value: float
    low: float
    high: float

    def of(self, case: Case) -> float:
        """The one that a plan is to meet."""
        return {Case.LIKELY: self.value, Case.LOW: self.low, Case.HIGH: self.high}[case]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Months to come, and growth a month as a share, with its 90 % interval."""

    months: Sequence[Expected]
    growth: float
    growth_low: float
    growth_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that a ledger says of demand."""

    ledger: str
    pasts: Sequence[Past]
    skipped: Sequence[Skipped] = field(default_factory=tuple)
    bad_rows: Sequence[str] = ()


def month_index(year: int, month: int) -> int:
    """Months since year 0.

    >>> month_name(month_index(2026, 12) + 1)
    '2027-01'
    """
    return year * 12 + month - 1


def month_name(index: int) -> str:
    """As people write it."""
    return f"{index // 12}-{index % 12 + 1:02}"
