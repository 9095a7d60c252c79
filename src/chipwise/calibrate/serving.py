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
from chipwise.serving.coefficients import NAMES, OPEN_LOAD, Coefficients, labels
from chipwise.serving.loads import Load, added, batch_terms, decode_terms, outcome, prompt_terms
from chipwise.serving.setup import Replica
from chipwise.validate.serving import LABELED, load_of, replica_of, stack_of
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
    "stack/variant": 1.0,
    "stack/variant/arch": 0.5,
    "release": 1.0,
}
# The same of other software under a stack's name (another era, another vendor's kernels): what a host does was written
# anew, kernels reach another share of their chips. Assumed, before any fit with them (2026-11-19)
VARIANT = {"host_s": 0.7, "sequence_s": 0.7, "layer_s": 0.7, "eager_s": 0.7, "request_s": 0.7, "stream": 0.7}
VARIANT_KERNELS = 0.25
VARIANT_LABEL = "/variant"
COMMON, APART = 0.3, 0.95  # of a label's share: what all kinds of load have in common, and what one has for itself
NOISE = {"throughput": 0.12, "tpot": 0.15, "ttft": 0.30}  # what a row scatters around a good formula
TURNS = 2  # of simulating the schedule and fitting the coefficients
STEPS = 8  # of Gauss-Newton
REFIT = 3  # of them without some of the rows, from the effects of all
CLOSE = 1e-4  # logarithm by which no effect of a solution moves
NEAR, MOST_ENTRIES = (
    0.05,
    0.98,
)  # logarithm by which what is predicted of nearly all entries moves in a step that is enough


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
    later: NDArray[np.bool_]  # entries of rows gathered after all priors were set


def prepare(
    rows: Sequence[ServingRow], calibration: Calibration, later: Sequence[ServingRow] = ()
) -> tuple[Observations, list[ServingRow]]:
    """Observations of the rows that can be modelled, those gathered later last, and those rows."""
    ids = {row.id for row in later}
    entries: list[tuple[int, str, float, Mapping[str, float], Mapping[str, float], float]] = []
    kept: list[ServingRow] = []
    replicas: list[Replica] = []
    uncalibrated = calibration.with_serving(ServingCalibration())
    for row in (*rows, *later):
        try:
            replica = replica_of(row, uncalibrated)
        except ChipwiseError:
            continue
        i = len(kept)
        kept.append(row)
        replicas.append(replica)
        for metric, value in row.observed.items():
            if row.load == OPEN_LOAD and metric == "ttft":  # taught by runs under open loads alone
                continue
            entries.append((i, metric, *_entry(row, replica, metric, value, calibration)))
    tables = [labels(r.chip, stack_of(r), r.model, r.precision, r.release, LABELED[r.load]) for r in kept]
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
        np.array([kept[e[0]].id in ids for e in entries]),
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
        return value, added(step, extra), step if load.output > 1 else {}, 1.0
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
    spreads = [
        {k: VARIANT.get(k, VARIANT_KERNELS) for k in NAMES} if VARIANT_LABEL in kind else SPREAD for kind in kinds
    ]
    return np.array([[of[k] * part for of, part in zip(spreads, parts, strict=True)] for k in NAMES])


@dataclass(frozen=True, slots=True)
class Linear:
    """The logarithms of all predictions around some effects, as refits without some of the entries share them."""

    effects: Array  # (coefficient, label)
    jacobian: Array  # (entry, effect), weighted; effects that no entry has anything to say of are left out
    taught: NDArray[np.bool_]  # the others
    residual: Array  # weighted
    normal: Array

    def without(self, left: Rows) -> tuple[Array, Array]:
        """The normal matrix and the gradient of the entries that are not left out."""
        some = self.jacobian[left]
        return self.normal - some.T @ some, self.jacobian.T @ self.residual - some.T @ self.residual[left]


def linear(o: Observations, ratio: Array, effects: Array) -> Linear:
    """What all entries say around these effects.

    Rows gathered later say what is special about software of another era or vendor, and nothing of what all stacks have
    in common: they come from few benchmarks, each with settings of its own.
    """
    noise = np.array([NOISE[m] for m in o.metric])
    log, share = _shares(o, effects, ratio)
    off = np.log(o.observed) - log
    pull = o.weight / noise / (1 + (o.weight * off / noise) ** 2) ** 0.25  # far rows pull with a constant force
    special = np.array([VARIANT_LABEL in name for name in o.names])
    marks = np.where(o.later[:, None] & ~special, 0.0, o.marks)
    jacobian = (share[:, :, None] * marks[:, None, :]).reshape(len(o.row), -1) * pull[:, None]
    taught = jacobian.any(0)
    jacobian = jacobian[:, taught]
    return Linear(effects, jacobian, taught, pull * off, jacobian.T @ jacobian)


def step(of: Linear, spread: Array, left: Rows) -> Array:
    """One step of Gauss-Newton by the entries that are not left out: how far each effect moves."""
    inverse = 1 / spread.ravel()[of.taught] ** 2
    before = of.effects.ravel()
    normal, gradient = of.without(left)
    normal[np.diag_indices_from(normal)] += inverse
    move = -before  # what no entry has anything to say of stays at its prior
    move[of.taught] = np.linalg.solve(normal, gradient - inverse * before[of.taught])
    return np.asarray(np.clip(move.reshape(spread.shape), -0.5, 0.5))


def solve(o: Observations, chosen: Rows, ratio: Array, start: Array | None = None, steps: int = STEPS) -> Array:
    """Effects (coefficient, label) that explain the chosen entries."""
    spread = _prior(o.names)
    effects = np.zeros(spread.shape) if start is None else start.copy()
    part = of_entries(o, chosen)
    none = np.zeros(0, np.intp)
    for _ in range(steps):
        move = step(linear(part, ratio[chosen], effects), spread, none)
        effects = effects + move
        if np.abs(move).max() < CLOSE:
            break
    return effects


def solve_without(o: Observations, left: Rows, ratio: Array, around: Linear, steps: int) -> Array:
    """Effects that explain all entries but those left out, from what all of them say around their own solution.

    Where leaving them out hardly moves what is predicted of the others, one step is all it takes.
    """
    chosen = np.setdiff1d(np.arange(len(o.row)), left)
    effects = around.effects + step(around, _prior(o.names), left)
    others = of_entries(o, chosen)
    moved = np.log(predicted(others, effects, ratio[chosen]) / predicted(others, around.effects, ratio[chosen]))
    if np.quantile(np.abs(moved), MOST_ENTRIES) < NEAR:
        return effects
    return solve(o, chosen, ratio, effects, steps - 1)


def of_entries(o: Observations, chosen: Rows) -> Observations:
    """The chosen entries alone."""
    return replace(
        o,
        row=o.row[chosen],
        metric=o.metric[chosen],
        observed=o.observed[chosen],
        work=o.work[chosen],
        shown=o.shown[chosen],
        first=o.first[chosen],
        weight=o.weight[chosen],
        marks=o.marks[chosen],
        later=o.later[chosen],
    )


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
                load = load_of(rows[i])
                whole = load.count * load.output / result.throughput
                out[entry] = whole / plain[entry]
            else:
                out[entry] = result.of(metric) / plain[entry]
    return out
