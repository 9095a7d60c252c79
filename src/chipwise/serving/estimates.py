"""A serving figure with its interval: formulas, what published rows near it add, and how far such figures were off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from chipwise.catalog.calibration import Residuals, ServingCalibration
from chipwise.predict.estimate import Estimate
from chipwise.serving.residuals import MODEL, PLACE, design_of, factor, load_of

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


def correction(
    calibration: ServingCalibration, metric: str, mode: str, family: str, at: Point, language: bool = True
) -> Correction:
    """What published rows say of a metric at a point; `language`: of a model that writes, as all published ones do."""
    residuals = calibration.residuals.get(metric)
    figures = _figures(residuals, at)
    kind = "known" if figures else "new"
    groups: Mapping[str, Any] = calibration.intervals.get(kind, {})
    found = next((groups[g] for g in group_of(metric, mode, family) if g in groups), None)
    size = factor(calibration.residuals, metric, at)
    if not language:
        low, high = found or (-1.0, 1.0)
        return Correction(1.0, low, high, "bounded", "no published serving figures of such models to learn from")
    design = design_of(at[2])
    if found is None or not _design_known(residuals, at[2]):
        low, high = found or (-1.0, 1.0)
        return Correction(size, low, high, "bounded", f"no published {metric} of {design} chips under such a load")
    why = (
        f"{figures} published figures of this model on this stack and design"
        if figures
        else f"errors of published {metric} figures on models left out"
    )
    return Correction(size, found[0], found[1], "modelled", why)


def _design_known(residuals: Residuals | None, place: str) -> bool:
    """Whether the calibration was fitted to figures of chips of this design under this kind of load."""
    if residuals is None:
        return False
    places = residuals.names[:, PLACE][residuals.weights != 0]
    if (places == place).any():
        return True
    return (design_of(place), load_of(place)) in {(design_of(p), load_of(p)) for p in set(places.tolist())}


def _figures(residuals: Residuals | None, at: Point) -> int:
    """Published figures of the same model at the same place that the calibration was fitted to."""
    if residuals is None:
        return 0
    same = (residuals.names[:, MODEL] == at[1]) & (residuals.names[:, PLACE] == at[2])
    return int(np.sum(same & (residuals.weights != 0)))
