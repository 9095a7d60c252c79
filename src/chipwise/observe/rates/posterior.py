"""Bayes' rule with an assumption and its range as the prior: what is met moves it as far as there is of it.

The prior is the distribution that bills draw an assumption from (lognormal on either side of its median), so that
nothing met answers the assumption itself, and little met hardly moves it. Failures and interruptions are Poisson counts
of their exposure; a share of paid hours is a beta likelihood as strong as its weeks are alike; watts have Student's t
of a mean over devices and days. Quadrature over the prior's deviations: on a grid, and again where the weight is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip
from chipwise.catalog.economics import Assumption, Basis
from chipwise.cost.sampling import Input
from chipwise.observe.rates.power import Drawn, Use
from chipwise.observe.rates.records import Exposure, Figure, Rate
from chipwise.predict.model.energy import watts

Array = NDArray[np.float64]
POINTS = 20_001
FARTHEST = 12.0  # standard deviations of the prior: there its density is e^-72 of the median's
NEGLIGIBLE = 40.0  # e^-40 of the largest weight
ENDS = (0.05, 0.5, 0.95)


def rate_of(exposure: Exposure, assumed: Assumption) -> Rate:
    """What an assumption is with what was met."""
    if not exposure.hours > 0.0:
        low, value, high = assumed.low, assumed.value, assumed.high
    else:
        share = exposure.figure is Figure.UTILIZATION
        likelihood = _of_share(exposure) if share else _of_count(exposure)
        low, value, high = quantiles(prior(assumed), likelihood)
    return Rate(exposure=exposure, assumed=assumed, value=value, low=low, high=high)


ALIKE = 0.10  # by how much of their mean devices and days differ, before anybody has seen several (own, 2026-11-19)
IDLE_RANGE = 0.7, 1.4  # times what a data sheet says of idling: with memory held or not (own, 2026-11-19)


def power_rate(drawn: Drawn, use: Use, chip: Chip) -> Rate:
    """What a chip draws, with what was met; before it the model of a step is the prior."""
    figure = Figure.WATTS if use is Use.WORK else Figure.IDLE_WATTS
    name = f"{figure}.{chip.id}"
    if use is Use.WORK:
        value, low, high, note = watts(chip, 1.0), watts(chip, 0.0), chip.tdp_w, "computing; waiting to its rated power"
    else:
        value, note = chip.idle_w, "its data sheet"
        low, high = (value * times for times in IDLE_RANGE)
    assumed = Assumption(name, value, low, high, "W", Basis.ASSUMED.value, "", note)
    exposure = Exposure(figure=figure, cloud=chip.id, devices=drawn.devices, days=drawn.days)
    exposure.add(drawn.hours, drawn.began, drawn.ended, drawn.kwh)
    low, value, high = quantiles(prior(assumed), _of_mean(drawn))
    return Rate(exposure=exposure, assumed=assumed, value=value, low=low, high=high)


def prior(assumed: Assumption) -> Input:
    """The distribution of an assumption, as bills draw it."""
    most = 1.0 if assumed.unit.startswith("share") else np.inf
    return Input(assumed.name, assumed.value, assumed.low, assumed.high, most)


def quantiles(before: Input, likelihood: Callable[[Array], Array]) -> tuple[float, float, float]:
    """The 5th, 50th and 95th percentile of a prior times a likelihood, which is given as its logarithm."""
    if before.known:
        return before.value, before.value, before.value
    deviations = np.linspace(-FARTHEST, FARTHEST, POINTS)
    for _ in range(2):
        weights = likelihood(np.asarray(before.at(deviations))) - deviations**2 / 2
        weights -= weights.max()
        inside = np.flatnonzero(weights > -NEGLIGIBLE)
        first, last = max(0, inside[0] - 1), min(POINTS - 1, inside[-1] + 1)
        begin, end = deviations[first], deviations[last]
        density = np.exp(weights)
        answer = deviations
        deviations = np.linspace(begin, end, POINTS)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    low, middle, high = (float(before.at(np.interp(share * below[-1], below, answer))) for share in ENDS)
    return low, middle, high


def _of_count(exposure: Exposure) -> Callable[[Array], Array]:
    from scipy.special import xlogy  # type: ignore[import-untyped]  # 0 log 0 is 0

    return lambda rates: np.asarray(xlogy(exposure.count, rates) - rates * exposure.hours)


def _of_share(exposure: Exposure) -> Callable[[Array], Array]:
    from scipy.special import xlog1py, xlogy

    share, many = weekly(exposure)
    return lambda shares: np.asarray(xlogy(share * many, shares) + xlog1py((1 - share) * many, -shares))


def _of_mean(drawn: Drawn) -> Callable[[Array], Array]:
    """Student's t, in which devices and days that are as much alike as is assumed count as one more."""
    fewest = min(drawn.devices, drawn.days)
    freedom = float(fewest)
    mean = drawn.watts
    scale = ((freedom - 1) * drawn.variance() + (mean * ALIKE) ** 2 / fewest) / freedom
    return lambda watts: np.asarray(-(freedom + 1) / 2 * np.log1p((watts - mean) ** 2 / (freedom * scale)))


def weekly(exposure: Exposure) -> tuple[float, float]:
    """The share that was used, and how many independent hours that were used whole or not at all would say as much.

    The variance of weeks around their mean; before there are any it is that of weeks that are used whole or not at all,
    which counts as one more of them.
    """
    paid, used = np.asarray(exposure.weeks, dtype=np.float64).T
    share = min(1.0, float(used.sum() / paid.sum()))
    whole = share * (1 - share)
    if whole == 0.0:
        return share, float(len(paid))
    strength = paid / paid.mean()
    spread = float((whole + (strength * (used / paid - share) ** 2).sum()) / len(paid))
    return share, len(paid) * min(whole / spread, MOST_ALIKE) if spread else float(len(paid))


MOST_ALIKE = 1e6  # hours of a week can't say more
