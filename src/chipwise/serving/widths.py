"""Interval widths by distance: conformal quantiles of errors, each group of a repository counting as one.

Split-conformal prediction with groups (Lee, Barber and Willett, Distribution-free inference with hierarchical data,
2023), without its correction for few groups: figures of one campaign err together, so every group has the same weight.
A distance of too few groups borrows from the next farther one, the farthest from a prior; what is near is never wider
than what is far, since each distance's bounds hold those of all nearer ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import log
from typing import Any

from chipwise.catalog.calibration import ServingCalibration
from chipwise.predict.estimate import DISTANCES, Distance
from chipwise.serving.distance import Seen

TAIL = 0.05  # on each side of a 90 % interval
# Where nothing at all is known: kernels of published stacks reach between a quarter of what a chip's data sheet
# promises and nearly all of it. Assumed, before any error was looked at (2026-11-18)
PRIOR = log(4.0)
# Groups at a distance under which farther ones fill up. Of 5, 10, 15 and 20 the one by which intervals of a repository
# that was left out hold nearest to 90 %, in 10 of the 15 repositories; the other five had no say (2026-11-18)
GROUPS = 15
BY_DISTANCE = DISTANCES[1:]  # those whose widths are learned from sources left out whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """log(observed / predicted) of a published time, by calibrations that saw nothing nearer than `distance`."""

    row: str  # its id
    metric: str
    distance: Distance
    repository: str
    group: str  # of figures that err together
    model: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Bounds of log(observed / predicted) of a time, and what they were learned from."""

    low: float
    high: float
    figures: int
    groups: int


Weighted = list[tuple[float, float]]  # error, weight


def as_columns(errors: Sequence[Error]) -> dict[str, list[Any]]:
    """As the calibration's file has them."""
    return {f.name: [getattr(error, f.name) for error in errors] for f in fields(Error)}


def from_columns(columns: Mapping[str, Sequence[Any]]) -> list[Error]:
    """What `as_columns` gave."""
    names = [f.name for f in fields(Error) if f.name != "distance"]
    values = zip(*(columns[name] for name in names), strict=True)
    return [
        Error(**dict(zip(names, row, strict=True)), distance=Distance(distance))
        for row, distance in zip(values, columns["distance"], strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Widths:
    """What a calibration knows of distances: the places it was fitted to, and bounds at each distance."""

    seen: Seen
    table: Mapping[str, Mapping[str, Sequence[float]]]  # metric -> distance -> low, high, figures, groups

    def bounds(self, metric: str, distance: Distance) -> tuple[float, float]:
        """Bounds of log(observed / predicted) of a time; at a figure's own source what is nearest of all."""
        if distance is Distance.SOURCE:
            return 0.0, 0.0
        low, high, *_ = self.table.get(metric, {}).get(distance, (-PRIOR, PRIOR))
        return low, high


@lru_cache(maxsize=8)  # calibrations in use at a time
def widths_of(calibration: ServingCalibration) -> Widths:
    """The widths that a calibration has."""
    raw = calibration.widths
    return Widths(Seen.from_texts(raw.get("seen", {})), raw.get("widths", {}))


def as_table(widths: Mapping[str, Mapping[Distance, Width]]) -> dict[str, dict[str, list[float]]]:
    """As the calibration's file has them."""
    return {
        metric: {str(d): [round(w.low, 4), round(w.high, 4), w.figures, w.groups] for d, w in table.items()}
        for metric, table in widths.items()
    }


def learn(errors: Iterable[Error]) -> dict[str, dict[Distance, Width]]:
    """Bounds by metric and distance, each holding those of nearer ones."""
    table: dict[tuple[str, Distance], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for error in errors:
        table[error.metric, error.distance][error.group].append(error.value)
    return {metric: _of_metric(metric, table) for metric in dict.fromkeys(key[0] for key in sorted(table))}


def _of_metric(metric: str, table: Mapping[tuple[str, Distance], Mapping[str, list[float]]]) -> dict[Distance, Width]:
    farther: Weighted = [(-PRIOR, 0.5), (PRIOR, 0.5)]
    pairs: dict[Distance, tuple[float, float]] = {}
    for distance in reversed(BY_DISTANCE):
        groups = table.get((metric, distance), {})
        weighted = [(value, 1 / len(values)) for values in groups.values() for value in values]
        lacking = max(GROUPS - len(groups), 0)
        whole = sum(weight for _, weight in farther)
        weighted += [(value, lacking * weight / whole) for value, weight in farther if lacking]
        pairs[distance] = weighted_bounds(weighted)
        farther = weighted
    out: dict[Distance, Width] = {}
    low = high = 0.0
    for distance in BY_DISTANCE:
        low, high = min(low, pairs[distance][0]), max(high, pairs[distance][1])
        groups = table.get((metric, distance), {})
        out[distance] = Width(low=low, high=high, figures=sum(map(len, groups.values())), groups=len(groups))
    return out


def weighted_bounds(weighted: Weighted) -> tuple[float, float]:
    """The quantiles between which all but a tail of the weight lies on each side."""
    return _quantile(sorted(weighted)), -_quantile(sorted((-value, weight) for value, weight in weighted))


def _quantile(ranked: Weighted) -> float:
    """The smallest error that more than a tail of the weight does not exceed."""
    whole, passed = sum(weight for _, weight in ranked), 0.0
    for value, weight in ranked:
        passed += weight
        if passed > TAIL * whole:
            return value
    return ranked[-1][0]
