"""A convolutional network on handwritten digits (8x8, from scikit-learn), in JAX."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from chipwise.numerics.data import digits
from chipwise.programs.jax.loss import cross_entropy

BATCH = 64
optimizer = {"name": "adamw", "learning_rate": 2e-3}


def init(seed: int) -> dict[str, Any]:
    """Weights of a seed, by layer."""
    chance = np.random.default_rng(seed)

    def layer(*shape: int) -> dict[str, Any]:
        gain = (2 / math.prod(shape[:-1])) ** 0.5
        return {"weight": chance.normal(size=shape) * gain, "bias": np.zeros(shape[-1])}

    return {"conv1": layer(3, 3, 1, 16), "conv2": layer(3, 3, 16, 32), "classify": layer(32 * 4, 10)}


def loss(params: dict[str, Any], batch: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Cross entropy of ten classes."""
    images, labels = batch
    h = images[..., None]
    for name in ("conv1", "conv2"):
        with jax.named_scope(name):
            h = _convolved(params[name], h)
    with jax.named_scope("classify"):
        scores = h.reshape(len(h), -1) @ params["classify"]["weight"] + params["classify"]["bias"]
    with jax.named_scope("fp32"):
        return cross_entropy(scores[:, None], labels[:, None]).mean()


def _convolved(p: dict[str, jax.Array], h: jax.Array) -> jax.Array:
    """A convolution, a ReLU and the largest of each 2x2 pixels."""
    h = jax.lax.conv_general_dilated(h, p["weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    h = jax.nn.relu(h + p["bias"])
    return h.reshape(len(h), h.shape[1] // 2, 2, h.shape[2] // 2, 2, -1).max((2, 4))


def batches(seed: int) -> Iterator[tuple[Any, Any]]:
    """Shuffled pictures."""
    return digits(seed, BATCH)
