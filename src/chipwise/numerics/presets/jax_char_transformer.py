"""A character-level transformer on the text that ships with chipwise, in JAX.

Its blocks are its own: each product and norm stands in a scope, since the emulation of a format rounds scope by scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chipwise.numerics.data import passages, text
from chipwise.programs.jax.loss import cross_entropy

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 48, 3, 2, 48, 8
optimizer = {"name": "adamw", "learning_rate": 3e-3, "beta2": 0.99}


def init(seed: int) -> dict[str, Any]:
    """Weights of a seed, by layer."""
    chance = np.random.default_rng(seed)
    _, characters = text()

    def matrix(rows: int, columns: int) -> Any:
        return chance.normal(size=(rows, columns)) * rows**-0.5

    def norm() -> dict[str, Any]:
        return {"gain": np.ones(WIDTH), "shift": np.zeros(WIDTH)}

    def block() -> dict[str, Any]:
        return {
            "norm1": norm(),
            "norm2": norm(),
            "attention": {"qkv": matrix(WIDTH, 3 * WIDTH), "out": matrix(WIDTH, WIDTH)},
            "mlp": {"up": matrix(WIDTH, 4 * WIDTH), "down": matrix(4 * WIDTH, WIDTH)},
        }

    tokens, positions = (chance.normal(size=(n, WIDTH)) for n in (characters, LENGTH))
    return {
        "tokens": {"table": tokens},
        "positions": {"table": positions},
        **{f"block{i}": block() for i in range(LAYERS)},
        "norm": norm(),
        "head": {"weight": matrix(WIDTH, characters)},
    }


def loss(params: dict[str, Any], batch: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Cross entropy per character."""
    x, y = batch
    h = params["tokens"]["table"][x] + params["positions"]["table"]
    for i in range(LAYERS):
        with jax.named_scope(f"block{i}"):
            h = _block(params[f"block{i}"], h)
    h = _normed(params["norm"], h, "norm")
    with jax.named_scope("head"):
        scores = h @ params["head"]["weight"]
    with jax.named_scope("fp32"):
        return cross_entropy(scores, y).mean()


def _block(p: dict[str, Any], h: jax.Array) -> jax.Array:
    with jax.named_scope("attention"):
        h = h + _attention(p["attention"], _normed(p["norm1"], h, "norm1"))
    with jax.named_scope("mlp"):
        up = _normed(p["norm2"], h, "norm2") @ p["mlp"]["up"]
        down: jax.Array = jax.nn.gelu(up) @ p["mlp"]["down"]
        return h + down


def _attention(p: dict[str, jax.Array], h: jax.Array) -> jax.Array:
    q, k, v = jnp.moveaxis((h @ p["qkv"]).reshape(*h.shape[:2], 3, HEADS, WIDTH // HEADS), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
    with jax.named_scope("fp32"):  # as in fused attention
        mask = jnp.tril(jnp.ones((h.shape[1], h.shape[1]), bool))
        mix = jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -jnp.inf)).astype(h.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", mix, v).reshape(h.shape) @ p["out"]


def _normed(p: dict[str, jax.Array], h: jax.Array, name: str) -> jax.Array:
    with jax.named_scope(name):
        with jax.named_scope("fp32"):
            centered = h.astype(jnp.float32) - h.mean(-1, keepdims=True, dtype=jnp.float32)
            normed = (centered * jax.lax.rsqrt(jnp.square(centered).mean(-1, keepdims=True) + 1e-5)).astype(h.dtype)
        return normed * p["gain"] + p["shift"]


def batches(seed: int) -> Iterator[tuple[Any, Any]]:
    """Passages at random."""
    return passages(seed, BATCH, LENGTH)
