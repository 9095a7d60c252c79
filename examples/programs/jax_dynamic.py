"""A JAX function whose result has as many rows as a mask has true values: XLA can't compile it.

chipwise check examples/programs/jax_dynamic.py:masked --on v5e:1
"""

from typing import Any

import jax
import jax.numpy as jnp


def keep_positive(x: jax.Array) -> jax.Array:
    """The sum over rows with a positive mean; the number of such rows is known only when the program runs."""
    positive = x.mean(axis=1) > 0
    rows = x[positive]
    return rows.sum(axis=0)


def keep_positive_fixed(x: jax.Array) -> jax.Array:
    """The same result with fixed shapes."""
    positive = x.mean(axis=1) > 0
    return jnp.where(positive[:, None], x, 0).sum(axis=0)


def masked() -> tuple[Any, tuple[Any, ...]]:
    """Refused: a shape depends on values."""
    return keep_positive, (jax.ShapeDtypeStruct((1024, 512), jnp.float32),)


def fixed() -> tuple[Any, tuple[Any, ...]]:
    """Compiles."""
    return keep_positive_fixed, (jax.ShapeDtypeStruct((1024, 512), jnp.float32),)
