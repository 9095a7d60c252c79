"""How far predictions are from published measurements: the scoreboard, row by row and in summary."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import Calibration, load_calibration
from chipwise.catalog.edge_calibration import load_edge_calibration
from chipwise.errors import BrokenFile, ChipwiseError, InputError
from chipwise.io.files import read_text
from chipwise.validate import bench_rows, edge_rows, kernel_rows, open_rows, serving_rows, training_rows
from chipwise.validate.by_distance import left_out_whole
from chipwise.validate.compiled import Compile, CompiledRow, compiled_row, memory_summary
from chipwise.validate.edge import EDGE, score_edge_row
from chipwise.validate.kernel_widths import regime_of
from chipwise.validate.kernels import predict_kernel_row
from chipwise.validate.open_loop import OPEN, score_open_row
from chipwise.validate.scored import Scored, sections, summary
from chipwise.validate.serving import score_serving_row
from chipwise.validate.tpu_kernels import split
from chipwise.validate.training import predict_row, runner_of
from chipwise.validate.winners import winners

Progress = Callable[[int, int, str], None]
Compiling = tuple[Compile | None, bool]  # how to compile what isn't kept, and whether to compile all again
MAX_ROWS_BYTES = 200_000_000
FLAT = "bench"  # rows of measurements, one point each
SERVED = "inference"
LATER = "later"  # inference rows with the protocol of their benchmark, gathered after all priors were set


def published() -> list[Path]:
    """The rows that come with chipwise."""
    packaged = Path(str(files("chipwise.validate"))) / "rows"
    here = packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "validation" / "rows"
    names = ("training.csv", "kernels.csv", "inference.csv", "serving.csv", "inference_later.csv", "open_loop.csv")
    return [here / name for name in names]


def read_rows(path: Path) -> tuple[str, list[dict[str, str]]]:
    """The kind of rows in a CSV file (its header tells) and the rows."""
    reader = csv.DictReader(io.StringIO(read_text(path, MAX_ROWS_BYTES, "rows")))
    try:
        return _rows_of(reader, path)
    except csv.Error as error:
        raise BrokenFile("rows", f"{path} line {reader.line_num}", f"plain CSV ({error})") from None


def _rows_of(reader: csv.DictReader[str], path: Path) -> tuple[str, list[dict[str, str]]]:
    header = set(reader.fieldnames or ())
    if not header:
        raise BrokenFile("rows", str(path), "a CSV file with a header; this one is empty")
    kinds = (
        ("training", training_rows.COLUMNS),
        ("kernel", kernel_rows.COLUMNS),
        (FLAT, bench_rows.COLUMNS),
        (EDGE, edge_rows.COLUMNS),
        (OPEN, open_rows.COLUMNS),
        (LATER, serving_rows.INFERENCE | serving_rows.PROTOCOL),
        (SERVED, serving_rows.INFERENCE),
        (SERVED, serving_rows.CLOSED),
    )
    for kind, columns in kinds:
        if columns <= header:
            return kind, [{k: v or "" for k, v in row.items() if k is not None} for row in reader]
    missing = sorted(training_rows.COLUMNS - header)
    raise BrokenFile(
        "rows",
        str(path),
        "the columns of training, inference, serving, open-load, edge, kernel or flat rows "
        "(kind, dtype, seconds); missing for training: " + ", ".join(missing),
    )


def score_row(
    kind: str, row: Mapping[str, str], calibration: Calibration, compiling: Compiling | None = None
) -> Scored | None:
    """One row scored, or None where it isn't eligible.

    A row that the calibration was fitted to is predicted by the refit that left its group out.
    """
    reader = reader_of(kind)
    if not reader.eligible(row):
        return None
    if compiling is not None and (kind != "training" or "tpu" not in row.get("accelerator", "").lower()):
        return None
    try:
        parsed = reader.read(row)
    except ChipwiseError as error:
        return Scored(row.get("id", ""), kind, row.get("source_repo", ""), "", "", None, None, None, str(error))
    compiled: CompiledRow | None = None
    training = calibration.training
    base = (parsed.id, kind, parsed.source, parsed.chip.id, parsed.chip.family, parsed.observed_s)
    try:
        if compiling is not None:
            without = replace(calibration, training=training.leaving_out_compiled(parsed.group))
            compiled = compiled_row(parsed, row, without, *compiling)
            mine = other = compiled.step.estimate
        elif kind == "training":
            parts = training.leaving_out_group(parsed.group), training.leaving_out(parsed.source)
            mine, other = predict_row(parsed, [replace(calibration, training=part) for part in parts])
        else:
            mine = predict_kernel_row(parsed, calibration)
            without = replace(calibration, training=training.leaving_out_kernels(parsed.source))
            other = predict_kernel_row(parsed, without)
    except ChipwiseError as error:
        return Scored(*base, None, None, str(error))
    if kind != "training":
        regime = str(regime_of(parsed.kernel, mine.value))
        return Scored(*base, mine, other, "", metric=parsed.kernel.op, mode=regime)
    return Scored(*base, mine, other, "", compiled, runner=runner_of(parsed, mine))


def score(
    paths: Sequence[Path] | None = None,
    progress: Progress | None = None,
    calibration: Calibration | None = None,
    ids: Sequence[str] = (),
    compiling: Compiling | None = None,
) -> dict[str, Any]:
    """Score the rows of these files (the published ones by default); everything `validate -o json` prints.

    `ids` names the only rows to score; `compiling` scores TPU training rows by their compiled schedules.
    """
    calibration = calibration or load_calibration(bench=False, refits=True)
    work = [
        (kind, row)
        for path in paths or published()
        for kind, rows in [read_rows(path)]
        for row in rows
        if not ids or row.get("id") in ids
    ]
    for name in ids:
        if all(row.get("id") != name for _, row in work):
            raise InputError("ids", name, "the id of a row in the files scored")
    scored: list[Scored] = []
    left: Counter[str] = Counter()
    for i, (kind, row) in enumerate(work):
        if progress:
            progress(i, len(work), row.get("id", ""))
        if kind in (SERVED, LATER) and compiling is None and serving_rows.eligible(row):
            scored += score_serving_row(row, calibration, kind)
            continue
        if kind == EDGE and compiling is None and edge_rows.eligible(row):
            scored += score_edge_row(row, load_edge_calibration(refits=True))
            continue
        if kind == OPEN and compiling is None and open_rows.eligible(row):
            scored += score_open_row(row, calibration)
            continue
        one = score_row(kind, row, calibration, compiling) if kind not in (SERVED, LATER, EDGE, OPEN) else None
        if one is None:
            left["not a TPU training row" if reader_of(kind).eligible(row) else missing(kind, row)] += 1
        else:
            scored.append(one)
    training = [s for s in scored if s.kind == "training"]
    kernels = [s for s in scored if s.kind == "kernel"]
    apart = compiling is None and any(s.kind == "training" for s in scored)  # rows gathered later: beside all others
    later = [s for s in scored if s.kind == LATER and apart]
    served = [s for s in scored if s.kind == SERVED or (s.kind == LATER and not apart)]
    opened = [s for s in scored if s.kind == OPEN]
    edges = [s for s in scored if s.kind == EDGE and s.metric != "energy"]
    energy = [s for s in scored if s.kind == EDGE and s.metric == "energy"]
    kinds = {kind for kind, _ in work}
    main = (
        training
        if "training" in kinds
        else served
        if {SERVED, LATER} & kinds
        else opened
        if OPEN in kinds
        else edges
        if EDGE in kinds
        else kernels
    )
    out = {
        "calibration": load_edge_calibration().date if main is edges else calibration.training.date,
        "evidence": "modelled" if compiling is None else "compiled",
        "rows_read": len(work),
        "not_eligible": dict(left.most_common()),
        **sections(main),
    }
    if training and compiling is None:
        table = winners(s.runner for s in training if s.runner)
        out |= {"winners": table} if table else {}
    if kernels:
        of = split(
            [row for kind, row in work if kind == "kernel"], lambda ids: summary([s for s in kernels if s.id in ids])
        )
        out["kernels"] = {
            **sections(kernels),
            "over_20us": summary([s for s in kernels if (s.observed or 0) > 20e-6]),
            **of,
        }
    if served and main is not served:
        out["inference"] = sections(served)
    if opened and main is not opened:
        out["open_loop"] = sections(opened)
    if later:
        out["later"] = {**sections(later), "rows": [s.as_dict() for s in later]}
    if not paths and not ids and compiling is None and calibration.serving.errors:
        out["left_out_whole"] = left_out_whole(calibration.serving)
    if edges and main is not edges:
        out["edge"] = sections(edges)
    if energy:
        out["energy"] = sections(energy)
    if compiling is not None:
        by_bytes = {(s.compiled.compiler_bytes, s.compiled.modelled_bytes): s.compiled for s in scored if s.compiled}
        out["memory"] = memory_summary(list(by_bytes.values()))
    out["rows"] = [s.as_dict() for s in scored if s.kind != LATER or not apart]
    return out


def reader_of(kind: str) -> Any:
    """The module that reads rows of a kind."""
    readers = {
        "training": training_rows,
        SERVED: serving_rows,
        LATER: serving_rows,
        EDGE: edge_rows,
        OPEN: open_rows,
    }
    return readers.get(kind, kernel_rows)


def missing(kind: str, row: Mapping[str, str]) -> str:
    """Why a row is not eligible, in words."""
    if kind != "training":
        return str(reader_of(kind).why_not(row))
    gaps = [k for k in training_rows.NEEDED if not row.get(k, "").strip()]
    if not any(row.get(k, "").strip() for k in training_rows.RATES):
        gaps.append("a rate")
    return "no " + ", ".join(gaps)
