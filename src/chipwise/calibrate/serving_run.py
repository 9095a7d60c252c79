"""Everything the dated file of serving holds: effects, what rows add near them, intervals, and refits without rows."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.serving import TURNS, Observations, Rows, as_effects, predicted, prepare, ratios, solve
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.taught import REFITS, SCHEMA, SUFFIX
from chipwise.errors import BrokenFile
from chipwise.io.atomic import atomic_write
from chipwise.predict.estimate import FEWEST, quantile_pair
from chipwise.serving import learnt
from chipwise.serving.coefficients import NAMES
from chipwise.serving.estimates import METRICS, group_of
from chipwise.validate import serving_rows
from chipwise.validate.serving import model_key, point_of
from chipwise.validate.serving_rows import CLOSED_SOURCE, ServingRow

Array = NDArray[np.float64]
Say = Callable[[str], None]

REFIT = 3  # steps of Gauss-Newton from the effects of all rows
FILES = ("inference.csv", "serving.csv")


def read(root: Path) -> list[ServingRow]:
    """The eligible rows under `root`."""
    out: list[ServingRow] = []
    for name in FILES:
        path = root / "rows" / name
        try:
            with path.open(encoding="utf-8") as file:
                out += [serving_rows.read(row) for row in csv.DictReader(file) if serving_rows.eligible(row)]
        except OSError as error:
            raise BrokenFile("validation", path.name, f"the published rows ({error.strerror})") from None
    return out


def calibrate_serving(
    rows: Sequence[ServingRow], calibration: Calibration, date: str, say: Say = print
) -> dict[str, Any]:
    """The content of the file, refits included."""
    o, kept = prepare(rows, calibration)
    say(f"serving: {len(kept)} of {len(rows)} eligible rows, {len(o.row)} figures")
    every = np.arange(len(o.row))
    effects = np.zeros((len(NAMES), len(o.names)))
    ratio = ratios(o, kept, effects, calibration)
    say("  by priors alone: " + _told(o, kept, np.log(o.observed / predicted(o, effects, ratio))))
    for _ in range(TURNS):
        effects = solve(o, every, ratio, effects)
        ratio = ratios(o, kept, effects, calibration)
    say("  all rows: " + _told(o, kept, np.log(o.observed / predicted(o, effects, ratio))))
    at = learnt.points([point_of(kept[i]) for i in o.row])
    full, _ = _refit(o, at, every, every, ratio, effects)
    sources = np.array([kept[i].source for i in o.row])
    models = np.array([model_key(kept[i].model) for i in o.row])
    without: dict[str, dict[str, Any]] = {}
    errors = {"source": np.zeros(len(o.row)), "model": np.zeros(len(o.row))}
    for kind, names in (("source", sources), ("model", models)):
        for name in sorted(set(names.tolist())):
            out = _left_out(names, str(name))
            entry, e = _refit(o, at, np.flatnonzero(~out), np.flatnonzero(out), ratio, effects)
            mine = names == name
            errors[kind][mine] = e[mine]
            without[str(name)] = entry
        say(f"  by {kind} left out: " + _told(o, kept, errors[kind]))
    known = np.array([_seen_elsewhere(i, at, sources) for i in every.tolist()])
    for name, entry in without.items():
        others = np.flatnonzero((sources != name) & (models != name))
        entry["intervals"] = _intervals(o, kept, errors, known, others)
    points = {m: _points(at, np.flatnonzero(o.metric == m)) for m in METRICS}
    return {
        "schema": SCHEMA,
        "date": date,
        "rows": len(kept),
        "effects": as_effects(o.names, full["effects"]),
        "learnt": {m: {**points[m], "weights": full["weights"][m]} for m in METRICS},
        "intervals": _intervals(o, kept, errors, known, every),
        "without": {
            name: {
                "effects": as_effects(o.names, entry["effects"]),
                "weights": entry["weights"],
                "intervals": entry["intervals"],
            }
            for name, entry in without.items()
        },
    }


def _left_out(names: NDArray[np.str_], name: str) -> NDArray[np.bool_]:
    """Entries of a source or model.

    Some runs of the closed-loop campaigns are rows of inference results as well, under their repository alone: those go
    with any campaign, and all campaigns go with them.
    """
    if name == CLOSED_SOURCE:
        return np.array([str(n).startswith(CLOSED_SOURCE) for n in names])
    if name.startswith(CLOSED_SOURCE):
        return np.asarray((names == name) | (names == CLOSED_SOURCE))
    return np.asarray(names == name)


def _refit(
    o: Observations, at: learnt.Points, seen: Rows, unseen: Rows, ratio: Array, start: Array
) -> tuple[dict[str, Any], Array]:
    """Effects and weights from the entries seen; log(observed / predicted) of those unseen."""
    effects = solve(o, seen, ratio, start, REFIT)
    errors = np.log(o.observed / predicted(o, effects, ratio))
    left = np.zeros(len(o.row))
    weights: dict[str, list[float]] = {}
    for metric in METRICS:
        mine = np.flatnonzero(o.metric == metric)
        inside, outside = (np.intersect1d(mine, some) for some in (seen, unseen))
        alpha = np.zeros(len(mine))
        if len(inside):
            found = learnt.learn(metric, at.take(inside), errors[inside], np.ones(len(inside)))
            alpha[np.searchsorted(mine, inside)] = np.round(found, 4)
            if len(outside):
                left[outside] = errors[outside] - learnt.apply(metric, at.take(outside), at.take(inside), found)
        weights[metric] = alpha.tolist()
    return {"effects": effects, "weights": weights}, left


def _points(at: learnt.Points, mine: Rows) -> dict[str, Any]:
    some = at.take(mine)
    return {"sizes": np.round(some.sizes, 3).tolist(), "models": some.models.tolist(), "places": some.places.tolist()}


def _seen_elsewhere(i: int, at: learnt.Points, sources: NDArray[np.str_]) -> bool:
    """Whether another source has the same model on the same stack, design and precision."""
    same = (at.models == at.models[i]) & (at.places == at.places[i]) & (sources != sources[i])
    return bool(same.any())


def _intervals(
    o: Observations, rows: Sequence[ServingRow], errors: Mapping[str, Array], known: NDArray[np.bool_], some: Rows
) -> dict[str, Any]:
    """Quantiles of log(observed / predicted): near a campaign that was seen, and for a model that never was."""
    out: dict[str, Any] = {}
    for name, e, chosen in (("known", errors["source"], known), ("new", errors["model"], np.ones(len(known), bool))):
        table: dict[str, list[float]] = {}
        for i in some:
            if chosen[i]:
                row, value = rows[o.row[i]], float(e[i])
                for group in group_of(str(o.metric[i]), row.mode, row.chip.family):
                    table.setdefault(group, []).append(value)
        out[name] = {group: [round(q, 4) for q in quantile_pair(v)] for group, v in table.items() if len(v) >= FEWEST}
    return out


def _told(o: Observations, rows: Sequence[ServingRow], e: Array) -> str:
    """Mean errors by mode and metric, in words."""
    mode = np.array([rows[i].mode for i in o.row])
    family = np.array([rows[i].chip.family for i in o.row])
    signed = np.where(o.metric == "throughput", e, -e)  # of a rate, not of the time behind it
    said = []
    for name, some in (
        ("fixed batch", mode == "fixed_batch"),
        ("throughput", (mode == "scheduled") & (o.metric == "throughput")),
        ("tpot", o.metric == "tpot"),
        ("ttft", (mode == "scheduled") & (o.metric == "ttft")),
        ("TPUs", family == "tpu"),
    ):
        if some.any():
            said.append(f"{name} {np.mean(np.abs(np.expm1(signed[some]))):.1%}")
    return ", ".join(said)


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the file and its refits under their date."""
    apart = {"schema": SCHEMA, "without": content["without"]}
    main = {key: value for key, value in content.items() if key != "without"}
    out = []
    for suffix, part in ((SUFFIX, main), (REFITS, apart)):
        path = folder / f"{content['date']}{suffix}"
        data = (json.dumps(part, separators=(",", ":"), sort_keys=True) + "\n").encode()
        atomic_write(gzip.compress(data, 9, mtime=0) if suffix == REFITS else data, path, "calibration")
        out.append(path)
    return out
