"""What published serving results taught: a dated file of effects and intervals. Written by `calibrate`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from chipwise.errors import BrokenFile

SCHEMA = 1
SUFFIX = ".serving.json"
REFITS = ".serving.refits.json.gz"  # kept apart: only validation reads them


@dataclass(frozen=True, slots=True)
class Taught:
    """Effects of labels on the coefficients of serving replicas, what published rows add near them, and intervals."""

    date: str = ""
    rows: int = 0
    effects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # coefficient -> label -> log effect
    learnt: Mapping[str, Any] = field(default_factory=dict)  # metric -> points and weights of what formulas still miss
    intervals: Mapping[str, Any] = field(default_factory=dict)  # quantiles of what remains
    without: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # source or model -> the refit without it

    def leaving_out(self, name: str) -> Taught:
        """Everything refitted without a source or model; this where it taught nothing."""
        other = self.without.get(name)
        if other is None:
            return self
        learnt = {metric: {**table, "weights": other["weights"][metric]} for metric, table in self.learnt.items()}
        return replace(self, effects=other["effects"], learnt=learnt, intervals=other["intervals"])


def _load(path: Traversable) -> Any:
    try:
        data = path.read_bytes()
        raw = json.loads(gzip.decompress(data) if path.name.endswith(".gz") else data)
    except (OSError, ValueError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise BrokenFile("calibration", path.name, f"schema {SCHEMA} (found {found})")
    return raw


@cache
def taught(refits: bool = False) -> Taught:
    """The newest in the package; `refits` adds those that leave published rows out."""
    folder = files("chipwise.catalog").joinpath("data", "calibration")
    newest = max((p.name for p in folder.iterdir() if p.name.endswith(SUFFIX)), default="")
    if not newest:
        return Taught()
    raw = _load(folder.joinpath(newest))
    more = _load(folder.joinpath(newest.removesuffix(SUFFIX) + REFITS))["without"] if refits else {}
    for entry in more.values():
        entry["weights"] = {metric: np.asarray(w, float) for metric, w in entry["weights"].items()}
    learnt = {
        metric: {key: np.asarray(value) for key, value in table.items()} for metric, table in raw["learnt"].items()
    }
    return Taught(raw["date"], raw["rows"], raw["effects"], learnt, raw["intervals"], more)
