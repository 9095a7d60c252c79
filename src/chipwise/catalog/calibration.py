"""Calibration: what published and measured results say of predictions, in dated files that `calibrate` writes.

A `Calibration` has four parts: `training` (kernels, links and training steps, from published rows), `serving` (from
published serving rows, read when first used), `bench` (chips measured by `chipwise bench`, read chip by chip) and
`telemetry` (what one's own runs took).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import bench_files, telemetry_files
from chipwise.catalog.economics import Assumption
from chipwise.catalog.telemetry_files import Telemetry
from chipwise.errors import BrokenFile
from chipwise.io.brief import brief
from chipwise.io.regular_file import read_bytes

SCHEMA = 1
MAX_PART_BYTES = 64 * 2**20  # of a file, unpacked: the largest has 10 MB (2026-11-19)
TRAINING = ".json"
DATED = re.compile(r"\d{4}-\d\d-\d\d\.json")
COMPILED = ".compiled.json"  # kept apart: fitting it takes the vendors' compilers
SERVING = ".serving.json"
TRAINING_REFITS = ".refits.json"  # refits are kept apart: only validation reads them
SERVING_REFITS = ".serving.refits.json.gz"
SERVING_WIDTHS = ".serving.widths.json"  # apart: they are learned again without a fit
SERVING_ERRORS = ".serving.errors.json.gz"  # from which, and what they are without a source or a model
FIRST_TOKENS = ".serving.first.json"  # apart: first tokens of open loads, learned after everything else


@brief
@dataclass(frozen=True, slots=True)
class Residuals:
    """Published points with the weights of what formulas miss at them: a Gaussian process, as arrays."""

    sizes: NDArray[np.float64]  # (point, size)
    names: NDArray[np.str_]  # (point, name)
    weights: NDArray[np.float64]


@brief
@dataclass(frozen=True, slots=True)
class TrainingCalibration:
    """Coefficients of kernels, links and training steps, with the date they were fitted and on how many rows."""

    date: str = ""
    rows: int = 0
    # chip -> precision -> coefficient -> value
    kernels: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # chip -> coefficient -> value
    step: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # coefficient -> label -> log effect
    kernel_residuals: Mapping[str, Any] = field(default_factory=dict)  # what formulas of kernels miss
    step_residuals: Residuals | None = None  # what the step model misses near published steps
    intervals: Mapping[str, Any] = field(default_factory=dict)  # quantiles of what remains, by group
    compiled: Mapping[str, Any] = field(default_factory=dict)  # what turns compiled modules into time
    folds: Mapping[str, int] = field(default_factory=dict)  # group of published rows -> the refit that left it out
    refits: tuple[Mapping[str, Any], ...] = ()  # step model refitted without a fold of groups
    without: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # source -> what was refitted without it

    def leaving_out(self, source: str) -> TrainingCalibration:
        """Everything refitted without `source`; this calibration where it was not fitted to that source."""
        other = self.without.get(source, {})
        kept = self.leaving_out_kernels(source)
        return kept._refitted(other) if "step" in other else kept

    def leaving_out_kernels(self, source: str) -> TrainingCalibration:
        """Kernels and links refitted without `source`; this calibration where they were not fitted to it."""
        tables = self.without.get(source, {}).get("kernel_tables")
        if tables is None:
            return self
        return replace(
            self,
            kernels=tables["kernels"],
            links=tables["links"],
            kernel_residuals=tables["residuals"],
            intervals={**self.intervals, "kernels": tables["intervals"]},
        )

    def leaving_out_group(self, group: str) -> TrainingCalibration:
        """The step model refitted without `group` of published rows; this one where it wasn't used."""
        fold = self.folds.get(group)
        return self if fold is None else self._refitted(self.refits[fold])

    def leaving_out_compiled(self, group: str) -> TrainingCalibration:
        """The intervals of compiled steps without `group` of published rows; this one where it wasn't used."""
        other = self.compiled.get("without", {}).get(group)
        return self if other is None else replace(self, compiled={**self.compiled, "intervals": other})

    def _refitted(self, other: Mapping[str, Any]) -> TrainingCalibration:
        assert self.step_residuals is not None
        return replace(
            self,
            step=other["step"],
            step_residuals=replace(self.step_residuals, weights=np.asarray(other["alpha"], float)),
            intervals=other.get("intervals", self.intervals),
        )


@brief
@dataclass(frozen=True, slots=True, eq=False)
class ServingCalibration:
    """Effects of labels on the coefficients of serving replicas, what published rows add near them, and intervals."""

    date: str = ""
    rows: int = 0
    effects: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # coefficient -> label -> log effect
    residuals: Mapping[str, Residuals] = field(default_factory=dict)  # metric -> what formulas still miss
    intervals: Mapping[str, Any] = field(default_factory=dict)  # quantiles of what remains
    without: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # source or model -> the refit without it
    widths: Mapping[str, Any] = field(default_factory=dict)  # places that were seen, and intervals by distance
    widths_without: Mapping[str, Any] = field(default_factory=dict)  # source or model -> the widths without it
    errors: Mapping[str, Any] = field(default_factory=dict)  # by which widths were learned, as columns
    first_tokens: Mapping[str, Any] = field(default_factory=dict)  # of open loads: effects, bounds, places, refits

    def leaving_out(self, name: str) -> ServingCalibration:
        """Everything refitted without a source or model; this where nothing was learned from it."""
        first = self.first_tokens.get("without", {}).get(name)
        if first is not None:
            return replace(self, first_tokens=first).leaving_out(name)
        other, widths = self.without.get(name), self.widths_without.get(name, self.widths)
        if other is None:
            return self if widths is self.widths else replace(self, widths=widths)
        residuals = {
            metric: replace(table, weights=np.asarray(other["weights"][metric], float))
            for metric, table in self.residuals.items()
        }
        return replace(self, effects=other["effects"], residuals=residuals, intervals=other["intervals"], widths=widths)


@dataclass(frozen=True, slots=True)
class Bench:
    """Calibrations of single chips from bench files: the user's own before the package's; `used` or left aside."""

    used: bool = False

    def of(self, chip: str, framework: str) -> list[Mapping[str, Any]]:
        """What was measured of a chip under a framework, the newest first; read from files at each call."""
        return bench_files.read_all(chip, framework) if self.used else []


@brief
@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that predictions were calibrated with."""

    training: TrainingCalibration = field(default_factory=TrainingCalibration)
    load_serving: Callable[[], ServingCalibration] = ServingCalibration  # called when `serving` is asked for
    bench: Bench = field(default_factory=Bench)
    telemetry: Telemetry = field(default_factory=Telemetry)  # what one's own runs took, where that was accepted
    power: Mapping[str, Assumption] = field(default_factory=dict)  # watts of chips that a file of assumptions has

    @property
    def serving(self) -> ServingCalibration:
        """The part that published serving rows gave."""
        return self.load_serving()

    def with_serving(self, serving: ServingCalibration) -> Calibration:
        """The same with another part for serving."""
        return replace(self, load_serving=lambda: serving)


@cache
def load_calibration(bench: bool = True, refits: bool = False) -> Calibration:
    """The newest calibration in the package; `bench`: measurements of a chip come before what is published of it, and
    what one's own runs took counts where it was accepted.

    `refits` adds those that leave published rows out, for validation.
    """
    return read_calibration(packaged_folder(), bench, refits)


def packaged_folder() -> Path:
    """Where the calibration that comes with chipwise lies."""
    return Path(str(files("chipwise.catalog"))) / "data" / "calibration"


def read_calibration(folder: Path, bench: bool = True, refits: bool = False) -> Calibration:
    """The newest calibration in a folder; `bench`: with what was measured and observed by the user."""
    serving = cache(partial(read_serving, folder, refits))
    telemetry = telemetry_files.read() if bench else Telemetry()
    return Calibration(read_training(folder, refits), serving, Bench(used=bench), telemetry)


def read_training(folder: Path, refits: bool = False) -> TrainingCalibration:
    """The newest training part in a folder."""
    newest = max((path.name for path in folder.iterdir() if DATED.fullmatch(path.name)), default="")
    if not newest:
        raise BrokenFile("calibration", str(folder), "a folder with a calibration written by calibrate")
    stem = newest.removesuffix(TRAINING)
    raw = _read(folder / newest)
    compiled = folder / (stem + COMPILED)
    more: Mapping[str, Any] = _read(folder / (stem + TRAINING_REFITS), schema=False) if refits else {}
    return training_from(raw, more, _read(compiled, schema=False) if compiled.is_file() else {})


def training_from(
    raw: Mapping[str, Any], refits: Mapping[str, Any], compiled: Mapping[str, Any]
) -> TrainingCalibration:
    """A training part from its JSON form, with refits and the compilers' part where there are some."""
    steps = raw["correction"]["steps"]
    return TrainingCalibration(
        raw["date"],
        raw["rows"],
        raw["kernels"],
        raw["links"],
        raw["step"],
        _with_arrays(raw["correction"]["kernels"]),
        Residuals(np.asarray(steps["sizes"], float), np.asarray(steps["names"]), np.asarray(steps["alpha"], float)),
        raw["intervals"],
        compiled,
        refits.get("folds", {}),
        tuple(refits.get("refits", ())),
        refits.get("without", {}),
    )


def _with_arrays(residuals: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals of kernels with the points of their tables as arrays, converted once."""
    shapes = {
        pool: {**table, "points": np.asarray(table["points"], float)} for pool, table in residuals["shapes"].items()
    }
    return {**residuals, "shapes": shapes}


def read_serving(folder: Path, refits: bool = False) -> ServingCalibration:
    """The newest serving part in a folder; an empty one where there is none."""
    newest = max((path.name for path in folder.iterdir() if path.name.endswith(SERVING)), default="")
    if not newest:
        return ServingCalibration()
    raw = _read(folder / newest)
    more = _read(folder / (newest.removesuffix(SERVING) + SERVING_REFITS))["without"] if refits else {}
    for entry in more.values():
        entry["weights"] = {metric: np.asarray(weights, float) for metric, weights in entry["weights"].items()}
    residuals = {
        metric: Residuals(
            np.asarray(table["sizes"], float),
            np.column_stack((table["models"], table["places"])),
            np.asarray(table["weights"], float),
        )
        for metric, table in raw["residuals"].items()
    }
    stem = newest.removesuffix(SERVING)
    widths = _read(folder / (stem + SERVING_WIDTHS)) if (folder / (stem + SERVING_WIDTHS)).is_file() else {}
    errors = _read(folder / (stem + SERVING_ERRORS)) if refits and widths else {}
    first = _read(folder / (stem + FIRST_TOKENS)) if (folder / (stem + FIRST_TOKENS)).is_file() else {}
    return ServingCalibration(
        date=raw["date"],
        rows=raw["rows"],
        effects=raw["effects"],
        residuals=residuals,
        intervals=raw["intervals"],
        without=more,
        widths=widths,
        widths_without=errors.get("without", {}),
        errors=errors.get("errors", {}),
        first_tokens=first,
    )


def _read(path: Path, schema: bool = True) -> Any:
    """One of the files; `schema`: it has to say that it is of ours."""
    try:
        raw = json.loads(read_bytes(path, MAX_PART_BYTES, "calibration", packed=path.suffix == ".gz"))
    except (ValueError, RecursionError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    stated = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
    if not isinstance(raw, dict) or (schema and stated != SCHEMA):
        raise BrokenFile("calibration", path.name, f"schema {SCHEMA} (found {stated})")
    return raw
