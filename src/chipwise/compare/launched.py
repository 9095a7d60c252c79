"""A row of a comparison as `launch` takes it."""

from __future__ import annotations

from typing import Any

from chipwise.compare.serving.row import ServingRow
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import Refusal
from chipwise.launch.described import Launchable, Replicas, TrainingRun
from chipwise.serving.launched import replicas_of


def launchable(row: TrainingRow | ServingRow) -> Launchable:
    """The run of a row, on the offer that it was priced by."""
    return _trained(row) if isinstance(row, TrainingRow) else _served(row)


def pick_of(comparison: Any) -> Launchable:
    """The run of the pick; a `Refusal` where nothing is picked."""
    if comparison.pick is None:
        raise Refusal("nothing is picked, so there is nothing to launch", "a price for one of the chips would decide")
    return launchable(comparison.pick)


def _trained(row: TrainingRow) -> TrainingRun:
    p = row.prediction
    offer = row.ondemand.price.offer if row.ondemand else None
    return TrainingRun(p.workload, row.accelerators, p.stack, p.layout, p.duration, offer)


def _served(row: ServingRow) -> Replicas:
    offer = row.fleet.price.offer if row.fleet.price else None
    duration = row.seconds if row.demand.kind == "job" else None
    return replicas_of(row.served.service, row.accelerators, row.replicas, offer, duration)
