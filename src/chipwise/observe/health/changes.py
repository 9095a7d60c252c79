"""Levels of a series of step times: a two-sided CUSUM (Page, 1954) on the logarithm, robust to outliers.

A step time is held against the median of the steps before it, taken anew each time as many have come again. What
exceeds half of the shift that is to be found adds up; a single step counts at most so much, and an alarm needs a median
of recent steps beyond that half too, so that a checkpoint, a pause or a few slow steps in a row are no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]
SHIFT = log(1.10)  # of a slow-down that has to be found
SLACK = SHIFT / 2  # the reference value at which CUSUM finds that shift soonest (Page 1954; Moustakides 1986)
# The three below by `benchmarks/health.py` on 2026-11-19: 10 % within 50 steps, less than one false alarm in 1,000 days
LEAST_SUM = 1.2  # of the excess at which a change is called, in a run as steady as most are
CLIP = 1.5 * SHIFT  # the most that one step counts
CONFIRMING = 21  # steps of which the median has to be beyond the slack too
BASE = 40  # settled steps before the first that is judged; half of the run where it is short
FEWEST = 16  # settled steps below which nothing is said
RUN_LENGTH = log(1000 * 86400 / 5)  # steps without a false alarm, of 5 s in 1,000 days: as a logarithm
MOST_CORRELATED = 0.8  # of neighboring steps; more can't be told from a change
_SIGMAS = 1.4826  # a standard deviation in median absolute deviations, of a normal distribution


@dataclass(frozen=True, slots=True)
class Level:
    """Steps that take about the same: places in the series, from `start` to before `end`."""

    start: int
    end: int
    seconds: float  # median
    called: int  # the place at which the level was first known to be another; `start` of the first


def levels(seconds: Series) -> list[Level]:
    """The levels of a series of step times, of which each differs from the one before by about 5 % or more.

    >>> [level.start for level in levels(np.r_[np.full(100, 2.0), np.full(60, 2.2)])]
    [0, 100]
    """
    series = np.log(seconds)
    out: list[Level] = []
    start = called = 0
    while (change := first_change(series[start:])) is not None:
        at, alarm = change
        out.append(Level(start, start + at, float(np.median(seconds[start : start + at])), called))
        start, called = start + at, start + alarm
    out.append(Level(start, len(seconds), float(np.median(seconds[start:])), called) if len(seconds) > start else
               Level(start, start, float("nan"), called))  # fmt: skip
    return [level for level in out if level.end > level.start]


def first_change(series: Series) -> tuple[int, int] | None:
    """Where a series of logarithms changes its level first, and where that was certain; None where it does not."""
    n = len(series)
    if n < FEWEST:
        return None
    base = min(BASE, n // 2)
    residuals = series - _medians_before(series, base)
    limit = _limit(residuals[:base])
    steps = np.clip(residuals[base:], -CLIP, CLIP)
    changes = [_one_sided(sign * steps, limit) for sign in (1.0, -1.0)]
    shifts = [change for change in changes if change is not None]
    if not shifts:
        return None
    at, alarm = min(shifts, key=lambda change: change[1])
    return base + at, base + alarm


def _medians_before(series: Series, base: int) -> Series:
    """For each place the median of what came before it, renewed whenever as much has come again."""
    out = np.empty(len(series))
    out[:base] = np.median(series[:base])
    end = base
    while end < len(series):
        out[end : 2 * end] = np.median(series[:end])
        end *= 2
    return out


def _limit(residuals: Series) -> float:
    """The sum at which a change is called: as high as the noise of the first steps asks for (Siegmund, 1985)."""
    sigma = _SIGMAS * float(np.median(np.abs(residuals)))
    if sigma == 0.0:
        return LEAST_SUM
    clipped = np.clip(residuals, -3 * sigma, 3 * sigma)
    spread = float(np.std(clipped))
    pairs = float(np.mean((clipped[1:] - clipped.mean()) * (clipped[:-1] - clipped.mean())))
    rho = min(max(pairs / spread**2, 0.0), MOST_CORRELATED) if spread else 0.0
    return max(LEAST_SUM, RUN_LENGTH * sigma**2 * (1 + rho) / (1 - rho) / (2 * SLACK))


def _one_sided(steps: Series, limit: float) -> tuple[int, int] | None:
    """Where steps begin to exceed the slack for good, and where that was certain."""
    sums = np.concatenate([[0.0], np.cumsum(steps - SLACK)])
    above = sums - np.minimum.accumulate(sums)
    for place in np.flatnonzero(above[1:] > limit):
        recent = steps[max(0, place + 1 - CONFIRMING) : place + 1]
        if np.median(recent) > SLACK:
            return int(np.argmin(sums[: place + 1])), int(place)
    return None
