"""A serving figure with its interval: formulas, what published rows near it add, and how far such figures were off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from chipwise.catalog.calibration import Residuals, ServingCalibration
from chipwise.predict.estimate import Distance, Estimate, described_alone
from chipwise.serving.distance import Place
from chipwise.serving.residuals import MODEL, PLACE, design_of, factor, load_of
from chipwise.serving.widths import widths_of

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
    distance: Distance | None = None  # at which the interval was learned

    def around(self, low: float, value: float, high: float) -> Estimate:
        """A time that is right already, with the interval of the model on top of its own."""
        ends = low * exp(min(self.low, 0.0)), high * exp(max(self.high, 0.0))
        return Estimate(value, *ends, self.evidence, self.because, self.distance)

    def time(self, seconds: float) -> Estimate:
        """A time corrected."""
        value = seconds * self.factor
        return self.around(value, value, value)

    def rate(self, per_s: float) -> Estimate:
        """A rate corrected: what takes longer gives less."""
        value = per_s / self.factor
        return self.around_rate(value, value, value)

    def around_rate(self, low: float, value: float, high: float) -> Estimate:
        """A rate that is right already, with the interval of the model on top of its own."""
        ends = low * exp(-max(self.high, 0.0)), high * exp(-min(self.low, 0.0))
        return Estimate(value, *ends, self.evidence, self.because, self.distance)


BECAUSE = {
    Distance.REGIME: "errors of {metric} on sources left out, fitted to others with the chip, stack and load",
    Distance.CHIP: "errors of {metric} where only other stacks or loads of the chip were fitted to",
    Distance.DESIGN: "errors of {metric} where only other chips of the design ({design}) were fitted to",
    Distance.VENDOR: "errors of {metric} where only other chips of the vendor ({vendor}) were fitted to",
    Distance.NOBODY: "errors of {metric} where no chip of the vendor ({vendor}) was fitted to",
}


def correction(
    calibration: ServingCalibration, metric: str, mode: str, place: Place, family: str, at: Point, language: bool = True
) -> Correction:
    """What published rows say of a metric at a point; `language`: of a model that writes, as all published ones do."""
    size = factor(calibration.residuals, metric, at)
    if not language:
        distance = Distance.NOBODY
        low, high = widths_of(calibration).bounds(metric, distance)
        why = "no published serving figures of such models to learn from"
        return Correction(1.0, low, high, "bounded", why, distance)
    residuals = calibration.residuals.get(metric)
    distance = widths_of(calibration).seen.distance(place)
    figures = _figures(residuals, at)
    low, high = widths_of(calibration).bounds(metric, distance)
    groups: Mapping[str, Any] = calibration.intervals.get("known" if figures else "new", {})
    nearest = next((groups[g] for g in group_of(metric, mode, family) if g in groups), None)
    if nearest is not None:  # what is farther holds what is nearer
        low, high = min(low, nearest[0]), max(high, nearest[1])
    evidence = "modelled" if _design_known(residuals, at[2]) else "bounded"
    if distance is not Distance.SOURCE:
        why = BECAUSE[distance].format(metric=metric, design=place.design, vendor=place.vendor)
    elif figures:
        why = f"{figures} published figures of this model on this stack and design"
    else:
        why = f"errors of published {metric} figures on models left out"
    if place.like:
        evidence, why = "bounded", described_alone(place.like)
    elif evidence == "bounded":
        why += f"; none of {place.design} chips under such a load"
    return Correction(size, low, high, evidence, why, distance)


def unlearned(calibration: ServingCalibration, metric: str, near: Correction, why: str) -> Correction:
    """A correction for what no published figure is like: its interval is as wide as the farthest."""
    low, high = widths_of(calibration).bounds(metric, Distance.NOBODY)
    ends = min(low, near.low), max(high, near.high)
    return Correction(near.factor, *ends, "bounded", f"{near.because}; {why}", Distance.NOBODY)


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
