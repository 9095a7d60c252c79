"""What a report says of a training run."""

from __future__ import annotations

from chipwise.compare import TrainingComparison, TrainingRow
from chipwise.compare.view import training_head
from chipwise.present.numbers import percent, time_interval
from chipwise.report.parts import EVIDENCE, Tile
from chipwise.report.subject import Subject
from chipwise.units import format_seconds

BARS = {
    "cost": ("Rented chips on demand", "US dollars for the rented chips of the whole run, on demand"),
    "time": ("Time to train", "{} to train"),
    "energy": ("Energy of the chips", "kWh of the chips alone for the whole run"),
}


def training_subject(c: TrainingComparison) -> Subject:
    """A training run, as a report has it."""
    return Subject(
        kind="training",
        calibration=c.comparer.knowledge.calibration.training.date,
        about=f"Training of {c.workload.model.name}: {training_head(c)}",
        estimate=lambda row: row.prediction.step,
        seconds=lambda row: row.prediction.duration,
        time="to train",
        per="",
        bars=BARS,
        tiles=_tiles,
        table="run it",
        note="A layout says how the work is split: dp replicas, tp tensor, pp pipeline, zero or fsdp sharding of "
        "state, mbs the micro-batch.",
    )


def _tiles(row: TrainingRow) -> list[Tile]:
    p, acc = row.prediction, row.accelerators
    rate = f"{format_seconds(p.step.value)} a step, MFU {percent(p.mfu)}"
    return [
        Tile("Time to train", format_seconds(p.duration.value), time_interval(p.duration), rate),
        Tile("Chips", f"{acc.count:,} × {acc.chip.id}", acc.chip.name, p.stack.name),
        Tile("Evidence", p.step.evidence, "", EVIDENCE.get(p.step.evidence, "")),
    ]
