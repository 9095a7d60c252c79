"""Whether two sets of samples differ: Mann-Whitney's U, and the control of many comparisons at once.

Times are not normal (a floor, a long tail), so ranks are compared and not means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np

RESAMPLES = 2000


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of the U test, by the normal approximation with corrections for ties and continuity.

    >>> round(mann_whitney([1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14]), 4), mann_whitney([1, 1], [1, 1])
    (0.0022, 1.0)
    """
    n, m = len(a), len(b)
    pooled = sorted((value, i < n) for i, value in enumerate((*a, *b)))
    ranks_of_a, ties, before = 0.0, 0.0, 0
    for _, group in groupby(pooled, key=lambda pair: pair[0]):
        members = [is_a for _, is_a in group]
        size = len(members)
        ranks_of_a += sum(members) * (before + (size + 1) / 2)
        ties += size**3 - size
        before += size
    u = ranks_of_a - n * (n + 1) / 2
    total = n + m
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Each p as the share of false alarms among all that are at least as small (q).

    >>> [round(q, 3) for q in benjamini_hochberg([0.01, 0.04, 0.03, 0.5])]
    [0.04, 0.053, 0.053, 0.5]
    """
    order = sorted(range(len(values)), key=lambda i: values[i], reverse=True)
    out, least = [0.0] * len(values), 1.0
    for position, i in enumerate(order):
        least = min(least, values[i] * len(values) / (len(values) - position))
        out[i] = least
    return out


def ratio_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The interval of median(b) / median(a), by resampling both; the same on every run.

    >>> ratio_interval([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    (2.0, 2.0)
    """
    random = np.random.default_rng(20_261_115)
    medians = [
        np.median(random.choice(np.asarray(samples, float), (RESAMPLES, len(samples))), axis=1) for samples in (a, b)
    ]
    low, high = np.quantile(medians[1] / medians[0], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
