"""A trend over months: a level and a growth that compound, and how sure both are.

Runs are Poisson counts, spread as much wider as the months are; rates of services are lognormal. Growth has a prior
around none, so that a short history says little about it and the months to come are wide. Both by quadrature over
level and growth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.demand.records import Expected, Kind, Month, Trend

Array = NDArray[np.float64]
GROWTH = 0.05  # a month: what two thirds of the growths lie within before anybody has seen one (own, 2026-11-19)
NOISE = 0.15  # of the mean of a month's requests, before several months are seen (own, 2026-11-19)
FEWEST = 0.5  # runs that no month stands for: a level needs a logarithm
LEVELS, GROWTHS = 241, 161
WIDE = 6.0  # standard deviations that the grid goes to either side
ENDS = (0.05, 0.5, 0.95)


def trend_of(months: Sequence[Month], kind: Kind, first: int, count: int) -> Trend:
    """What `count` months from the index `first` on ask for."""
    at = np.array([month.index for month in months], dtype=float)
    amount = np.array([month.amount for month in months], dtype=float)
    share = np.array([month.share for month in months], dtype=float)
    center = float((at * share).sum() / share.sum())
    total = max(float(amount.sum()), FEWEST)
    level = np.log(total / share.sum()) if kind is Kind.RUNS else np.log(max(_mean(amount, share), 1e-9))
    spread = 1.0 / np.sqrt(total) if kind is Kind.RUNS else NOISE / np.sqrt(share.sum())
    levels = level + np.linspace(-WIDE, WIDE, LEVELS) * max(2.0 * spread, 0.05)
    growths = np.linspace(-WIDE, WIDE, GROWTHS) * GROWTH
    expected = levels[:, None, None] + growths[None, :, None] * (at - center)
    likelihood = _counts(expected, amount, share) if kind is Kind.RUNS else _rates(expected, amount, share)
    weights = likelihood - (growths[None, :] / GROWTH) ** 2 / 2
    density = np.exp(weights - weights.max())
    out = []
    for index in range(first, first + count):
        low, value, high = _quantiles(levels[:, None] + growths[None, :] * (index - center), density)
        out.append(Expected(index=index, value=float(np.exp(value)), low=float(np.exp(low)), high=float(np.exp(high))))
    low, value, high = _quantiles(np.broadcast_to(growths[None, :], density.shape), density)
    return Trend(
        months=out, growth=float(np.expm1(value)), growth_low=float(np.expm1(low)), growth_high=float(np.expm1(high))
    )


def _mean(amount: Array, share: Array) -> float:
    return float((amount * share).sum() / share.sum())


def _counts(expected: Array, amount: Array, share: Array) -> Array:
    """Poisson, at most as sure as months that differ by as much allow (quasi-likelihood)."""
    mean = np.exp(expected) * share
    likelihood = np.asarray((amount * np.log(mean) - mean).sum(axis=-1))
    best = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    freedom = max(0, len(amount) - 2)
    squares = float(((amount - mean[best]) ** 2 / mean[best]).sum())
    return np.asarray(likelihood / max(1.0, (1.0 + squares) / (1.0 + freedom)))


def _rates(expected: Array, amount: Array, share: Array) -> Array:
    """Lognormal; months count by how much of them was seen. Their noise is that of the best line, joined with NOISE."""
    logs = np.log(np.maximum(amount, 1e-9))
    squares = np.asarray((share * (logs - expected) ** 2).sum(axis=-1))
    noise = (NOISE**2 + float(squares.min())) / (1.0 + max(0, len(amount) - 2))
    return np.asarray(-squares / 2 / noise)


def _quantiles(values: Array, density: Array) -> tuple[float, float, float]:
    order = np.argsort(values, axis=None)
    below = np.cumsum(density.ravel()[order])
    sorted_values = values.ravel()[order]
    low, middle, high = (float(np.interp(end * below[-1], below, sorted_values)) for end in ENDS)
    return low, middle, high
