"""Since when runs take another time than before: a generalized likelihood ratio for one change of level.

The residuals of a group's runs, log(observed / predicted), in the order in which they ran, are looked at again with
each new run, as they come: of all moments at which the level may have changed, the one whose two means are furthest
apart for their noise. The noise is that of neighboring runs (which a change of level enters once), wider where
neighbors are alike; a run far from the median of those around it counts only up to a bound, and a change needs runs
on both sides. Several changes are found one after another, each from the last one on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]
FEWEST_BEFORE = 8  # runs of which a level and its noise are known
FEWEST_AFTER = 5  # of three, two may have met the same slow neighbor
MOST_OF_THEM = 0.75  # of the runs after, that have to lie nearer to their level than to the one before
LEAST = 0.03  # of a change that is told: what a layout or a driver's default costs, beyond what people act on
LEAST_NOISE = 0.02  # of runs that are all alike: as far as the same run differs between two days
CLIP = 2.5  # standard deviations from its surroundings that a run counts at most
# By `benchmarks/drift.py` on 2026-11-19: of 1,000 histories of 50 runs without a change at most 30 are told one
THRESHOLD = 4.7  # standard errors between two means
FEW = 12.0  # by so much more over the runs before: the noise of few runs is not known well
MOST_ALIKE = 0.3  # correlation of neighbors; more can't be told from a change of level
_SIGMAS = 1.4826  # a standard deviation in median absolute deviations, of a normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of level: from the run at `place` on."""

    place: int
    called: int  # how many runs there were when it was certain
    before: float  # the level, as a logarithm
    after: float
    places: tuple[int, ...]  # where it may have been as well, by nine chances in ten

    @property
    def shift(self) -> float:
        """By how much the level changed."""
        return self.after - self.before


def changes(residuals: Series) -> list[Change]:
    """Every change of level of a series of runs, in their order.

    >>> [(change.place, round(change.shift, 2)) for change in changes(np.r_[np.zeros(20), np.full(10, 0.1)])]
    [(20, 0.1)]
    """
    out: list[Change] = []
    start, end = 0, FEWEST_BEFORE + FEWEST_AFTER
    while end <= len(residuals):
        change = _change(residuals[start:end])
        if change is None:
            end += 1
            continue
        first = change[0]
        # what came after says better where it was, up to the next change of level
        following = _change_again(residuals[start:], first, end - start)
        place, places = _located(residuals[start : start + following])
        out.append(
            Change(
                place=start + place,
                called=end,
                before=float(np.median(residuals[start : start + place])),
                after=float(np.median(residuals[start + place : start + following])),
                places=tuple(start + at for at in places),
            )
        )
        start = start + place
        end = max(end + 1, start + FEWEST_BEFORE + FEWEST_AFTER)
    return out


def _change_again(series: Series, place: int, called: int) -> int:
    """Where runs end that say where a change was: before they change again."""
    end = max(called, place + FEWEST_BEFORE + FEWEST_AFTER)
    while end <= len(series):
        if _change(series[place:end]) is not None:
            return max(called, end - FEWEST_AFTER)
        end += 1
    return len(series)


def _change(series: Series) -> tuple[int, float] | None:
    """The place of a change that is certain, and by how many standard errors."""
    score = scores(series)
    place = int(np.argmax(score))
    limit = THRESHOLD + FEW / len(series)
    if score[place] <= limit:
        return None
    before, after = float(np.median(series[:place])), float(np.median(series[place:]))
    nearer = (series[place:] - (before + after) / 2) * np.sign(after - before) > 0
    if abs(after - before) < LEAST or nearer.mean() < MOST_OF_THEM:
        return None
    return place, float(score[place])


def _located(series: Series) -> tuple[int, list[int]]:
    score = scores(series)
    place = int(np.argmax(score))
    # a likelihood ratio of two below the largest one: nine in ten of chi-squared with one degree of freedom
    near = np.flatnonzero(score**2 > score[place] ** 2 - 2 * 2.71)
    return place, [int(at) for at in near]


def scores(series: Series) -> Series:
    """For each place the standard errors between the means before it and from it on; zero where there are too few."""
    n = len(series)
    out = np.zeros(n)
    places = np.arange(FEWEST_BEFORE, n - FEWEST_AFTER + 1)
    if not len(places):
        return out
    apart = _standardized(series, places)
    split = int(places[int(np.argmax(np.abs(apart)))])
    levels = np.where(np.arange(n) < split, np.median(series[:split]), np.median(series[split:]))
    residuals = series - levels
    noise = noise_of(residuals)
    clipped = levels + np.clip(residuals, -CLIP * noise, CLIP * noise)
    out[places] = np.abs(_standardized(clipped, places)) / (noise * np.sqrt(alike(clipped - levels)))
    return out


def _standardized(series: Series, places: NDArray[np.int_]) -> Series:
    """Differences of means, in the noise of one run."""
    n, sums = len(series), np.concatenate([[0.0], np.cumsum(series)])
    before, after = sums[places] / places, (sums[n] - sums[places]) / (n - places)
    return np.asarray((after - before) / np.sqrt(1 / places + 1 / (n - places)))


def noise_of(residuals: Series) -> float:
    """The standard deviation of runs around their levels, of which two were taken from them."""
    n = len(residuals)
    return max(LEAST_NOISE, _SIGMAS * float(np.median(np.abs(residuals))) * n / (n - 2))


def alike(residuals: Series) -> float:
    """By how much the variance of a mean is larger than that of as many independent runs."""
    spread = float((residuals**2).mean())
    if spread == 0.0:
        return 1.0
    rho = min(max(float((residuals[1:] * residuals[:-1]).mean()) / spread, 0.0), MOST_ALIKE)
    return (1 + rho) / (1 - rho)
