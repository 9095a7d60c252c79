"""Training step of a ResNet or ResNeXt: NHWC convolutions, batch norm, and momentum, data parallel.

Convolutions run in bfloat16 over float32 weights; batch norm takes its statistics in float32, over the images of one
device or, if asked, of all. Weights are repeated on every device and their gradients summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from chipwise.errors import Refusal
from chipwise.programs.jax.collectives import AXES, BATCH, Grid, summed
from chipwise.programs.jax.loss import cross_entropy
from chipwise.programs.jax.optimizer import STAND_INS, accumulated, updated
from chipwise.programs.jax.transformer import dtype_of, grid_of, recomputed
from chipwise.programs.program import RECOMPUTE, Execution, Program, Recompute
from chipwise.workload.model import Conv, Model, Train

MOMENTUM = 0.9  # of the running statistics (torchvision's batch norm)
EPSILON = 1e-5
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Convolutions one after another, and what the input passes to be added to their result (None: nothing)."""

    convs: tuple[Conv, ...]
    project: Conv | None


def blocks(model: Model) -> tuple[Conv, tuple[Block, ...]]:
    """The stem and the residual blocks behind the convolutions that `chipwise.workload.cnn` writes out.

    >>> from chipwise.workload.presets import preset
    >>> stem, body = blocks(preset("resnet-50"))
    >>> len(body), [c.kernel for c in body[0].convs], body[1].project
    (16, [1, 3, 1], None)
    """
    stem, *rest = model.convs
    stages: dict[str, dict[str, Conv]] = {}
    for conv in rest:
        stage, _, name = conv.name.partition(".")
        stages.setdefault(stage, {})[name] = conv
    out: list[Block] = []
    for stage, named in stages.items():
        project = named.pop("project", None)
        if "expand" in named:
            firsts = [named.get("first.reduce"), named.get("first.spatial"), named["expand"]]
            others = [named.get("reduce"), named.get("spatial"), named["expand"]]
            many = named["expand"].count
        else:
            firsts, others = [named.get("first"), named.get("spatial")], [named.get("spatial")] * 2
            many = (named["spatial"].count + 1) // 2 if "spatial" in named else 0
        first, other = (tuple(c for c in channels if c) for channels in (firsts, others))
        members = [Block(first, project), *(Block(other, None) for _ in range(many - 1))]
        if sum(len(b.convs) for b in members) != sum(c.count for c in named.values()) or not first:
            raise Refusal(
                f"the reference program builds ResNets; {model.name} has another {stage}",
                "give the model's own program instead",
            )
        out += members
    return stem, tuple(out)


def training_step(model: Model, train: Train, mesh: Mesh, execution: Execution, joined: bool = False) -> Program:
    """The step as a program: (state, batch) -> (state, loss); `joined` takes batch statistics over all devices."""
    grid = grid_of(mesh, dtype_of(train.precision), 1)
    if grid.tensor > 1:
        raise Refusal(
            f"the reference program of {model.name} splits the batch, not its channels: tensor({grid.tensor}) must be 1"
        )
    stem, body = blocks(model)
    dtype = dtype_of(train.state_precision)
    weights = _weights(model, stem, body, dtype)
    state = {"weights": weights, "moments": [weights] * train.optimizer_states, "running": _statistics(weights)}
    samples = execution.micro_batch * execution.accumulate * grid.batch
    batch = {
        "images": jax.ShapeDtypeStruct((samples, model.image, model.image, model.channels), jnp.bfloat16),
        "classes": jax.ShapeDtypeStruct((samples,), jnp.int32),
    }
    loss = _loss(stem, body, grid, execution.recompute, joined)

    def local_step(state: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
        differentiated = jax.value_and_grad(loss, has_aux=True)
        (value, statistics), grads = accumulated(differentiated, state["weights"], batch, execution.accumulate)
        grads = jax.tree.map(lambda g: summed(g, grid, BATCH), grads)
        statistics = jax.tree.map(lambda s: summed(s / grid.batch, grid, BATCH), statistics)
        running = jax.tree.map(lambda r, s: MOMENTUM * r + (1 - MOMENTUM) * s, state["running"], statistics)
        weights, moments = updated(state["weights"], state["moments"], grads)
        return {"weights": weights, "moments": moments, "running": running}, summed(value, grid, AXES)

    rows = jax.tree.map(lambda _: PartitionSpec(BATCH), batch)
    whole = jax.tree.map(lambda _: PartitionSpec(), state)
    step = jax.shard_map(
        local_step, mesh=mesh, in_specs=(whole, rows), out_specs=(whole, PartitionSpec()), check_vma=False
    )
    args = jax.tree.map(
        lambda s, p: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=NamedSharding(mesh, p)),
        (state, batch),
        (whole, rows),
    )
    notes = [
        f"the update of {train.optimizer} is compiled as {STAND_INS[train.optimizer]}"
        for name in STAND_INS
        if name == train.optimizer
    ]
    return Program(step, args, donate=(0,), mesh=mesh, notes=tuple(notes))


def _weights(model: Model, stem: Conv, body: tuple[Block, ...], dtype: str) -> Tree:
    return {
        "stem": _shapes(stem, dtype),
        "blocks": [_block_shapes(b, dtype) for b in body],
        "head": jax.ShapeDtypeStruct((model.convs[-1].c_out, model.classes), dtype),
        "head_bias": jax.ShapeDtypeStruct((model.classes,), dtype),
    }


def _shapes(conv: Conv, dtype: str) -> Tree:
    kernel = (conv.kernel, conv.kernel, conv.c_in // conv.groups, conv.c_out)
    return {
        "kernel": jax.ShapeDtypeStruct(kernel, dtype),
        "scale": jax.ShapeDtypeStruct((conv.c_out,), dtype),
        "offset": jax.ShapeDtypeStruct((conv.c_out,), dtype),
    }


def _block_shapes(block: Block, dtype: str) -> Tree:
    shapes: Tree = {"convs": [_shapes(conv, dtype) for conv in block.convs]}
    return shapes | ({"project": _shapes(block.project, dtype)} if block.project else {})


def _statistics(weights: Tree) -> Tree:
    """Running mean and variance of each batch norm."""
    if "scale" in weights:
        return {"mean": weights["scale"], "variance": weights["scale"]}
    return {
        name: [_statistics(item) for item in part] if isinstance(part, list) else _statistics(part)
        for name, part in weights.items()
        if not name.startswith("head")
    }


def _forward(
    stem: Conv, body: tuple[Block, ...], grid: Grid, recompute: Recompute, joined: bool
) -> Callable[[Tree, jax.Array, Tree | None], tuple[jax.Array, Tree]]:
    """Logits of images, and the statistics the batch norms saw; given running ones, they use those instead."""

    def normed(x: jax.Array, w: Tree, conv: Conv, running: Tree | None) -> tuple[jax.Array, Tree]:
        pad = (conv.kernel - 1) // 2
        x = jax.lax.conv_general_dilated(
            x,
            w["kernel"].astype(grid.dtype),
            (conv.stride,) * 2,
            ((pad, pad),) * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=conv.groups,
        )
        wide = x.astype(jnp.float32)
        if running is None:
            mean, square = wide.mean((0, 1, 2)), (wide * wide).mean((0, 1, 2))
            if joined:
                mean, square = (summed(s / grid.batch, grid, BATCH) for s in (mean, square))
            variance = square - mean * mean
        else:
            mean, variance = running["mean"], running["variance"]
        factor = jax.lax.rsqrt(variance + EPSILON) * w["scale"]
        return ((wide - mean) * factor + w["offset"]).astype(x.dtype), {"mean": mean, "variance": variance}

    def one(x: jax.Array, w: Tree, block: Block, running: Tree | None) -> tuple[jax.Array, Tree]:
        y, statistics = x, []
        for i, (conv, mine) in enumerate(zip(block.convs, w["convs"], strict=True)):
            y, stats = normed(jax.nn.relu(y) if i else y, mine, conv, running and running["convs"][i])
            statistics.append(stats)
        if block.project is None:
            return jax.nn.relu(x + y), {"convs": statistics}
        x, stats = normed(x, w["project"], block.project, running and running["project"])
        return jax.nn.relu(x + y), {"convs": statistics, "project": stats}

    def forward(weights: Tree, images: jax.Array, running: Tree | None) -> tuple[jax.Array, Tree]:
        x, stats = normed(images.astype(grid.dtype), weights["stem"], stem, running and running["stem"])
        x = jax.lax.reduce_window(
            jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
        )
        statistics = []
        for i, (block, mine) in enumerate(zip(body, weights["blocks"], strict=True)):
            past = running and running["blocks"][i]
            x, block_statistics = recomputed(lambda x, w, block=block, past=past: one(x, w, block, past), recompute)(
                x, mine
            )
            statistics.append(block_statistics)
        features = x.astype(jnp.float32).mean((1, 2)).astype(grid.dtype)
        logits = features @ weights["head"].astype(grid.dtype) + weights["head_bias"].astype(grid.dtype)
        return logits, {"stem": stats, "blocks": statistics}

    return forward


def _loss(
    stem: Conv, body: tuple[Block, ...], grid: Grid, recompute: Recompute, joined: bool
) -> Callable[[Tree, Tree], tuple[jax.Array, Tree]]:
    """This device's share of the mean loss, and the statistics its batch norms saw."""
    forward = _forward(stem, body, grid, recompute, joined)

    def loss(weights: Tree, batch: Tree) -> tuple[jax.Array, Tree]:
        logits, statistics = forward(weights, batch["images"], None)
        value = cross_entropy(logits[:, None], batch["classes"][:, None]).mean()
        return value / grid.batch, statistics

    return loss


def classify_step(model: Model, mesh: Mesh, images: int, precision: str) -> Program:
    """Inference on one device: (weights, running statistics, images) -> logits of the classes."""
    grid = grid_of(mesh, dtype_of(precision), 1)
    stem, body = blocks(model)
    weights = _weights(model, stem, body, grid.dtype)
    pictures = jax.ShapeDtypeStruct((images, model.image, model.image, model.channels), grid.dtype)
    forward = _forward(stem, body, grid, RECOMPUTE["none"], joined=False)

    def step(weights: Tree, running: Tree, images: jax.Array) -> jax.Array:
        return forward(weights, images, running)[0]

    return Program(step, (weights, _statistics(weights), pictures), mesh=mesh)
