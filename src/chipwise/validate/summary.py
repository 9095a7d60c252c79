"""What a set of predictions is worth: errors, bias and how often the intervals held."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import mean, median
from typing import NamedTuple

from chipwise.predict.estimate import Estimate


class Pair(NamedTuple):
    """A measurement and its prediction, in the same unit."""

    observed: float
    estimate: Estimate


def summary(eligible: int, pairs: Sequence[Pair]) -> dict[str, float | int | None]:
    """Counts and errors as fractions; `bias` is the mean of log(predicted / observed)."""
    errors = [abs(e.value / observed - 1) for observed, e in pairs]
    return {
        "eligible": eligible,
        "predicted": len(pairs),
        "median_ape": median(errors) if errors else None,
        "mape": mean(errors) if errors else None,
        "bias": mean(log(e.value / observed) for observed, e in pairs) if errors else None,
        "coverage90": mean(float(e.low <= observed <= e.high) for observed, e in pairs) if errors else None,
    }
