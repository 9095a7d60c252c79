"""A layout named in words: axes as people write them, legal for the model, the rest filled in by search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog import Accelerators, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.stacks import AXES, Parallelism
from chipwise.errors import NoLayout
from chipwise.layout.headroom import HEADROOM, allocatable, required
from chipwise.layout.results import TIE
from chipwise.layout.simplicity import intricacy, simplest
from chipwise.layout.splits import CP_REFUSED, Split, micro_batches, refusal, stages_refusal
from chipwise.predict.model.layouts import RECOMPUTE, Layout, Layouts, parse_layout
from chipwise.predict.setup import set_up, stack_of
from chipwise.workload.model import Workload


def read_layout(
    text: str,
    work: Workload,
    acc: Accelerators,
    calibration: Calibration,
    stack: Stack | None,
    headroom: float = HEADROOM,
) -> Layout:
    """The layout that `text` names; a micro-batch, recomputation and ZeRO stage not named are the best that fit.

    Where none leaves the headroom free, those that fit without it count.
    """
    stack = stack_of(work, acc.chip, stack)
    m, t = work.model, work.train
    given = parse_layout(text, acc.count, t.global_batch, m.heads)
    legal(given, work, acc, text, stack)
    named = {part.partition("=")[0].lower() for part in text.replace(",", " ").split()}
    sizes = [given.micro_batch] if named & {"mbs", "mb", "micro_batch"} else micro_batches(m, t, given.dp)
    if "recompute" in named:
        modes: tuple[str, ...] = (given.recompute,)
    else:
        modes = stack.parallel.recomputes(RECOMPUTE) if t.recompute == "auto" else (t.recompute,)
    states = [(given.zero, given.shard)]
    if not named & {"dp", "fsdp", "zero", "shard"} and given.dp * given.cp > 1:
        states = [(zero, given.dp if zero else 1) for zero in stack.parallel.stages(given.pp)]
    options = [
        replace(given, micro_batch=float(size), recompute=mode, zero=zero, shard=shard)
        for size in sizes
        for mode in modes
        for zero, shard in states
    ]
    whole = [x for x in options if x.vpp == 1 or t.global_batch / (x.dp * x.micro_batch) % x.pp == 0]
    if not whole:
        count = t.global_batch / (given.dp * given.micro_batch)
        raise NoLayout(
            f"layout {text}: interleaved stages take micro-batches in rounds of pp: {count:g} % pp({given.pp}) != 0",
            "another mbs, or no vpp",
        )
    return _best(whole, work, acc, calibration, stack, headroom)


def _best(
    options: list[Layout],
    work: Workload,
    acc: Accelerators,
    calibration: Calibration,
    stack: Stack,
    headroom: float,
) -> Layout:
    """The best by the rule of the search, with the headroom or else without; the smallest where none fits."""
    place, layouts = set_up(work, acc, calibration, stack), Layouts.of(options)
    need = np.broadcast_to(place.memory(layouts).total, len(options))
    seconds = place.seconds(options)
    most = allocatable(acc.chip)
    for limit in (most - required(acc.chip, headroom), most):
        fits = np.flatnonzero(need <= limit)
        if len(fits):
            close = fits[seconds[fits] <= seconds[fits].min() * (1 + TIE)]
            simple = close[simplest(intricacy(layouts.take(close)))]
            return options[int(simple[np.argmin(seconds[simple])])]
    return options[int(np.argmin(need))]


def legal(layout: Layout, work: Workload, acc: Accelerators, text: str, stack: Stack) -> None:
    """Refuse a split that the model's dimensions don't allow, or an axis that the stack doesn't have."""
    if lacking := _lacking(layout, stack.parallel):
        raise NoLayout(
            f"layout {text}: {stack.name} has no {lacking}; it has {stack.parallel.in_words()}",
            "another stack may: --stack",
        )
    split = Split(layout.dp, layout.tp, layout.pp, layout.cp, layout.ep)
    why = refusal(split, work.model, work.train, acc.count, stack.parallel)
    why = why or stages_refusal(work.model, layout.pp, layout.vpp, stack.parallel)
    if why and not why.startswith(CP_REFUSED):  # a bound of the search, not of the model
        raise NoLayout(f"layout {text}: {why}", f"see `chipwise layouts WORKLOAD --on {acc}`")


def _lacking(layout: Layout, parallel: Parallelism) -> str:
    """The first axis of a layout that a stack doesn't have; "" where it has all."""
    for axis in AXES:
        if getattr(layout, axis) > 1 and axis not in parallel.axes:
            return axis
    if layout.zero not in parallel.zero:
        return f"ZeRO stage {layout.zero}"
    return "" if layout.zero in parallel.stages(layout.pp) else f"ZeRO stage {layout.zero} with pp"
