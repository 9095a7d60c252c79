"""`make calibration`: fits everything on the published rows and writes one dated file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.compiled_file import compiled_path, merge
from chipwise.calibrate.compiled_steps import compiled_errors, compiled_intervals
from chipwise.calibrate.kernels import fit_kernels
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
from chipwise.calibrate.tpu_tables import corrections, tables, told, usable
from chipwise.catalog.calibration import REFITS, SCHEMA, Calibration
from chipwise.errors import BrokenFile
from chipwise.predict.estimate import FEWEST, group_of, quantile_pair
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.predict.site import architecture
from chipwise.validate import kernel_rows, training_rows
from chipwise.validate.kernel_rows import KernelRow
from chipwise.validate.training_rows import TrainingRow

Array = NDArray[np.float64]
Say = Callable[[str], None]

FOLDS = 10
SOME = 5  # published steps on a design of chips from which it counts as known


def calibrate(root: Path, date: str, say: Say = print, sweep: Path | None = None) -> dict[str, Any]:
    """Everything a calibration file holds, fitted on the rows under `root` and a sweep through TPU compilers."""
    rows = _training(root)
    kernel = _kernels(root)
    compiled = _compiled(sweep, say)
    kernels, links, learnt = fit_kernels(root, compiled=compiled)
    compiled.update(corrections(kernels, compiled))
    base = _bare(kernels, links, learnt, compiled)
    say(f"kernels: {len(kernel)} published rows, {len(kernels)} tables")
    steps = prepare(rows, base)
    every = np.arange(len(rows))
    effects = fit(steps, every)
    before = residuals(steps, every, believed(steps))
    say(f"training steps: {len(rows)} rows; by priors alone: mean {mean_error(before):.1%}")
    folds, refits, cross = _cross_validated(steps)
    say(f"  by group left out: mean {mean_error(cross):.1%}, median {median_error(cross):.1%}")
    without, blind_kernels = _kernels_left_out(root, kernel, compiled)
    blind = _sources_left_out(rows, steps, without, compiled)
    say(f"  by source left out: mean {mean_error(blind):.1%}, median {median_error(blind):.1%}")
    intervals = _intervals(rows, cross, blind)
    where = np.array([folds[g] for g in steps.group])
    for i, refit in enumerate(refits):  # a fold's interval knows nothing of the fold
        others = np.flatnonzero(where != i)
        refit["intervals"] = _intervals([rows[j] for j in others], cross[others], blind[others])
    intervals["kernels"] = kernel_intervals(kernel, blind_kernels)
    for source, entry in without.items():
        if "step" not in entry:
            continue
        others = np.array([r.source != source for r in rows])
        pair = list(quantile_pair(list(blind[others])))
        entry["intervals"] = {"architectures": [], "stacks": [], "groups": {}, "unknown": pair}
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
            "kernels": learnt,
            "steps": {
                "sizes": steps.sizes.tolist(),
                "names": steps.names.tolist(),
                "alpha": learn(steps, every, effects).tolist(),
            },
        },
    }


def _bare(
    kernels: Mapping[str, Any], links: Mapping[str, Any], learnt: Mapping[str, Any], compiled: Mapping[str, Any]
) -> Calibration:
    return Calibration("", 0, kernels, links, {}, {}, {"kernels": learnt}, {}, {}, compiled=compiled)


def _compiled(sweep: Path | None, say: Say) -> dict[str, Any]:
    """The tables of products that TPU compilers gave; none without a sweep."""
    rows = usable(read_rows(sweep)) if sweep else []
    if not rows:
        return {}
    made = tables(rows)
    for line in told(made):
        say(line)
    return {"tables": made}


def _read(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise BrokenFile("validation", path.name, f"the published rows ({error.strerror})") from None


def _training(root: Path) -> list[TrainingRow]:
    rows = [r for r in _read(root / "rows" / "training.csv") if training_rows.eligible(r)]
    return [training_rows.read(r) for r in rows]


def _kernels(root: Path) -> list[KernelRow]:
    rows = [r for r in _read(root / "rows" / "kernels.csv") if kernel_rows.eligible(r)]
    return [kernel_rows.read(r) for r in rows]


def _cross_validated(steps: Steps) -> tuple[dict[str, int], list[dict[str, Any]], Array]:
    """Refits that leave a tenth of the groups out, and the errors of the rows they didn't see."""
    size = Counter(steps.group.tolist())
    order = sorted(size, key=lambda g: (-size[g], g))  # large groups spread over the folds
    folds = {group: i % FOLDS for i, group in enumerate(order)}
    fold = np.array([folds[g] for g in steps.group])
    refits, errors = [], np.zeros(len(fold))
    for i in range(FOLDS):
        seen, unseen = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        effects = fit(steps, seen)
        alpha = learn(steps, seen, effects)
        errors[unseen] = corrected(steps, unseen, effects, alpha)
        refits.append({"step": effects, "alpha": alpha.tolist()})
    return folds, refits, errors


def _sources_left_out(
    rows: Sequence[TrainingRow], every: Steps, without: dict[str, dict[str, Any]], compiled: Mapping[str, Any]
) -> Array:
    """Refit the step model without each source, on kernels that never saw it; the errors of the rows left out."""
    errors = np.zeros(len(every.observed))
    for source in sorted(set(every.source.tolist())):
        found = without.get(source, {}).get("kernel_tables")
        blind = _bare(found["kernels"], found["links"], found["residuals"], compiled) if found else None
        steps = prepare(rows, blind) if blind else every
        seen, unseen = np.flatnonzero(steps.source != source), np.flatnonzero(steps.source == source)
        effects = fit(steps, seen)
        alpha = learn(steps, seen, effects)
        errors[unseen] = corrected(steps, unseen, effects, alpha)
        without.setdefault(source, {}).update({"step": effects, "alpha": alpha.tolist()})
    return errors


def _intervals(rows: Sequence[TrainingRow], cross: Array, blind: Array) -> dict[str, Any]:
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
    }


def _kernels_left_out(
    root: Path, rows: Sequence[KernelRow], compiled: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], Array]:
    """Kernels and links refitted without each source of kernel rows; the errors of the rows left out."""
    without: dict[str, dict[str, Any]] = {}
    errors = np.zeros(len(rows))
    for source in sorted({r.source for r in rows}):
        kernels, links, learnt = fit_kernels(root, source, compiled)
        blind = _bare(kernels, links, learnt, compiled)
        for i, row in enumerate(rows):
            if row.source == source:
                errors[i] = log(row.observed_s / predict_kernel(row.kernel, row.chip, blind))
        without[source] = {"kernel_tables": {"kernels": kernels, "links": links, "residuals": learnt}}
    for source, entry in without.items():  # intervals from the other sources' errors alone
        others = [i for i, row in enumerate(rows) if row.source != source]
        entry["kernel_tables"]["intervals"] = kernel_intervals([rows[i] for i in others], errors[others])
    return without, errors


def kernel_intervals(rows: Sequence[KernelRow], errors: Array) -> dict[str, list[float]]:
    """Conformal bounds of kernel errors by operation."""
    by_op: dict[str, list[float]] = {}
    for row, e in zip(rows, errors, strict=True):
        by_op.setdefault(row.kernel.op, []).append(float(e))
    out = {op: list(quantile_pair(e)) for op, e in by_op.items() if len(e) >= FEWEST}
    out["any"] = list(quantile_pair([float(e) for e in errors]))
    return out


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the calibration and its refits under their date, under temporary names first."""
    folder.mkdir(parents=True, exist_ok=True)
    apart = {key: content[key] for key in ("folds", "refits", "without")}
    main = {key: value for key, value in content.items() if key not in apart and key != "compiled"}
    out = []
    for name, part in ((f"{content['date']}.json", main), (content["date"] + REFITS, apart)):
        scratch = folder / (name + ".tmp")
        text = json.dumps(_rounded(part), separators=(",", ":"), sort_keys=True)
        scratch.write_text(text + "\n", encoding="utf-8")
        scratch.replace(folder / name)
        out.append(folder / name)
    if content["compiled"]:
        out.append(merge(compiled_path(folder, content["date"]), content["compiled"]))
    return out


def _rounded(value: Any) -> Any:
    """Five significant digits are more than the data hold."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return value
