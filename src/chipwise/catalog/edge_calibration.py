"""The edge part of the calibration: effects on roofline times of edge inference, in a dated file of `calibrate`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import SCHEMA, packaged_folder
from chipwise.errors import BrokenFile

EDGE = ".edge.json.gz"
EDGE_REFITS = ".edge.refits.json.gz"
Effects = Mapping[str, tuple[float, float]]  # label -> mean and variance of its effect


@dataclass(frozen=True, slots=True)
class EdgeCalibration:
    """Effects of labels, intervals by group, and refits that leave pairs of model and device out."""

    date: str = ""
    rows: int = 0
    effects: Effects = field(default_factory=dict)  # on the logarithm of seconds a sample
    fits: Effects = field(default_factory=dict)  # on whether weights stay on chip
    power: Effects = field(default_factory=dict)  # on the logarithm of wall power
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # in standard deviations, by group
    seen: frozenset[str] = frozenset()  # designs and models with published results
    folds: Mapping[str, int] = field(default_factory=dict)  # pair of model and device -> the refit without it
    refits: tuple[Mapping[str, Mapping[str, Any]], ...] = ()  # what changes in each
    without: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)  # source -> the refit

    def leaving_out_pair(self, pair: str) -> EdgeCalibration:
        """The refit without a pair of model and device; this where it was not fitted to it."""
        fold = self.folds.get(pair)
        return self if fold is None or not self.refits else self._changed(self.refits[fold])

    def leaving_out(self, source: str) -> EdgeCalibration:
        """The refit without a source; this where it was not fitted to it."""
        other = self.without.get(source)
        return self if other is None else self._changed(other)

    def _changed(self, other: Mapping[str, Mapping[str, Any]]) -> EdgeCalibration:
        effects, fits, power = ({**getattr(self, k), **_effects(other[k])} for k in ("effects", "fits", "power"))
        return replace(self, effects=effects, fits=fits, power=power, seen=frozenset(other["seen"]))


def _effects(raw: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    return {label: (float(mean), float(variance)) for label, (mean, variance) in raw.items()}


@cache
def load_edge_calibration(refits: bool = False) -> EdgeCalibration:
    """The newest edge calibration in the package; `refits`, for validation, adds those that leave rows out."""
    return read_edge(packaged_folder(), refits)


def read_edge(folder: Path, refits: bool = False) -> EdgeCalibration:
    """The newest edge calibration in a folder; an empty one where there is none."""
    newest = max((path.name for path in folder.iterdir() if path.name.endswith(EDGE)), default="")
    if not newest:
        return EdgeCalibration()
    raw = _read(folder / newest)
    more = _read(folder / (newest.removesuffix(EDGE) + EDGE_REFITS)) if refits else {}
    return EdgeCalibration(
        raw["date"],
        raw["rows"],
        _effects(raw["effects"]),
        _effects(raw["fits"]),
        _effects(raw["power"]),
        {group: (low, high) for group, (low, high) in raw["intervals"].items()},
        frozenset(raw["seen"]),
        more.get("folds", {}),
        tuple(more.get("refits", ())),
        more.get("without", {}),
    )


def _read(path: Path) -> Any:
    try:
        raw = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, ValueError, EOFError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise BrokenFile("calibration", path.name, f"schema {SCHEMA}")
    return raw
