"""Coefficients of steps from measured points: terms with weights that are never negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.estimate import quantile_pair
from chipwise.predict.learn.bench_calibration import Step
from chipwise.predict.model.schedule import SHARP

Array = NDArray[np.float64]
Terms = Sequence[dict[str, float]]

HOSTS = (0.0, *np.geomspace(20e-6, 4e-3, 24))  # seconds of the host for a layer, tried in turn
LEVEL = 0.90
WAITS = 0.7  # a step whose device needs less than this share of its time waits for the host
ROUNDS, NEAR = 8, 0.03  # of fitting again with weights by error; errors below count alike
UNTOLD = (-0.3, 0.3)  # log interval where there are no more points than coefficients: a guess, and wide
PULL, IMAGES_PULL = 0.02, 0.3  # how strongly coefficients are held to what is expected of them
# What is expected where too few points say otherwise: products and attention as on their own; passes over activations,
# scores and weights (an eager forward and backward pass counted by hand, bench/frameworks/torch_decoder.py)
EXPECTED = {
    "train": {"products": 1.0, "attention": 1.0, "width": 70.0, "feed": 14.0, "scores": 14.0, "update": 10.0},
    "train/compiled": {"products": 1.0, "attention": 1.0, "width": 30.0, "feed": 8.0, "scores": 8.0, "update": 10.0},
    "prefill": {"products": 1.0, "attention": 1.0, "width": 30.0, "feed": 5.0},
    "prefill/compiled": {"products": 1.0, "attention": 1.0, "width": 12.0, "feed": 3.0},
    "decode": {"weights": 1.3, "cache": 1.1, "padded": 2.0, "padded_layers": 30.0, "rows": 2.0, "layers": 60.0},
    "decode/compiled": {
        "weights": 1.3,
        "cache": 1.1,
        "padded": 2.0,
        "padded_layers": 30.0,
        "rows": 2.0,
        "layers": 30.0,
    },
    # ResNet-50's step captured as a graph on an H200, 2026-11-15: 203 us an image and 2.3 ms, as 100 to 22 x 50
    "images": {"images": 100.0, "layers": 22.0},
}


class Prior(NamedTuple):
    """What is expected of coefficients, and how strongly they are held to it."""

    expected: Array
    pull: float


def step_fit(kind: str, terms: Terms, seconds: Array, layers: Array, host_s: float | None = None) -> Step:
    """Weights of terms, and the host's time for a layer unless given, with the error of points left out."""
    names = list(EXPECTED[kind])
    prior = Prior(np.array([EXPECTED[kind][name] for name in names]), PULL)
    x = np.array([[row.get(name, 0.0) for name in names] for row in terms])
    if kind == "images":  # counted in microseconds, not in times that the chip would take: only their ratio is expected
        prior = Prior(prior.expected * float(np.median(seconds / (x @ prior.expected))), IMAGES_PULL)
    hosts = (host_s or 0.0,) if host_s is not None or kind.startswith("decode") else HOSTS
    _, weights, host = min((_one(x, seconds, layers, host, prior) for host in hosts), key=lambda trial: trial[0])
    if len(hosts) > 1:
        host = _floor(x @ weights, seconds, layers, host)
        weights = _weights(x, seconds, layers, host, prior)
    errors = _left_out(x, seconds, layers, host, prior)
    tells = len(errors) > len(names)
    low, high = quantile_pair(list(errors), LEVEL) if tells else UNTOLD
    return Step(
        {n: float(w) for n, w in zip(names, weights, strict=True)},
        float(host),
        len(seconds),
        float(np.mean(np.abs(np.exp(-errors) - 1))) if tells else None,
        (float(min(low, 0.0)), float(max(high, 0.0))),
    )


def _one(x: Array, y: Array, layers: Array, host: float, prior: Prior) -> tuple[float, Array, float]:
    """The error, the weights, the host: points that the host bounds say nothing of the weights."""
    weights = _weights(x, y, layers, host, prior)
    predicted = _predicted(x, weights, layers, host)
    return float(np.mean(np.abs(np.log(predicted / y)))), weights, host


def _floor(device: Array, y: Array, layers: Array, host: float) -> float:
    """The host's time for a layer from the points that wait for it: what else a host does only adds to some of them."""
    waiting = device < WAITS * y
    return min(float(np.quantile((y / layers)[waiting], 0.25)), host) if waiting.any() else host


def _weights(x: Array, y: Array, layers: Array, host: float, prior: Prior) -> Array:
    """Weights with the least relative errors, large ones counted less than by their squares."""
    device = y**SHARP - (host * layers) ** SHARP
    usable = device > (0.5 * y) ** SHARP
    if not usable.any():
        return prior.expected
    target = np.maximum(device, 1e-30)[usable] ** (1 / SHARP)
    relative, count = x[usable] / target[:, None], np.ones(int(usable.sum()))
    weights = pulled(relative, count, prior)
    for _ in range(ROUNDS):
        count = np.sqrt(1 / np.maximum(np.abs(relative @ weights - 1), NEAR))
        count = count / np.sqrt(np.mean(count**2))
        weights = pulled(relative * count[:, None], count, prior)
    return weights


def _predicted(x: Array, weights: Array, layers: Array, host: float) -> Array:
    return np.asarray(((x @ weights) ** SHARP + (host * layers) ** SHARP) ** (1 / SHARP))


def _left_out(x: Array, y: Array, layers: Array, host: float, prior: Prior) -> Array:
    """log(measured / said) of every point by the weights of the others."""
    out = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        weights = _weights(x[others], y[others], layers[others], host, prior)
        out.append(np.log(y[i] / _predicted(x[i : i + 1], weights, layers[i : i + 1], host)[0]))
    return np.array(out)


def pulled(x: Array, y: Array, prior: Prior) -> Array:
    """Least squares with weights that are never negative and held to what is expected where points say little."""
    expected = prior.expected
    scale = np.maximum(np.abs(x * np.maximum(expected, 1e-9)).mean(0), 1e-12)
    by = np.where(expected > 0, scale / np.maximum(expected, 1e-9), scale)
    hold = np.sqrt(prior.pull * len(y)) * np.diag(by)
    return nonnegative(np.vstack([x, hold]), np.concatenate([y, hold @ expected]))


def nonnegative(x: Array, y: Array) -> Array:
    """Least squares with no negative weight (Lawson and Hanson 1974).

    >>> nonnegative(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    norms = np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    a = x / norms
    weights, active = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    for _ in range(3 * a.shape[1]):
        gain = a.T @ (y - a @ weights)
        gain[active] = -np.inf
        if active.all() or gain.max() < 1e-10:
            break
        active[int(gain.argmax())] = True
        while True:
            tried = np.zeros_like(weights)
            tried[active] = np.linalg.lstsq(a[:, active], y, rcond=None)[0]
            if (tried[active] > 0).all():
                weights = tried
                break
            bad = active & (tried <= 0)
            share = np.min(weights[bad] / np.maximum(weights[bad] - tried[bad], 1e-300))
            weights = weights + share * (tried - weights)
            active &= weights > 1e-12
            weights[~active] = 0.0
    return np.asarray(weights / norms)
