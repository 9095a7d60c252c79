"""The calibration of one chip under one framework from bench files: tables for kernels, coefficients for steps.

`calibrate bench` writes it; `learn.points` reads it. Times of kernels are a formula of the chip times what the
measured points nearby say; times of steps are sums of such kernels and of streams through memory, with coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.calibration import Bench
from chipwise.errors import BrokenFile
from chipwise.predict.learn.gp import Process
from chipwise.predict.model.kernels import KernelCoefficients

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PointTable:
    """Times of one kind of kernel in one precision: `exp(process)` times a formula, never under the floor."""

    coefficients: KernelCoefficients
    process: Process
    floor_s: float  # what a call takes at least, launched from the host one after another
    points: int
    error: float  # mean relative error of points left out

    def as_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "coefficients": asdict(self.coefficients),
            "process": self.process.as_json(),
            "floor_s": self.floor_s,
            "points": self.points,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> PointTable:
        """What `as_json` gave."""
        return cls(
            KernelCoefficients(**raw["coefficients"]),
            Process.from_json(raw["process"]),
            raw["floor_s"],
            raw["points"],
            raw["error"],
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of step: seconds (or bytes) are coefficients times terms; the host's own time is a floor."""

    coefficients: Mapping[str, float]
    host_s: float  # of the host, for each layer of the model
    points: int
    error: float | None  # mean relative error of points left out; None where they are too few to tell
    spread: tuple[float, float] = (0.0, 0.0)  # log interval that holds 90 % of what was left out


@dataclass(frozen=True, slots=True)
class BenchCalibration:
    """Everything from one bench file about one framework."""

    chip: str
    framework: str
    date: str
    source: str  # the bench file's name
    versions: Mapping[str, str]
    tables: Mapping[str, PointTable]  # "gemm/bf16", "sdpa_fwd", "copy"...
    steps: Mapping[str, Step]  # "train", "train/compiled", "decode"...
    # a point's name -> its seconds, with the ends of what was measured ("low", "high")
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # by "eager" and "compiled": what training held over what bookkeeping counts (median, least, most)
    peaks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)  # steps that could not be fitted, and why

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "chip": self.chip,
            "framework": self.framework,
            "date": self.date,
            "source": self.source,
            "versions": dict(self.versions),
            "tables": {k: t.as_json() for k, t in self.tables.items()},
            "steps": {k: asdict(s) for k, s in self.steps.items()},
            "measured": {k: dict(v) for k, v in self.measured.items()},
            "peaks": {k: list(v) for k, v in self.peaks.items()},
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> BenchCalibration:
        """What `as_json` gave."""
        return cls(
            raw["chip"],
            raw["framework"],
            raw["date"],
            raw["source"],
            raw["versions"],
            {k: PointTable.from_json(v) for k, v in raw["tables"].items()},
            {k: Step(**{**v, "spread": tuple(v["spread"])}) for k, v in raw["steps"].items()},
            raw["measured"],
            {k: (float(v[0]), float(v[1]), float(v[2])) for k, v in raw["peaks"].items()},
            raw["left_out"],
        )


def bench_calibration(bench: Bench, chip: str, framework: str) -> BenchCalibration | None:
    """What is known of a chip under a framework: the newest calibration, and what only older ones know."""
    calibrations = [_read(raw) for raw in bench.of(chip, framework)]
    if not calibrations:
        return None

    def all_of(name: str) -> dict[str, Any]:
        return {key: value for one in reversed(calibrations) for key, value in getattr(one, name).items()}

    points = {
        key: {**value, "source": f"{one.source} on {one.date}"}
        for one in reversed(calibrations)
        for key, value in one.measured.items()
    }
    newest = calibrations[0]
    older = ", ".join(dict.fromkeys(one.source for one in calibrations[1:]))
    return replace(
        newest,
        source=newest.source + (f"; what it lacks from {older}" if older else ""),
        tables=all_of("tables"),
        steps=all_of("steps"),
        measured=points,
        peaks=all_of("peaks"),
    )


def _read(raw: Mapping[str, Any]) -> BenchCalibration:
    try:
        return BenchCalibration.from_json(raw)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        accepted = f"a whole calibration ({type(error).__name__}: {error}); calibrate again from the bench file"
        raise BrokenFile("calibration", str(raw["path"]), accepted) from None
