"""A layout named in words: axes as people write them, legal for the model, the rest filled in by search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog import Accelerators, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.errors import NoLayout
from chipwise.layout.splits import CP_MIN_TOKENS, Split, micro_batches, refusal
from chipwise.predict.model.layouts import RECOMPUTE, Layout, Layouts, parse_layout
from chipwise.predict.model.memory import RESERVE
from chipwise.predict.setup import set_up
from chipwise.workload.model import Workload


def read_layout(text: str, work: Workload, acc: Accelerators, calibration: Calibration, stack: Stack | None) -> Layout:
    """The layout that `text` names; a micro-batch and recomputation not named are the fastest that fit."""
    m, t = work.model, work.train
    given = parse_layout(text, acc.count, t.global_batch, m.layers, m.heads)
    _legal(given, work, acc, text)
    named = {part.partition("=")[0].lower() for part in text.replace(",", " ").split()}
    sizes = [given.micro_batch] if named & {"mbs", "mb", "micro_batch"} else micro_batches(m, t, given.dp)
    if "recompute" in named:
        modes: tuple[str, ...] = (given.recompute,)
    else:
        modes = RECOMPUTE if t.recompute == "auto" else (t.recompute,)
    options = [replace(given, micro_batch=float(size), recompute=mode) for size in sizes for mode in modes]
    return _best(options, work, acc, calibration, stack)


def _best(
    options: list[Layout], work: Workload, acc: Accelerators, calibration: Calibration, stack: Stack | None
) -> Layout:
    """The fastest that fits; the smallest where none does."""
    place, layouts = set_up(work, acc, calibration, stack), Layouts.of(options)
    need = np.broadcast_to(place.memory(layouts).total, len(options))
    seconds = np.broadcast_to(place.schedule(place.components(layouts)).total, len(options))
    fits = need <= acc.chip.usable_bytes * (1 - RESERVE)
    if not fits.any():
        return options[int(np.argmin(need))]
    return options[int(np.argmin(np.where(fits, seconds, np.inf)))]


def _legal(layout: Layout, work: Workload, acc: Accelerators, text: str) -> None:
    """Refuse a split that the model's dimensions don't allow."""
    split = Split(layout.dp, layout.tp, layout.pp, layout.cp, layout.ep)
    why = refusal(split, work.model, work.train, acc.count)
    if why and f"fewer than {CP_MIN_TOKENS}" not in why:  # a bound of the search, not of the model
        raise NoLayout(f"layout {text}: {why}", f"see `chipwise layouts WORKLOAD --on {acc}`")
