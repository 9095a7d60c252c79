"""What the host takes to launch a kernel, by measurements of another chip under the same framework.

A step of small batches waits for the host: for its processor and the framework, hardly for the chip. So what was
measured of it on one chip stands for others, those of the same vendor first, where no published step of such models
says better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt

from chipwise.catalog import load
from chipwise.catalog.calibration import Bench
from chipwise.predict.learn.bench_match import bench_at

LEAST, MOST = 0.1, 4.0  # times the formulas' launches: beyond, something else was measured
SHARE = 0.25  # of a step that launches must be, to be told from it
HALVINGS = 40


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """How many times the formulas' host time a launch takes, and the chip that it was measured on."""

    times: float
    chip: str


@cache
def measured_siblings(bench: Bench, chip: str, framework: str) -> tuple[str, ...]:
    """The other chips of a chip's family that were measured through a framework, those of its vendor first."""
    chips = load().chips
    own = chips[chip]
    others = sorted((c.vendor != own.vendor, c.id) for c in chips.values() if c.family == own.family and c.id != chip)
    return tuple(name for _, name in others if bench_at(bench, name, framework) is not None)


def launch_times(step: Callable[[float], float], seconds: float) -> float | None:
    """The factor on launches at which a step takes so many seconds; None where launches hardly decide it.

    >>> round(launch_times(lambda times: 1.0 + 3.0 * times, 2.5), 6)
    0.5
    >>> launch_times(lambda times: 10.0 + 0.1 * times, 9.0) is None
    True
    """
    low, high = LEAST, MOST
    if step(1.0) - step(low) < SHARE * step(1.0) or not step(low) < seconds < step(high):
        return None
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if step(middle) < seconds else (low, middle)
    return sqrt(low * high)
