"""Cross entropy of the JAX programs, on one device or with the classes split over several."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def cross_entropy(logits: jax.Array, targets: jax.Array, tensor: int = 1) -> jax.Array:
    """Of [batch, sequence, classes], in float32; with `tensor` devices, each has its own part of the classes."""
    logits = logits.astype(jnp.float32)
    columns = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2)
    top = jax.lax.stop_gradient(logits.max(-1))
    if tensor > 1:
        columns = columns + jax.lax.axis_index("tensor") * logits.shape[-1]
        top = jax.lax.pmax(top, "tensor")
    total = jnp.exp(logits - top[..., None]).sum(-1)
    hit = jnp.where(columns == targets[..., None], logits, 0).sum(-1)
    if tensor > 1:
        total, hit = jax.lax.psum((total, hit), "tensor")
    return jnp.log(total) + top - hit
