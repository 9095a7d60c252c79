"""The edge part of the calibration: effects on roofline times of edge inference, in a dated file of `calibrate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import MAX_PART_BYTES, SCHEMA, packaged_folder
from chipwise.errors import BrokenFile
from chipwise.io.regular_file import read_bytes

EDGE = ".edge.json.gz"
EDGE_REFITS = ".edge.refits.json.gz"
Effects = Mapping[str, tuple[float, float]]  # label -> mean and variance of its effect


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Refits that each leave some pairs, devices, models or sources out whole."""

    folds: Mapping[str, int]  # name -> the refit without it
    refits: Sequence[Mapping[str, Any]]  # what changes in each

    def refit(self, name: str) -> Mapping[str, Any] | None:
        """What changes without this name; None where no row has it."""
        fold = self.folds.get(name)
        return None if fold is None else self.refits[fold]


@dataclass(frozen=True, slots=True)
class EdgeCalibration:
    """Effects of labels, intervals by distance to published results, and refits that hold rows back."""

    date: str = ""
    rows: int = 0
    effects: Effects = field(default_factory=dict)  # on the logarithm of seconds a sample
    fits: Effects = field(default_factory=dict)  # on whether weights stay on chip
    power: Effects = field(default_factory=dict)  # on the logarithm of wall power
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # in standard deviations, by group
    seen: frozenset[str] = frozenset()  # designs, models, devices and pairs with published results
    held: Mapping[str, HeldBack] = field(default_factory=dict)  # refits without a pair, device, model or source

    def without(self, kind: str, name: str) -> EdgeCalibration:
        """The refit without a pair, device, model or source of this name; this where it was not fitted to it."""
        other = self.held[kind].refit(name) if kind in self.held else None
        if other is None:
            return self
        effects, fits, power = ({**getattr(self, k), **_effects(other[k])} for k in ("effects", "fits", "power"))
        intervals, seen = _intervals(other["intervals"]), frozenset(other["seen"])
        return replace(self, effects=effects, fits=fits, power=power, intervals=intervals, seen=seen)


def _intervals(raw: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    return {group: (float(low), float(high)) for group, (low, high) in raw.items()}


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
        _intervals(raw["intervals"]),
        frozenset(raw["seen"]),
        {kind: HeldBack(part["folds"], part["refits"]) for kind, part in more.get("held", {}).items()},
    )


def _read(path: Path) -> Any:
    try:
        raw = json.loads(read_bytes(path, MAX_PART_BYTES, "calibration", packed=True))
    except (ValueError, RecursionError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise BrokenFile("calibration", path.name, f"schema {SCHEMA}")
    return raw
