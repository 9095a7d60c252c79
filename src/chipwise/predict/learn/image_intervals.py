"""How far off a step on images may be where nothing near it was measured: as far as any that measurements stand for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import log

from chipwise.catalog import Chip, Stack, load
from chipwise.catalog.calibration import Bench
from chipwise.errors import Refusal
from chipwise.ops.point import Point
from chipwise.predict.estimate import LogInterval
from chipwise.predict.learn.bench_match import FARTHEST, bench_at, measured_sizes
from chipwise.predict.learn.launch_cost import measured_siblings
from chipwise.predict.learn.points import predict_point, step_name
from chipwise.workload.model import PICTURES, Train

STEPS = ("vit_train", "resnet50_train")


def image_intervals(bench: Bench, train: Train, chip: Chip, stack: Stack) -> tuple[LogInterval, ...]:
    """Of log(observed / predicted): those of steps on images on measured chips, the furthest from what was measured.

    Of the chip and its family under the stack's framework; where none of them was measured, of all chips.
    """
    if not bench.used or train.samples_unit not in PICTURES:
        return ()
    own = _of_framework(bench, chip.id, stack.bench, train.precision, stack.compiled) if stack.bench else ()
    return own or _of_all(bench, train.precision)


@cache
def _of_framework(bench: Bench, chip: str, framework: str, precision: str, compiled: bool) -> tuple[LogInterval, ...]:
    names = (chip, *measured_siblings(bench, chip, framework))
    return tuple(ends for name in names for ends in _of_chip(bench, name, framework, precision, compiled))


@cache
def _of_all(bench: Bench, precision: str) -> tuple[LogInterval, ...]:
    places = sorted({(stack.bench, stack.compiled) for stack in load().stacks.values() if stack.bench})
    return tuple(
        ends
        for framework, compiled in places
        for name in load().chips
        for ends in _of_chip(bench, name, framework, precision, compiled, exact=True)
    )


def _of_chip(
    bench: Bench, name: str, framework: str, precision: str, compiled: bool, exact: bool = False
) -> Iterator[LogInterval]:
    """`exact`: no steps of another precision or mode stand in for those asked for."""
    calibration = bench_at(bench, name, framework)
    if calibration is None:
        return
    for kind in STEPS:
        for sizes in measured_sizes(calibration, kind):
            point = Point("predict", kind, precision, {"b": 1, **sizes}, compiled)
            if exact and step_name(point) not in calibration.steps:
                continue
            try:
                step = predict_point(point, load().chips[name], calibration)
            except Refusal:  # none of this precision was measured
                continue
            low, high = (log(end / step.value) * (1 + FARTHEST) for end in (step.low, step.high))
            yield low, high
