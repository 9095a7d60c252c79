"""The least and the most of each row, pool by pool: twice as fast as along short rows; the least work, compiled."""

from __future__ import annotations

import numpy as np

from chipwise.io.jit import jit_cached
from chipwise.route.cluster_state import Floats, Ints


def least(what: Floats) -> Floats:
    """The least of each row; inf where there is none."""
    return np.asarray(np.minimum.reduce([*what.T], initial=np.inf)) if what.size else np.full(len(what), np.inf)


def most(what: Floats) -> Floats:
    """The most of each row; -inf where there is none."""
    return np.asarray(np.maximum.reduce([*what.T], initial=-np.inf)) if what.size else np.full(len(what), -np.inf)


def least_work(seconds: Floats, chips: Ints) -> Floats:
    """The fewest chip-seconds of each job; inf where it can't run."""
    work = np.empty(len(seconds))
    _least_work(seconds, chips, work)
    return work


@jit_cached
def _least_work(seconds: Floats, chips: Ints, out: Floats) -> None:
    for j in range(seconds.shape[0]):
        best = np.inf
        for p in range(seconds.shape[1]):
            best = min(best, seconds[j, p] * max(chips[j, p], 1))
        out[j] = best
