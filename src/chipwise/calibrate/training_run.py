"""`make calibration`: fits everything on the published rows and writes one dated file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.compiled_steps import compiled_errors, compiled_intervals
from chipwise.calibrate.cross_validation import Rows, cross_validate, spread_over_folds
from chipwise.calibrate.dated_files import compiled_path, merge, rounded, write_dated
from chipwise.calibrate.kernel_fits import trial
from chipwise.calibrate.kernel_points import points
from chipwise.calibrate.kernel_widths import Error, error_of, measured
from chipwise.calibrate.kernel_widths import learn as learn_widths
from chipwise.calibrate.kernels import fit_kernels
from chipwise.calibrate.published import published_rows
from chipwise.calibrate.steps import (
    Steps,
    believed,
    corrected,
    fit,
    learn,
    mean_error,
    median_error,
    prepare,
    residuals,
)
from chipwise.calibrate.tpu_rows import read_rows
from chipwise.calibrate.tpu_tables import corrections, tables, tables_in_words, usable
from chipwise.catalog.calibration import SCHEMA, TRAINING, TRAINING_REFITS
from chipwise.predict.estimate import FEWEST, Nearness, group_of, quantile_pair
from chipwise.predict.learn.step_residuals import PRIOR
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.predict.site import architecture
from chipwise.validate import kernel_rows, training_rows
from chipwise.validate.kernel_rows import KernelRow
from chipwise.validate.training_rows import TrainingRow

Array = NDArray[np.float64]
Say = Callable[[str], None]

FOLDS = 10
SOME = 5  # published steps on a design of chips from which it counts as known


def calibrate_training(root: Path, date: str, say: Say = print, sweep: Path | None = None) -> dict[str, Any]:
    """Everything a calibration file holds, fitted on the rows under `root` and a sweep through TPU compilers."""
    rows = _training(root)
    kernel = _kernels(root)
    compiled = _compiled(sweep, say)
    kernels, links, kernel_residuals = fit_kernels(root, compiled=compiled)
    compiled.update(corrections(kernels, compiled))
    base = trial(kernels, links, kernel_residuals, compiled)
    say(f"kernels: {len(kernel)} published rows, {len(kernels)} tables")
    steps = prepare(rows, base)
    every = np.arange(len(rows))
    effects = fit(steps, every)
    before = residuals(steps, every, believed(steps))
    say(f"training steps: {len(rows)} rows; by priors alone: mean {mean_error(before):.1%}")
    folds, refits, cross = _groups_left_out(steps)
    where = np.array([folds[g] for g in steps.group])
    alike = likeness(steps, where), likeness(steps, steps.source)
    say(f"  by group left out: mean {mean_error(cross):.1%}, median {median_error(cross):.1%}")
    without, kernel_intervals = _kernels_left_out(root, kernel, compiled)
    blind = _sources_left_out(rows, steps, without, compiled)
    say(f"  by source left out: mean {mean_error(blind):.1%}, median {median_error(blind):.1%}")
    intervals = _intervals(rows, cross, blind, *alike)
    for i, refit in enumerate(refits):  # a fold's interval knows nothing of the fold
        others = np.flatnonzero(where != i)
        refit["intervals"] = _intervals([rows[j] for j in others], *(e[others] for e in (cross, blind, *alike)))
    intervals["kernels"] = kernel_intervals
    for source, entry in without.items():
        if "step" not in entry:
            continue
        others = np.array([r.source != source for r in rows])
        rest = [row for row, other in zip(rows, others, strict=True) if other]
        entry["intervals"] = _intervals(rest, *(e[others] for e in (cross, blind, *alike)))
    scored = compiled_errors(root, base)
    if scored:
        compiled.update(compiled_intervals(scored))
        errors = np.array([error for _, error in scored])
        say(
            f"compiled steps: {len(scored)} rows, nothing fitted to them: mean {mean_error(errors):.1%}, "
            f"median {median_error(errors):.1%}"
        )
    return {
        "schema": SCHEMA,
        "date": date,
        "rows": len(rows),
        "kernels": kernels,
        "links": links,
        "step": effects,
        "folds": folds,
        "refits": refits,
        "without": without,
        "intervals": intervals,
        "compiled": compiled,
        "correction": {
            "kernels": kernel_residuals,
            "steps": {
                "sizes": steps.points.sizes.tolist(),
                "names": steps.points.names.tolist(),
                "alpha": learn(steps, every, effects).tolist(),
            },
        },
    }


def _compiled(sweep: Path | None, say: Say) -> dict[str, Any]:
    """The tables of products that TPU compilers gave; none without a sweep."""
    rows = usable(read_rows(sweep)) if sweep else []
    if not rows:
        return {}
    content = tables(rows)
    for line in tables_in_words(content):
        say(line)
    return {"tables": content}


def _training(root: Path) -> list[TrainingRow]:
    rows = [r for r in published_rows(root, "training.csv") if training_rows.eligible(r)]
    return [training_rows.read(r) for r in rows]


def _kernels(root: Path) -> list[KernelRow]:
    rows = [r for r in published_rows(root, "kernels.csv") if kernel_rows.eligible(r)]
    return [kernel_rows.read(r) for r in rows]


def _refit(steps: Steps, kept: Rows, left_out: Rows) -> tuple[dict[str, Any], Array]:
    """The step model from some rows, and the errors of others."""
    effects = fit(steps, kept)
    alpha = learn(steps, kept, effects)
    return {"step": effects, "alpha": alpha.tolist()}, corrected(steps, left_out, effects, alpha)


def _groups_left_out(steps: Steps) -> tuple[dict[str, int], list[dict[str, Any]], Array]:
    """Refits that leave a tenth of the groups out, and the errors of the rows they didn't see."""
    folds = spread_over_folds(steps.group.tolist(), FOLDS)
    fold = np.array([folds[g] for g in steps.group])
    refits, errors = cross_validate(lambda _, kept, left_out: _refit(steps, kept, left_out), fold, range(FOLDS))
    return folds, list(refits.values()), errors


def _sources_left_out(
    rows: Sequence[TrainingRow], every: Steps, without: dict[str, dict[str, Any]], compiled: Mapping[str, Any]
) -> Array:
    """Refit the step model without each source, on kernels that never saw it; the errors of the rows left out."""

    def refit(source: str, kept: Rows, left_out: Rows) -> tuple[dict[str, Any], Array]:
        tables = without.get(source, {}).get("kernel_tables")
        blind = trial(tables["kernels"], tables["links"], tables["residuals"], compiled) if tables else None
        return _refit(prepare(rows, blind) if blind else every, kept, left_out)

    refits, errors = cross_validate(refit, every.source)
    for source, entry in refits.items():
        without.setdefault(source, {}).update(entry)
    return errors


def likeness(steps: Steps, group: NDArray[Any]) -> Array:
    """How alike the nearest step of another group is to each."""
    near = PRIOR.covariance(steps.points, steps.points)
    return np.asarray(np.where(group[:, None] == group[None, :], 0.0, near).max(axis=1))


def _nearness(rows: Sequence[TrainingRow], cross: Array, blind: Array, *alike: Array) -> dict[str, Any]:
    """Quantiles of errors by group, of steps that nothing published is quite like, or like; far holds nearer.

    With their group left out, and with their source left out where another has the stack: a stack that nobody
    published is another matter. A group with few such steps takes those of all.
    """
    sources: dict[str, set[str]] = {}
    for row in rows:
        sources.setdefault(row.stack.id if row.stack else "", set()).add(row.source)
    table: dict[tuple[str, Nearness], list[float]] = {}
    for row, *errors in zip(rows, cross, blind, *alike, strict=True):
        elsewhere = len(sources[row.stack.id if row.stack else ""]) > 1
        for error, near in list(zip(errors[:2], errors[2:], strict=True))[: 1 + elsewhere]:
            for group in (group_of(row.chip, row.workload.model), ""):
                table.setdefault((group, Nearness.of(float(near))), []).append(float(error))
    out: dict[str, Any] = {}
    for group in sorted({group_of(row.chip, row.workload.model) for row in rows}):
        low = high = 0.0
        for nearness in (Nearness.SOME, Nearness.FAR):
            own = table.get((group, nearness), [])
            ends = quantile_pair(own if len(own) >= FEWEST else table.get(("", nearness), [0.0]))
            low, high = min(low, ends[0]), max(high, ends[1])
            out.setdefault(group, {})[str(nearness)] = [low, high]
    return out


def _intervals(
    rows: Sequence[TrainingRow], cross: Array, blind: Array, near_group: Array, near_source: Array
) -> dict[str, Any]:
    groups: dict[str, list[float]] = {}
    for row, e in zip(rows, cross, strict=True):
        groups.setdefault(group_of(row.chip, row.workload.model), []).append(float(e))
    pooled = list(quantile_pair([float(e) for e in cross]))
    return {
        "architectures": sorted(a for a, n in Counter(architecture(r.chip) for r in rows).items() if n >= SOME),
        "stacks": sorted({r.stack.id for r in rows if r.stack}),
        "models": sorted({r.workload.model.family for r in rows}),
        "chips": dict(Counter(r.chip.id for r in rows)),
        "precisions": sorted({f"{architecture(r.chip)}/{r.workload.train.precision}" for r in rows}),
        "groups": {g: list(quantile_pair(e)) if len(e) >= FEWEST else pooled for g, e in groups.items()},
        "unknown": list(quantile_pair([float(e) for e in blind])),
        "nearness": _nearness(rows, cross, blind, near_group, near_source),
    }


def _kernels_left_out(
    root: Path, rows: Sequence[KernelRow], compiled: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Kernels and links refitted without each source of kernel rows, and intervals from the errors of those left out.

    The intervals beside each refit come from the other sources' errors alone.
    """
    without: dict[str, dict[str, Any]] = {}
    errors: dict[str, list[Error]] = {}
    for source in sorted({row.source for row in rows}):
        kernels, links, residuals = fit_kernels(root, source, compiled)
        blind = trial(kernels, links, residuals, compiled)
        sources = measured(points(root, source))
        errors[source] = [
            error_of(row, predict_kernel(row.kernel, row.chip, blind), sources) for row in rows if row.source == source
        ]
        intervals = {"measured": sources}
        without[source] = {
            "kernel_tables": {"kernels": kernels, "links": links, "residuals": residuals, "intervals": intervals}
        }
    for source, entry in without.items():
        others = [error for name, some in errors.items() if name != source for error in some]
        entry["kernel_tables"]["intervals"]["widths"] = learn_widths(others)
    every = [error for some in errors.values() for error in some]
    return without, {"measured": measured(points(root)), "widths": learn_widths(every)}


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the calibration and its refits under their date, and merge the compilers' part."""
    apart = {key: content[key] for key in ("folds", "refits", "without")}
    main = {key: value for key, value in content.items() if key not in apart and key != "compiled"}
    paths = write_dated(folder, content["date"], {TRAINING: rounded(main), TRAINING_REFITS: rounded(apart)})
    if content["compiled"]:
        paths.append(merge(compiled_path(folder, content["date"]), content["compiled"]))
    return paths
