"""How far predictions are from published measurements: the scoreboard, row by row and in summary."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import Calibration, shipped
from chipwise.errors import BrokenFile, ChipwiseError, InputError
from chipwise.predict.estimate import Estimate
from chipwise.validate import bench_rows, kernel_rows, training_rows
from chipwise.validate.compiled import Compile, CompiledRow, compiled_row, memory_summary
from chipwise.validate.kernels import predict_kernel_row
from chipwise.validate.summary import Pair
from chipwise.validate.summary import summary as rated
from chipwise.validate.tpu_kernels import split
from chipwise.validate.training import predict_row

Progress = Callable[[int, int, str], None]
Compiling = tuple[Compile | None, bool]  # how to compile what isn't kept, and whether to compile all anew
LARGEST = 200_000_000  # bytes of a file of rows
FLAT = "bench"  # rows of measurements, one point each


@dataclass(frozen=True, slots=True)
class Scored:
    """One published row against its prediction (seconds)."""

    id: str
    kind: str  # "training" or "kernel"
    source: str
    chip: str
    family: str
    observed: float | None  # None where the row could not be read
    estimate: Estimate | None
    left_out: Estimate | None  # predicted with the row's source left out of the calibration
    refusal: str
    compiled: CompiledRow | None = None  # where the row was scored by its compiled schedule

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        e, other = self.estimate, self.left_out
        return {
            "id": self.id, "kind": self.kind, "source": self.source, "chip": self.chip, "family": self.family,
            "unit": "s", "observed": self.observed, "predicted": e.value if e else None,
            "low": e.low if e else None, "high": e.high if e else None,
            "evidence": e.evidence if e else None, "refusal": self.refusal or None,
            "leave_one_source_out": {"predicted": other.value, "low": other.low, "high": other.high}
            if other else None,
            **({"compiled": self.compiled.as_dict()} if self.compiled else {}),
        }


def published() -> list[Path]:
    """The rows that come with chipwise."""
    packaged = Path(str(files("chipwise.validate"))) / "rows"
    here = packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "validation" / "rows"
    return [here / "training.csv", here / "kernels.csv"]


def read_rows(path: Path) -> tuple[str, list[dict[str, str]]]:
    """The kind of rows in a CSV file (its header tells) and the rows."""
    try:
        if not path.is_file():
            raise BrokenFile("--rows", str(path), "a CSV file that exists")
        if path.stat().st_size > LARGEST:
            raise BrokenFile("--rows", str(path), f"a file of at most {LARGEST // 1_000_000} MB")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenFile("--rows", str(path), f"a readable UTF-8 CSV file ({error})") from None
    reader = csv.DictReader(io.StringIO(text))
    header = set(reader.fieldnames or ())
    if not header:
        raise BrokenFile("--rows", str(path), "a CSV file with a header; this one is empty")
    kinds = (("training", training_rows.COLUMNS), ("kernel", kernel_rows.COLUMNS), (FLAT, bench_rows.COLUMNS))
    for kind, columns in kinds:
        if columns <= header:
            return kind, [{k: v or "" for k, v in row.items() if k is not None} for row in reader]
    missing = sorted(training_rows.COLUMNS - header)
    raise BrokenFile("--rows", str(path), "the columns of training, kernel or flat rows (kind, dtype, seconds); "
                     "missing for training: " + ", ".join(missing))


def score_row(kind: str, row: Mapping[str, str], calibration: Calibration,
              compiling: Compiling | None = None) -> Scored | None:
    """One row scored, or None where it isn't eligible.

    A row that taught the calibration is predicted by the refit that left its group out.
    """
    reader = reader_of(kind)
    if not reader.eligible(row):
        return None
    if compiling is not None and (kind != "training" or "tpu" not in row.get("accelerator", "").lower()):
        return None
    try:
        known = reader.read(row)
    except ChipwiseError as error:
        return Scored(row.get("id", ""), kind, row.get("source_repo", ""), "", "", None, None, None, str(error))
    compiled: CompiledRow | None = None
    base = (known.id, kind, known.source, known.chip.id, known.chip.family, known.observed_s)
    try:
        if compiling is not None:
            compiled = compiled_row(known, row, calibration.leaving_out_compiled(known.group), *compiling)
            mine = other = compiled.step.estimate
        elif kind == "training":
            mine, other = predict_row(known, (calibration.leaving_out_group(known.group),
                                              calibration.leaving_out(known.source)))
        else:
            mine = predict_kernel_row(known, calibration)
            other = predict_kernel_row(known, calibration.leaving_out_kernels(known.source))
    except ChipwiseError as error:
        return Scored(*base, None, None, str(error))
    return Scored(*base, mine, other, "", compiled)


def score(paths: Sequence[Path] | None = None, progress: Progress | None = None,
          calibration: Calibration | None = None, ids: Sequence[str] = (),
          compiling: Compiling | None = None) -> dict[str, Any]:
    """Score the rows of these files (the published ones by default); everything `validate -o json` prints.

    `ids` names the only rows to score; `compiling` scores TPU training rows by their compiled schedules.
    """
    calibration = calibration or shipped(refits=True)
    work = [(kind, row) for path in paths or published() for kind, rows in [read_rows(path)] for row in rows
            if not ids or row.get("id") in ids]
    for name in ids:
        if all(row.get("id") != name for _, row in work):
            raise InputError("--row", name, "the id of a row in the files scored")
    scored: list[Scored] = []
    left: Counter[str] = Counter()
    for i, (kind, row) in enumerate(work):
        if progress:
            progress(i, len(work), row.get("id", ""))
        one = score_row(kind, row, calibration, compiling)
        if one is None:
            left["not a TPU training row" if reader_of(kind).eligible(row) else missing(kind, row)] += 1
        else:
            scored.append(one)
    training = [s for s in scored if s.kind == "training"]
    kernels = [s for s in scored if s.kind == "kernel"]
    main = training if training or any(kind == "training" for kind, _ in work) else kernels
    out = {"calibration": calibration.date, "evidence": "modelled" if compiling is None else "compiled",
           "rows_read": len(work), "not_eligible": dict(left.most_common()), **sections(main)}
    if kernels:
        of = split([row for kind, row in work if kind == "kernel"],
                   lambda ids: summary([s for s in kernels if s.id in ids]))
        out["kernels"] = {**sections(kernels), "over_20us": summary([s for s in kernels if (s.observed or 0) > 20e-6]),
                          **of}
    if compiling is not None:
        made = {(s.compiled.compiler_bytes, s.compiled.modelled_bytes): s.compiled for s in scored if s.compiled}
        out["memory"] = memory_summary(list(made.values()))
    out["rows"] = [s.as_dict() for s in scored]
    return out


def reader_of(kind: str) -> Any:
    """The module that reads rows of a kind."""
    return training_rows if kind == "training" else kernel_rows


def missing(kind: str, row: Mapping[str, str]) -> str:
    """Why a row is not eligible, in words."""
    if kind == "kernel":
        return kernel_rows.why_not(row)
    gaps = [k for k in training_rows.NEEDED if not row.get(k, "").strip()]
    if not any(row.get(k, "").strip() for k in training_rows.RATES):
        gaps.append("a rate")
    return "no " + ", ".join(gaps)


def sections(scored: Sequence[Scored]) -> dict[str, Any]:
    """Summary of rows in all, and by family, chip and source; and with each row's source left out."""
    return {
        "summary": summary(scored), "refusals": dict(Counter(s.refusal for s in scored if s.refusal)),
        **_split(scored, left_out=False),
        "leave_one_source_out": {"summary": summary(scored, left_out=True), **_split(scored, left_out=True)},
    }


def _split(scored: Sequence[Scored], left_out: bool) -> dict[str, Any]:
    return {
        name: {key: summary(some, left_out) for key, some in _by(scored, field).items()}
        for name, field in (("by_family", "family"), ("by_chip", "chip"), ("by_source", "source"))
    }


def _by(scored: Iterable[Scored], field: str) -> dict[str, list[Scored]]:
    out: dict[str, list[Scored]] = defaultdict(list)
    for s in scored:
        if getattr(s, field):
            out[getattr(s, field)].append(s)
    return dict(sorted(out.items(), key=lambda item: (-len(item[1]), item[0])))


def summary(scored: Sequence[Scored], left_out: bool = False) -> dict[str, float | int | None]:
    """Counts and errors of these rows."""
    return rated(len(scored), [Pair(s.observed, e) for s in scored if s.observed is not None
                               and (e := s.left_out if left_out else s.estimate) is not None])
