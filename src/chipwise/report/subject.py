"""What differs between the reports of a training run and of a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chipwise.predict.estimate import Estimate
from chipwise.report.parts import Tile


@dataclass(frozen=True, slots=True)
class Subject:
    """What differs between reports of runs and of services."""

    kind: str  # of published results: "training" or "inference"
    calibration: str  # the date of the one in use
    about: str  # the work in a few words
    estimate: Callable[[Any], Estimate]  # of a row: what its evidence and interval are those of
    seconds: Callable[[Any], Estimate]  # of a row: the time that is weighed against cost
    time: str  # which time that is, after a unit
    per: str  # what dollars on demand are for, after an amount
    bars: dict[str, tuple[str, str]]  # by objective: what is shown, and its axis with braces for the unit of times
    tiles: Callable[[Any], list[Tile]]  # of the pick, beside its costs
    table: str  # what the ranked chips can do
    note: str  # beneath their table
