"""Paired tests over a few seeds: Student's t, equivalence (TOST) and the exact sign-flip test. No SciPy needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random

LEVEL = 0.05
EXACT_UP_TO = 14  # pairs: 2^14 sign flips; beyond, a fixed sample of them
_TINY = 1e-300


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.

    >>> round(incomplete_beta(2.0, 3.0, 0.5), 12)
    0.6875
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            fraction *= d * c
            change = d * c
        if abs(change - 1.0) < 1e-15:
            break
    return front * fraction


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_below(t: float, freedom: float) -> float:
    """The chance that Student's t is below `t`.

    >>> round(t_below(2.131846786, 4), 6)  # the 95 % point for five pairs
    0.95
    """
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    square = t * t
    if square < freedom:  # near the middle the tail is no small number
        middle = 0.5 * incomplete_beta(0.5, freedom / 2, square / (freedom + square))
        return 0.5 + middle if t > 0 else 0.5 - middle
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square))
    return 1.0 - tail if t > 0 else tail


@cache
def t_point(chance: float, freedom: float) -> float:
    """The value that Student's t stays below with a chance.

    >>> round(t_point(0.95, 4), 4)
    2.1318
    """
    low, high = -1e9, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if t_below(middle, freedom) < chance else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Paired:
    """Differences over pairs against a margin: the mean with its 90 % interval, and the chances behind it.

    `not_worse` and `not_better` are the two one-sided tests against the margin, and `equivalence` the larger of both
    (TOST); `worse` tests that the mean lies beyond the margin. `t` and `sign_flip` test, two-sided, for any difference.
    """

    pairs: int
    mean: float
    low: float
    high: float
    margin: float
    p_not_worse: float
    p_not_better: float
    p_worse: float
    p_t: float
    p_sign_flip: float

    @property
    def p_equivalence(self) -> float:
        """The p-value of equivalence by two one-sided tests."""
        return max(self.p_not_worse, self.p_not_better)


def paired(differences: Sequence[float], margin: float) -> Paired:
    """Test differences (in what is compared minus in the reference) against a margin.

    >>> found = paired([0.1, 0.2, 0.0, 0.1, 0.1], margin=1.0)
    >>> found.p_not_worse < 0.001, found.p_worse > 0.999, round(found.p_sign_flip, 3)
    (True, True, 0.125)
    """
    pairs = len(differences)
    mean = math.fsum(differences) / pairs
    spread = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (pairs - 1)) if pairs > 1 else math.inf
    error = spread / math.sqrt(pairs)
    freedom = max(pairs - 1, 1)
    reach = t_point(1 - LEVEL, freedom) * error

    def above(distance: float) -> float:  # p-value of "the mean is below": by how far, in standard errors
        if error == 0:
            return 0.0 if distance > 0 else 1.0
        return 1.0 - t_below(distance / error, freedom)

    return Paired(
        pairs,
        mean,
        mean - reach,
        mean + reach,
        margin,
        p_not_worse=above(margin - mean),
        p_not_better=above(mean + margin),
        p_worse=above(mean - margin),
        p_t=min(1.0, 2 * above(abs(mean))) if mean else 1.0,
        p_sign_flip=sign_flip(differences),
    )


def sign_flip(differences: Sequence[float]) -> float:
    """How often flipping signs at random gives a mean as far from 0: exact for few pairs.

    >>> sign_flip([1.0, 2.0, 3.0, 4.0, 5.0])
    0.0625
    """
    observed = abs(math.fsum(differences)) * (1 - 1e-12)
    flips: Sequence[tuple[int, ...]]
    if len(differences) <= EXACT_UP_TO:
        flips = list(product((1, -1), repeat=len(differences)))
    else:
        chance = Random(0)
        flips = [tuple(chance.choice((1, -1)) for _ in differences) for _ in range(9_999)]
        flips.append((1,) * len(differences))
    as_far = sum(abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True))) >= observed for signs in flips)
    return as_far / len(flips)


def pairs_needed(result: Paired) -> int | None:
    """About how many pairs would settle on which side of the margin the mean lies; None: beyond 1,000.

    >>> pairs_needed(paired([0.9, -0.5, 1.2, 0.1, -0.3], margin=0.5))
    33
    """
    spread = (result.high - result.low) / 2 / t_point(1 - LEVEL, max(result.pairs - 1, 1)) * math.sqrt(result.pairs)
    distance = abs(result.margin - result.mean)
    for pairs in range(result.pairs + 1, 1001):
        if t_point(1 - LEVEL, pairs - 1) * spread / math.sqrt(pairs) < distance:
            return pairs
    return None
