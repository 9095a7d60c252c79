"""Bench files become a chip's calibration: which points are used, what was fitted, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.bench.file import BenchFile, read
from chipwise.calibrate.bench import fit_bench
from chipwise.catalog.bench_files import user_folder, write
from chipwise.errors import InputError
from chipwise.predict.learn.bench_calibration import BenchCalibration
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, record, table
from chipwise.present.result import Result

Progress = Callable[[int, int, str], None]
Part = tuple[str, int, float | None]  # a kernel or a step, the points behind it, and its error on points left out

PARTS: list[Column[Part]] = [
    Column("", None, "what", lambda p: p[0], words=True),
    Column("points", lambda p: p[1], "points", lambda p: f"{p[1]:,}", help="usable points behind it"),
    Column(
        "error",
        lambda p: p[2],
        "error, left out",
        lambda p: "too few to tell" if p[2] is None else f"{p[2] * 100:.1f} %",
        help="mean relative error of points left out",
    ),
]


@dataclass(frozen=True, slots=True)
class KeptCalibration:
    """A chip's calibration by one framework, and its file."""

    calibration: BenchCalibration
    path: Path

    @property
    def kernels(self) -> list[Part]:
        """Kernels, by kind and precision."""
        return [(name, part.points, part.error) for name, part in self.calibration.tables.items()]

    @property
    def steps(self) -> list[Part]:
        """Whole steps of models."""
        return [(name, part.points, part.error) for name, part in self.calibration.steps.items()]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        calibration = self.calibration
        return {
            "chip": calibration.chip,
            "framework": calibration.framework,
            "date": calibration.date,
            "source": calibration.source,
            "file": str(self.path),
            "points": len(calibration.measured),
            "kernels": {part[0]: record(PARTS, part) for part in self.kernels},
            "steps": {part[0]: record(PARTS, part) for part in self.steps},
            "left_out": dict(calibration.left_out),
        }


@dataclass(frozen=True, slots=True, repr=False)
class BenchCalibrations(Result):
    """What was fitted to bench files, one calibration a framework."""

    VERB: ClassVar[str] = "calibrate"
    calibrations: tuple[KeptCalibration, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"calibrations": self.calibrations}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a kernel or step."""
        return [
            {
                "chip": kept.calibration.chip,
                "framework": kept.calibration.framework,
                "what": part[0],
                **record(PARTS, part),
            }
            for kept in self.calibrations
            for part in (*kept.kernels, *kept.steps)
        ]

    def blocks(self) -> list[Block]:
        """For people."""
        blocks: list[Block] = []
        for i, kept in enumerate(self.calibrations):
            calibration = kept.calibration
            blocks += [
                Text(
                    f"{calibration.chip} with {calibration.framework}, from {calibration.source} of {calibration.date}",
                    i > 0,
                ),
                table(PARTS, [*kept.kernels, *kept.steps]),
                *(Text(f"{name} not calibrated: {why}") for name, why in calibration.left_out.items()),
                Text(f"{len(calibration.measured):,} measured points; kept in {kept.path}"),
            ]
        return blocks


def calibrate_bench(
    files: Sequence[Path],
    framework: str | None = None,
    chip: str = "",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> BenchCalibrations:
    """Fit a chip's tables and overheads to bench files, framework by framework, and keep them in `folder`."""
    names = [path.name for path in files]
    bench = {path.name if names.count(path.name) == 1 else str(path): read(path) for path in files}
    if len(bench) < len(files):
        raise InputError("files", str(files[0]), "each file once")
    frameworks = _frameworks(bench, framework)
    fitted = []
    for i, name in enumerate(frameworks):
        if progress:
            progress(i, len(frameworks), name)
        fitted.append(fit_bench(bench, name, chip))
    return BenchCalibrations(
        tuple(
            KeptCalibration(calibration, write(folder or user_folder(), calibration.as_json()))
            for calibration in fitted
        )
    )


def _frameworks(bench: Mapping[str, BenchFile], framework: str | None) -> list[str]:
    """The frameworks with usable points, or the one that is named."""
    names = dict.fromkeys(name for file in bench.values() for name in file.frameworks)
    points = [point for file in bench.values() for point in file.points]
    usable = [name for name in names if any(point.usable and point.framework == name for point in points)]
    if not usable:
        raise InputError("files", ", ".join(bench), "a file with points that can be used")
    if framework is not None and framework not in usable:
        raise InputError("framework", framework, f"one with usable points: {', '.join(usable)}")
    return usable if framework is None else [framework]
