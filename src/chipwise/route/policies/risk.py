"""How likely a run ends in time. Times are lognormal on each side of their estimate.

An estimate is the median; 5 % of runs end before the low end of its interval and 5 % after the high end, and between
and beyond them the logarithm of the time is normal, with a spread of its own on each side. What spot chips lose is in
the estimate as far as it is expected; how much more or less it may be widens the late side here.
"""

from __future__ import annotations

from math import pi
from statistics import NormalDist

import numpy as np

from chipwise.route.cluster_state import ClusterState, Floats, Ints
from chipwise.route.late_spread import Z95, late_spread


def late_side(state: ClusterState, rows: Ints | None = None) -> Floats:
    """Spread of the logarithm of the time on the late side, by job and pool."""
    if state.late is not None:
        return state.late if rows is None else state.late[rows]
    late = late_spread(
        state.seconds, state.high, state.interruptions, state.restartable[:, None], state.restart_cost_s[:, None]
    )
    return late if rows is None else late[rows]


def early_spread(state: ClusterState, rows: Ints) -> Floats:
    """Spread of the logarithm of the time on the early side."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(state.seconds[rows] / state.low[rows]) / Z95
    return np.where(np.isfinite(spread), np.maximum(spread, 0.0), 0.0)


def normal_quantile(probability: Floats) -> Floats:
    """Quantiles of the normal distribution, one for each probability."""
    inside = np.clip(probability, 1e-9, 1 - 1e-9)  # certainty is out of reach
    if not len(inside):
        return inside
    if (inside == inside[0]).all():
        return np.full(len(inside), NormalDist().inv_cdf(float(inside[0])))
    values, which = np.unique(inside, return_inverse=True)
    return np.array([NormalDist().inv_cdf(float(v)) for v in values])[which]


def run_quantile(state: ClusterState, rows: Ints | None = None) -> Floats:
    """Seconds within which a run ends with the job's own confidence."""
    z = normal_quantile(state.confidence if rows is None else state.confidence[rows])[:, None]
    spread = late_side(state, rows)
    if not (z >= 0).all():
        spread = np.where(z >= 0, spread, early_spread(state, np.arange(len(state.jobs)) if rows is None else rows))
    return np.asarray((state.seconds if rows is None else state.seconds[rows]) * np.exp(z * spread))


def in_time(state: ClusterState, rows: Ints) -> Floats:
    """Probability that each of these jobs ends by its deadline in each pool, from the predicted start there."""
    left = state.deadline[rows, None] - np.maximum(state.start[rows], state.now)
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log(np.maximum(left, 0.0) / state.seconds[rows])
        spread = np.where(log >= 0, late_side(state, rows), early_spread(state, rows))
        z = np.where(spread > 0, log / np.maximum(spread, 1e-300), np.where(log >= 0, np.inf, -np.inf))
    can = (left > 0) & np.isfinite(state.seconds[rows])
    return np.where(can, normal_share(np.where(can, z, -np.inf)), 0.0)


def normal_share(z: Floats) -> Floats:
    """Share of a normal distribution below z, to 1e-7: Abramowitz and Stegun (1964), 26.2.17.

    >>> normal_share(np.array([0.0, 1.6448536269514722, -np.inf])).round(6).tolist()
    [0.5, 0.95, 0.0]
    """
    size = np.minimum(np.abs(z), 40.0)
    t = 1 / (1 + 0.2316419 * size)
    tail = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = tail * np.exp(-size * size / 2) / np.sqrt(2 * pi)
    return np.asarray(np.where(z >= 0, 1 - tail, tail))
