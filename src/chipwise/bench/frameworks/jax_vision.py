"""ResNet-50 v1.5 in plain JAX at 224 x 224: training by SGD with momentum, and inference.

Images are NHWC, as TPUs and cuDNN's tensor cores want them. Convolutions are in the point's precision, batch norms and
their statistics in fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from chipwise.bench.frameworks.interface import Case, Unsupported
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
from chipwise.bench.frameworks.jax_optim import Reference, cross_entropy, seeded, threaded, zeros_like
from chipwise.ops.point import Point
from chipwise.ops.work import CLASSES, IMAGE

STAGES = (3, 4, 6, 3)
EXPANSION = 4
BATCHES = 2  # of different images, in turn
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 1e-4
NORM_EPSILON, NORM_MOMENTUM = 1e-5, 0.1
NORM_SLACK = 10.0  # on gradients: norms over small batches multiply what 53 layers round
Tree = dict[str, Array]
Normalise = Callable[[str, Array], Array]


def _convs() -> Iterator[tuple[str, int, int, int]]:
    """Name, kernel, channels in and out of every convolution."""
    yield "stem", 7, 3, 64
    channels = 64
    for stage, count in enumerate(STAGES):
        inner = 64 * 2**stage
        for block in range(count):
            name = f"{stage}.{block}"
            yield f"{name}.reduce", 1, channels, inner
            yield f"{name}.spatial", 3, inner, inner
            yield f"{name}.expand", 1, inner, inner * EXPANSION
            if block == 0:
                yield f"{name}.project", 1, channels, inner * EXPANSION
            channels = inner * EXPANSION


def init_resnet50(dtype: Any) -> tuple[Tree, Tree]:
    """Random weights, and random statistics of the batch norms near those of normalised activations."""
    weights: Tree = {}
    stats: Tree = {}
    for name, kernel, into, out in _convs():
        weights[name] = seeded(name, (kernel, kernel, into, out), dtype, (2 / (kernel * kernel * out)) ** 0.5)
        size = 0.2 if name.endswith("expand") else 1.0  # small residuals, so that their sum over blocks stays small
        weights[f"{name}.scale"] = seeded(f"{name}.scale", (out,), jnp.float32, 0.1 * size, mean=size)
        weights[f"{name}.bias"] = seeded(f"{name}.bias", (out,), jnp.float32, 0.1)
        stats[f"{name}.mean"] = seeded(f"{name}.mean", (out,), jnp.float32, 0.1)
        stats[f"{name}.var"] = seeded(f"{name}.var", (out,), jnp.float32, 0.05, mean=1.0)
    features = 64 * 2 ** (len(STAGES) - 1) * EXPANSION
    weights["head"] = seeded("head", (features, CLASSES), dtype, 0.01)
    weights["head.bias"] = seeded("head.bias", (CLASSES,), dtype, 0.01)
    return weights, stats


def conv(x: Array, weight: Array, stride: int = 1) -> Array:
    """A convolution padded so that a stride of 1 keeps the size."""
    pad = weight.shape[0] // 2
    return lax.conv_general_dilated(
        x, weight, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def bottleneck(x: Array, weights: Tree, norm: Normalise, name: str, stride: int) -> Array:
    """One block; the stride is on the 3 x 3 convolution, which is what v1.5 means."""
    y = jax.nn.relu(norm(f"{name}.reduce", conv(x, weights[f"{name}.reduce"])))
    y = jax.nn.relu(norm(f"{name}.spatial", conv(y, weights[f"{name}.spatial"], stride)))
    y = norm(f"{name}.expand", conv(y, weights[f"{name}.expand"]))
    if f"{name}.project" in weights:
        x = norm(f"{name}.project", conv(x, weights[f"{name}.project"], stride))
    return jax.nn.relu(x + y)


def logits_of(weights: Tree, images: Array, norm: Normalise) -> Array:
    """Class scores of images, with batch norms done by `norm`."""
    x = jax.nn.relu(norm("stem", conv(images, weights["stem"], 2)))
    pad = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pad)
    for stage, count in enumerate(STAGES):
        for block in range(count):
            x = bottleneck(x, weights, norm, f"{stage}.{block}", 2 if stage and not block else 1)
    return jnp.mean(x, axis=(1, 2), dtype=jnp.float32).astype(x.dtype) @ weights["head"] + weights["head.bias"]


def _affine(x: Array, weights: Tree, name: str, mean: Array, var: Array) -> Array:
    scale = weights[f"{name}.scale"] * lax.rsqrt(var + NORM_EPSILON)
    return ((x.astype(jnp.float32) - mean) * scale + weights[f"{name}.bias"]).astype(x.dtype)


def infer(weights: Tree, stats: Tree, images: Array) -> Array:
    """Class scores with the kept statistics."""
    return logits_of(
        weights, images, lambda name, x: _affine(x, weights, name, stats[f"{name}.mean"], stats[f"{name}.var"])
    )


def loss_of(weights: Tree, images: Array, labels: Array) -> tuple[Array, Tree]:
    """Loss with the statistics of this batch, and those statistics."""
    seen: Tree = {}

    def norm(name: str, x: Array) -> Array:
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, axis=(0, 1, 2))
        var = jnp.mean(jnp.square(wide), axis=(0, 1, 2)) - jnp.square(mean)
        seen[f"{name}.mean"], seen[f"{name}.var"] = mean, jnp.maximum(var, 0)
        return _affine(x, weights, name, mean, seen[f"{name}.var"])

    return cross_entropy(logits_of(weights, images, norm), labels), seen


def sgd_step(state: dict[str, Tree], images: Array, labels: Array) -> tuple[dict[str, Tree], Array]:
    """One step of training: weights, momentum and statistics, and the loss."""
    (loss, seen), gradients = jax.value_and_grad(loss_of, has_aux=True)(state["weights"], images, labels)

    def momentum(old: Array, gradient: Array, weight: Array) -> Array:
        wide = gradient.astype(jnp.float32) + WEIGHT_DECAY * weight.astype(jnp.float32)
        return (MOMENTUM * old.astype(jnp.float32) + wide).astype(old.dtype)

    def moved(weight: Array, velocity: Array) -> Array:
        return (weight.astype(jnp.float32) - LEARNING_RATE * velocity.astype(jnp.float32)).astype(weight.dtype)

    velocity = jax.tree.map(momentum, state["momentum"], gradients, state["weights"])
    stats = jax.tree.map(lambda old, new: (1 - NORM_MOMENTUM) * old + NORM_MOMENTUM * new, state["stats"], seen)
    return {"weights": jax.tree.map(moved, state["weights"], velocity), "momentum": velocity, "stats": stats}, loss


def build_resnet50(point: Point, context: Context) -> Case:
    """ResNet-50 on `b` images, a step of training or the scores alone."""
    dtype, b = model_dtype(point, context), point.sizes["b"]
    if point.remat:
        raise Unsupported("ResNet-50 is measured without recomputation")
    weights, stats = init_resnet50(dtype)
    images = [normal(i, (b, IMAGE, IMAGE, 3), dtype) for i in range(BATCHES)]
    if point.kind == "resnet50_infer":
        return _build_infer(point, context, weights, stats, images)
    batches = [(batch, integers(i, (b,), CLASSES)) for i, batch in enumerate(images)]
    state = {"weights": weights, "momentum": zeros_like(weights), "stats": stats}
    reference = Reference(
        lambda w, x, y: loss_of(w, x, y)[0],
        "momentum",
        lambda w, g: jax.tree.map(lambda weight, gradient: gradient + WEIGHT_DECAY * weight, w, g),
        NORM_SLACK,
    )
    return threaded(point, context, sgd_step, state, batches, reference)


def _build_infer(point: Point, context: Context, weights: Tree, stats: Tree, images: list[Array]) -> Case:
    program = compiled(infer, weights, stats, images[0], precision=precision_name(point.dtype), context=context)

    def check() -> float:
        precise = widened((weights, stats, images[0]))
        expected = compiled(infer, *precise, precision="highest")(*precise)
        return relative_error(program(weights, stats, images[0]), expected)

    return case(point, lambda i: program(weights, stats, images[i % BATCHES]), check if small_model(point) else None)
