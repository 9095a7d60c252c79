"""What a server adds to a first token under an open load, fitted to published runs; learned after everything else.

A first token takes what the simulation says, `request_s` on its way in, and `stream` iterations until it is shown. Both
are priors times the effect of all stacks and of one, found by Gauss-Newton with a Gaussian prior on each effect; every
model has the same weight, since the runs of one differ by their load alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.dated_files import write_dated
from chipwise.calibrate.published import published_rows
from chipwise.catalog.calibration import FIRST_TOKENS, SCHEMA, Calibration
from chipwise.predict.estimate import Distance
from chipwise.serving.coefficients import FIRST_TOKEN, OPEN_LOAD, Coefficients, labels_of
from chipwise.serving.distance import place_of
from chipwise.serving.loads import decode_terms, seconds
from chipwise.serving.widths import BY_DISTANCE, Error, from_columns, learn
from chipwise.validate import open_rows
from chipwise.validate.open_loop import replayed
from chipwise.validate.open_rows import OpenRow
from chipwise.validate.serving import model_key

Array = NDArray[np.float64]
Say = Callable[[str], None]
Effects = dict[str, dict[str, float]]

FILE = "open_loop.csv"
SPREAD = 0.35  # standard deviation of an effect's logarithm: hosts differ by about half. Assumed, before any fit
NOISE = 0.15  # what a run scatters around a good formula
STEPS = 20  # of Gauss-Newton


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A published run, and what the simulation says of it."""

    row: OpenRow
    model: str
    simulated_s: float  # of a first token, nothing added
    request: float  # s that one second of `request_s` adds
    step_s: float  # that one iteration adds
    stack: str  # the label of its stack

    @property
    def observed_s(self) -> float:
        """Seconds to the first token."""
        return self.row.observed["ttft"]


def read(root: Path) -> list[OpenRow]:
    """The eligible rows under `root`."""
    return [open_rows.read(row) for row in published_rows(root, FILE) if open_rows.eligible(row)]


def simulated(row: OpenRow, calibration: Calibration) -> Run:
    """A row's run, and what is to be explained beside its simulation."""
    of, served = replayed(row, calibration)
    serve, r = row.workload.serve, of.replica
    step = seconds(r.coefficients, decode_terms(r, of.at_once, serve.input.mean + serve.output.mean / 2))
    return Run(
        row=row,
        model=model_key(row.workload.model),
        simulated_s=served.measures.ttft.mean.value,
        request=r.factor,
        step_s=step * r.factor,
        stack=labels_of(row.stack)[1],
    )


def fitted(runs: Sequence[Run]) -> Effects:
    """Effects of labels on the two coefficients."""
    stacks = sorted({run.stack for run in runs})
    names = ["base", *stacks]
    marks = np.array([[1.0, *(float(run.stack == stack) for stack in stacks)] for run in runs])
    size = Counter(run.model for run in runs)
    weight = np.array([1 / np.sqrt(size[run.model]) for run in runs]) / NOISE
    effects = np.zeros((len(FIRST_TOKEN), len(names)))
    for _ in range(STEPS if runs else 0):
        log, slope = _predicted(runs, marks @ effects.T)
        residual = weight * (np.log([run.observed_s for run in runs]) - log)
        jacobian = (weight[:, None, None] * slope[:, :, None] * marks[:, None, :]).reshape(len(runs), -1)
        normal = jacobian.T @ jacobian + np.eye(jacobian.shape[1]) / SPREAD**2
        gradient = jacobian.T @ residual - effects.ravel() / SPREAD**2
        effects = effects + np.clip(np.linalg.solve(normal, gradient), -0.5, 0.5).reshape(effects.shape)
    return {
        key: {name: round(float(value), 4) for name, value in zip(names, line, strict=True)}
        for key, line in zip(FIRST_TOKEN, effects, strict=True)
    }


def _predicted(runs: Sequence[Run], logs: Array) -> tuple[Array, Array]:
    """Logarithm of the first token's seconds, and its derivative by the logarithm of each coefficient."""
    prior = Coefficients()
    values = np.array([getattr(prior, name) for name in FIRST_TOKEN]) * np.exp(logs)
    parts = values * np.array([[run.request, run.step_s] for run in runs])
    total = parts.sum(1) + [run.simulated_s for run in runs]
    return np.log(total), parts / total[:, None]


def errors(runs: Sequence[Run], effects: Effects) -> Array:
    """log(observed / predicted) of runs."""
    logs = np.array(
        [[sum(effects[key].get(name, 0.0) for name in ("base", run.stack)) for key in FIRST_TOKEN] for run in runs]
    )
    return np.asarray(np.log([run.observed_s for run in runs]) - _predicted(runs, logs)[0])


def calibrate_first_tokens(
    rows: Sequence[OpenRow], calibration: Calibration, date: str, say: Say = print
) -> dict[str, Any]:
    """The content of the file, refits included."""
    runs = [simulated(row, calibration) for row in rows]
    whole = fitted(runs)
    say(f"first tokens: {len(runs)} runs, {_mean(errors(runs, whole))} off; by priors {_mean(errors(runs, _none()))}")
    models = sorted({run.model for run in runs})
    refits = {name: fitted([run for run in runs if run.model != name]) for name in models}
    left = [
        Error(
            row=run.row.id,
            metric="ttft",
            distance=Distance.REGIME,
            repository=run.row.source,
            group=run.model,
            model=run.model,
            value=float(errors([run], refits[run.model])[0]),
        )
        for run in runs
    ]
    say(f"  by model left out: {_mean(np.array([error.value for error in left]))}")
    iterations = _iterations(calibration)
    without: dict[str, Any] = {
        name: _part(
            [run for run in runs if run.model != name],
            refits[name],
            [error for error in left if error.model != name],
            iterations,
        )
        for name in models
    }
    for source in sorted({run.row.source for run in runs}):
        rest = [run for run in runs if run.row.source != source]
        others = [error for error in left if error.repository != source]
        without[source] = _part(rest, fitted(rest), others, iterations)
    return {"schema": SCHEMA, "date": date, **_part(runs, whole, left, iterations), "without": without}


def _iterations(calibration: Calibration) -> list[Error]:
    """Errors of times between tokens, each one step farther than it was.

    First tokens are made of iterations: these errors fill up where few groups of open loads were published.
    """
    farther = dict(zip(BY_DISTANCE, (*BY_DISTANCE[1:], BY_DISTANCE[-1]), strict=True))
    return [
        replace(error, metric="ttft", distance=farther[error.distance])
        for error in from_columns(calibration.serving.errors)
        if error.metric == "tpot"
    ]


def _part(runs: Sequence[Run], effects: Effects, left: Sequence[Error], iterations: Sequence[Error]) -> dict[str, Any]:
    """What a calibration that saw these runs knows."""
    width = learn([*left, *iterations])["ttft"][Distance.REGIME]
    places = Counter(str(place_of(run.row.chip, run.row.stack, OPEN_LOAD)) for run in runs)
    return {
        "runs": len(runs),
        "effects": effects,
        "seen": dict(sorted(places.items())),
        "bounds": [round(width.low, 4), round(width.high, 4)],
    }


def _none() -> Effects:
    return {key: {} for key in FIRST_TOKEN}


def _mean(values: Array) -> str:
    return f"{np.mean(np.abs(np.expm1(-values))):.1%} (median {np.median(np.abs(np.expm1(-values))):.1%})"


def write(content: Mapping[str, Any], calibration: str, folder: Path) -> list[Path]:
    """Write the file under the date of the calibration that it is part of."""
    return write_dated(folder, calibration, {FIRST_TOKENS: content})
