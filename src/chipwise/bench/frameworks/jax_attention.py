"""Attention in JAX: cuDNN's fused kernel where it can, XLA's own otherwise; which one ran is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax
import numpy as np

from chipwise.bench.frameworks.interface import Case, Unsupported
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    array_dtype,
    case,
    checkable,
    compiled,
    float64,
    is_out_of_memory,
    normal,
    one_line,
    precision_name,
    relative_error,
    require_tf32,
    sets_for,
)
from chipwise.ops.point import Point
from chipwise.ops.work import WIDTH

Built = TypeVar("Built")
Implementation = Literal["cudnn", "xla"]


def with_attention(point: Point, context: Context, build: Callable[[Implementation], Built]) -> Built:
    """What `build` makes with the fastest attention that the device, the precision and the shapes allow."""
    if context.device.platform != "cuda" or point.dtype not in ("bf16", "fp16"):
        return build("xla")
    try:
        built = build("cudnn")
    except Exception as error:  # cuDNN refuses a shape, or is missing, with many types of errors
        if is_out_of_memory(error):
            raise
        why = one_line(error)
    else:
        context.note(f"{point.kind} ({point.dtype}): attention by cuDNN")
        return built
    context.note(f"{point.kind} ({point.dtype}): attention by XLA, not cuDNN: {why}")
    return build("xla")  # not while the error is handled: it would keep the first try's arrays


def attend(q: Array, k: Array, v: Array, *, causal: bool, implementation: Implementation) -> Array:
    """Attention of (b, s, heads, width) with grouped keys."""
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=implementation)


def build_sdpa(point: Point, context: Context) -> Case:
    """Attention forward, or forward and backward from a given gradient of the output."""
    if point.dtype not in ("fp32", "tf32", "bf16", "fp16"):
        raise Unsupported(f"attention in {point.dtype} isn't written for JAX; fp32, tf32, bf16 and fp16 are")
    require_tf32(point, context)
    b, h, hk, s, d = (point.sizes[name] for name in ("b", "h", "hk", "s", "d"))
    dtype, queries = array_dtype(point), (b, s, h, d)
    shapes = [queries, (b, s, hk, d), (b, s, hk, d)]
    if point.kind == "sdpa_fwdbwd":
        shapes.append(queries)  # the gradient of the output
    set_bytes = sum(int(np.prod(shape)) for shape in shapes) * WIDTH[point.dtype]
    sets = [
        tuple(normal(4 * i + j, shape, dtype) for j, shape in enumerate(shapes))
        for i in range(sets_for(set_bytes, context.device))
    ]
    program = with_attention(
        point,
        context,
        lambda implementation: compiled(
            _function(point, implementation), *sets[0], precision=precision_name(point.dtype), context=context
        ),
    )

    def check() -> float:
        results = program(*sets[0])
        outputs = results if isinstance(results, tuple) else (results,)
        expected = attention64(*(float64(x) for x in sets[0]), causal=point.causal)
        return max(relative_error(got, want) for got, want in zip(outputs, expected, strict=True))

    small = checkable(point, max(int(np.prod(queries)), b * h * s * s))
    return case(point, lambda i: program(*sets[i % len(sets)]), check if small else None)


def _function(point: Point, implementation: Implementation) -> Callable[..., Any]:
    def forward(q: Array, k: Array, v: Array) -> Array:
        return attend(q, k, v, causal=point.causal, implementation=implementation)

    def both(q: Array, k: Array, v: Array, gradient: Array) -> tuple[Array, ...]:
        out, backward = jax.vjp(forward, q, k, v)
        return (out, *backward(gradient))

    return both if point.kind == "sdpa_fwdbwd" else forward


def attention64(q: Any, k: Any, v: Any, gradient: Any = None, *, causal: bool) -> tuple[Any, ...]:
    """The output, and with a gradient of it those of q, k and v, by plain numpy in float64."""
    b, s, h, d = q.shape
    group = h // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(d)
    if causal:
        scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    out = np.einsum("bhqk,bkhd->bqhd", weights, v)
    if gradient is None:
        return (out,)
    of_weights = np.einsum("bqhd,bkhd->bhqk", gradient, v)
    of_scores = weights * (of_weights - (of_weights * weights).sum(axis=-1, keepdims=True)) / np.sqrt(d)

    def grouped(x: Any) -> Any:
        return x.reshape(b, s, h // group, group, d).sum(axis=3)

    return (
        out,
        np.einsum("bhqk,bkhd->bqhd", of_scores, k),
        grouped(np.einsum("bhqk,bqhd->bkhd", of_scores, q)),
        grouped(np.einsum("bhqk,bqhd->bkhd", weights, gradient)),
    )
