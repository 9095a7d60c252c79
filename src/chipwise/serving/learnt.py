"""What the formulas of serving still miss near published rows: a smooth factor, 1 far away from them.

A Gaussian process over the logarithms of the sizes, between rows of the same campaign (model, stack, design of chip,
precision), of the same model, or of the same stack on the same design in the same precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip, Stack
from chipwise.predict.site import architecture
from chipwise.serving.loads import Load
from chipwise.serving.split import Split
from chipwise.workload.model import Model

Array = NDArray[np.float64]
Names = NDArray[np.str_]

LENGTH = {"tpot": 3.0, "ttft": 2.0, "throughput": 3.0}  # octaves over which residuals stay alike
# Chosen on the published rows of validation/rows with their campaigns left out, 2026-11
SHARES = (0.6, 0.2, 0.2)  # of the variance: one campaign, one model, one stack on one design in one precision
AMPLITUDE = {"tpot": 0.20, "ttft": 0.35, "throughput": 0.25}
NOISE = {"tpot": 0.08, "ttft": 0.15, "throughput": 0.06}
# the largest correction, as a logarithm: a replica is not always set up alike (speculation, streaming)
LIMIT = {"tpot": 0.25, "ttft": 0.5, "throughput": 0.5}


@dataclass(frozen=True, slots=True)
class Points:
    """Rows as the factor sees them."""

    sizes: Array  # (row, size): logarithms of base 2
    models: Names
    places: Names  # stack, design of chip, precision and kind of load

    def take(self, some: Any) -> Points:
        """Some of the rows."""
        return Points(self.sizes[some], self.models[some], self.places[some])


def point(
    model: Model, chip: Chip, split: Split, stack: Stack | None, precision: str, load: Load
) -> tuple[list[float], str, str]:
    """Sizes, model and place of one prediction."""
    e = model.experts
    shape = f"{model.layers}x{model.d_model}x{model.heads}x{e.count if e else 0}"
    place = f"{stack.id if stack else ''}|{architecture(chip)}|{precision}|{load.kind}"
    spread = [load.count, load.input, load.output, float(split.tp), float(split.dp), float(split.ep)]
    return [log2(max(v, 1.0)) for v in spread], shape, place


def design_of(place: str) -> str:
    """The design of chip in the name of a place."""
    return place.split("|")[1]


def load_of(place: str) -> str:
    """The kind of load in the name of a place."""
    return place.split("|")[3]


def points(of: Sequence[tuple[list[float], str, str]]) -> Points:
    """Many of them."""
    return Points(
        np.array([p[0] for p in of]).reshape(len(of), -1), np.array([p[1] for p in of]), np.array([p[2] for p in of])
    )


def covariance(metric: str, a: Points, b: Points) -> Array:
    """How alike two sets of rows are, 1 for the same row."""
    square = (a.sizes**2).sum(1)[:, None] + (b.sizes**2).sum(1)[None, :] - 2 * a.sizes @ b.sizes.T
    near = np.exp(-0.5 * np.maximum(square, 0.0) / LENGTH[metric] ** 2)
    model = a.models[:, None] == b.models[None, :]
    place = a.places[:, None] == b.places[None, :]
    return np.asarray(near * (SHARES[0] * (model & place) + SHARES[1] * model + SHARES[2] * place))


def learn(metric: str, at: Points, errors: Array, weight: Array) -> Array:
    """Weights of the factor that explains log(observed / predicted) of these rows."""
    limit = LIMIT[metric]
    near = AMPLITUDE[metric] ** 2 * covariance(metric, at, at)
    noise = NOISE[metric] ** 2 / np.maximum(weight, 1e-6) ** 2
    return np.asarray(np.linalg.solve(near + np.diag(noise), np.clip(errors, -limit, limit)))


def apply(metric: str, at: Points, known: Points, weights: Array) -> Array:
    """The logarithm of the factor at these rows."""
    limit = LIMIT[metric]
    return np.clip(AMPLITUDE[metric] ** 2 * covariance(metric, at, known) @ weights, -limit, limit)


def factor(table: Mapping[str, Any], metric: str, one: tuple[list[float], str, str]) -> float:
    """The factor on a formula's time; 1 without a table."""
    if metric not in table:
        return 1.0
    entry = table[metric]
    known = Points(entry["sizes"], entry["models"], entry["places"])
    return exp(float(apply(metric, points([one]), known, entry["weights"])[0]))
