"""Everything the dated file of serving holds: effects, what rows add near them, intervals, and refits without rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.cross_validation import cross_validate
from chipwise.calibrate.dated_files import write_dated
from chipwise.calibrate.published import published_rows
from chipwise.calibrate.serving import (
    REFIT,
    TURNS,
    Linear,
    Observations,
    Rows,
    as_effects,
    linear,
    predicted,
    prepare,
    ratios,
    solve,
    solve_without,
)
from chipwise.catalog.calibration import SCHEMA, SERVING, SERVING_REFITS, Calibration
from chipwise.predict.estimate import FEWEST, quantile_pair
from chipwise.predict.learn.gp import Points
from chipwise.serving import residuals
from chipwise.serving.coefficients import NAMES
from chipwise.serving.estimates import METRICS, group_of
from chipwise.validate import serving_rows
from chipwise.validate.serving import model_key, point_of
from chipwise.validate.serving_rows import CLOSED_SOURCE, ServingRow, repository_of

Array = NDArray[np.float64]
Say = Callable[[str], None]

FILES = ("inference.csv", "serving.csv")


def read(root: Path) -> list[ServingRow]:
    """The eligible rows under `root`."""
    rows = [row for name in FILES for row in published_rows(root, name)]
    return [serving_rows.read(row) for row in rows if serving_rows.eligible(row)]


def calibrate_serving(
    rows: Sequence[ServingRow],
    calibration: Calibration,
    date: str,
    say: Say = print,
    later: Sequence[ServingRow] = (),
) -> dict[str, Any]:
    """The content of the file, refits included."""
    o, kept = prepare(rows, calibration, later)
    say(f"serving: {len(kept)} of {len(rows) + len(later)} eligible rows, {len(o.row)} figures")
    every = np.arange(len(o.row))
    effects = np.zeros((len(NAMES), len(o.names)))
    ratio = ratios(o, kept, effects, calibration)
    say("  by priors alone: " + _errors_in_words(o, kept, np.log(o.observed / predicted(o, effects, ratio))))
    for _ in range(TURNS):
        effects = solve(o, every, ratio, effects)
        ratio = ratios(o, kept, effects, calibration)
    say("  all rows: " + _errors_in_words(o, kept, np.log(o.observed / predicted(o, effects, ratio))))
    locations = residuals.points([point_of(kept[i]) for i in o.row])
    around = linear(o, ratio, effects)
    full, _ = _refit(o, locations, every, every[:0], ratio, around)
    sources = np.array([kept[i].source for i in o.row])
    models = np.array([model_key(kept[i].model) for i in o.row])
    without: dict[str, dict[str, Any]] = {}
    errors: dict[str, Array] = {}
    for kind, names in (("source", sources), ("model", models)):
        refits, errors[kind] = cross_validate(
            lambda _, inside, outside: _refit(o, locations, inside, outside, ratio, around), names, left_out=left_out
        )
        without |= refits
        say(f"  by {kind} left out: " + _errors_in_words(o, kept, errors[kind]))
    shared = np.array([_published_elsewhere(i, locations, sources) for i in every.tolist()])
    for name, entry in without.items():
        others = np.flatnonzero((sources != name) & (models != name))
        entry["intervals"] = _intervals(o, kept, errors, shared, others)
    points = {m: _points(locations, np.flatnonzero(o.metric == m)) for m in METRICS}
    return {
        "schema": SCHEMA,
        "date": date,
        "rows": len(kept),
        "effects": as_effects(o.names, full["effects"]),
        "residuals": {m: {**points[m], "weights": full["weights"][m]} for m in METRICS},
        "intervals": _intervals(o, kept, errors, shared, every),
        "without": {
            name: {
                "effects": as_effects(o.names, entry["effects"]),
                "weights": entry["weights"],
                "intervals": entry["intervals"],
            }
            for name, entry in without.items()
        },
    }


def left_out(names: NDArray[np.str_], name: str) -> NDArray[np.bool_]:
    """Entries of a source or model.

    All that one repository published goes together; of the closed-loop campaigns, each of which is a source, one goes
    by itself. Some of their runs are rows of inference results as well, under their repository alone: those go with any
    campaign, and all campaigns go with them.

    >>> left_out(np.array(["mlcommons/inference_results_v4.1", "someone/inference_results_v6.0", "else"]),
    ...     "someone/inference_results_v6.0").tolist()
    [True, True, False]
    """
    if name.startswith(CLOSED_SOURCE) and name != CLOSED_SOURCE:
        return np.asarray((names == name) | (names == CLOSED_SOURCE))
    same = {other for other in set(names.tolist()) if repository_of(other) == repository_of(name)}
    return np.isin(names, sorted(same))


def _refit(
    o: Observations, locations: Points, kept: Rows, left_out: Rows, ratio: Array, around: Linear
) -> tuple[dict[str, Any], Array]:
    """Effects and weights from the entries seen; log(observed / predicted) of those unseen."""
    effects = solve_without(o, left_out, ratio, around, REFIT)
    errors = np.log(o.observed / predicted(o, effects, ratio))
    left = np.zeros(len(o.row))
    weights: dict[str, list[float]] = {}
    for metric in METRICS:
        mine = np.flatnonzero(o.metric == metric)
        inside, outside = (np.intersect1d(mine, some) for some in (kept, left_out))
        alpha = np.zeros(len(mine))
        if len(inside):
            fitted = residuals.fit(metric, locations.take(inside), errors[inside])
            alpha[np.searchsorted(mine, inside)] = np.round(fitted, 4)
            if len(outside):
                near = residuals.PRIORS[metric].mean_at(locations.take(outside), locations.take(inside), fitted)
                left[outside] = errors[outside] - near
        weights[metric] = alpha.tolist()
    return {"effects": effects, "weights": weights}, left[left_out]


def _points(locations: Points, mine: Rows) -> dict[str, Any]:
    some = locations.take(mine)
    names = {"models": some.names[:, residuals.MODEL].tolist(), "places": some.names[:, residuals.PLACE].tolist()}
    return {"sizes": np.round(some.sizes, 3).tolist(), **names}


def _published_elsewhere(i: int, locations: Points, sources: NDArray[np.str_]) -> bool:
    """Whether another source has the same model on the same stack, design and precision."""
    same = (locations.names == locations.names[i]).all(1) & (sources != sources[i])
    return bool(same.any())


def _intervals(
    o: Observations, rows: Sequence[ServingRow], errors: Mapping[str, Array], shared: NDArray[np.bool_], some: Rows
) -> dict[str, Any]:
    """Quantiles of log(observed / predicted): near a campaign that was seen, and for a model that never was."""
    out: dict[str, Any] = {}
    for name, e, chosen in (("known", errors["source"], shared), ("new", errors["model"], np.ones(len(shared), bool))):
        table: dict[str, list[float]] = {}
        for i in some:
            if chosen[i]:
                row, value = rows[o.row[i]], float(e[i])
                for group in group_of(str(o.metric[i]), row.mode, row.chip.family):
                    table.setdefault(group, []).append(value)
        out[name] = {group: [round(q, 4) for q in quantile_pair(v)] for group, v in table.items() if len(v) >= FEWEST}
    return out


def _errors_in_words(o: Observations, rows: Sequence[ServingRow], e: Array) -> str:
    """Mean errors by mode and metric, in words."""
    mode = np.array([rows[i].mode for i in o.row])
    family = np.array([rows[i].chip.family for i in o.row])
    signed = np.where(o.metric == "throughput", e, -e)  # of a rate, not of the time behind it
    parts = []
    for name, some in (
        ("fixed batch", mode == "fixed_batch"),
        ("throughput", (mode == "scheduled") & (o.metric == "throughput")),
        ("tpot", o.metric == "tpot"),
        ("ttft", (mode == "scheduled") & (o.metric == "ttft")),
        ("TPUs", family == "tpu"),
    ):
        if some.any():
            parts.append(f"{name} {np.mean(np.abs(np.expm1(signed[some]))):.1%}")
    return ", ".join(parts)


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the file and its refits under their date."""
    apart = {"schema": SCHEMA, "without": content["without"]}
    main = {key: value for key, value in content.items() if key != "without"}
    return write_dated(folder, content["date"], {SERVING: main, SERVING_REFITS: apart})
