"""What measurements taught: dated files of coefficients that predictions read. Written by `calibrate`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from chipwise.errors import BrokenFile

SCHEMA = 1
REFITS = ".refits.json"  # kept apart: only validation reads them
DATED = re.compile(r"\d{4}-\d\d-\d\d\.json")
COMPILED = ".compiled.json"  # kept apart: fitting it takes the vendors' compilers


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients with the date they were fitted and what they were fitted on."""

    date: str
    rows: int
    kernels: Mapping[str, Mapping[str, Mapping[str, float]]]  # chip -> precision -> coefficient -> value
    links: Mapping[str, Mapping[str, float]]  # chip -> coefficient -> value
    step: Mapping[str, Mapping[str, float]]  # coefficient -> label -> log effect
    folds: Mapping[str, int]  # group of published rows -> the refit that left it out
    correction: Mapping[str, Any]  # what formulas still miss: "kernels" and "steps"
    intervals: Mapping[str, Any]  # quantiles of what remains, by group
    without: Mapping[str, Mapping[str, Any]]  # source -> what was refitted with that source left out
    refits: tuple[Mapping[str, Any], ...] = ()  # step model refitted without a fold of groups
    compiled: Mapping[str, Any] = field(default_factory=dict)  # what turns compiled modules into time
    measured: bool = False  # whether what bench files taught of a chip is used where there is some

    def leaving_out(self, source: str) -> Calibration:
        """Everything refitted without `source`; this calibration where the source taught it nothing."""
        other = self.without.get(source, {})
        kept = self.leaving_out_kernels(source)
        return kept._refitted(other) if "step" in other else kept

    def leaving_out_kernels(self, source: str) -> Calibration:
        """Kernels and links refitted without `source`; this calibration where it taught them nothing."""
        tables = self.without.get(source, {}).get("kernel_tables")
        if tables is None:
            return self
        return replace(
            self,
            kernels=tables["kernels"],
            links=tables["links"],
            correction={**self.correction, "kernels": tables["residuals"]},
            intervals={**self.intervals, "kernels": tables["intervals"]},
        )

    def leaving_out_group(self, group: str) -> Calibration:
        """The step model refitted without `group` of published rows; this one where it wasn't used."""
        fold = self.folds.get(group)
        return self if fold is None else self._refitted(self.refits[fold])

    def leaving_out_compiled(self, group: str) -> Calibration:
        """The intervals of compiled steps without `group` of published rows; this one where it taught nothing."""
        other = self.compiled.get("without", {}).get(group)
        return self if other is None else replace(self, compiled={**self.compiled, "intervals": other})

    def _refitted(self, other: Mapping[str, Any]) -> Calibration:
        steps = {**self.correction["steps"], "alpha": other["alpha"]}
        return replace(
            self,
            step=other["step"],
            correction={**self.correction, "steps": steps},
            intervals=other.get("intervals", self.intervals),
        )


def from_raw(raw: Any, name: str, refits: Any = None, compiled: Any = None) -> Calibration:
    """A calibration from its JSON form, with the refits that leave rows out and the compilers' part where given."""
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise BrokenFile("calibration", name, f"schema {SCHEMA} (found {found})")
    more = refits or {"folds": {}, "without": {}, "refits": []}
    return Calibration(
        raw["date"],
        raw["rows"],
        raw["kernels"],
        raw["links"],
        raw["step"],
        more["folds"],
        raw["correction"],
        raw["intervals"],
        more["without"],
        tuple(more["refits"]),
        compiled or {},
    )


def _load(path: Traversable) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None


@cache
def shipped(refits: bool = False) -> Calibration:
    """The newest calibration in the package; `refits` adds those that leave published rows out."""
    folder = files("chipwise.catalog").joinpath("data", "calibration")
    dated = (p for p in folder.iterdir() if DATED.fullmatch(p.name))
    newest = max(dated, key=lambda p: p.name)
    stem = newest.name.removesuffix(".json")
    more = _load(folder.joinpath(stem + REFITS)) if refits else None
    compiled = folder.joinpath(stem + COMPILED)
    return from_raw(_load(newest), newest.name, more, _load(compiled) if compiled.is_file() else None)


@cache
def in_use() -> Calibration:
    """The newest calibration, with what was measured of chips before what was published of them."""
    return replace(shipped(), measured=True)
