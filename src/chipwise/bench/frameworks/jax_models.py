"""Steps of models in JAX: training, prefill, decode and inference by the programs that `compiled` compiles.

What is measured is what is predicted, but for four choices. Weights and optimizer states are in the point's precision,
which is what a point's work counts. Attention is cuDNN's on NVIDIA GPUs where it can. Logits of training are kept
rather than computed again, since a point's FLOPs don't count them twice. Decoding has its layers unrolled, each with
arrays of its own: slices of a stack are copied before each product on GPUs, which doubles the traffic it is bound by.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from chipwise.bench.frameworks.interface import GRADIENT_SLACK, Case, Unsupported
from chipwise.bench.frameworks.jax_attention import Implementation, with_attention
from chipwise.bench.frameworks.jax_common import (
    Array,
    Context,
    case,
    compiled,
    float64,
    integers,
    model_dtype,
    normal,
    precision_name,
    relative_error,
    small_model,
    widened,
)
from chipwise.ops.point import Point
from chipwise.ops.work import CLASSES, IMAGE, head_width, patch_side
from chipwise.programs.jax import resnet, transformer
from chipwise.programs.jax.collectives import AXES
from chipwise.programs.jax.serve import Serving, serving_step
from chipwise.programs.program import RECOMPUTE, Execution, Program
from chipwise.workload.build import build_model
from chipwise.workload.model import Model, Train

BATCHES = 4  # of different inputs, in turn
NORM_SLACK = 10.0  # on gradients of ResNets: norms over small batches multiply what 53 layers round
RESNET50 = {"family": "cnn", "blocks": [3, 4, 6, 3], "image": IMAGE, "classes": CLASSES}
LAST = "['convs'][2]"  # of a block's convolutions


def model_of(point: Point) -> Model:
    """The model whose step a point is."""
    if point.kind.startswith("resnet50"):
        return build_model(RESNET50)
    sizes = point.sizes
    head_width(sizes)  # refuses heads that don't divide the width
    named = {"layers": sizes["layers"], "d_model": sizes["d"], "heads": sizes["h"], "d_ff": sizes["f"]}
    if point.kind.startswith("vit"):
        return build_model(
            {"family": "vit", **named, "image": IMAGE, "patch": patch_side(sizes["s"]), "classes": CLASSES}
        )
    return build_model({"family": "decoder", **named, "kv_heads": sizes["hk"], "vocab": sizes["vocab"]})


def training_program(point: Point, mesh: Mesh, precision: str, platform: str) -> Program:
    """One step of training: AdamW for transformers, momentum for ResNet-50."""
    model, b = model_of(point), point.sizes["b"]
    execution = Execution(b, RECOMPUTE["full" if point.remat else "none"], platform=platform, chunked_loss=False)
    step, optimizer = (resnet.training_step, "sgd") if model.family == "cnn" else (transformer.training_step, "adamw")
    train = Train(b, point.sizes.get("s", 1), precision=precision, state_precision=precision, optimizer=optimizer)
    return step(model, train, mesh, execution)


def inference_program(point: Point, mesh: Mesh, precision: str, platform: str) -> Program:
    """Prefill, one decoded token a sequence, or the classes of images."""
    model, b = model_of(point), point.sizes["b"]
    if model.family == "cnn":
        return resnet.classify_step(model, mesh, b, precision)
    if model.family == "vit":
        return transformer.classify_step(model, mesh, b, precision, platform)
    decoding = point.kind == "decode"
    serving = Serving(model, mesh, b, point.sizes["s"], precision, platform, unrolled=decoding)
    return serving_step(serving, point.kind)


def initial(shapes: Any, top: int) -> Any:
    """Random arrays; each depends on its name alone. Whole numbers lie below `top`."""

    def one(path: Any, shape: Any) -> Array:
        name = jax.tree_util.keystr(path)
        seed, (scale, mean) = zlib.crc32(name.encode()), _spread(name, shape.shape)
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return integers(seed, shape.shape, top, dtype=shape.dtype)
        return normal(seed, shape.shape, shape.dtype, scale, mean)

    return jax.tree_util.tree_map_with_path(one, shapes)


def _spread(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Standard deviation and mean of an array, so that activations stay near 1."""
    last = name.rpartition("['")[2].rstrip("']")
    if last == "kernel":
        return (2 / (shape[0] * shape[1] * shape[3])) ** 0.5, 0.0
    if last == "scale":  # small residuals, so that their sum over blocks stays small
        return (0.02, 0.2) if LAST in name else (0.1, 1.0)
    if last in ("offset", "mean"):
        return 0.1, 0.0
    if last == "variance":
        return 0.05, 1.0
    return 0.02, 1.0 if last.startswith("norm") and not last.endswith("bias") else 0.0


def build_training(point: Point, context: Context) -> Case:
    """A step of training, its state donated to each call and given back by it; its output is the loss.

    On small models the first step of the very program that is timed is held against the same in fp32: what the
    gradients make of the first moments, since the loss of random weights says little.
    """
    model_dtype(point, context)
    mesh, cnn = _mesh(context), point.kind.startswith("resnet50")
    if point.remat and cnn:
        raise Unsupported("ResNet-50 is measured without recomputation")
    shapes, batch_shapes = training_program(point, mesh, point.dtype, "").args
    state = {name: zeros(part) for name, part in shapes.items()} | {"weights": initial(shapes["weights"], 1)}
    if cnn:
        state["running"] = widened(initial(shapes["running"], 1))  # statistics are fp32, whatever the weights are
    batches = [initial({f"{i}": batch_shapes}, _top(point))[f"{i}"] for i in range(BATCHES)]
    kept = copied(state) if small_model(point) else None  # a step consumes the originals

    def program_of(precision: str, platform: str, held: Any, batch: Any, to: Context | None) -> Callable[..., Any]:
        step = training_program(point, mesh, precision, platform).fn
        return compiled(step, held, batch, donate=(0,), precision=precision_name(precision), context=to)

    program = with_attention(
        point, context, lambda fused: program_of(point.dtype, _platform(fused, context), state, batches[0], context)
    )
    held = [state]

    def call(i: int) -> object:
        held[0], loss = program(held[0], batches[i % BATCHES])
        return loss

    def check() -> float:
        precise = widened(kept), widened(batches[0])
        expected, _ = program_of("fp32", "", *precise, None)(*precise)
        after, _ = program(copied(kept), batches[0])
        return relative_error(*(in_a_row(stepped["moments"][0]) for stepped in (after, expected)))

    slack = NORM_SLACK if cnn else GRADIENT_SLACK
    return replace(case(point, call, check if kept is not None else None), slack=slack)


def build_inference(point: Point, context: Context) -> Case:
    """Logits of whole sequences, of one token after a donated cache, or of images."""
    model_dtype(point, context)
    if point.remat:
        raise Unsupported("inference has nothing to recompute")
    mesh, decoding = _mesh(context), point.kind == "decode"
    shapes = inference_program(point, mesh, point.dtype, "").args
    inputs = 2 if decoding or point.kind.startswith("resnet50") else 1  # where the batch stands among the arguments
    fixed = initial(shapes[:inputs], 1)
    batches = [initial({f"{i}": shapes[inputs]}, _top(point))[f"{i}"] for i in range(BATCHES)]
    more = (jnp.int32(point.sizes["s"] - 1),) if decoding else ()  # the position: the cache is full but for it

    def program_of(precision: str, platform: str, args: Any, to: Context | None) -> Callable[..., Any]:
        step = inference_program(point, mesh, precision, platform)
        return compiled(step.fn, *args, donate=step.donate, precision=precision_name(precision), context=to)

    first = (*fixed, batches[0], *more)
    program = with_attention(
        point, context, lambda fused: program_of(point.dtype, _platform(fused, context), first, context)
    )
    held = list(fixed)

    def call(i: int) -> object:
        out = program(*held, batches[i % BATCHES], *more)
        if not decoding:
            return out
        logits, held[1] = out
        return logits

    def check() -> float:
        args = (*held, batches[0], *more)
        precise = widened(args)
        expected = program_of("fp32", "", precise, None)(*precise)
        result = program(*(copied(args) if decoding else args))
        return relative_error(*(pair[0] if isinstance(pair, tuple) else pair for pair in (result, expected)))

    return case(point, call, check if small_model(point) else None)


def _mesh(context: Context) -> Mesh:
    """The measured device as a mesh of the programs' axes."""
    return Mesh(np.array(context.local[:1]).reshape((1,) * len(AXES)), AXES)


def _platform(fused: Implementation, context: Context) -> str:
    """Whose attention kernel a program takes: splash on TPUs, cuDNN's where it was asked for."""
    return "cudnn" if fused == "cudnn" else context.device.platform


def _top(point: Point) -> int:
    return point.sizes.get("vocab", CLASSES)


def zeros(shapes: Any) -> Any:
    """Zeros in the shape of a tree, made by one program rather than one for each shape."""
    return jax.jit(lambda: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes))()


def copied(tree: Any) -> Any:
    """Copies of a tree's arrays, made by one program."""
    return jax.jit(lambda arrays: jax.tree.map(jnp.copy, arrays))(tree)


def in_a_row(tree: Any) -> Any:
    """All numbers of a tree, in float64."""
    return np.concatenate([float64(leaf).ravel() for leaf in jax.tree.leaves(tree)])
