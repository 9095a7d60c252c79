"""Context parallelism: each device of the axis has part of every sequence, and attends to all keys.

As MaxText does it (`context_parallel_load_balance`, 2025-06): keys and values are gathered over the axis, and a device
has one part from the front of the sequence and its mirror from the end, so that causal attention is even work.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from chipwise.programs.jax.collectives import Grid

AXIS = "context"


def order(sequence: int, parts: int) -> np.ndarray:
    """Positions in the order in which the devices have them.

    >>> order(8, 2).tolist()
    [0, 1, 6, 7, 2, 3, 4, 5]
    """
    chunks = np.arange(sequence, dtype=np.int32).reshape(2 * parts, -1)
    return np.stack([chunks[:parts], chunks[parts:][::-1]], 1).reshape(-1)


def positions(here: int, grid: Grid) -> jax.Array:
    """Positions of the `here` tokens of a sequence that this device has."""
    return own_positions(here, grid.context)


def own_positions(here: int, parts: int) -> jax.Array:
    """The same, on one of `parts` devices."""
    if parts == 1:
        return jnp.arange(here)
    every = jnp.asarray(order(here * parts, parts))
    return jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index(AXIS) * here, here)


def every_key(x: jax.Array, grid: Grid) -> jax.Array:
    """Keys or values [batch, sequence, heads, ...] of all devices of the axis, by their positions."""
    if grid.context == 1:
        return x
    parts, whole = grid.context, jax.lax.all_gather(x, AXIS, axis=1, tiled=True)
    batch, sequence, *rest = whole.shape
    chunks = whole.reshape(batch, parts, 2, sequence // (2 * parts), *rest)
    return jnp.concatenate([chunks[:, :, 0], chunks[:, ::-1, 1]], 1).reshape(whole.shape)


def own_blocks(kernel: object, parts: int) -> object:
    """A splash kernel for all queries of a sequence, with this device's part of what it knows of the mask."""
    leaves, kwargs = kernel.tree_flatten()  # type: ignore[attr-defined]

    def own(array: jax.Array | None, axis: int) -> jax.Array | None:
        if array is None:
            return None
        here = array.shape[axis] // parts
        return jax.lax.dynamic_slice_in_dim(array, jax.lax.axis_index(AXIS) * here, here, axis)

    infos = [
        None
        if info is None
        else info._replace(
            data_next=own(info.data_next, 1),
            mask_next=own(info.mask_next, 1),
            block_mask=own(info.block_mask, 1),
            q_sequence=own(info.q_sequence, 0),
        )
        for info in leaves
    ]
    return type(kernel).tree_unflatten(kwargs, infos)  # type: ignore[attr-defined]
