"""Where time goes, as sums by use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Use(StrEnum):
    """What time of a run was used for; the classes of badput are those of ml-goodput-measurement and more.

    (AI-Hypercomputer/ml-goodput-measurement, read 2026-11-16)
    """

    PRODUCTIVE = "productive"  # steps that count, at their usual pace
    WAITING = "waiting"  # for chips: none are held
    START_UP = "start_up"  # from the start of the program to its first step
    COMPILE = "compile"  # the first steps of a start, beyond what a step takes
    DATA = "data"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    PAUSE = "pause"  # between steps, and nothing says what for
    SLOW_DOWN = "slow_down"  # steps that took longer than they had before
    STRAGGLER = "straggler"  # steps that waited for a rank
    THROTTLING = "throttling"  # slower steps, of devices that keep their clocks down
    HANG = "hang"
    LOST_WORK = "lost_work"  # steps that were done again
    RECOVERY = "recovery"  # from the last step before a restart to the first after it
    SHUT_DOWN = "shut_down"  # after the last step
    OTHER = "other"  # nothing says


@dataclass(slots=True)
class Account:
    """Seconds by use, and where chips are known what was held for them."""

    seconds: dict[Use, float] = field(default_factory=dict)
    chip_seconds: dict[Use, float] = field(default_factory=dict)
    usd: dict[Use, float] = field(default_factory=dict)

    def add(self, use: Use, seconds: float, chips: float | None = None, usd_per_s: float | None = None) -> None:
        """Count time, with what so many chips cost together in a second."""
        if seconds <= 0.0:
            return
        _add(self.seconds, use, seconds)
        if use is Use.WAITING:
            return  # nothing is held
        if chips is not None:
            _add(self.chip_seconds, use, seconds * chips)
        if usd_per_s is not None:
            _add(self.usd, use, seconds * usd_per_s)

    def add_account(self, seconds: Mapping[Use, float], chips: float | None, usd_per_s: float | None) -> None:
        """Count seconds by use."""
        for use, amount in seconds.items():
            self.add(use, amount, chips, usd_per_s)

    @property
    def elapsed(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values())

    @property
    def held(self) -> float:
        """Chip-seconds in all; seconds where no chips are known."""
        weights = self.chip_seconds or {use: s for use, s in self.seconds.items() if use is not Use.WAITING}
        return sum(weights.values())

    @property
    def goodput(self) -> float | None:
        """The share of what was held that was productive; None where nothing was."""
        return self.share(Use.PRODUCTIVE) if self.held else None

    def share(self, use: Use) -> float | None:
        """The share of what was held that went to a use; None of what is not held."""
        if use is Use.WAITING or not self.held:
            return None
        return (self.chip_seconds or self.seconds).get(use, 0.0) / self.held


def _add(sums: dict[Use, float], use: Use, amount: float) -> None:
    sums[use] = sums.get(use, 0.0) + amount
