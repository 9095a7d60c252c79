"""Kernels in JAX: products, streams, norms, rows of a table, the AdamW update. Attention is in `jax_attention`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from chipwise.bench.frameworks.interface import Case, Unsupported
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    array_dtype,
    case,
    checkable,
    compiled,
    float64,
    integers,
    normal,
    relative_error,
    require_tf32,
    sets_for,
)
from chipwise.ops.point import Point
from chipwise.ops.work import WIDTH
from chipwise.programs.jax.optimizer import adamw
from chipwise.programs.optimizers import AdamW

EPSILON = 1e-5
ADAMW = AdamW(3e-4)
_CORRECTIONS = ADAMW.corrections(100.0)  # of a step late enough to be like any other
Reference = Callable[..., Any]


def rotated(
    point: Point,
    context: Context,
    function: Callable[..., Array],
    sets: Sequence[tuple[Array, ...]],
    reference: Reference,
) -> Case:
    """A case that goes through its sets of inputs in turn and is checked on the first."""
    program = compiled(function, *sets[0], context=context)

    def call(i: int) -> object:
        return program(*sets[i % len(sets)])

    def check() -> float:
        return relative_error(program(*sets[0]), reference(*(float64(x) for x in sets[0])))

    elements = jax.eval_shape(function, *sets[0]).size
    return case(point, call, check if checkable(point, elements) else None)


def build_gemm(point: Point, context: Context) -> Case:
    """A product of (m x k) and (k x n); in fp8 and int8 the second is stored as (n x k), as their units want it."""
    m, n, k = point.sizes["m"], point.sizes["n"], point.sizes["k"]
    require_tf32(point, context)
    dtype = fp8_dtype(context) if point.dtype == "fp8" else array_dtype(point)
    transposed = point.dtype in ("fp8", "int8")
    count = sets_for((m * k + k * n) * WIDTH[point.dtype], context.device)
    sets = [
        (normal(2 * i, (m, k), dtype), normal(2 * i + 1, (n, k) if transposed else (k, n), dtype, k**-0.5))
        for i in range(count)
    ]

    def reference(a: Any, b: Any) -> Any:
        return a @ (b.T if transposed else b)

    return rotated(point, context, product(point.dtype), sets, reference)


def product(dtype: str) -> Callable[[Array, Array], Array]:
    """The function that multiplies in a precision."""
    result = {"int8": jnp.int32, "fp8": jnp.bfloat16, "fp16": jnp.float16, "bf16": jnp.bfloat16}.get(dtype, jnp.float32)
    precision: Any = {"fp32": lax.Precision.HIGHEST, "tf32": lax.DotAlgorithmPreset.TF32_TF32_F32}.get(dtype)
    contracted = ((1,), (1,)) if dtype in ("fp8", "int8") else ((1,), (0,))

    def multiply(a: Array, b: Array) -> Array:
        return lax.dot_general(a, b, (contracted, ((), ())), precision=precision, preferred_element_type=result)

    return multiply


def fp8_dtype(context: Context) -> Any:
    """The 8-bit floating point that the device's matrix units read; `Unsupported` where they read none."""
    device, capability = context.device, context.capability
    if device.platform == "cuda":
        if tuple(int(part) for part in capability.split(".") if part.isdigit()) < (8, 9):
            raise Unsupported(f"fp8 needs compute capability 8.9 or later; {device.name} has {capability or 'none'}")
        return jnp.float8_e4m3fn
    if device.platform == "rocm" and capability.startswith(("gfx94", "gfx95", "gfx12")):
        return jnp.float8_e4m3fnuz if capability.startswith("gfx94") else jnp.float8_e4m3fn
    if device.platform == "tpu" and "TPU7" in device.name:  # Ironwood; earlier ones widen fp8 first
        return jnp.float8_e4m3fn
    raise Unsupported(f"{device.name} has no fp8 matrix units")


def build_stream(point: Point, context: Context) -> Case:
    """A copy, or the sum of two arrays, of `bytes` each."""
    elements = point.sizes["bytes"] // WIDTH[point.dtype]
    if elements < 1:
        raise Unsupported(f"{point.sizes['bytes']} bytes hold no element of {point.dtype}")
    dtype, operands = array_dtype(point), 1 if point.kind == "copy" else 2
    count = sets_for(operands * point.sizes["bytes"], context.device)
    sets = [tuple(normal(operands * i + j, (elements,), dtype) for j in range(operands)) for i in range(count)]
    if point.kind == "copy":
        return rotated(point, context, jnp.copy, sets, lambda x: x)
    if point.dtype == "int8":
        raise Unsupported("the sum of int8 overflows")
    return rotated(point, context, jnp.add, sets, lambda x, y: x + y)


def rms_norm(x: Array, weight: Array) -> Array:
    """Root-mean-square norm of the last axis, in fp32 inside."""
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + EPSILON)
    return (wide * scale * weight.astype(jnp.float32)).astype(x.dtype)


def softmax(x: Array) -> Array:
    """Softmax of the last axis, in fp32 inside."""
    return jax.nn.softmax(x.astype(jnp.float32), axis=-1).astype(x.dtype)


def build_norm(point: Point, context: Context) -> Case:
    """RMSNorm or softmax over rows."""
    m, n = point.sizes["m"], point.sizes["n"]
    dtype = _floating(point)
    count = sets_for(m * n * WIDTH[point.dtype], context.device)
    rows = [normal(i, (m, n), dtype) for i in range(count)]
    if point.kind == "rmsnorm":
        weight = normal(count, (n,), dtype, 0.1, mean=1.0)
        return rotated(point, context, rms_norm, [(x, weight) for x in rows], _rms_norm64)
    return rotated(point, context, softmax, [(x,) for x in rows], _softmax64)


def _rms_norm64(x: Any, weight: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * weight


def _softmax64(x: Any) -> Any:
    exponent = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponent / exponent.sum(axis=-1, keepdims=True)


def _floating(point: Point) -> Any:
    if point.dtype not in ("fp32", "bf16", "fp16"):
        raise Unsupported(f"{point.kind} is a vector operation: fp32, bf16 or fp16, not {point.dtype}")
    return array_dtype(point)


def build_gather(point: Point, context: Context) -> Case:
    """Rows of a table, `m` of `n`, each `k` wide, drawn at random."""
    m, n, k = point.sizes["m"], point.sizes["n"], point.sizes["k"]
    dtype = array_dtype(point)
    tables = [normal(i, (n, k), dtype) for i in range(sets_for(n * k * WIDTH[point.dtype], context.device))]
    drawn = [integers(i, (m,), n) for i in range(max(8, len(tables)))]
    sets = [(tables[i % len(tables)], rows) for i, rows in enumerate(drawn)]

    def rows_of(table: Array, rows: Array) -> Array:
        return table.at[rows].get(mode="promise_in_bounds")

    return rotated(point, context, rows_of, sets, lambda table, rows: table[rows.astype(np.int64)])


def build_adamw(point: Point, context: Context) -> Case:
    """The AdamW update of `count` parameters; weights and moments are donated and thread from call to call."""
    count, dtype = point.sizes["count"], _floating(point)
    sets = sets_for(4 * count * WIDTH[point.dtype], context.device)
    gradients = [normal(4 * i, (count,), dtype, 0.01) for i in range(sets)]
    states: list[tuple[Array, ...]] = [
        (
            normal(4 * i + 1, (count,), dtype, 0.02),
            normal(4 * i + 2, (count,), dtype, 0.01),
            jnp.square(normal(4 * i + 3, (count,), dtype, 0.01)),
        )
        for i in range(sets)
    ]

    def update(weight: Array, mean: Array, square: Array, gradient: Array) -> tuple[Array, ...]:
        return adamw(ADAMW, weight, gradient, (mean, square), _CORRECTIONS)

    program = compiled(update, *states[0], gradients[0], donate=(0, 1, 2), context=context)

    def call(i: int) -> object:
        slot = i % sets
        states[slot] = program(*states[slot], gradients[slot])
        return states[slot]

    def check() -> float:
        expected = _adamw64(*(float64(x) for x in (*states[0], gradients[0])))
        result = program(*(jnp.copy(x) for x in states[0]), gradients[0])
        return max(relative_error(got, want) for got, want in zip(result, expected, strict=True))

    return case(point, call, check if checkable(point, count) else None)


def _adamw64(w: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    m, v = ADAMW.first(m, g), ADAMW.second(v, g)
    return ADAMW.moved(w, ADAMW.direction(m, v, _CORRECTIONS)), m, v
