"""A Gaussian process over a few logarithms of sizes: what formulas miss, from measured points nearby.

Its length scales and noise are chosen by the error of each point when it is left out, which has a closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALES = (0.7, 1.5, 3.0, 6.0)  # of the distance at which points stop telling of one another
NOISES = (0.02, 0.1, 0.4)  # of the variance that no neighbour explains


@dataclass(frozen=True, slots=True)
class Process:
    """Measured points and weights over them; `spread` is the typical log error of a point left out."""

    points: Array  # n x axes
    weights: Array
    mean: float
    scale: float
    spread: float

    def at(self, features: Array) -> Array:
        """What it says of other points: the mean where none is near."""
        if not len(self.points):
            return np.full(len(features), self.mean)
        return np.asarray(self.mean + _kernel(features, self.points, self.scale) @ self.weights)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "points": np.round(self.points, 4).tolist(),
            "weights": np.round(self.weights, 6).tolist(),
            "mean": self.mean,
            "scale": self.scale,
            "spread": self.spread,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Process:
        """What `as_json` gave."""
        return cls(
            np.array(raw["points"], float),
            np.array(raw["weights"], float),
            float(raw["mean"]),
            float(raw["scale"]),
            float(raw["spread"]),
        )


def _kernel(a: Array, b: Array, scale: float) -> Array:
    """Matern 3/2: rougher than a bell, as times of kernels are."""
    distance = np.sqrt(np.maximum(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1), 0.0)) * (np.sqrt(3.0) / scale)
    return np.asarray((1 + distance) * np.exp(-distance))


def fit(features: Array, values: Array) -> Process:
    """The process whose points, each left out, are told best by the others."""
    best = None
    for scale, noise in product(SCALES, NOISES):
        weights, mean, errors = _left_out(_kernel(features, features, scale), values, noise)
        score = float(np.mean(np.abs(errors)))
        if best is None or score < best[0]:
            best = (score, scale, weights, mean, float(np.sqrt(np.mean(errors**2))))
    assert best is not None
    _, scale, weights, mean, spread = best
    return Process(features, weights, mean, scale, spread)


def _left_out(kernel: Array, values: Array, noise: float) -> tuple[Array, float, Array]:
    """Weights, mean, and the error of every point by the others (Rasmussen and Williams, equation 5.12)."""
    inverse = np.linalg.inv(kernel + noise * np.eye(len(values)))
    ones = np.ones(len(values))
    mean = float(ones @ inverse @ values / (ones @ inverse @ ones))
    weights = inverse @ (values - mean)
    return weights, mean, weights / np.diag(inverse)


def folds(count: int, parts: int = 5) -> Sequence[NDArray[np.bool_]]:
    """Which points each of some equal parts leaves out."""
    return [np.arange(count) % parts == part for part in range(min(parts, count))]
