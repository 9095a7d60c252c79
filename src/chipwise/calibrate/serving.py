"""Fits what serving stacks add to their kernels to published inference rows. Deterministic.

Every observation is a time that is linear in the coefficients once the schedule is known: `terms` of the work times
coefficients. The schedule of a closed loop or an offline job comes from the simulation at the coefficients at hand;
both are refined in turn. Coefficients are priors times effects of labels, found by Gauss-Newton with a Gaussian prior
on every effect and a loss that grows only linearly for rows far off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.calibration import Calibration, ServingCalibration
from chipwise.errors import ChipwiseError
from chipwise.serving.coefficients import NAMES, Coefficients, labels
from chipwise.serving.loads import Load, added, batch_terms, decode_terms, outcome, prompt_terms
from chipwise.serving.setup import Replica
from chipwise.validate.serving import LABELED, load_of, replica_of
from chipwise.validate.serving_rows import ServingRow

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Effects = dict[str, dict[str, float]]

# Standard deviation of a coefficient around its prior, as a logarithm, and the share of it that a label may add
SPREAD = {
    "products": 0.035,
    "experts": 0.07,
    "collectives": 0.07,
    "context": 0.07,
    "prompt": 0.07,
    "layer_s": 0.10,
    "layer_moe_s": 0.10,
    "layer_latent_s": 0.14,
    "layer_linear_s": 0.18,
    "host_s": 0.18,
    "sequence_s": 0.10,
    "expert_token_s": 0.18,
    "eager_s": 0.30,
    "request_s": 0.25,
    "stream": 0.20,
}
SHARE = {
    "base": 0.3,
    "family": 0.8,
    "arch": 0.3,
    "dtype": 0.3,
    "stack": 0.6,
    "stack/dtype": 0.4,
    "arch/dtype": 0.4,
    "release": 1.0,
}
COMMON, APART = 0.3, 0.95  # of a label's share: what all kinds of load have in common, and what one has for itself
NOISE = {"throughput": 0.12, "tpot": 0.15, "ttft": 0.30}  # what a row scatters around a good formula
TURNS = 2  # of simulating the schedule and fitting the coefficients
STEPS = 8  # of Gauss-Newton


@dataclass(frozen=True, slots=True)
class Observations:
    """One entry per row and metric."""

    row: Rows  # index into the rows
    metric: NDArray[np.str_]
    observed: Array  # s
    work: Array  # (entry, coefficient): terms that the time is proportional to
    shown: Array  # (entry, coefficient): terms of a decoding iteration, for what streaming adds to a first token
    first: Array  # 1 where the entry is a first token under load
    weight: Array
    marks: Array  # (entry, label)
    names: tuple[str, ...]  # of the labels
    replicas: tuple[Replica, ...]  # by row


def prepare(rows: Sequence[ServingRow], calibration: Calibration) -> tuple[Observations, list[ServingRow]]:
    """Observations of the rows that can be modelled, and those rows."""
    entries: list[tuple[int, str, float, Mapping[str, float], Mapping[str, float], float]] = []
    kept: list[ServingRow] = []
    replicas: list[Replica] = []
    uncalibrated = calibration.with_serving(ServingCalibration())
    for row in rows:
        try:
            replica = replica_of(row, uncalibrated)
        except ChipwiseError:
            continue
        i = len(kept)
        kept.append(row)
        replicas.append(replica)
        for metric, value in row.observed.items():
            entries.append((i, metric, *_entry(row, replica, metric, value, calibration)))
    tables = [labels(r.chip, r.stack, r.model, r.precision, r.release, LABELED[r.load]) for r in kept]
    names = tuple(sorted({name for table in tables for name in table}))
    size = Counter(kept[e[0]].group + e[1] for e in entries)
    return Observations(
        np.array([e[0] for e in entries], np.intp),
        np.array([e[1] for e in entries]),
        np.array([e[2] for e in entries]),
        np.array([[e[3].get(k, 0.0) for k in NAMES] for e in entries]),
        np.array([[e[4].get(k, 0.0) for k in NAMES] for e in entries]),
        np.array([e[5] for e in entries]),
        np.array([5.0 / np.sqrt(size[kept[e[0]].group + e[1]]) for e in entries]),
        np.array([[tables[e[0]].get(name, 0.0) for name in names] for e in entries]),
        names,
        tuple(replicas),
    ), kept


def _entry(
    row: ServingRow, replica: Replica, metric: str, value: float, calibration: Calibration
) -> tuple[float, Mapping[str, float], Mapping[str, float], float]:
    """Seconds observed, the terms behind them, and a decoding iteration's."""
    load = load_of(row)
    if load.kind == "batch":
        first, whole = batch_terms(replica, load, calibration)
        if metric == "ttft":
            return value, first, {}, 0.0
        if metric == "tpot":
            return value * (load.output - 1), added(whole, first, -1.0), {}, 0.0
        return load.count * load.output / value, whole, {}, 0.0
    mean = 1.0 - load.drawn / 2
    into, out = load.input * mean, load.output * mean
    at_once = _at_once(replica, load, into + out)
    step = decode_terms(replica, at_once, into + out / 2)
    extra = {
        name: max(v, 0.0)
        for name, v in added(
            _joined(replica, at_once, into, calibration), decode_terms(replica, at_once, 0.0), -1.0
        ).items()
    }
    if metric == "tpot":
        return value, added(step, extra, at_once / out), {}, 0.0
    if metric == "ttft":
        return value, added(step, extra), step, 1.0
    per_request = added({name: v * out / at_once for name, v in step.items()}, extra)
    whole = {name: v * load.count for name, v in per_request.items()}
    return load.count * out / (value / row.replicas), whole, {}, 0.0


def _joined(replica: Replica, batch: float, length: float, calibration: Calibration) -> dict[str, float]:
    """An iteration that holds a prompt beside a decoding batch, the contexts of that batch left out."""
    p = replica.parts
    tokens = prompt_terms(replica, 1.0, length + batch, calibration)
    over = (length + batch) ** 2 / 2 - length**2 / 2
    return added(tokens, {"prompt": -p.pair_s * over, "sequence_s": batch, "context": batch * p.window_s})


def _at_once(replica: Replica, load: Load, tokens: float) -> float:
    most = float(load.slots or replica.config.most_sequences)
    fit = replica.kv_cache.sequences(tokens if replica.config.reserve else tokens * 0.75)
    return max(1.0, min(load.count, most, fit))


def sizes(o: Observations, effects: Array) -> Array:
    """(entry, coefficient): the coefficients that effects (coefficient, label) give each entry."""
    prior = np.array([getattr(Coefficients(), name) for name in NAMES])
    return np.asarray(prior * np.exp(o.marks @ effects.T))


def predicted(o: Observations, effects: Array, ratio: Array) -> Array:
    """Seconds of every entry; `ratio` is what the simulated schedule takes over the terms alone."""
    c = sizes(o, effects)
    request, stream = NAMES.index("request_s"), NAMES.index("stream")
    shown = c[:, request] + c[:, stream] * (c * o.shown).sum(1)
    return np.asarray(ratio * (c * o.work).sum(1) + o.first * shown)


def _shares(o: Observations, effects: Array, ratio: Array) -> tuple[Array, Array]:
    """Logarithm of the prediction, and its derivative by the logarithm of each coefficient."""
    c = sizes(o, effects)
    request, stream = NAMES.index("request_s"), NAMES.index("stream")
    step = (c * o.shown).sum(1)
    total = ratio * (c * o.work).sum(1) + o.first * (c[:, request] + c[:, stream] * step)
    slope = ratio[:, None] * c * o.work + (o.first * c[:, stream])[:, None] * c * o.shown
    slope[:, request] += o.first * c[:, request]
    slope[:, stream] += o.first * c[:, stream] * step
    return np.log(total), slope / total[:, None]


def _prior(names: Sequence[str]) -> Array:
    """(coefficient, label): standard deviations of the effects."""
    kinds = ["/".join(part.split(":")[0] for part in name.split("@")[0].split("/")) for name in names]
    parts = [SHARE[kind] * (APART if "@" in name else COMMON) for kind, name in zip(kinds, names, strict=True)]
    return np.array([[SPREAD[k] * part for part in parts] for k in NAMES])


def solve(o: Observations, chosen: Rows, ratio: Array, start: Array | None = None, steps: int = STEPS) -> Array:
    """Effects (coefficient, label) that explain the chosen entries."""
    spread = _prior(o.names)
    effects = np.zeros(spread.shape) if start is None else start.copy()
    marks, target = o.marks[chosen], np.log(o.observed[chosen])
    part = Observations(
        o.row[chosen],
        o.metric[chosen],
        o.observed[chosen],
        o.work[chosen],
        o.shown[chosen],
        o.first[chosen],
        o.weight[chosen],
        marks,
        o.names,
        o.replicas,
    )
    noise = np.array([NOISE[m] for m in part.metric])
    inverse = 1 / spread.ravel() ** 2
    for _ in range(steps):
        log, share = _shares(part, effects, ratio[chosen])
        error = part.weight * (target - log) / noise
        pull = part.weight / noise / (1 + error**2) ** 0.25  # far rows pull with a constant force
        jacobian = (share[:, :, None] * marks[:, None, :]).reshape(len(chosen), -1) * pull[:, None]
        residual = pull * (target - log)
        if len(chosen) < jacobian.shape[1]:  # fewer rows than effects: the same solution in the space of rows
            ahead = jacobian / inverse
            near = jacobian @ ahead.T
            near[np.diag_indices_from(near)] += 1.0
            whole = ahead.T @ np.linalg.solve(near, residual + jacobian @ effects.ravel())
            move = whole.reshape(spread.shape) - effects
        else:
            normal = jacobian.T @ jacobian
            normal[np.diag_indices_from(normal)] += inverse
            gradient = jacobian.T @ residual - inverse * effects.ravel()
            move = np.linalg.solve(normal, gradient).reshape(spread.shape)
        effects = effects + np.clip(move, -0.5, 0.5)
        if np.abs(move).max() < 1e-4:
            break
    return effects


def as_effects(names: Sequence[str], effects: Array) -> Effects:
    """Effects by name, those that matter."""
    return {
        key: {name: round(float(v), 4) for name, v in zip(names, line, strict=True) if abs(v) >= 5e-4}
        for key, line in zip(NAMES, effects, strict=True)
    }


def ratios(o: Observations, rows: Sequence[ServingRow], effects: Array, calibration: Calibration) -> Array:
    """What the simulated schedule takes over the terms alone, at these effects; 1 for batches."""
    out = np.ones(len(o.row))
    c = sizes(o, effects)
    plain = (c * o.work).sum(1)
    by_row: dict[int, list[int]] = {}
    for entry, i in enumerate(o.row.tolist()):
        by_row.setdefault(i, []).append(entry)
    for i, entries in by_row.items():
        if rows[i].load == "batch":
            continue
        values = dict(zip(NAMES, c[entries[0]], strict=True))
        quiet = Coefficients(**{**values, "request_s": 0.0, "stream": 0.0})
        result = outcome(replace(o.replicas[i], coefficients=quiet), load_of(rows[i]), calibration)
        for entry in entries:
            metric = str(o.metric[entry])
            if metric == "throughput":
                whole = rows[i].batch * rows[i].output / result.throughput
                out[entry] = whole / plain[entry]
            else:
                out[entry] = result.of(metric) / plain[entry]
    return out
