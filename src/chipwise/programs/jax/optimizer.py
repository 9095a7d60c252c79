"""The update of the reference programs, and gradients of a batch taken in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Tree = dict[str, Any]

# Optimisers whose update isn't the one compiled: what it is, in words.
STAND_INS = {
    "adafactor": "plain descent (its row and column sums are left out)",
    "lamb": "AdamW without the trust ratio",
    "lars": "momentum without the trust ratio",
    "lion": "momentum without the sign",
    "muon": "momentum without the orthogonalisation",
}


def updated(weights: Any, moments: list[Any], grads: Any, rate: float = 1e-4) -> tuple[Any, list[Any]]:
    """One step of AdamW (two moments), momentum (one) or plain descent (none)."""
    grads = jax.tree.map(lambda g, w: g.astype(w.dtype), grads, weights)
    if not moments:
        return jax.tree.map(lambda w, g: w - rate * g, weights, grads), []
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    if len(moments) == 1:
        return jax.tree.map(lambda w, m: w - rate * m, weights, first), [first]
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, moments[1], grads)
    weights = jax.tree.map(lambda w, m, v: w - rate * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w), weights, first, second)
    return weights, [first, second]


def accumulated(differentiated: Callable[[Any, Tree], Any], weights: Any, batch: Tree, times: int) -> Any:
    """Means over `times` equal parts of a batch of what `differentiated` gives: the loss and the gradients."""
    if times == 1:
        return differentiated(weights, batch)
    parts = jax.tree.map(lambda x: x.reshape(times, x.shape[0] // times, *x.shape[1:]), batch)
    shapes = jax.eval_shape(differentiated, weights, jax.tree.map(lambda x: x[0], parts))

    def one(total: Any, part: Tree) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, differentiated(weights, part)), None

    total, _ = jax.lax.scan(one, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes), parts)
    return jax.tree.map(lambda x: x / times, total)
