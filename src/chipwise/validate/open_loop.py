"""Published runs under an open load, replayed: the same requests at the same rate to a replica set up alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.calibration import Calibration
from chipwise.errors import ChipwiseError
from chipwise.predict.estimate import Estimate
from chipwise.serving.service import Served, Service, run, service, serving_target, settled
from chipwise.serving.setup import engine_config
from chipwise.validate.open_rows import OpenRow, read
from chipwise.validate.scored import Scored
from chipwise.validate.serving import model_key

OPEN = "open"  # rows of runs under an open load


def service_of(row: OpenRow, calibration: Calibration) -> Service:
    """The row's replica."""
    target = serving_target(row.workload, row.chip, calibration, row.stack.id)
    config = replace(engine_config(target.stack), most_sequences=row.most_sequences, most_tokens=row.most_tokens)
    return service(target, row.split, config=config)


def replayed(row: OpenRow, calibration: Calibration) -> tuple[Service, Served]:
    """The row's requests served, and the replica with what is known at the load they made."""
    first = service_of(row, calibration)
    of = settled(first, run(first, count=row.requests))
    return of, run(of, count=row.requests)


def predict_open_row(row: OpenRow, calibration: Calibration) -> dict[str, Estimate]:
    """Mean latencies of the row, in seconds."""
    _, served = replayed(row, calibration)
    assert served.tpot is not None
    return {"ttft": served.ttft.mean, "tpot": served.tpot.mean, "e2e": served.e2e.mean}


def score_open_row(row: Mapping[str, str], calibration: Calibration) -> list[Scored]:
    """Every figure of an eligible row scored: by the refit without its model, and by the one without its source."""
    try:
        parsed = read(row)
    except ChipwiseError as error:
        return [Scored(row.get("id", ""), OPEN, row.get("source_repo", ""), "", "", None, None, None, str(error))]
    base = (parsed.id, OPEN, parsed.source, parsed.chip.id, parsed.chip.family)
    try:
        mine, other = (
            predict_open_row(parsed, calibration.with_serving(calibration.serving.leaving_out(name)))
            for name in (model_key(parsed.workload.model), parsed.source)
        )
    except ChipwiseError as error:
        return [
            Scored(*base, value, None, None, str(error), metric=metric, mode=OPEN)
            for metric, value in parsed.observed.items()
        ]
    return [
        Scored(*base, value, mine[metric], other[metric], "", metric=metric, mode=OPEN)
        for metric, value in parsed.observed.items()
    ]
