"""Gaussian-process regression: what formulas miss near measured points, and nothing far away from them.

A covariance is a kernel over sizes (logarithms) times a kernel over names. The posterior mean is a weighted sum of
covariances with the training points (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2).
It depends on sizes and names only, never on a chip's figures, so that a faster chip stays faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALES = (0.7, 1.5, 3.0, 6.0)  # length scales that a fit by points left out tries, in octaves
NOISES = (0.02, 0.1, 0.4)  # of the variance that no neighbor explains, tried with each
JITTER = 1e-6  # on the diagonal of a sparse fit, against rounding


@dataclass(frozen=True, slots=True)
class Points:
    """Where values are known or wanted: a row of sizes and a row of names (or codes of names) for each point."""

    sizes: Array  # (point, size)
    names: NDArray[Any]  # (point, name)

    @classmethod
    def unnamed(cls, sizes: Array) -> Points:
        """Points that have sizes alone."""
        return cls(sizes, np.empty((len(sizes), 0), np.str_))

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, rows: Any) -> Points:
        """Some of the points."""
        return Points(self.sizes[rows], self.names[rows])


class Covariance(Protocol):
    """How alike two sets of points are."""

    def __call__(self, a: Points, b: Points) -> Array:
        """A matrix of (point of a, point of b)."""


@dataclass(frozen=True, slots=True)
class Rbf:
    """Squared-exponential kernel over sizes, times a kernel over names.

    `penalties` add to the exponent where names differ, one for each name. `shares` are parts of the variance, each
    common to points whose names in the given columns are equal; without shares all of it is common.
    """

    length: float = 1.0  # in units of the sizes
    penalties: tuple[float, ...] = ()
    shares: tuple[tuple[float, tuple[int, ...]], ...] = ()

    def __call__(self, a: Points, b: Points) -> Array:
        """1 for the same point, falling to 0."""
        square = (a.sizes**2).sum(1)[:, None] + (b.sizes**2).sum(1)[None, :] - 2 * a.sizes @ b.sizes.T
        for column, penalty in enumerate(self.penalties):
            square = square + 2 * penalty * (a.names[:, column][:, None] != b.names[:, column][None, :])
        near = np.exp(-0.5 * np.maximum(square, 0.0) / self.length**2)
        return np.asarray(near * self._shared(a, b)) if self.shares else np.asarray(near)

    def _shared(self, a: Points, b: Points) -> Any:
        total: Any = 0.0
        for share, columns in self.shares:
            alike: Any = True
            for column in columns:
                _, codes = np.unique(np.concatenate([a.names[:, column], b.names[:, column]]), return_inverse=True)
                alike = alike & (codes[: len(a)][:, None] == codes[len(a) :][None, :])  # names compare slowly
            total = total + share * alike
        return total


@dataclass(frozen=True, slots=True)
class Matern32:
    """Matern kernel of smoothness 3/2 over sizes: rougher than a squared exponential, as times of kernels are."""

    scale: float

    def __call__(self, a: Points, b: Points) -> Array:
        """1 for the same point, falling to 0."""
        apart = ((a.sizes[:, None, :] - b.sizes[None, :, :]) ** 2).sum(-1)
        distance = np.sqrt(np.maximum(apart, 0.0)) * (np.sqrt(3.0) / self.scale)
        return np.asarray((1 + distance) * np.exp(-distance))


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of a function before any point: covariance, standard deviation, largest value."""

    covariance: Covariance
    amplitude: float = 1.0
    limit: float = inf

    def mean_at(self, wanted: Points, known: Points, weights: Array) -> Array:
        """The posterior mean at the points wanted, clipped to the limit."""
        mean = self.amplitude**2 * self.covariance(wanted, known) @ weights
        return np.asarray(np.clip(mean, -self.limit, self.limit))

    def fit(self, known: Points, values: Array, noise: Array) -> Array:
        """Weights of the points that explain the values, each with its variance of noise; exact inference."""
        near = self.amplitude**2 * self.covariance(known, known)
        return np.asarray(np.linalg.solve(near + np.diag(noise), np.clip(values, -self.limit, self.limit)))

    def fit_sparse(self, kept: Points, known: Points, values: Array, noise: Array, signal: float) -> Array:
        """Weights of a few points that explain the values at all (subset of regressors); `signal` is the variance."""
        near, among = self.covariance(kept, known), self.covariance(kept, kept)
        gram = (near / noise) @ near.T * signal + among
        target = near @ (np.clip(values, -self.limit, self.limit) / noise)
        return np.asarray(signal * np.linalg.solve(gram + JITTER * np.eye(len(kept)), target))


@dataclass(frozen=True, slots=True)
class Process:
    """A fitted process over sizes; `spread` is the typical error of a point left out."""

    points: Points
    weights: Array
    mean: float
    scale: float
    spread: float

    def at(self, sizes: Array) -> Array:
        """The posterior mean at other points: the prior's mean where none is near."""
        if not len(self.points):
            return np.full(len(sizes), self.mean)
        near = Prior(Matern32(self.scale)).mean_at(Points.unnamed(sizes), self.points, self.weights)
        return np.asarray(self.mean + near)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "points": np.round(self.points.sizes, 4).tolist(),
            "weights": np.round(self.weights, 6).tolist(),
            "mean": self.mean,
            "scale": self.scale,
            "spread": self.spread,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Process:
        """What `as_json` gave."""
        return cls(
            Points.unnamed(np.array(raw["points"], float)),
            np.array(raw["weights"], float),
            float(raw["mean"]),
            float(raw["scale"]),
            float(raw["spread"]),
        )

    @classmethod
    def constant(cls, values: Array, axes: int) -> Process:
        """The mean of values too few to tell how they differ."""
        none = Points.unnamed(np.zeros((0, axes)))
        return cls(none, np.zeros(0), float(np.mean(values)), 1.0, float(np.std(values)))


def fit(sizes: Array, values: Array) -> Process:
    """The process whose length scale and noise predict each point best from the others (leave-one-out, closed form)."""
    points, best = Points.unnamed(sizes), None
    for scale, noise in product(SCALES, NOISES):
        weights, mean, errors = _left_out(Matern32(scale)(points, points), values, noise)
        score = float(np.mean(np.abs(errors)))
        if best is None or score < best[0]:
            best = (score, scale, weights, mean, float(np.sqrt(np.mean(errors**2))))
    assert best is not None
    _, scale, weights, mean, spread = best
    return Process(points, weights, mean, scale, spread)


def _left_out(covariance: Array, values: Array, noise: float) -> tuple[Array, float, Array]:
    """Weights, mean, and the error of every point by the others (Rasmussen and Williams, equation 5.12)."""
    inverse = np.linalg.inv(covariance + noise * np.eye(len(values)))
    ones = np.ones(len(values))
    mean = float(ones @ inverse @ values / (ones @ inverse @ ones))
    weights = inverse @ (values - mean)
    return weights, mean, weights / np.diag(inverse)
