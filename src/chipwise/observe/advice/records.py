"""Pools as they were used, and mixes of them that were tried, as plain data. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.route.pool import Pool

COMMITTED = frozenset({"owned", "reserved"})  # terms by which chips are paid for whether used or not


class State(StrEnum):
    """What is to be thought of a pool."""

    SICK = "sick"  # nodes with grave faults, or attempts lost far more often than assumed
    SATURATED = "saturated"  # full for much of the time, and jobs waited
    IDLE = "idle"  # paid for, and hardly held
    FINE = "fine"
    UNUSED = "unused"  # nothing ran there, and nothing is paid for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How long jobs waited for their first chips."""

    jobs: int
    median_s: float
    p90_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A pool as the attempts of a ledger used it."""

    pool: Pool
    hours: float  # of the span
    held_chip_hours: float
    full_share: float  # of the span in which no unit more would have fitted
    most_chips: int  # held at once
    busy_chips: int  # so many or fewer were held for 95 % of the time
    usd: float  # paid: for all hours where it is committed, else for those held
    attempts: int
    lost: int  # attempts that were lost, or that a fault of a device ended
    lost_low: float  # a chip-hour (on spot: a unit-hour), the low end of its 90 % interval
    lost_assumed: float  # the high end of what is assumed; inf where nothing is
    wait: Wait | None  # None: no job began here
    sick_nodes: Sequence[str] = ()
    states: Sequence[State] = ()

    @property
    def share(self) -> float:
        """Chip-hours held over those that there were."""
        there = self.pool.count * self.hours
        return self.held_chip_hours / there if there else 0.0


class LeftOut(StrEnum):
    """Why a job is not replayed."""

    NO_POOL = "no_pool"  # it can run in none of these pools
    CANCELLED = "cancelled"  # before it held chips
    FAILED = "failed"  # by its own fault: what it would have taken is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Pools that the same jobs might have had."""

    name: str
    pools: Sequence[Pool]
    changes: Sequence[tuple[str, int, int]] = ()  # pool, chips before and after


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the same jobs would have met in a mix."""

    mix: Mix
    usd: float
    done: int
    late: int  # of those, after the span
    refused: int
    wait: Wait | None
    missed: int  # deadlines
    kwh: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Mixes beside what really happened."""

    policy: str
    jobs: int
    real_wait: Wait | None
    tried: Sequence[Tried]  # the pools as they are first
    left_out: Sequence[tuple[LeftOut, int]] = ()
    measured: int = 0  # jobs whose time is that of their own run; others are as predicted
