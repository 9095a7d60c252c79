"""Which of many candidates nothing else beats in both time and memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BINS = 256  # memory steps of the coarse sieve


def pareto(seconds: Array, need: Array) -> NDArray[np.intp]:
    """Indices of the candidates that no other beats in both, fastest first.

    >>> pareto(np.array([1.0, 2.0, 3.0, 2.5]), np.array([9.0, 5.0, 4.0, 6.0])).tolist()
    [0, 1, 2]
    """
    order = np.lexsort((need, seconds))
    least = np.minimum.accumulate(need[order])
    better = np.concatenate(([True], least[1:] < least[:-1])) if len(order) else np.zeros(0, bool)
    return order[better]


def sieve(seconds: Array, need: Array, limit: float) -> NDArray[np.intp]:
    """Indices (flat) of the few that may be on the front among those that need at most `limit`.

    Cuts memory into steps and drops whatever is slower than the fastest of a lower step.
    """
    step = np.minimum(need * (BINS / limit), BINS).astype(np.intp)  # the last bin does not fit
    best = np.full(BINS + 1, np.inf)
    np.minimum.at(best, step.ravel(), seconds.ravel())
    fastest_below = np.concatenate(([np.inf], np.minimum.accumulate(best)[:-1]))
    keep = (seconds < fastest_below[step]) & (need <= limit)
    return np.flatnonzero(keep)
