"""Published inference rows predicted: a replica set up as the row says, under the row's load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.stacks import Stack, released
from chipwise.errors import ChipwiseError
from chipwise.predict.estimate import Estimate
from chipwise.predict.site import stack_for
from chipwise.serving.coefficients import OPEN_LOAD
from chipwise.serving.distance import Place, place_of
from chipwise.serving.estimates import Correction, correction
from chipwise.serving.first_tokens import open_correction
from chipwise.serving.loads import Load, outcome
from chipwise.serving.residuals import point
from chipwise.serving.setup import Replica, engine_config, recalibrated, set_up
from chipwise.serving.spec import ReplicaSpec
from chipwise.validate.scored import Scored
from chipwise.validate.serving_rows import ServingRow, read
from chipwise.workload.model import Model

LABELED = {"closed": "online", "open": OPEN_LOAD, "offline": "offline", "batch": "batch"}
MOST_REQUESTS = 20_000.0  # of an offline job that are simulated for a replica: several times what it holds at once


def stack_of(row: ServingRow) -> Stack:
    """The row's stack as it was at its release, or a plain framework where it names none we know."""
    return released(row.stack or stack_for(row.chip, "encoder"), row.chip.family, row.release)


def load_of(row: ServingRow) -> Load:
    """The load of one replica; of an open one as many users at once as there were requests, who drift apart."""
    count = row.batch if row.load == "offline" and not row.requests else max(1.0, row.batch / row.replicas)
    kind = "closed" if row.load == "open" else row.load
    count = min(count, MOST_REQUESTS) if kind == "offline" else count
    return Load(kind, count, row.input, row.output, row.drawn, row.rounds, row.slots, row.warm)


def replica_of(row: ServingRow, calibration: Calibration) -> Replica:
    """The row's replica."""
    stack = stack_of(row)
    config = engine_config(stack)
    if row.load == "offline":  # benchmarks of throughput build for as many sequences as memory holds
        config = replace(config, most_sequences=4096)
    spec = ReplicaSpec(
        row.model,
        row.chip,
        row.split,
        row.precision,
        row.kv_precision,
        stack,
        row.release,
        LABELED[row.load],
        row.longest,
        row.input + row.output / 2,
    )
    return set_up(spec, calibration, config)


def model_key(model: Model) -> str:
    """The name under which rows of a model are left out together."""
    e = model.experts
    return f"model {model.layers}x{model.d_model}x{model.heads}x{e.count if e else 0}"


def point_of(row: ServingRow) -> tuple[list[float], str, str]:
    """Where the row lies among published ones."""
    load = replace(load_of(row), kind=row.load)
    return point(row.model, row.chip, row.split, stack_of(row), row.precision, load)


def place_of_row(row: ServingRow) -> Place:
    """What the row has in common with others."""
    return place_of(row.chip, stack_of(row), row.load, row.source.partition(": ")[0])


def predict_serving_row(
    row: ServingRow, calibration: Calibration, replica: Replica | None = None
) -> dict[str, Estimate]:
    """Every metric of the row, on all of its chips: seconds, or tokens/s. `replica`: the row's, if set up already."""
    replica = replica_of(row, calibration) if replica is None else recalibrated(replica, calibration.serving)
    result = outcome(replica, load_of(row), calibration)
    out: dict[str, Estimate] = {}
    for metric in row.observed:
        near = _correction(row, metric, calibration)
        value = result.of(metric)
        out[metric] = near.rate(value * row.replicas) if metric == "throughput" else near.time(value)
    return out


def _correction(row: ServingRow, metric: str, calibration: Calibration) -> Correction:
    """What published rows say of a metric of a row."""
    place, at = place_of_row(row), point_of(row)
    near = correction(calibration.serving, metric, row.mode, place, row.chip.family, at)
    if row.load != OPEN_LOAD or metric != "ttft":
        return near
    later = correction(calibration.serving, "tpot", row.mode, place, row.chip.family, at)
    return open_correction(calibration.serving, place, later, near)


def score_serving_row(row: Mapping[str, str], calibration: Calibration, kind: str = "inference") -> list[Scored]:
    """Every figure of an eligible row scored: by the refit without its model, and by the one without its source."""
    try:
        parsed = read(row)
    except ChipwiseError as error:
        source = row.get("source_repo", "")
        return [Scored(row.get("id", ""), kind, source, "", "", None, None, None, str(error))]
    base = (parsed.id, kind, parsed.source, parsed.chip.id, parsed.chip.family)
    try:
        replica = replica_of(parsed, calibration)
        mine, other = (
            predict_serving_row(parsed, calibration.with_serving(calibration.serving.leaving_out(name)), replica)
            for name in (model_key(parsed.model), parsed.source)
        )
    except ChipwiseError as error:
        return [
            Scored(*base, value, None, None, str(error), metric=metric, mode=parsed.mode)
            for metric, value in parsed.observed.items()
        ]
    return [
        Scored(*base, value, mine[metric], other[metric], "", metric=metric, mode=parsed.mode)
        for metric, value in parsed.observed.items()
    ]
