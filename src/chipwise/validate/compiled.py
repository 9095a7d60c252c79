"""Published training steps against what the vendor's compiler makes of them.

The schedules of the shipped rows are kept under ``validation/compiled``, each with the versions that made it, so that
scoring needs no compiler; other rows are compiled, or found in the cache.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import mean, median
from typing import Any

from chipwise.catalog import Chip
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.compiler import Limits, compile_job
from chipwise.compiled.job import Compiled, Job, Refused, digest
from chipwise.compiled.timing.schedule import Schedule
from chipwise.compiled.timing.step import CompiledStep, compiled_step
from chipwise.errors import Refusal
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.site import slice_for
from chipwise.validate.compiled_rows import job_of
from chipwise.validate.training import bench_of
from chipwise.validate.training_rows import TrainingRow

BF16 = 2.0  # bytes
SECONDS = 3600.0  # a whole step may take the compiler an hour on a small machine
Compile = Callable[[Job], Compiled | Refused]


def folder() -> Path:
    """Where the shipped schedules lie: in the package, or in a checkout."""
    packaged = Path(str(files("chipwise.validate"))) / "schedules"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "validation" / "compiled"


def file_of(job: Job) -> Path:
    """The file that holds, or would hold, the schedule of a job."""
    return folder() / f"{job.target.chip}-{digest(job.as_json())[:12]}.json.gz"


def stored(job: Job) -> Compiled | None:
    """The shipped compile of a job, if there is one."""
    path = file_of(job)
    if not path.is_file():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return Compiled.from_json(json.load(file)["compiled"])


def store(job: Job, compiled: Compiled, rows: list[str]) -> Path:
    """Write a compile beside the shipped ones, atomically."""
    path = file_of(job)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"rows": rows, "job": job.as_json(), "compiled": compiled.as_json()}, separators=(",", ":"))
    part = path.with_suffix(".part")
    with part.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
        file.write(text.encode())
    part.rename(path)
    return path


def compile_now(job: Job) -> Compiled | Refused:
    """Ask the cache, then the compiler."""
    return compile_job(job, Limits(seconds=SECONDS))


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """A published row by its compiled schedule; bytes of one chip by the compiler and by our bookkeeping."""

    step: CompiledStep
    compiler_bytes: float
    modelled_bytes: float
    versions: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Where the seconds go, and both memories, for JSON."""
        return {
            "by_kind_seconds": {k: v for k, v in self.step.timing.by_kind.items() if v},
            "between_slices_seconds": self.step.between_slices,
            "compiler_bytes": self.compiler_bytes,
            "modelled_bytes": self.modelled_bytes,
            "versions": dict(self.versions),
        }


def compiled_row(
    row: TrainingRow,
    text: Mapping[str, str],
    calibration: Calibration,
    compile_missing: Compile | None = compile_now,
    again: bool = False,
) -> CompiledRow:
    """The row's step by its compiled schedule; raises a `Refusal` with the reason where there is none."""
    job = job_of(row, text)
    outcome: Compiled | Refused | None = None if again else stored(job)
    if outcome is None:
        if compile_missing is None:
            raise Refusal(f"not compiled yet; `chipwise validate --evidence compiled --row {row.id}` does it")
        outcome = compile_missing(job)
    if isinstance(outcome, Refused):
        raise Refusal(f"the compiler refused it: {outcome.reason}")
    acc = slice_for(row.chip, row.chips, row.slices)
    step = compiled_step(Schedule.from_json(outcome.schedule), acc, calibration, row.workload)
    return CompiledRow(
        step,
        compiler_bytes(outcome, acc.chip),
        modelled_bytes(row, job.spec.data["recompute"], calibration),
        outcome.versions,
    )


def compiler_bytes(compiled: Compiled, chip: Chip) -> float:
    """What a chip holds by the compiler: arguments, outputs beside them and temporaries of its devices."""
    m = compiled.memory
    return (m["arguments"] + max(m["outputs"] - m["aliased"], 0.0) + m["temporaries"]) * chip.devices


def modelled_bytes(row: TrainingRow, recompute: Mapping[str, Any], calibration: Calibration) -> float:
    """What our bookkeeping says of the same layout; MaxText takes a replica's whole batch at once.

    What the row keeps by name beside the layer's input is added, and the layer's input itself where only other tensors
    are offloaded. These runs did fit: where the bookkeeping says more than the chip can allocate, that much counts
    (XLA computes more again when memory is short).
    """
    assert row.layout is not None
    model, train = row.workload.model, row.workload.train
    whole = replace(row.layout, micro_batch=train.global_batch / row.layout.dp)
    total = float(bench_of(row, calibration).memory(Layouts.of([whole])).total[0])
    widths = {
        "query_proj": model.heads * model.head_dim,
        "key_proj": model.kv_heads * model.head_dim,
        "value_proj": model.kv_heads * model.head_dim,
        "context": model.heads * model.head_dim,
        "out_proj": model.d_model,
        "mlpwo": model.d_model,
    }
    stays = row.layout.recompute == "offload" and "decoder_layer_input" not in recompute["offload"]
    tokens = whole.micro_batch * train.sequence / row.layout.tp
    width = sum(widths.get(name, 0) for name in recompute["keep"]) + stays * model.d_model
    return min(total + width * tokens * model.layers * BF16, row.chip.usable_bytes)


def memory_summary(rows: Sequence[CompiledRow]) -> dict[str, float | int | None]:
    """How far the bookkeeping is from the compiler's own memory."""
    errors = [abs(r.modelled_bytes / r.compiler_bytes - 1) for r in rows]
    return {
        "programs": len(errors),
        "median_difference": median(errors) if errors else None,
        "mean_difference": mean(errors) if errors else None,
    }
