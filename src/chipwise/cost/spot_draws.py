"""Times of runs on chips that may be taken away, drawn as arrays: for percentiles, which have no closed form.

Attempts of a segment fail independently, so the failures of a run are a negative binomial number, each losing an
exponential time cut off at the segment's length. Up to `FEW` of those are drawn one by one; more are drawn as their
sum, which is normal by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW = 24
COUNTED = 1e12  # failures from which their number is taken as its mean, which is off by a millionth
HOPELESS = 30.0  # expected interruptions of a segment, as an exponent, beyond which a run never ends


@dataclass(frozen=True, slots=True)
class Drawn:
    """Seconds of many runs: all, and those that are billed; and how often each was interrupted."""

    wall_s: Array
    billed_s: Array
    interruptions: Array


def draw(
    rng: np.random.Generator,
    work_s: Array,
    interval_s: Array,
    mean_s: Array,
    checkpoint_s: Array,
    restart_s: Array,
    wait_s: Array,
) -> Drawn:
    """One run for each element of the arrays, which broadcast; the last segment of a run is shorter."""
    work, interval, mean, write, restart, wait = np.broadcast_arrays(
        work_s, interval_s, mean_s, checkpoint_s, restart_s, wait_s
    )
    full = np.minimum(interval, work)
    many = np.maximum(1.0, np.ceil(work / full - 1e-9))
    last = work - (many - 1) * full
    failed = np.zeros(work.shape)
    lost = np.zeros(work.shape)
    for count, length in ((many - 1, full + write), (np.ones(work.shape), last + write)):
        stops = _failures(rng, count, length / mean)
        failed = failed + stops
        lost = lost + _lost(rng, stops, length, mean)
    ends = np.isfinite(failed)  # the others never do
    failed, lost = np.where(ends, failed, 0.0), np.where(ends, lost, 0.0)
    again = _failures(rng, failed, restart / mean)  # restarts that were interrupted
    ends = ends & np.isfinite(again)
    again = np.where(ends, again, 0.0)
    billed = work + many * write + lost + failed * restart + _lost(rng, again, restart, mean)
    wall = billed + wait * (failed + again)
    return Drawn(*(np.where(ends, each, np.inf) for each in (wall, billed, failed + again)))


def _failures(rng: np.random.Generator, successes: Array, load: Array) -> Array:
    """Failed attempts before so many successes; infinite where an attempt all but never succeeds."""
    hopeless = load > HOPELESS
    odds = np.expm1(np.where(hopeless, 0.0, load))  # failures for each success
    mean = rng.standard_gamma(np.maximum(successes, 1.0)) * odds  # a Poisson number of such a mean is the one sought
    many = np.where(mean < COUNTED, rng.poisson(np.minimum(mean, COUNTED)), mean)
    out = np.where(successes > 0, many, 0.0)
    return np.where(hopeless & (successes > 0), np.inf, out)


def _lost(rng: np.random.Generator, failures: Array, length: Array, mean: Array) -> Array:
    """The sum of so many exponential times cut off at `length`."""
    share = np.minimum(length / mean, HOPELESS)
    inside = -np.expm1(-share)  # of the exponential's mass
    safe = np.where(inside > 0, inside, 1.0)
    uniform = rng.random((FEW, *failures.shape))
    each = -np.log1p(-uniform * inside) * mean
    taken = np.arange(FEW).reshape(-1, *([1] * failures.ndim)) < failures
    few = np.where(taken, each, 0.0).sum(axis=0)
    first = np.where(inside > 0, mean - length * np.exp(-share) / safe, 0.0)
    second = np.where(inside > 0, 2 * mean**2 - (length**2 + 2 * length * mean) * np.exp(-share) / safe, 0.0)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    count = np.where(np.isfinite(failures), failures, 0.0)
    noise = rng.standard_normal(failures.shape)
    sums = np.clip(count * first + np.sqrt(count) * spread * noise, 0.0, count * length)
    out = np.where(failures <= FEW, few, sums)
    return np.where(np.isfinite(failures), out, np.inf)
