"""The least and the most of each row, pool by pool: twice as fast as along short rows."""

from __future__ import annotations

import numpy as np

from chipwise.route.view import Floats


def least(what: Floats) -> Floats:
    """The least of each row; inf where there is none."""
    return np.asarray(np.minimum.reduce([*what.T], initial=np.inf)) if what.size else np.full(len(what), np.inf)


def most(what: Floats) -> Floats:
    """The most of each row; -inf where there is none."""
    return np.asarray(np.maximum.reduce([*what.T], initial=-np.inf)) if what.size else np.full(len(what), -np.inf)
