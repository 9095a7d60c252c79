"""A JAX training step over a mesh: two layers, the batch and the weights sharded over one axis, as FSDP does.

chipwise check examples/programs/jax_mlp.py:train --on v5e:2x2,h100:8
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

WIDTH, HIDDEN, BATCH = 2048, 8192, 4096
Params = dict[str, jax.Array]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean squared error of a two-layer perceptron."""
    hidden = jax.nn.gelu(x @ params["up"].astype(jnp.bfloat16))
    out = hidden @ params["down"].astype(jnp.bfloat16)
    return jnp.mean(jnp.square((out - y).astype(jnp.float32)))


def step(params: Params, momentum: Params, x: jax.Array, y: jax.Array) -> tuple[Params, Params, jax.Array]:
    """One step of SGD with momentum."""
    value, grads = jax.value_and_grad(loss)(params, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree.map(lambda p, m: p - 1e-3 * m, params, momentum)
    return params, momentum, value


def shapes() -> tuple[dict[str, jax.ShapeDtypeStruct], jax.ShapeDtypeStruct]:
    """Weights, and a batch of activations."""
    params = {
        "up": jax.ShapeDtypeStruct((WIDTH, HIDDEN), jnp.float32),
        "down": jax.ShapeDtypeStruct((HIDDEN, WIDTH), jnp.float32),
    }
    return params, jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.bfloat16)


def train(weights: str = "sharded") -> dict[str, Any]:
    """The step with its shapes, its mesh (all devices on one axis) and how each argument lies on it.

    `choices` names what ``--tune`` may pick: weights this small may be faster whole on every device.
    """
    params, batch = shapes()
    placed = P("data", None) if weights == "sharded" else P(None, None)
    return {
        "step": step,
        "args": (params, params, batch, batch),
        "axes": {"data": -1},
        "shardings": (placed, placed, ("data", None), ("data", None)),
        "out_shardings": (placed, placed, None),
        "donate": (0, 1),
        "choices": {"weights": ["sharded", "replicated"]},
    }


def inference() -> tuple[Any, tuple[Any, ...]]:
    """The forward pass on one device: a function and example arguments are enough."""
    params, batch = shapes()
    return loss, (params, batch, batch)
