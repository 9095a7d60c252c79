"""Fits the mixed linear model of edge inference to published rows: ridge regression with a variance for each kind.

The best linear unbiased prediction of all effects at once, in the space of rows (Henderson, 1975; Robinson, 1991).
Rows far off what other pairs of model and device say of them are weighted down. Deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.cross_validation import spread_over_folds
from chipwise.calibrate.dated_files import rounded, write_dated
from chipwise.calibrate.published import published_rows
from chipwise.catalog.calibration import SCHEMA
from chipwise.catalog.edge_calibration import EDGE, EDGE_REFITS, EdgeCalibration, Effects
from chipwise.predict.estimate import FEWEST, quantile_pair
from chipwise.serving import edge
from chipwise.serving.edge_power import POWER_KINDS, POWER_NOISE, nominal_watts, power_group
from chipwise.serving.edge_roofline import DATAFLOW, EdgePoint, lower_bound, roofline
from chipwise.validate import edge_rows
from chipwise.validate.edge_rows import EdgeRow

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Say = Callable[[str], None]

FILE = "edge.csv"
FOLDS = 20  # of pairs, models and systems; devices, sources and designs are left out one by one
# What runs of one system have in common and no other has: fitted, so that many runs don't count as many systems, and
# dropped (standard deviations as those of `edge.KINDS`)
SYSTEM = {"system": 0.05, "system/scenario": 0.03, "system/model": 0.01}
FAR, HEAVY = 4.0, 2.0  # squared errors from which a row weighs less, in variances, and how fast
ROUNDS = 3  # of fitting and weighing
NAMES = 10  # pairs, devices ... left out that a group's own interval needs at least; else all at its distance
LEVEL, HIGHEST = 0.90, 0.98  # share of rows inside an interval, and the most it is raised to for few names
SAME = 1.03  # of a rate at batch 8 over batch 1 to which a model counts as staying on chip


@dataclass(frozen=True, slots=True)
class Regression:
    """Rows of one target: labels with the variances of their effects, values, and what to fit."""

    design: Array  # (row, label)
    variances: Array  # (label)
    names: tuple[str, ...]
    kept: Array  # labels that the file has, as a mask
    target: Array
    noise: Array  # (row) standard deviation
    covariance: Array  # (row, row), without noise

    def fit(self, rows: Rows, weights: Array, known: Effects | None = None) -> dict[str, tuple[float, float]]:
        """Mean and variance of every label's effect, from some rows; variances as `known` has them, where it does."""
        z = self.design[rows]
        covered = self._covered(rows, weights)
        means = self.variances * (z.T @ np.linalg.solve(covered, self.target[rows]))
        used = np.flatnonzero(np.any(z != 0, axis=0) & (self.kept > 0))
        if known is None:
            part = z[:, used]
            explained = np.einsum("rl,rl->l", part, np.linalg.solve(covered, part))
            left = self.variances[used] - self.variances[used] ** 2 * explained
        else:
            left = np.array([known[self.names[i]][1] for i in used])
        return {self.names[i]: (float(means[i]), float(max(v, 0.0))) for i, v in zip(used.tolist(), left, strict=True)}

    def _covered(self, rows: Rows, weights: Array) -> Array:
        covered = self.covariance[np.ix_(rows, rows)].copy()
        covered[np.diag_indices_from(covered)] += self.noise[rows] ** 2 * weights[rows]
        return covered

    def left_out(self, groups: Sequence[str], weights: Array) -> tuple[Array, Array]:
        """Error and variance of every row by all groups but its own, in closed form."""
        inverse = np.linalg.inv(self._covered(np.arange(len(self.target)), weights))
        alpha = inverse @ self.target
        errors, variances = np.zeros(len(alpha)), np.zeros(len(alpha))
        names = np.asarray(groups)
        for name in set(groups):
            mine = np.flatnonzero(names == name)
            block = np.linalg.inv(inverse[np.ix_(mine, mine)])
            errors[mine], variances[mine] = block @ alpha[mine], np.diag(block)
        return errors, variances

    def weights(self, groups: Sequence[str]) -> Array:
        """How much noise each row has over the usual: more where other groups say that it is far off."""
        weights = np.ones(len(self.target))
        for _ in range(ROUNDS):
            errors, variances = self.left_out(groups, weights)
            usual = variances - self.noise**2 * (weights - 1.0)  # as if the row were like any other
            weights = 1.0 + HEAVY * np.maximum(errors**2 / usual - FAR, 0.0)
        return weights


def regression(
    points: Sequence[EdgePoint],
    target: Array,
    kinds: Mapping[str, float] | None,
    noise: Array,
    systems: Sequence[str] = (),
) -> Regression:
    """Rows with their labels (of times, by `edge.kinds_of`, without `kinds`); `systems` adds what each has alone."""
    index: dict[str, int] = {}
    variances: list[float] = []
    kept: list[float] = []
    entries: list[tuple[int, int, float]] = []

    def enter(row: int, label: str, deviation: float, value: float, keep: bool) -> None:
        if label not in index:
            index[label] = len(index)
            variances.append(deviation**2)
            kept.append(float(keep))
        entries.append((row, index[label], value))

    for i, point in enumerate(points):
        table = kinds or edge.kinds_of(point.device)
        for kind, label, value in edge.labels(point, table):
            enter(i, label, table[kind], value, True)
        if systems:
            for kind, more in (("system", ""), ("system/scenario", point.key), ("system/model", point.model.id)):
                enter(i, f"{kind}:{systems[i]}|{more}", SYSTEM[kind], 1.0, False)
    design = np.zeros((len(points), len(index)))
    for row, column, value in entries:
        design[row, column] = value
    prior = np.array(variances)
    return Regression(design, prior, tuple(index), np.array(kept), target, noise, (design * prior) @ design.T)


def observed_fits(rows: Sequence[EdgeRow]) -> dict[str, bool]:
    """Whether each pair's weights stay on a dataflow chip: its rate does not grow with the batch."""
    rates: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.point.device.design == DATAFLOW:
            rates.setdefault(row.pair, {})[row.point.at_once] = 1 / row.seconds
    return {pair: by[8] <= SAME * by[1] for pair, by in rates.items() if {1, 8} <= by.keys()}


def read(root: Path) -> list[EdgeRow]:
    """The eligible rows under `root`, dataflow ones with whether their weights stay on chip."""
    rows = [edge_rows.read(row) for row in published_rows(root, FILE) if edge_rows.eligible(row)]
    fits = observed_fits(rows)
    return [
        replace(row, point=replace(row.point, fits=fits.get(row.pair, True)))
        for row in rows
        if row.point.device.design != DATAFLOW or row.pair in fits
    ]


@dataclass(frozen=True, slots=True)
class Problem:
    """The three regressions: time, whether weights stay on chip, and wall power."""

    rows: Sequence[EdgeRow]
    time: Regression
    fits: Regression
    power: Regression
    flows: Rows  # rows of `fits` among all
    metered: Rows  # rows of `power` among all
    weights: tuple[Array, Array, Array]

    def fit(self, some: Rows, full: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The effects that some rows give; `full`, those of all rows, lends refits its variances."""
        known: Mapping[str, Any] = full or dict.fromkeys(("effects", "fits", "power"))
        keep = set(some.tolist())
        flows, metered = (
            np.array([i for i, row in enumerate(part) if row in keep], np.intp)
            for part in (self.flows.tolist(), self.metered.tolist())
        )
        points = [self.rows[i].point for i in some]
        seen = {name for point in points for name in edge.evidence_of(point)}
        time, fits, power = self.weights
        return {
            "effects": self.time.fit(some, time, known["effects"]),
            "fits": self.fits.fit(flows, fits, known["fits"]) if len(flows) else {},
            "power": self.power.fit(metered, power, known["power"]) if len(metered) else {},
            "seen": sorted(seen),
        }


def prepare(rows: Sequence[EdgeRow]) -> Problem:
    """The regressions of all rows, with how far each row can be believed."""
    points = [row.point for row in rows]
    over = np.array([np.log(row.seconds / roofline(row.point)) for row in rows])
    time = regression(
        points, over, None, np.array([edge.noise_of(p.device) for p in points]), [row.system for row in rows]
    )
    flows = np.array([i for i, p in enumerate(points) if p.device.design == DATAFLOW and p.at_once == 1], np.intp)
    target = np.array([1.0 if points[i].fits else -1.0 for i in flows])
    fits = regression([points[i] for i in flows], target, edge.FIT_KINDS, np.full(len(flows), edge.FIT_NOISE))
    metered = np.array([i for i, row in enumerate(rows) if row.watts], np.intp)
    watts = np.array([np.log(rows[i].watts / nominal_watts(points[i])) for i in metered])
    power = regression([points[i] for i in metered], watts, POWER_KINDS, np.full(len(metered), POWER_NOISE))
    pairs = [row.pair for row in rows]
    weights = (time.weights(pairs), np.ones(len(flows)), power.weights([pairs[i] for i in metered]))
    return Problem(rows, time, fits, power, flows, metered, weights)


def _calibration(content: Mapping[str, Any]) -> EdgeCalibration:
    return EdgeCalibration(
        effects=content["effects"],
        fits=content["fits"],
        power=content["power"],
        seen=frozenset(content["seen"]),
    )


@dataclass(frozen=True, slots=True)
class Missed:
    """A row that a refit did not see, predicted by it."""

    row: int
    held: str  # what was left out: the name of its pair, device, model, design or system
    groups: tuple[str, ...]  # of intervals that it counts for
    error: float  # in logarithms, observed over predicted
    scaled: float  # in standard deviations


def _left_out(kind: str, row: EdgeRow) -> str:
    """The name of what a row is left out with."""
    point = row.point
    names = {"pair": row.pair, "device": point.device.id, "model": point.model.id, "source": row.source}
    return {**names, "design": point.device.design, "system": row.system}[kind]


def _folds(kind: str, rows: Sequence[EdgeRow]) -> dict[str, int]:
    """Which names of a kind are left out together."""
    names = [_left_out(kind, row) for row in rows]
    return spread_over_folds(names, FOLDS if kind in ("pair", "model", "system") else len(set(names)))


def errors_of(rows: Sequence[EdgeRow], out: Rows, kind: str, fitted: Mapping[str, Any]) -> list[Missed]:
    """Errors of rows that a fit did not see, of time and of wall power."""
    calibration = _calibration(fitted)
    errors = []
    for i in out.tolist():
        row, held = rows[i], _left_out(kind, rows[i])
        effect = edge.predicted_log(row.point, calibration)
        error = float(np.log(row.seconds) - max(effect.mean, np.log(lower_bound(row.point))))
        step = edge.distance(row.point, calibration)
        groups = edge.interval_groups(row.point, step)
        errors.append(Missed(i, held, groups, error, error / effect.variance**0.5))
        if row.watts:
            power = edge.effect_of(row.point, calibration.power, POWER_KINDS)
            error = float(np.log(row.watts / nominal_watts(row.point)) - power.mean)
            scaled = error / (power.variance + POWER_NOISE**2) ** 0.5
            errors.append(Missed(i, held, (power_group(step),), error, scaled))
    return errors


def intervals(errors: Sequence[Missed], but: frozenset[int] = frozenset()) -> dict[str, list[float]]:
    """Split-conformal bounds in standard deviations by group, of all rows but some.

    Rows of one device or model err together, so it is devices and models that are exchangeable: the level is raised by
    one part in their number, as conformal prediction of a new group asks (Dunn, Wasserman and Ramdas, 2018).
    """
    table: dict[str, list[Missed]] = {}
    for missed in errors:
        if missed.row not in but:
            for group in missed.groups:
                table.setdefault(group, []).append(missed)
    out: dict[str, list[float]] = {}
    for group, some in table.items():
        names = len({missed.held for missed in some})
        if len(some) >= FEWEST and (names >= NAMES or group in HELD.values()):
            out[group] = list(quantile_pair([missed.scaled for missed in some], min(LEVEL * (1 + 1 / names), HIGHEST)))
    return out


# What is left out whole, and the distance from which rows then learn what is published
HELD = {"pair": "pair", "device": "device", "model": "model", "source": "", "design": "design", "system": "measured"}
KEPT = ("pair", "device", "model", "source")  # refits that the file has, for `validate`


def calibrate_edge(rows: Sequence[EdgeRow], date: str, say: Say = print) -> dict[str, Any]:
    """The content of the two files: the fit of all rows, and refits without pairs, devices, models and sources."""
    problem = prepare(rows)
    every = np.arange(len(rows))
    full = problem.fit(every)
    errors: list[Missed] = []
    refits: dict[str, list[tuple[Rows, dict[str, Any]]]] = {}
    folds = {kind: _folds(kind, rows) for kind in HELD}
    for kind, step in HELD.items():
        mine = np.array([folds[kind][_left_out(kind, row)] for row in rows])
        for fold in range(int(mine.max()) + 1):
            out = np.flatnonzero(mine == fold)
            refit = problem.fit(every[mine != fold], full)
            missed = errors_of(rows, out, kind, refit)
            errors += [m for m in missed if m.groups[-1] in (step, power_group(step))]
            refits.setdefault(kind, []).append((out, refit))
        say(f"edge: {kind} left out: {in_words([m for m in errors if m.groups[-1] == step])}")
    held = {
        kind: {
            "folds": folds[kind],
            "refits": [
                {**_changes(full, refit), "intervals": intervals(errors, frozenset(out.tolist()))}
                for out, refit in refits[kind]
            ],
        }
        for kind in KEPT
    }
    return {
        "schema": SCHEMA,
        "date": date,
        "rows": len(rows),
        **full,
        "intervals": intervals(errors),
        "refits": {"schema": SCHEMA, "held": held},
    }


def _changes(full: Mapping[str, Any], refit: Mapping[str, Any]) -> dict[str, Any]:
    """What differs in a refit; a label that it has no row of is 0 with its kind's variance."""
    kinds = {"effects": {**edge.KINDS, **edge.FLOW_KINDS}, "fits": edge.FIT_KINDS, "power": POWER_KINDS}
    out: dict[str, Any] = {"seen": refit["seen"]}
    for part, deviations in kinds.items():
        base: Effects = full[part]
        changed: dict[str, tuple[float, float]] = {}
        for label, was in base.items():
            now = refit[part].get(label, (0.0, deviations[label.split(":")[0]] ** 2))
            if abs(now[0] - was[0]) > 1e-3 or abs(now[1] - was[1]) > 0.02 * was[1] + 1e-5:
                changed[label] = now
        out[part] = changed
    return out


def in_words(errors: Sequence[Missed]) -> str:
    """Mean error of rows and by group."""
    groups = sorted({missed.groups[0] for missed in errors})
    means = {g: np.mean([abs(np.expm1(-m.error)) for m in errors if m.groups[0] == g]) for g in groups}
    parts = ", ".join(f"{group} {mean:.1%}" for group, mean in means.items())
    return f"{np.mean([abs(np.expm1(-m.error)) for m in errors]):.1%} ({parts})" if errors else "no rows"


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the file and its refits under their date."""
    main = {key: value for key, value in content.items() if key != "refits"}
    return write_dated(folder, content["date"], {EDGE: rounded(main), EDGE_REFITS: rounded(content["refits"])})
