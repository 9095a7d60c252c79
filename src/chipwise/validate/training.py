"""Predicts one published training step: the row's own layout and stack where given, the best where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.catalog.calibration import Calibration
from chipwise.layout.enumerate import enumerate_layouts
from chipwise.layout.results import SearchResult
from chipwise.layout.search import search_in
from chipwise.ops.table import build
from chipwise.predict.estimate import Estimate, step_estimate
from chipwise.predict.learn.step_residuals import StepFactors
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.model.schedule import schedule
from chipwise.predict.model.training import costs
from chipwise.predict.setup import Setup
from chipwise.predict.site import execution_target, labels, slice_for, step_coefficients
from chipwise.validate.training_rows import TrainingRow

# A published run did fit: the least recomputation within this much of the bookkeeping is taken as its own.
SLACK = 1.05


def bench_of(row: TrainingRow, calibration: Calibration) -> Setup:
    """The row's workload at its place, with what the row says of its software."""
    w = row.workload
    acc = slice_for(row.chip, row.chips, row.slices)
    spent = costs(w.train, w.model)
    if row.forward_backward_only:
        spent = replace(spent, optimizer_bytes=0.0)
    effects = step_coefficients(calibration.training.step, _labels(row))
    return Setup(
        build(w.model, w.train.sequence),
        execution_target(acc, w.train.precision, calibration, row.stack, w.train.state_precision, row.release),
        spent,
        float(w.train.global_batch),
        effects,
        StepFactors(calibration, w, acc, row.stack, row.release),
    )


def _labels(row: TrainingRow) -> dict[str, float]:
    return labels(row.chip, row.stack, row.workload.train.precision, row.release)


def layout_of_row(row: TrainingRow, work: Setup) -> Layout:
    """The layout the row states, with the least recomputation that fits where it states none."""
    limit = row.chip.usable_bytes * SLACK
    if row.layout is None:
        acc = slice_for(row.chip, row.chips, row.slices)
        best = search_in(work, enumerate_layouts(row.workload.model, row.workload.train, acc), limit, top=1)
        return best.best.layout if isinstance(best, SearchResult) else best.layout
    if not row.auto_recompute:
        return row.layout
    options = [replace(row.layout, recompute=r) for r in ("none", "selective", "full")]
    need = work.memory(Layouts.of(options)).total
    fits = np.flatnonzero(need <= limit)
    return options[int(fits[0]) if len(fits) else -1]


def predict_row(row: TrainingRow, calibrations: Sequence[Calibration]) -> list[Estimate]:
    """Seconds of the row's step under each calibration, in the layout found under the first."""
    work = bench_of(row, calibrations[0])
    layout = layout_of_row(row, work)
    parts = work.components(Layouts.of([layout]))
    acc = slice_for(row.chip, row.chips, row.slices)
    bound = work.math_seconds(row.chips)
    out = []
    for c in calibrations:
        if c.training.kernels is not calibrations[0].training.kernels:
            parts = bench_of(row, c).components(Layouts.of([layout]))
        times = schedule(parts, step_coefficients(c.training.step, _labels(row)))
        published = StepFactors(c, row.workload, acc, row.stack, row.release)
        factor = float(published([layout])[0])
        seconds = max(float(times.total[0]) * factor, bound)  # no calibration beats physics
        out.append(step_estimate(seconds, bound, row.chip, row.workload, row.stack, c, published.nearest(layout)))
    return out
