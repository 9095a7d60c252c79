"""What is sick: conditions, how grave they are, and what they have cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chipwise.observe.records import FaultClass, Severity


class Condition(StrEnum):
    """What is wrong with a run or a device."""

    HUNG = "hung"  # no step for far longer than one takes, and none since
    STALLED = "stalled"  # the same, and then it went on
    SLOW = "slow"  # slower than predicted from its first step
    SLOWED = "slowed"  # slower than it was
    STRAGGLER = "straggler"  # a rank or a node slower than the others
    THROTTLED = "throttled"  # a device that keeps its clocks down
    FAULT = "fault"  # of a device, of what ran or of a program


class Unjudged(StrEnum):
    """What a log can't show."""

    SILENCE = "silence"  # lines have no stamps
    PREDICTION = "prediction"  # there is none to hold it against
    CHANGE = "change"  # too few steps
    RANKS = "ranks"  # no rank tells what its own part took


@dataclass(frozen=True, slots=True)
class Cost:
    """What a condition has cost so far; chip-hours where the chips are known, dollars where their price is."""

    seconds: float
    chips: int | None = None
    usd_per_chip_hour: float | None = None

    @property
    def chip_hours(self) -> float | None:
        """Chip-hours lost."""
        return None if self.chips is None else self.seconds * self.chips / 3600

    @property
    def usd(self) -> float | None:
        """Dollars lost."""
        hours = self.chip_hours
        return None if hours is None or self.usd_per_chip_hour is None else hours * self.usd_per_chip_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, with what shows it and what to do."""

    condition: Condition
    severity: Severity
    fault: FaultClass | None = None
    where: str = ""  # the device or rank, as the log names it
    step: int | None = None  # since this step
    until_step: int | None = None  # to this one, where it is over
    called_step: int | None = None  # the step at which it was certain
    ratio: float | None = None  # times as slow
    xid: int | None = None
    line: int | None = None  # of the log, from 1
    evidence: str
    action: str
    cost: Cost | None = None  # None: nothing says
