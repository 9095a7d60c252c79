"""Fits the step model to published training steps: few effects, held near what was believed, robustly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.priors import BASE, EFFECTS, MEANS, kind_of
from chipwise.catalog.calibration import Calibration
from chipwise.predict.learn.gp import Points
from chipwise.predict.learn.step_residuals import PRIOR, step_names, step_sizes
from chipwise.predict.model.components import Components
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.model.schedule import StepCoefficients, schedule
from chipwise.predict.site import OVERLAPS, labels, step_coefficients
from chipwise.validate.training import bench_of, layout_of_row
from chipwise.validate.training_rows import TrainingRow

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Effects = dict[str, dict[str, float]]

SPREAD = 0.16  # spread of a published step around the model that counts as ordinary
NOISE = 0.06  # spread of one published step around its neighbors, for the correction
REPEAT = 0.3  # n rows of one configuration count as n to the power of 1 - 2 x this
ROUNDS = 30
NUDGE = 1e-4


@dataclass(frozen=True, slots=True)
class Steps:
    """Published steps ready to be fitted: raw times, labels, and what was observed."""

    parts: Components
    labels: tuple[dict[str, float], ...]
    observed: Array
    weight: Array
    source: NDArray[np.str_]
    group: NDArray[np.str_]
    points: Points


def prepare(rows: Sequence[TrainingRow], kernels: Calibration) -> Steps:
    """Raw times of every row under `kernels` (no step coefficient is used)."""
    parts, labeled, size, name, configuration = [], [], [], [], []
    training = replace(kernels.training, step=_effects(_Design.empty(), np.zeros(0)))
    start = replace(kernels, training=training)
    for row in rows:
        work = bench_of(row, start)
        layout = layout_of_row(row, work)
        parts.append(work.components(Layouts.of([layout])))
        labeled.append(labels(row.chip, row.stack, row.workload.train.precision, row.release))
        size.append(step_sizes(row.workload, row.chips, layout, row.release))
        name.append(step_names(row.workload, row.chip, row.stack))
        configuration.append((row.group, str(layout), row.workload.train.precision))
    repeats = Counter(configuration)
    joined = Components(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Components)))
    return Steps(
        joined,
        tuple(labeled),
        np.array([r.observed_s for r in rows]),
        np.array([repeats[c] ** -REPEAT for c in configuration]),
        np.array([r.source for r in rows]),
        np.array([r.group for r in rows]),
        Points(np.array(size), np.array(name)),
    )


@dataclass(frozen=True, slots=True)
class _Design:
    """Which effect acts on which coefficient of which row."""

    names: tuple[tuple[str, str], ...]
    columns: Array  # effects x rows
    mean: Array
    spread: Array

    @classmethod
    def empty(cls) -> _Design:
        return cls((), np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    @classmethod
    def of(cls, labeled: Sequence[dict[str, float]]) -> _Design:
        every = sorted({label for row in labeled for label in row})
        column = {label: np.array([row.get(label, 0.0) for row in labeled]) for label in every}
        names: list[tuple[str, str]] = []
        spread: list[float] = []
        for coefficient, (_, wide) in BASE.items():
            names.append((coefficient, "base"))
            spread.append(wide)
            for label in every:
                width = EFFECTS.get(coefficient, {}).get(kind_of(label))
                if width is not None:
                    names.append((coefficient, label))
                    spread.append(width)
        return cls(
            tuple(names),
            np.array([column[label] for _, label in names]),
            np.array([MEANS.get(name, 0.0) for name in names]),
            np.array(spread),
        )


def _coefficients(design: _Design, theta: Array, rows: Rows) -> dict[str, Array]:
    """Linear predictors of every coefficient, one entry a row."""
    out: dict[str, Array] = {}
    for key, (value, _) in BASE.items():
        start = log(value / (1 - value)) if key in OVERLAPS else log(value)
        mine = [i for i, (name, _) in enumerate(design.names) if name == key]
        out[key] = start + theta[mine] @ design.columns[mine][:, rows]
    return out


def _predict(parts: Components, linear: dict[str, Array]) -> Array:
    values = {k: 1 / (1 + np.exp(-v)) if k in OVERLAPS else np.exp(v) for k, v in linear.items()}
    return schedule(parts, StepCoefficients(**values)).total


def fit(steps: Steps, rows: Rows) -> Effects:
    """Effects that explain the chosen rows: damped Gauss-Newton on robust log errors, pulled to the priors."""
    design = _Design.of(steps.labels)
    parts, observed = steps.parts.take(rows), steps.observed[rows]
    owner = [tuple(BASE).index(name) for name, _ in design.names]
    theta, damping = design.mean.copy(), 1e-3
    prior = 1 / design.spread**2

    def errors(values: Array) -> Array:
        return np.asarray(np.log(_predict(parts, _coefficients(design, values, rows)) / observed))

    def cost(e: Array, values: Array) -> float:
        z = (steps.weight[rows] * e / SPREAD) ** 2
        return float(np.sum(2 * (np.sqrt(1 + z) - 1)) + np.sum(prior * (values - design.mean) ** 2))

    e = errors(theta)
    best = cost(e, theta)
    for _ in range(ROUNDS):
        linear = _coefficients(design, theta, rows)
        base = np.log(_predict(parts, linear))
        slope = np.array([(np.log(_predict(parts, {**linear, k: linear[k] + NUDGE})) - base) / NUDGE for k in BASE])
        jacobian = design.columns[:, rows] * slope[owner]
        w = steps.weight[rows] ** 2 / SPREAD**2 / np.sqrt(1 + (steps.weight[rows] * e / SPREAD) ** 2)
        normal = (jacobian * w) @ jacobian.T
        gradient = (jacobian * w) @ e + prior * (theta - design.mean)
        moved = False
        for _ in range(8):
            step = np.linalg.solve(normal + np.diag(prior * (1 + damping) + 1e-9), -gradient)
            trial = theta + step
            trial_e = errors(trial)
            trial_cost = cost(trial_e, trial)
            if trial_cost < best:
                gain, theta, e, best = best - trial_cost, trial, trial_e, trial_cost
                damping, moved = damping * 0.3, True
                break
            damping *= 4
        if not moved or gain < 1e-5 * best:
            break
    return _effects(design, theta)


def _effects(design: _Design, theta: Array) -> Effects:
    out: Effects = {}
    for key, (value, _) in BASE.items():
        start = log(value / (1 - value)) if key in OVERLAPS else log(value)
        out[key] = {"base": start}
    for (key, label), value in zip(design.names, theta, strict=True):
        out[key][label] = round(out[key].get(label, 0.0) + float(value), 5)
    return out


def believed(steps: Steps) -> Effects:
    """The effects before any training row is seen: the priors alone."""
    design = _Design.of(steps.labels)
    return _effects(design, design.mean)


def residuals(steps: Steps, rows: Rows, effects: Effects) -> Array:
    """log(observed / predicted) of the chosen rows."""
    coefficients = [step_coefficients(effects, steps.labels[i]) for i in rows]
    stacked = StepCoefficients(
        **{f.name: np.array([getattr(c, f.name) for c in coefficients]) for f in fields(StepCoefficients)}
    )
    return np.asarray(np.log(steps.observed[rows] / schedule(steps.parts.take(rows), stacked).total))


def learn(steps: Steps, rows: Rows, effects: Effects) -> Array:
    """Weights of the correction fitted to the chosen rows, zero for the others."""
    alpha = np.zeros(len(steps.observed))
    errors, noise = residuals(steps, rows, effects), NOISE**2 / steps.weight[rows] ** 2
    alpha[rows] = PRIOR.fit(steps.points.take(rows), errors, noise)
    return np.round(alpha, 4)


def corrected(steps: Steps, rows: Rows, effects: Effects, alpha: Array) -> Array:
    """log(observed / predicted) of the chosen rows with the correction."""
    return residuals(steps, rows, effects) - PRIOR.mean_at(steps.points.take(rows), steps.points, alpha)


def mean_error(e: Array) -> float:
    """Mean absolute error of predicted against observed, from log(observed / predicted).

    >>> mean_error(np.array([0.0, 0.0]))
    0.0
    """
    return float(np.mean(np.abs(np.expm1(-e))))


def median_error(e: Array) -> float:
    """Median absolute error."""
    return float(np.median(np.abs(np.expm1(-e)))) if len(e) else exp(0.0) - 1.0
