"""A JAX function in float64, which no TPU computes in hardware.

chipwise check examples/programs/jax_float64.py:solve --on v5e:1,h100:1
"""

from typing import Any

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def richardson(a: jax.Array, b: jax.Array) -> jax.Array:
    """Eight steps of an iterative solver in double precision."""
    x = jnp.zeros_like(b)
    for _ in range(8):
        x = x + 0.1 * (b - a @ x)
    return x


def solve() -> tuple[Any, tuple[Any, ...]]:
    """The function and its shapes."""
    return richardson, (jax.ShapeDtypeStruct((512, 512), jnp.float64), jax.ShapeDtypeStruct((512, 8), jnp.float64))
