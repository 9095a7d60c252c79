"""What `calibrate telemetry --accept` wrote: dated files in the user's data folder, of which the newest counts.

A file holds every run that was learned from, and what was learned of each group of them: to take it back is to move it
aside, so that the one before it counts again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import exp, log
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile, InputError, Refusal
from chipwise.io.atomic import atomic_write
from chipwise.io.files import MAX_BYTES
from chipwise.io.paths import data_folder
from chipwise.io.regular_file import read_bytes

SCHEMA = "chipwise.telemetry-calibration/1"
_NAME = re.compile(r"\d{4}-\d\d-\d\d-\d{3}\.json")
REVERTED = ".reverted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryGroup:
    """What runs of one kind of program say of a chip under a stack: how far their steps are from the prediction."""

    chip: str
    stack: str
    program: str
    base: str  # the calibration that they were held against
    log_factor: float  # mean of log(observed / predicted)
    low: float  # of the next run's log(observed / predicted): the 90 % interval
    high: float
    runs: int
    steps: int
    date: str  # of the newest run

    @property
    def factor(self) -> float:
        """Times as long as predicted without it."""
        return exp(self.log_factor)

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is of."""
        return self.chip, self.stack, self.program

    def to_dict(self) -> dict[str, Any]:
        """As files have it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """The steps of one run against its prediction without telemetry."""

    name: str  # a file, or an attempt of a job
    digest: str  # of how it began: the same run, told from elsewhere or once it has come further, is one run
    chip: str
    chips: int
    stack: str
    program: str
    base: str
    at: float  # seconds since 1970 of its last step; 0: it does not say
    steps: int
    observed_seconds: float  # of a step: the median
    predicted_seconds: float

    @property
    def log_ratio(self) -> float:
        """How far it is from its prediction."""
        return log(self.observed_seconds / self.predicted_seconds)

    @property
    def key(self) -> tuple[str, str, str]:
        """The group that it is of."""
        return self.chip, self.stack, self.program

    def to_dict(self) -> dict[str, Any]:
        """As files have it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What was accepted, by chip, stack and program; nothing by default."""

    groups: Mapping[tuple[str, str, str], TelemetryGroup] = field(default_factory=dict)
    runs: tuple[ObservedRun, ...] = ()
    date: str = ""
    path: Path | None = None

    def of(self, chip: str, stack: str, program: str) -> TelemetryGroup | None:
        """What is known of a program on a chip under a stack."""
        return self.groups.get((chip, stack, program))


def folder_of_user() -> Path:
    """Where a user's own are."""
    return data_folder() / "calibration" / "telemetry"


def files(folder: Path | None = None) -> list[Path]:
    """Those that are accepted, the newest last."""
    place = folder or folder_of_user()
    return sorted(path for path in place.iterdir() if _NAME.fullmatch(path.name)) if place.is_dir() else []


def read(folder: Path | None = None) -> Telemetry:
    """The newest; nothing where none was accepted."""
    accepted = files(folder)
    if not accepted:
        return Telemetry()
    path = accepted[-1]
    try:
        raw = json.loads(read_bytes(path, MAX_BYTES, "calibration"))
        if raw["schema"] != SCHEMA:
            raise ValueError(f"schema {raw['schema']}")
        groups = [TelemetryGroup(**group) for group in raw["groups"]]
        runs = tuple(ObservedRun(**run) for run in raw["runs"])
        return Telemetry({group.key: group for group in groups}, runs, raw["date"], path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        expected = (
            f"a file of schema {SCHEMA} ({type(error).__name__}: {error}); `chipwise calibrate telemetry --revert`"
        )
        raise BrokenFile("calibration", str(path), expected) from None


def write(groups: Sequence[TelemetryGroup], runs: Sequence[ObservedRun], day: date, folder: Path | None = None) -> Path:
    """Keep what was learned, after what was kept before."""
    place = folder or folder_of_user()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("folder", str(place), f"a folder that can be written to ({error.strerror})") from None
    newest = files(place)[-1].stem if files(place) else ""
    day_text = max(day.isoformat(), newest[:10])  # never before what it replaces, whatever a clock says
    number = int(newest[-3:]) + 1 if newest[:10] == day_text else 1
    path = place / f"{day_text}-{number:03d}.json"
    raw = {
        "schema": SCHEMA,
        "date": day.isoformat(),
        "groups": [group.to_dict() for group in groups],
        "runs": [run.to_dict() for run in runs],
    }
    atomic_write((json.dumps(raw, indent=1, sort_keys=True) + "\n").encode("utf-8"), path, "folder")
    return path


def revert(folder: Path | None = None) -> Path:
    """Move the newest aside; the one before it counts again."""
    accepted = files(folder)
    if not accepted:
        raise Refusal(
            f"no calibration by telemetry was accepted in {folder or folder_of_user()}", "there is nothing to take back"
        )
    path = accepted[-1]
    path.replace(path.with_name(path.name + REVERTED))
    return path
