"""How likely a run ends in time. Times are lognormal on each side of their estimate.

An estimate is the median; 5 % of runs end before the low end of its interval and 5 % after the high end, and between
and beyond them the logarithm of the time is normal, with a spread of its own on each side. What spot chips lose is in
the estimate as far as it is expected; how much more or less it may be widens the late side here.
"""

from __future__ import annotations

from math import pi

import numpy as np

from chipwise.route.cluster_state import ClusterState, Floats, Ints
from chipwise.route.late_spread import early_spread, late_spread, within


def late_side(state: ClusterState, rows: Ints | None = None) -> Floats:
    """Spread of the logarithm of the time on the late side, by job and pool."""
    if state.late is not None:
        return state.late if rows is None else state.late[rows]
    late = late_spread(
        state.seconds, state.high, state.interruptions, state.restartable[:, None], state.restart_cost_s[:, None]
    )
    return late if rows is None else late[rows]


def within_factor(state: ClusterState) -> Floats:
    """Times its seconds, within which a run ends with the job's own confidence."""
    if state.within is not None:
        return state.within
    return within(state.confidence, late_side(state), lambda: early_spread(state.seconds, state.low))


def run_quantile(state: ClusterState) -> Floats:
    """Seconds within which a run ends with the job's own confidence."""
    return np.asarray(state.seconds * within_factor(state))


def in_time(state: ClusterState, rows: Ints) -> Floats:
    """Probability that each of these jobs ends by its deadline in each pool, from the predicted start there."""
    seconds = state.seconds[rows]
    left = state.deadline[rows, None] - np.maximum(state.start[rows], state.now)
    can = (left > 0) & np.isfinite(seconds)
    chance = np.zeros(seconds.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        log = np.log(left[can] / seconds[can])
        spread = late_side(state, rows)[can]
        early = log < 0
        if early.any():
            spread[early] = early_spread(seconds[can][early], state.low[rows][can][early])
        z = np.where(spread > 0, log / np.maximum(spread, 1e-300), np.where(early, -np.inf, np.inf))
    chance[can] = normal_share(z)
    return chance


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
