"""Products of training in 8 bits: operands scaled by channel, rounded, multiplied, and scaled back; gradients too.

int8 is what AQT does by default (google/aqt `config_v3`, as MaxText's `quantization: int8` sets it, 2025-06): forward
and both backward products in int8, each operand scaled by its largest value along what is summed. fp8 is e4m3 forward
and e5m2 for gradients (arXiv 2209.05433), scaled likewise. Weights and moments keep their own precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from chipwise.programs.jax.collectives import Grid

# precision -> the types of values and of gradients, and of the sums
FORMATS: dict[str, tuple[Any, Any, Any]] = {
    "int8": (jnp.int8, jnp.int8, jnp.int32),
    "fp8": (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float32),
}
# The largest value of each: of the fp8 types by the Open Compute Project's OFP8 specification, 2023-06
TOPS: dict[Any, float] = {jnp.int8: 127.0, jnp.float8_e4m3fn: 448.0, jnp.float8_e5m2: 57344.0}


def product(spec: str, x: jax.Array, weight: jax.Array, grid: Grid) -> jax.Array:
    """`einsum` of activations and a whole weight, in the precision of products."""
    return _product(spec, grid.low, x, weight) if grid.low else jnp.einsum(spec, x, weight)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(spec: str, low: str, x: jax.Array, weight: jax.Array) -> jax.Array:
    value, _, total = FORMATS[low]
    return _multiplied(spec, x, weight, (value, value), total)


def _forward(spec: str, low: str, x: jax.Array, weight: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _product(spec, low, x, weight), (x, weight)


def _backward(spec: str, low: str, kept: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    value, of_gradients, total = FORMATS[low]
    left, right, out = letters_of(spec)
    x, weight = kept
    to_x = _multiplied(f"{out},{right}->{left}", grad, weight, (of_gradients, value), total)
    to_weight = _multiplied(f"{left},{out}->{right}", x, grad, (value, of_gradients), total)
    return to_x, to_weight


_product.defvjp(_forward, _backward)


def letters_of(spec: str) -> tuple[str, str, str]:
    """The letters of both operands and of the result."""
    operands, out = spec.split("->")
    left, right = operands.split(",")
    return left, right, out


def _multiplied(spec: str, a: jax.Array, b: jax.Array, formats: tuple[Any, Any], total: Any) -> jax.Array:
    left, right, out = letters_of(spec)
    (p, p_scale), (q, q_scale) = (
        _rounded(t, tuple(i for i, letter in enumerate(letters) if letter not in out), kind)
        for t, letters, kind in ((a, left, formats[0]), (b, right, formats[1]))
    )
    sums = jnp.einsum(spec, p, q, preferred_element_type=total).astype(jnp.float32)
    return (sums * _placed(p_scale, left, out) * _placed(q_scale, right, out)).astype(a.dtype)


def _rounded(x: jax.Array, summed: tuple[int, ...], kind: Any) -> tuple[jax.Array, jax.Array]:
    """Values in 8 bits and the scale of each channel: a channel of zeros is left alone."""
    wide = x.astype(jnp.float32)
    top = TOPS[kind]
    largest = jnp.abs(wide).max(summed, keepdims=True)
    scale = jnp.where(largest > 0, largest / top, 1.0)
    scaled = wide / scale
    return jnp.clip(jnp.round(scaled) if kind is jnp.int8 else scaled, -top, top).astype(kind), scale


def _placed(scale: jax.Array, letters: str, out: str) -> jax.Array:
    """Scales of an operand's channels along the dimensions that the product has."""
    sizes = {letter: size for letter, size in zip(letters, scale.shape, strict=True) if letter in out}
    channels = scale.reshape([sizes[letter] for letter in letters if letter in sizes])
    order = sorted(sizes, key=out.index)
    kept = [letter for letter in letters if letter in sizes]
    return channels.transpose([kept.index(letter) for letter in order]).reshape([sizes.get(c, 1) for c in out])
