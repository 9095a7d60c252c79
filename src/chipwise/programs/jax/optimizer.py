"""Updates of JAX programs over trees of weights, and gradients of a batch taken in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from chipwise.programs.optimizers import AdamW

Tree = dict[str, Any]
REFERENCE = AdamW(1e-4)  # of the reference programs; its betas and decay are those of Llama (arXiv 2302.13971)

# Optimizers whose update isn't the one compiled: what it is, in words.
STAND_INS = {
    "adafactor": "plain descent (its row and column sums are left out)",
    "lamb": "AdamW without the trust ratio",
    "lars": "momentum without the trust ratio",
    "lion": "momentum without the sign",
    "muon": "momentum without the orthogonalisation",
}


def updated(weights: Any, moments: list[Any], grads: Any, rule: AdamW = REFERENCE) -> tuple[Any, list[Any]]:
    """One step of AdamW (two moments), momentum (one) or plain descent (none), in the precision of the weights."""
    rate = rule.learning_rate
    grads = jax.tree.map(lambda g, w: g.astype(w.dtype), grads, weights)
    if not moments:
        return jax.tree.map(lambda w, g: w - rate * g, weights, grads), []
    first = jax.tree.map(rule.first, moments[0], grads)
    if len(moments) == 1:
        return jax.tree.map(lambda w, m: w - rate * m, weights, first), [first]
    second = jax.tree.map(rule.second, moments[1], grads)

    def moved(w: Any, m: Any, v: Any) -> Any:
        return rule.moved(w, rule.direction(m, v, sqrt=jnp.sqrt))

    return jax.tree.map(moved, weights, first, second), [first, second]


def adamw(
    rule: AdamW, weights: Any, grads: Any, moments: tuple[Any, Any], corrections: tuple[Any, Any]
) -> tuple[Any, Any, Any]:
    """Weights and both moments after one step of AdamW, computed in float32 and stored as they came."""

    def wide(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(jnp.float32), tree)

    def moved(w: Any, m: Any, v: Any) -> Any:
        return rule.moved(w, rule.direction(m, v, corrections, jnp.sqrt))

    first = jax.tree.map(rule.first, wide(moments[0]), wide(grads))
    second = jax.tree.map(rule.second, wide(moments[1]), wide(grads))
    new = (jax.tree.map(moved, wide(weights), first, second), first, second)
    kept, first, second = jax.tree.map(lambda x, old: x.astype(old.dtype), new, (weights, *moments))
    return kept, first, second


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
