"""`validate`: which rows are scored by what, and the scores as a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.names import find_chip
from chipwise.errors import NOTHING, Conflict, InputError, MissingInput
from chipwise.present.blocks import Block
from chipwise.present.columns import padded
from chipwise.present.data import flatten
from chipwise.present.result import Result
from chipwise.validate.bench_score import score_rows
from chipwise.validate.compiled import compile_now
from chipwise.validate.score import FLAT, Compiling, Progress, read_rows, score

EVIDENCE = ("modelled", "compiled")


@dataclass(frozen=True, slots=True, repr=False)
class Validation(Result):
    """Rows with their predictions, and how far those are off: published rows, or measurements of one chip."""

    VERB: ClassVar[str] = "validate"
    scores: Mapping[str, Any]

    @property
    def summary(self) -> Mapping[str, Any]:
        """Over all rows: eligible, predicted, median_ape, mape, bias, coverage90."""
        summary: Mapping[str, Any] = self.scores["summary"]
        return summary

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Every eligible row: what was observed and predicted."""
        rows: Sequence[Mapping[str, Any]] = [*self.scores["rows"], *self.scores.get("later", {}).get("rows", ())]
        return rows

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(self.scores)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a figure."""
        return padded(
            [
                {name: cell for key, value in row.items() for name, cell in flatten(key, value).items()}
                for row in self.rows
            ]
        )

    def blocks(self) -> list[Block]:
        """For people."""
        from chipwise.validate.view import measured_blocks, published_blocks

        return measured_blocks(self.scores) if "by_kind" in self.scores else published_blocks(self.scores)


def validate(
    rows: Sequence[Path] = (),
    on: str | None = None,
    evidence: str = "modelled",
    ids: Sequence[str] = (),
    recompile: bool = False,
    compile_missing: bool | None = None,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Score published rows (those shipped by default), or flat rows of measurements of the chip `on`.

    `ids` names the only rows to score. With compiled evidence, rows of which no schedule is kept are compiled where
    `compile_missing` (None: where rows are named), and all are with `recompile`.
    """
    if evidence not in EVIDENCE:
        raise InputError("evidence", evidence, " or ".join(EVIDENCE))
    if evidence == "modelled" and (recompile or compile_missing is not None):
        raise MissingInput([("evidence compiled",)], "recompile" if recompile else "compile_missing")
    measured = _measured(rows, on)
    if measured is not None:
        if ids or evidence != "modelled":
            raise Conflict("ids" if ids else "evidence", "flat rows", "it is for published ones")
        return Validation(score_rows(measured, find_chip(on or "")))
    if calibration is not None and not calibration.training.refits:
        accepted = "one whose calibration has refits without each row, such as Knowledge.published(refits=True)"
        raise InputError("knowledge", f"the calibration of {calibration.training.date}", accepted)
    missing = bool(rows or ids or recompile) if compile_missing is None else compile_missing
    compiling: Compiling | None = None
    if evidence == "compiled":
        compiling = (compile_now if missing else None, recompile)
    return Validation(score(rows or None, progress, calibration, ids, compiling))


def _measured(paths: Sequence[Path], on: str | None) -> list[dict[str, str]] | None:
    """Flat rows of measurements, where that is what the files hold."""
    read = [read_rows(path) for path in paths]
    flat = [rows for kind, rows in read if kind == FLAT]
    if not flat:
        if on is not None:
            raise InputError("on", on, "only beside flat rows of measurements")
        return None
    if len(flat) < len(read):
        raise InputError("rows", ", ".join(map(str, paths)), "files of one kind: published rows or flat ones")
    if on is None:
        raise InputError("on", NOTHING, "the chip that the flat rows are of, such as h200")
    if ":" in on:
        raise InputError("on", on, "one chip with no count, such as h200: flat rows are of one")
    return [row for rows in flat for row in rows]
