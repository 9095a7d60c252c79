"""A Pallas kernel of one's own for TPUs: a tiled matmul with bias and ReLU fused in.

chipwise check examples/programs/jax_pallas.py:matmul --on v5e:1
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

TILE_M, TILE_K, TILE_N = 512, 512, 512


def _kernel(x: Any, w: Any, bias: Any, out: Any, total: Any) -> None:
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        out[...] = jnp.maximum(total[...] + bias[...], 0.0).astype(out.dtype)


def fused(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
    """relu(x @ w + bias), tile by tile, accumulated in fp32 on chip."""
    (m, k), (_, n) = x.shape, w.shape
    return pl.pallas_call(
        _kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // TILE_M, n // TILE_N, k // TILE_K),
        in_specs=[
            pl.BlockSpec((TILE_M, TILE_K), lambda i, j, k: (i, k)),
            pl.BlockSpec((TILE_K, TILE_N), lambda i, j, k: (k, j)),
            pl.BlockSpec((1, TILE_N), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((TILE_M, TILE_N), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((TILE_M, TILE_N), jnp.float32)],
        name="fused_matmul",
    )(x, w, bias)


def step(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
    """The kernel between two operations that XLA compiles itself."""
    return jnp.tanh(fused(x * 2, w, bias))


def matmul() -> tuple[Any, tuple[Any, ...]]:
    """The step and its shapes."""
    x = jax.ShapeDtypeStruct((4096, 2048), jnp.bfloat16)
    w = jax.ShapeDtypeStruct((2048, 4096), jnp.bfloat16)
    return step, (x, w, jax.ShapeDtypeStruct((1, 4096), jnp.float32))
