"""A momentum update that needs just more, or just less, memory than one TPU v5e has (15.75 GiB for programs).

chipwise check examples/programs/jax_oom.py:over --on v5e:1
chipwise check examples/programs/jax_oom.py:under --on v5e:1
chipwise check examples/programs/jax_oom.py:donated --on v5e:1
"""

from typing import Any

import jax
import jax.numpy as jnp

USABLE = 15.75 * 2**30
ROW = 8192


def update(weights: jax.Array, momentum: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Five arrays of one size live at once: three come in, two go out."""
    momentum = 0.9 * momentum + gradient
    return weights - 0.001 * momentum, momentum


def shapes(share: float) -> tuple[Any, tuple[Any, ...]]:
    """The update at a size that needs `share` of the memory."""
    rows = int(share * USABLE / 5 / ROW / 4) // 8 * 8  # fp32; the compiler pads rows to eight
    array = jax.ShapeDtypeStruct((rows, ROW), jnp.float32)
    return update, (array, array, array)


def over() -> tuple[Any, tuple[Any, ...]]:
    """One per cent more than there is."""
    return shapes(1.01)


def under() -> tuple[Any, tuple[Any, ...]]:
    """One per cent less."""
    return shapes(0.99)


def donated() -> dict[str, Any]:
    """The size of `over` with the old weights and momentum given up: three arrays instead of five."""
    step, args = shapes(1.01)
    return {"step": step, "args": args, "donate": (0, 1)}
