"""Weights of the serving programs kept in int8, with one scale for each output; computed in bfloat16."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

_NAMES = ("wq", "wk", "wv", "wo", "q_down", "q_up", "kv_down", "kv_up")
_PREFIXES = ("w_", "s_", "e_")


def _inputs(name: str) -> tuple[int, ...]:
    """Dimensions of a stacked weight that are summed over, () for what isn't quantized."""
    if name.endswith("_bias") or not (name in _NAMES or name.startswith(_PREFIXES)):
        return ()
    if name == "wo":
        return (1, 2)
    return (2,) if name.startswith("e_") else (1,)


def stored(shapes: list[Any], specs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes and partition specs with each matrix of the layers as int8 and its scales."""
    return (
        [[{n: _shape(n, s) for n, s in layer.items()} for layer in row] for row in shapes],
        [[{n: _spec(n, s) for n, s in layer.items()} for layer in row] for row in specs],
    )


def _shape(name: str, shape: jax.ShapeDtypeStruct) -> Any:
    inputs = _inputs(name)
    if not inputs:
        return shape
    scales = tuple(1 if i in inputs else size for i, size in enumerate(shape.shape))
    return {"int8": jax.ShapeDtypeStruct(shape.shape, jnp.int8), "scale": jax.ShapeDtypeStruct(scales, shape.dtype)}


def _spec(name: str, spec: PartitionSpec) -> Any:
    inputs = _inputs(name)
    if not inputs:
        return spec
    return {"int8": spec, "scale": PartitionSpec(*(None if i in inputs else axes for i, axes in enumerate(spec)))}


def restored(weights: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The weights of one layer in the arithmetic type."""
    return {
        name: w["int8"].astype(dtype) * w["scale"].astype(dtype) if isinstance(w, dict) else w
        for name, w in weights.items()
    }
