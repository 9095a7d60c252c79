"""Collectives in JAX over the devices of this machine, each fed `bytes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from chipwise.bench.frameworks.interface import Case, Unsupported
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    array_dtype,
    case,
    checkable,
    compiled,
    float64,
    normal,
    relative_error,
    sets_for,
)
from chipwise.ops.point import Point
from chipwise.ops.work import WIDTH

_AXIS = "devices"


def build_collective(point: Point, context: Context) -> Case:
    """One collective over the first `devices` local devices, each fed `bytes` rounded up to a share for each."""
    count, available = point.sizes["devices"], len(context.local)
    if count < 2:
        raise Unsupported("a collective needs at least 2 devices")
    if count > available:
        raise Unsupported(f"{point.kind} over {count} devices needs {count}; JAX has {available} here")
    mesh = Mesh(np.asarray(context.local[:count]), (_AXIS,))
    split, everywhere = PartitionSpec(_AXIS), PartitionSpec()
    share = -(-point.sizes["bytes"] // (WIDTH[point.dtype] * count)) or 1
    sets = _inputs(point, context, NamedSharding(mesh, split), count * share)
    # every device has the whole result of a reduction or gather, which the type system of shards can't always see
    result = everywhere if point.kind in ("all_reduce", "all_gather") else split
    function = jax.shard_map(_function(point.kind), mesh=mesh, in_specs=split, out_specs=result, check_vma=False)
    program = compiled(function, sets[0], context=context)

    def check() -> float:
        return relative_error(program(sets[0]), reference(point.kind, float64(sets[0]).reshape(count, -1)))

    return case(point, lambda i: program(sets[i % len(sets)]), check if checkable(point, sets[0].size) else None)


def _inputs(point: Point, context: Context, sharding: NamedSharding, elements: int) -> list[Array]:
    """Sets of random inputs, each device's part made where it stays."""
    dtype, count = array_dtype(point), sharding.mesh.size

    def shard(seed: int, index: int) -> Array:
        with jax.default_device(context.local[index]):
            return normal(seed * count + index, (elements,), dtype)

    return [
        jax.make_array_from_single_device_arrays((count * elements,), sharding, [shard(i, j) for j in range(count)])
        for i in range(sets_for(point.sizes["bytes"], context.device))
    ]


def _function(kind: str) -> Callable[[Array], Array]:
    if kind == "all_reduce":
        return lambda x: lax.psum(x, _AXIS)
    if kind == "all_gather":
        return lambda x: lax.all_gather(x, _AXIS, tiled=True)
    if kind == "reduce_scatter":
        return lambda x: lax.psum_scatter(x, _AXIS, tiled=True)
    return lambda x: lax.all_to_all(x, _AXIS, split_axis=0, concat_axis=0, tiled=True)


def reference(kind: str, parts: Any) -> Any:
    """What the devices hold together afterwards, given what each is fed (a row each).

    >>> reference("all_to_all", np.asarray([[1, 2], [3, 4]]))
    array([1, 3, 2, 4])
    """
    if kind in ("all_reduce", "reduce_scatter"):
        return parts.sum(axis=0)
    if kind == "all_gather":
        return parts.ravel()
    count = len(parts)
    return parts.reshape(count, count, -1).swapaxes(0, 1).ravel()
