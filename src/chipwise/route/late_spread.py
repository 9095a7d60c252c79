"""How late a run may end: the spread of the logarithm of its time on the late side."""

from __future__ import annotations

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
