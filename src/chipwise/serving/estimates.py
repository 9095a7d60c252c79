"""A serving figure with its interval: formulas, what published rows near it add, and how far such figures were off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from chipwise.catalog.taught import Taught
from chipwise.predict.estimate import Estimate
from chipwise.serving.learnt import design_of, factor, load_of

Point = tuple[list[float], str, str]
METRICS = ("throughput", "ttft", "tpot")


def group_of(metric: str, mode: str, family: str) -> tuple[str, ...]:
    """The groups of errors a figure belongs to, narrowest first."""
    return (f"{metric}/{mode}/{family}", f"{metric}/{mode}", metric, "any")


@dataclass(frozen=True, slots=True)
class Correction:
    """What published rows say of one metric near a point: a factor on its time, and the interval around it."""

    factor: float
    low: float  # logarithms of observed over predicted, of a time
    high: float
    evidence: str
    because: str

    def time(self, seconds: float) -> Estimate:
        """A time corrected."""
        value = seconds * self.factor
        return Estimate(
            value, value * exp(min(self.low, 0.0)), value * exp(max(self.high, 0.0)), self.evidence, self.because
        )

    def rate(self, per_s: float) -> Estimate:
        """A rate corrected: what takes longer gives less."""
        value = per_s / self.factor
        return Estimate(
            value, value * exp(-max(self.high, 0.0)), value * exp(-min(self.low, 0.0)), self.evidence, self.because
        )


def correction(taught: Taught, metric: str, mode: str, family: str, at: Point, language: bool = True) -> Correction:
    """What published rows say of a metric at a point; `language`: of a model that writes, as all published ones do."""
    table = taught.learnt.get(metric, {})
    seen = _seen(table, at)
    kind = "known" if seen else "new"
    groups: Mapping[str, Any] = taught.intervals.get(kind, {})
    found = next((groups[g] for g in group_of(metric, mode, family) if g in groups), None)
    size = factor(taught.learnt, metric, at)
    if not language:
        low, high = found or (-1.0, 1.0)
        return Correction(1.0, low, high, "bounded", "no published serving figures of such models to learn from")
    design = design_of(at[2])
    if found is None or not _design_seen(table, at[2]):
        low, high = found or (-1.0, 1.0)
        return Correction(size, low, high, "bounded", f"no published {metric} of {design} chips under such a load")
    why = (
        f"{seen} published figures of this model on this stack and design"
        if seen
        else f"errors of published {metric} figures on models left out"
    )
    return Correction(size, found[0], found[1], "modelled", why)


def _design_seen(table: Mapping[str, Any], place: str) -> bool:
    """Whether figures of chips of this design under this kind of load were learnt from."""
    if not table:
        return False
    places = table["places"][table["weights"] != 0]
    if (places == place).any():
        return True
    return (design_of(place), load_of(place)) in {(design_of(p), load_of(p)) for p in set(places.tolist())}


def _seen(table: Mapping[str, Any], at: Point) -> int:
    """Published figures of the same model at the same place that were learnt from."""
    if not table:
        return 0
    return int(np.sum((table["models"] == at[1]) & (table["places"] == at[2]) & (table["weights"] != 0)))
