"""Runs on chips that may be taken away: checkpoints, lost work, and the expected time, exact for exponential gaps.

A run of `work_s` seconds is cut into segments. Each computes for the interval and then writes a checkpoint; the last is
shorter and writes the result. An interruption loses the segment so far; then the run waits for chips (`wait_s`, nothing
is billed), reads the checkpoint and starts again (`restart_s`, billed, may be interrupted too). Segments are renewals,
so their expected times add up without approximation (as Daly 2006, with the wait apart).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1, inf, isfinite, sqrt
from typing import Any

from chipwise.errors import InputError

NEVER = 600.0  # expected interruptions of one segment, as an exponent, from which a run is said never to end
EVEN = 1e-9  # of an interval: how near to a whole number of segments counts as whole


@dataclass(frozen=True, slots=True)
class Hazard:
    """What interrupts a gang of chips, and what that costs it. Seconds."""

    mean_s: float  # mean time between interruptions of the whole gang; inf: none
    checkpoint_s: float  # to write one
    restart_s: float  # to read it back and start, billed
    wait_s: float = 0.0  # until chips are there again, not billed

    def __post_init__(self) -> None:
        if not self.mean_s > 0:
            raise InputError("mean time between interruptions", self.mean_s, "more than 0 s")
        for name in ("checkpoint_s", "restart_s", "wait_s"):
            if not 0 <= getattr(self, name) < inf:
                raise InputError(name, getattr(self, name), "a finite time of at least 0 s")


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected time of a run and its parts. Seconds; `billed_s` is all but the wait."""

    work_s: float
    interval_s: float
    segments: int
    checkpoints_s: float
    lost_s: float  # computed and lost, checkpoints cut short included
    restarts_s: float
    wait_s: float
    interruptions: float  # expected number

    @property
    def billed_s(self) -> float:
        """Seconds that chips are paid for."""
        return self.work_s + self.checkpoints_s + self.lost_s + self.restarts_s

    @property
    def wall_s(self) -> float:
        """Seconds from beginning to end."""
        return self.billed_s + self.wait_s

    @property
    def stretch(self) -> float:
        """Seconds from beginning to end over those of the work alone."""
        return self.wall_s / self.work_s

    @property
    def checkpoint_s(self) -> float:
        """Seconds to write one checkpoint."""
        return self.checkpoints_s / self.segments

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "work_seconds": self.work_s,
            "interval_seconds": self.interval_s,
            "checkpoints": self.segments,
            "checkpoint_seconds": self.checkpoint_s,
            "checkpoints_seconds": self.checkpoints_s,
            "lost_seconds": self.lost_s,
            "restarts_seconds": self.restarts_s,
            "wait_seconds": self.wait_s,
            "interruptions": self.interruptions,
            "wall_seconds": self.wall_s,
            "stretch": self.stretch,
        }


def young(checkpoint_s: float, mean_s: float) -> float:
    """Young's interval between checkpoints (1974): the square root of twice their time by the mean time between stops.

    >>> round(young(120.0, 86_400.0), 2)
    4553.68
    """
    return sqrt(2 * checkpoint_s * mean_s)


def daly(checkpoint_s: float, mean_s: float) -> float:
    """Daly's higher-order interval (2006); the mean time itself once a checkpoint takes twice that or more.

    >>> round(daly(120.0, 86_400.0), 1)
    4474.0
    """
    if checkpoint_s >= 2 * mean_s:
        return mean_s
    ratio = checkpoint_s / (2 * mean_s)
    return young(checkpoint_s, mean_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - checkpoint_s


def best_interval(checkpoint_s: float, mean_s: float) -> float:
    """The interval that makes the exact expected time of an endless run least, for each second of work.

    With u = interval / mean the condition is 1 - u = exp(-u - checkpoint / mean): one root between 0 and 1.
    """
    if mean_s == inf:
        return inf
    share, low, high = checkpoint_s / mean_s, 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if -expm1(-middle - share) > middle else (low, middle)
    return mean_s * (low + high) / 2


def expected(work_s: float, hazard: Hazard, interval_s: float | None = None) -> Expected:
    """The exact expected time of a run; with the best interval unless one is given. Infinite where it never ends.

    >>> calm = expected(7_200.0, Hazard(inf, 60.0, 300.0), 3_600.0)
    >>> calm.wall_s, calm.segments
    (7320.0, 2)
    """
    if not 0 < work_s < inf:
        raise InputError("work", work_s, "a finite time of more than 0 s")
    if interval_s is None:
        return expected(work_s, hazard, optimal(work_s, hazard))
    if not interval_s > 0:
        raise InputError("interval", interval_s, "more than 0 s")
    many = segments(work_s, interval_s)
    full = min(interval_s, work_s)
    parts = [_segment(full, hazard, many - 1)] if many > 1 else []
    parts.append(_segment(work_s - (many - 1) * full, hazard, 1))
    lost, restarts, wait, stops = (sum(part[i] for part in parts) for i in range(4))
    return Expected(work_s, full, many, many * hazard.checkpoint_s, lost, restarts, wait, stops)


def segments(work_s: float, interval_s: float) -> int:
    """How many segments an interval makes; the last may be shorter."""
    return max(1, ceil(work_s / interval_s - EVEN)) if isfinite(interval_s) else 1


def _segment(length_s: float, hazard: Hazard, many: int) -> tuple[float, float, float, float]:
    """Expected (lost, restart, wait, interruptions) of so many segments of that much work."""
    whole = length_s + hazard.checkpoint_s
    rate = 1 / hazard.mean_s
    if rate == 0:
        return 0.0, 0.0, 0.0, 0.0
    if whole * rate + hazard.restart_s * rate > NEVER:
        return inf, inf, inf, inf
    failed = expm1(whole * rate)  # failed attempts
    lost = failed / rate - whole
    restart = failed * expm1(hazard.restart_s * rate) / rate
    stops = failed * exp(hazard.restart_s * rate)  # those that strike a restart included
    return many * max(lost, 0.0), many * restart, many * stops * hazard.wait_s, many * stops


def optimal(work_s: float, hazard: Hazard) -> float:
    """The interval that makes the exact expected time of this run least.

    Equal segments are best (the time of one is convex in its length), so their number is one of the two whole numbers
    beside that of the best interval of an endless run.
    """
    free = best_interval(hazard.checkpoint_s, hazard.mean_s)
    if free >= work_s:
        return work_s
    if free <= 0:  # checkpoints that cost nothing: no interval is short enough
        free = hazard.mean_s * 1e-3
    few = max(1, int(work_s / free))
    return min((work_s / n for n in (few, few + 1)), key=lambda each: expected(work_s, hazard, each).wall_s)


def stretch(work_s: float, hazard: Hazard, interval_s: float | None = None) -> float:
    """Expected time over the time of the work alone.

    >>> stretch(7_200.0, Hazard(inf, 0.0, 300.0))
    1.0
    """
    return expected(work_s, hazard, interval_s).stretch
