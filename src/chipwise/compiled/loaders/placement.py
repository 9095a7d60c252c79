"""Example arguments to shapes with shardings: meshes over a topology's devices, partition specs, replication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from chipwise.errors import InputError

_SHAPES = "an array, a jax.ShapeDtypeStruct or a number (bind anything else with functools.partial)"
_SPECS = "a PartitionSpec, a tuple of axis names, a NamedSharding or None"


def build_mesh(axes: Mapping[str, int], devices: Sequence[Any]) -> Mesh:
    """A mesh of named axes over all devices, laid along the wires; one size may be -1."""
    sizes = dict(axes)
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or (size < 1 and size != -1):
            raise InputError(f"axes.{name}", size, "a whole number of at least 1, or -1 once")
    open_axes = [name for name, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise InputError("axes", _product(sizes), "at most one -1")
    if open_axes:
        fixed = prod(size for size in sizes.values() if size != -1)
        if len(devices) % fixed:
            raise InputError("axes", _product(sizes), f"sizes that divide {len(devices)} devices")
        sizes[open_axes[0]] = len(devices) // fixed
    if prod(sizes.values()) != len(devices):
        raise InputError("axes", _product(sizes), f"sizes that multiply to the {len(devices)} devices of the target")
    return Mesh(_arranged(tuple(sizes.values()), devices), tuple(sizes))


def _product(sizes: Mapping[str, int]) -> str:
    return " * ".join(f"{name}({size})" for name, size in sizes.items())


def _arranged(shape: tuple[int, ...], devices: Sequence[Any]) -> np.ndarray[Any, Any]:
    slices = len({getattr(device, "slice_index", 0) for device in devices})
    if slices > 1:
        across = next((i for i, size in enumerate(shape) if size % slices == 0), None)
        if across is None:
            raise InputError("axes", shape, f"one size that is a multiple of the {slices} slices")
        within = [size // slices if i == across else size for i, size in enumerate(shape)]
        outer = [slices if i == across else 1 for i in range(len(shape))]
        return mesh_utils.create_hybrid_device_mesh(within, outer, devices, allow_split_physical_axes=True)
    if devices[0].platform != "tpu":
        return np.array(devices).reshape(shape)
    return mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)


def shapes_of(args: Sequence[Any], where: str = "args") -> tuple[Any, ...]:
    """The same pytrees with each array replaced by its shape; shardings an array had are kept."""

    def shape(path: Any, leaf: Any) -> jax.ShapeDtypeStruct:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if isinstance(leaf, bool | int | float | complex):
            aval = jax.eval_shape(lambda: jax.numpy.asarray(leaf))
            return jax.ShapeDtypeStruct((), aval.dtype, weak_type=True)
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
        raise InputError(where + jax.tree_util.keystr(path), f"{type(leaf).__name__} {leaf!r}", _SHAPES)

    return tuple(jax.tree_util.tree_map_with_path(shape, tuple(args)))


def placed(shapes: tuple[Any, ...], shardings: Any, mesh: Mesh | None, devices: Sequence[Any]) -> tuple[Any, ...]:
    """Shapes with a sharding each: as given, else replicated over the mesh, else on the first device."""
    if shardings is None:
        return tuple(jax.tree.map(lambda leaf: _with_default(leaf, mesh, devices), shapes))
    if not isinstance(shardings, tuple | list) or len(shardings) != len(shapes):
        raise InputError("shardings", shardings, f"one entry for each of the {len(shapes)} arguments")
    return tuple(
        _placed_one(f"shardings[{i}]", shape, spec, mesh, devices)
        for i, (shape, spec) in enumerate(zip(shapes, shardings, strict=True))
    )


def out_placed(shardings: Any, mesh: Mesh | None) -> Any:
    """Output shardings as a pytree of shardings."""
    return jax.tree.map(lambda spec: _sharding("out_shardings", spec, mesh), shardings, is_leaf=is_spec)


def _placed_one(where: str, shapes: Any, specs: Any, mesh: Mesh | None, devices: Sequence[Any]) -> Any:
    def shard(spec: Any, subtree: Any) -> Any:
        if spec is None:
            return jax.tree.map(lambda leaf: _with_default(leaf, mesh, devices), subtree)
        sharding = _sharding(where, spec, mesh)
        return jax.tree.map(lambda leaf: _with(leaf, sharding, where), subtree)

    try:
        return jax.tree.map(shard, specs, shapes, is_leaf=is_spec)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        accepted = f"the structure of the argument, or the beginning of it ({str(error).strip().splitlines()[0]})"
        raise InputError(where, specs, accepted) from error


def is_spec(value: Any) -> bool:
    """Whether a value is one sharding rather than a container of them."""
    if value is None or isinstance(value, PartitionSpec | Sharding):
        return True
    return isinstance(value, tuple) and all(_is_axis(part) for part in value)


def _is_axis(part: Any) -> bool:
    return part is None or isinstance(part, str) or (isinstance(part, tuple) and all(isinstance(p, str) for p in part))


def _sharding(where: str, spec: Any, mesh: Mesh | None) -> Sharding:
    if isinstance(spec, Sharding):
        return spec
    if not isinstance(spec, PartitionSpec) and not is_spec(spec):
        raise InputError(where, spec, _SPECS)
    if mesh is None:
        raise InputError(where, spec, 'a mesh to go with it: give "axes", such as {"data": 8}')
    parts = () if spec is None or all(part is None for part in spec) else tuple(spec)
    named = [name for part in parts for name in (part if isinstance(part, tuple) else (part,)) if name is not None]
    for name in named:
        if name not in mesh.axis_names:
            raise InputError(where, name, f"an axis of the mesh: {', '.join(map(str, mesh.axis_names))}")
    return NamedSharding(mesh, PartitionSpec(*parts))


def _with(leaf: jax.ShapeDtypeStruct, sharding: Sharding, where: str) -> jax.ShapeDtypeStruct:
    try:
        sharding.shard_shape(leaf.shape)
    except ValueError as error:
        detail = str(error).strip().splitlines()[0]
        raise InputError(where, f"{leaf.shape}", f"a shape this sharding splits evenly ({detail})") from error
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.weak_type)


def _with_default(leaf: jax.ShapeDtypeStruct, mesh: Mesh | None, devices: Sequence[Any]) -> jax.ShapeDtypeStruct:
    if leaf.sharding is not None:
        return leaf
    default: Sharding = SingleDeviceSharding(devices[0]) if mesh is None else NamedSharding(mesh, PartitionSpec())
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=default, weak_type=leaf.weak_type)
