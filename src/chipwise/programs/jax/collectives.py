"""Explicit collectives of the reference programs: inside `shard_map`, so the compiler is told, not left to guess.

Weights are cast before they are gathered, their gradients come back by reduce-scatter (the transpose of a gather),
and tensor-parallel blocks keep the residual stream split along the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax

from chipwise.programs.jax.weights import SHARD

BATCH = ("data", "fsdp", "expert")  # mesh axes the batch is split over
AXES = ("data", "fsdp", "expert", "tensor")


@dataclass(frozen=True, slots=True)
class Grid:
    """Sizes of the mesh axes, and the type that arithmetic is done in."""

    data: int
    fsdp: int
    expert: int
    tensor: int
    dtype: str = "bfloat16"
    spread: bool = True  # with tensor parallelism, the residual stream is split along the sequence
    context: int = 1  # ways each sequence is split
    low: str = ""  # "int8" or "fp8": what the products of layers are done in

    @property
    def batch(self) -> int:
        """Ways the batch is split."""
        return self.data * self.fsdp * self.expert

    @property
    def shard(self) -> int:
        """Ways a dense weight is split besides tensor parallelism."""
        return self.fsdp * self.expert * self.context


def gathered(weight: jax.Array, grid: Grid, axis: int, names: Sequence[str] = SHARD) -> jax.Array:
    """The weight in the arithmetic type, whole along `axis`, from its shards."""
    over = tuple(name for name in names if getattr(grid, name) > 1)
    if not over and weight.dtype == grid.dtype:
        return weight  # nothing to keep apart: the product may read it where it lies (decoding lives by that)
    # the barrier keeps the cast of all layers' weights from being hoisted out of the loop over them
    cast: jax.Array = jax.lax.optimization_barrier(weight).astype(grid.dtype)
    if not over:
        return cast
    whole: jax.Array = jax.lax.all_gather(cast, over, axis=axis, tiled=True)
    return whole


def whole_sequence(x: jax.Array, grid: Grid) -> jax.Array:
    """Activations split along the sequence over the tensor axis, made whole."""
    return jax.lax.all_gather(x, "tensor", axis=1, tiled=True) if grid.tensor > 1 and grid.spread else x


def split_sequence(x: jax.Array, grid: Grid) -> jax.Array:
    """Partial sums over the tensor axis, summed and split along the sequence (or left whole on each device)."""
    if grid.tensor == 1:
        return x
    whole: jax.Array = (
        jax.lax.psum_scatter(x, "tensor", scatter_dimension=1, tiled=True) if grid.spread else jax.lax.psum(x, "tensor")
    )
    return whole


def own_part(x: jax.Array, grid: Grid, axis: int = 1) -> jax.Array:
    """This device's part along the sequence of something that is whole on every device of the tensor axis."""
    if grid.tensor == 1 or not grid.spread:
        return x
    span = x.shape[axis] // grid.tensor
    return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("tensor") * span, span, axis)


def summed(x: jax.Array, grid: Grid, names: Sequence[str]) -> jax.Array:
    """The sum over the named axes that have more than one member."""
    over = tuple(name for name in names if getattr(grid, name) > 1)
    return jax.lax.psum(x, over) if over else x
