"""How late a run may end: the spread of the logarithm of its time, and the time within which it surely ends."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from chipwise.route.cluster_state import Floats

Z95 = 1.6448536269514722  # of the normal distribution at 95 %, the high end of a 90 % interval
LOST = 0.5  # of a run that an interruption destroys where nothing is kept: it comes in the middle, on average


def late_spread(seconds: Floats, high: Floats, interruptions: Floats, restartable: Any, restart_cost_s: Any) -> Floats:
    """Spread of log(seconds) on the late side: of the estimate, and of how many interruptions there may be.

    What spot chips lose is in the estimate as far as it is expected. Their number varies like its square root; each
    costs what is repeated, or half the run where nothing is kept. One host is counted, whatever the job's size.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(high / seconds) / Z95
        if interruptions.any():
            lost = np.where(restartable, np.minimum(restart_cost_s / seconds, LOST), LOST)
            spread = np.sqrt(spread**2 + interruptions * seconds / 3600 * lost**2)
    return np.where(np.isfinite(spread) & (spread > 0), spread, 0.0)


def early_spread(seconds: Floats, low: Floats) -> Floats:
    """Spread of log(seconds) on the early side."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(seconds / low) / Z95
    return np.where(np.isfinite(spread), np.maximum(spread, 0.0), 0.0)


def within(confidence: Floats, late: Floats, early: Callable[[], Floats]) -> Floats:
    """Times its seconds, within which a run ends with its confidence, by its spreads; `early` is seldom needed."""
    z = normal_quantile(confidence)[:, None]
    spread = late if (z >= 0).all() else np.where(z >= 0, late, early())
    return np.asarray(np.exp(z * spread))


def normal_quantile(probability: Floats) -> Floats:
    """Quantiles of the normal distribution, one for each probability."""
    inside = np.clip(probability, 1e-9, 1 - 1e-9)  # certainty is out of reach
    if not len(inside):
        return inside
    if (inside == inside[0]).all():
        return np.full(len(inside), NormalDist().inv_cdf(float(inside[0])))
    values, which = np.unique(inside, return_inverse=True)
    return np.array([NormalDist().inv_cdf(float(v)) for v in values])[which]
