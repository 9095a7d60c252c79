"""What the formulas of serving still miss near published rows: a smooth factor, 1 far away from them.

A Gaussian process over the logarithms of the sizes, between rows of the same campaign (model, stack, design of chip,
precision), of the same model, or of the same stack on the same design in the same precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log2

import numpy as np

from chipwise.catalog import Chip, Stack
from chipwise.catalog.calibration import Residuals
from chipwise.predict.learn.gp import Array, Points, Prior, Rbf
from chipwise.predict.site import architecture
from chipwise.serving.coefficients import OPEN_LOAD, variant
from chipwise.serving.distance import named
from chipwise.serving.formats import timed_as
from chipwise.serving.loads import Load
from chipwise.serving.split import Split
from chipwise.workload.model import Model

MODEL, PLACE = 0, 1  # columns of names; a place is a stack, a design of chip, a precision and a kind of load
# Of the variance: one campaign, one model, one stack on one design in one precision; lengths are octaves over which
# residuals stay alike. All chosen on the published rows of validation/rows with their campaigns left out, 2026-11.
SHARES = ((0.6, (MODEL, PLACE)), (0.2, (MODEL,)), (0.2, (PLACE,)))
# limits: a replica is not always set up alike (speculation, streaming)
PRIORS = {
    "tpot": Prior(Rbf(length=3.0, shares=SHARES), amplitude=0.20, limit=0.25),
    "ttft": Prior(Rbf(length=2.0, shares=SHARES), amplitude=0.35, limit=0.5),
    "throughput": Prior(Rbf(length=3.0, shares=SHARES), amplitude=0.25, limit=0.5),
}
NOISE = {"tpot": 0.08, "ttft": 0.15, "throughput": 0.06}


def point(
    model: Model, chip: Chip, split: Split, stack: Stack | None, precision: str, load: Load
) -> tuple[list[float], str, str]:
    """Sizes, model and place of one prediction."""
    e = model.experts
    # under other software, or where requests come by themselves, a model says nothing of other places: it counts apart
    other = variant(chip, stack) + (load.kind if load.kind == OPEN_LOAD else "")
    shape = f"{model.layers}x{model.d_model}x{model.heads}x{e.count if e else 0}{other}"
    place = f"{named(stack, chip)}|{architecture(chip)}|{timed_as(chip, model, precision)}|{load.kind}"
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
    return Points(np.array([p[0] for p in of]).reshape(len(of), -1), np.array([p[1:] for p in of]).reshape(-1, 2))


def fit(metric: str, at: Points, errors: Array) -> Array:
    """Weights of the factor that explains log(observed / predicted) of these rows."""
    return PRIORS[metric].fit(at, errors, np.full(len(at), NOISE[metric] ** 2))


def factor(residuals: Mapping[str, Residuals], metric: str, one: tuple[list[float], str, str]) -> float:
    """The factor on a formula's time; 1 without residuals of the metric."""
    known = residuals.get(metric)
    if known is None:
        return 1.0
    return exp(float(PRIORS[metric].mean_at(points([one]), Points(known.sizes, known.names), known.weights)[0]))
