"""A vision transformer in plain JAX at 224 x 224: training by AdamW, and inference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from chipwise.bench.frameworks.interface import Case
from chipwise.bench.frameworks.jax_attention import Implementation, attend, with_attention
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    case,
    compiled,
    integers,
    model_dtype,
    normal,
    precision_name,
    relative_error,
    small_model,
    widened,
)
from chipwise.bench.frameworks.jax_optim import Reference, adamw_state, adamw_step, cross_entropy, seeded, threaded
from chipwise.ops.point import Point
from chipwise.ops.work import CLASSES, IMAGE, head_width, patch_side

NORM_EPSILON = 1e-6
BATCHES = 2  # of different images, in turn
Layer = dict[str, Array]
Tree = dict[str, Any]


def init_vit(sizes: Mapping[str, int], dtype: Any) -> Tree:
    """Random weights and biases; those of the layers stacked along their first axis."""
    layers, d, f = sizes["layers"], sizes["d"], sizes["f"]
    shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, f), "down": (f, d)}
    blocks = {name: seeded(f"block.{name}", (layers, *shape), dtype, 0.02) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        blocks[f"{name}.bias"] = seeded(f"block.{name}.bias", (layers, shape[1]), dtype, 0.02)
    for name in ("norm1", "norm2"):
        blocks[name] = seeded(f"block.{name}", (layers, d), dtype, 0.02, mean=1.0)
        blocks[f"{name}.bias"] = seeded(f"block.{name}.bias", (layers, d), dtype, 0.02)
    plain = {
        "patches": (3 * patch_side(sizes["s"]) ** 2, d),
        "patches.bias": (d,),
        "class": (d,),
        "positions": (sizes["s"], d),
        "norm.bias": (d,),
        "head": (d, CLASSES),
        "head.bias": (CLASSES,),
    }
    tree: Tree = {name: seeded(name, shape, dtype, 0.02) for name, shape in plain.items()}
    return tree | {"norm": seeded("norm", (d,), dtype, 0.02, mean=1.0), "blocks": blocks}


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    """Layer norm of the last axis, in fp32 inside."""
    wide = x.astype(jnp.float32)
    wide = wide - jnp.mean(wide, axis=-1, keepdims=True)
    wide = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + NORM_EPSILON)
    return (wide * weight.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)


def tokens_of(images: Array, side: int) -> Array:
    """Pixels of each patch in a row: (b, patches, 3 side^2)."""
    b, count = images.shape[0], IMAGE // side
    split = images.reshape(b, count, side, count, side, 3).swapaxes(2, 3)
    return split.reshape(b, count * count, side * side * 3)


def block(x: Array, w: Layer, width: int, implementation: Implementation) -> Array:
    """One layer, norms first."""
    y = layer_norm(x, w["norm1"], w["norm1.bias"])
    qkv = jnp.reshape(y @ w["qkv"] + w["qkv.bias"], (*x.shape[:2], 3, -1, width))
    out = attend(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], causal=False, implementation=implementation)
    x = x + out.reshape(x.shape) @ w["out"] + w["out.bias"]
    y = layer_norm(x, w["norm2"], w["norm2.bias"])
    return x + jax.nn.gelu(y @ w["up"] + w["up.bias"]) @ w["down"] + w["down.bias"]


def logits_of(
    w: Tree, images: Array, *, side: int, width: int, implementation: Implementation, remat: bool = False
) -> Array:
    """Class scores of images, from the class token."""
    x = tokens_of(images, side) @ w["patches"] + w["patches.bias"]
    first = jnp.broadcast_to(w["class"], (x.shape[0], 1, x.shape[2]))
    x = jnp.concatenate((first, x), axis=1) + w["positions"]
    layer = partial(block, width=width, implementation=implementation)
    run = jax.checkpoint(layer) if remat else layer
    x, _ = lax.scan(lambda y, one: (run(y, one), None), x, w["blocks"])
    return jnp.add(layer_norm(x[:, 0], w["norm"], w["norm.bias"]) @ w["head"], w["head.bias"])


def build_vit(point: Point, context: Context) -> Case:
    """A vision transformer on `b` images, a step of training or the scores alone."""
    dtype, b = model_dtype(point, context), point.sizes["b"]
    logits = partial(logits_of, side=patch_side(point.sizes["s"]), width=head_width(point.sizes), remat=point.remat)
    weights = init_vit(point.sizes, dtype)
    images = [normal(i, (b, IMAGE, IMAGE, 3), dtype) for i in range(BATCHES)]
    if point.kind == "vit_infer":
        return _build_infer(point, context, logits, weights, images)

    def loss(w: Tree, batch: Array, labels: Array, *, implementation: Implementation) -> Array:
        return cross_entropy(logits(w, batch, implementation=implementation), labels)

    batches = [(batch, integers(i, (b,), CLASSES)) for i, batch in enumerate(images)]
    reference = Reference(partial(loss, implementation="xla"))
    return with_attention(
        point,
        context,
        lambda implementation: threaded(
            point,
            context,
            adamw_step(partial(loss, implementation=implementation)),
            adamw_state(weights),
            batches,
            reference,
        ),
    )


def _build_infer(point: Point, context: Context, logits: Any, weights: Tree, images: list[Array]) -> Case:
    program = with_attention(
        point,
        context,
        lambda implementation: compiled(
            partial(logits, implementation=implementation),
            weights,
            images[0],
            precision=precision_name(point.dtype),
            context=context,
        ),
    )

    def check() -> float:
        precise = widened((weights, images[0]))
        expected = compiled(partial(logits, implementation="xla"), *precise, precision="highest")(*precise)
        return relative_error(program(weights, images[0]), expected)

    return case(point, lambda i: program(weights, images[i % BATCHES]), check if small_model(point) else None)
