"""Training step of a transformer (decoder, dense or mixture of experts; encoder; ViT), as good as people run it.

Explicit fully sharded data parallelism, tensor and expert parallelism in one `shard_map`: weights are cast before
they are gathered, the loss is taken in chunks so that no whole matrix of logits exists, attention is the splash
kernel, and recomputation keeps, drops or offloads tensors by name.

Gradients: without replication checks, the transpose of each collective makes `grad` the gradient of the sum of every
device's loss. Each device's is therefore divided by the devices of the whole mesh, tensor axis included, and the
gradient of a weight is summed over just the axes it isn't split over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from chipwise.errors import Refusal
from chipwise.ops.table import MASKED
from chipwise.programs.jax.attention import attention
from chipwise.programs.jax.collectives import (
    AXES,
    BATCH,
    Grid,
    gathered,
    own_part,
    split_sequence,
    summed,
    whole_sequence,
)
from chipwise.programs.jax.context import AXIS as CONTEXT
from chipwise.programs.jax.layers import block, norm
from chipwise.programs.jax.linear import adapters
from chipwise.programs.jax.loss import cross_entropy
from chipwise.programs.jax.low_precision import FORMATS
from chipwise.programs.jax.optimizer import STAND_INS, accumulated, updated
from chipwise.programs.jax.weights import Segment, Split, Weight, layer_weights, outer_weights, padded_vocab, segments
from chipwise.programs.program import Execution, Program, Recompute
from chipwise.workload.model import Model, Train

# Names of what the products of a layer give
DOTS = (
    "query_proj",
    "key_proj",
    "value_proj",
    "out_proj",
    "mlpwi_0",
    "mlpwi_1",
    "mlpwo",
    "moe_mlpwi_0",
    "moe_mlpwi_1",
    "moe_mlpwo",
)
LOGITS_BYTES = 512e6  # of one chunk of float32 logits on a device
Tree = dict[str, Any]


def training_step(model: Model, train: Train, mesh: Mesh, execution: Execution) -> Program:
    """The step as a program: (state, batch) -> (state, loss)."""
    state_dtype = dtype_of(train.state_precision)
    sequence = model.image_tokens or train.sequence
    grid = grid_of(mesh, dtype_of(train.precision), sequence)
    grid = replace(grid, low=train.precision if train.precision in FORMATS else "")
    parts = segments(model)
    whole = weights_tree(model, parts, sequence, grid)
    tree = adapters_tree(whole, train) if train.lora_rank else whole
    shapes, specs = _shaped(tree, state_dtype, grid)
    moments = train.optimizer_states
    state, state_specs = ({"weights": part, "moments": [part] * moments} for part in (shapes, specs))
    if train.lora_rank:  # the base as it is multiplied: it has no moments
        state["frozen"], state_specs["frozen"] = _shaped(whole, grid.dtype, grid)
    samples = execution.micro_batch * execution.accumulate * grid.batch
    batch = _batch(model, samples, sequence)
    rows = PartitionSpec(BATCH, CONTEXT) if grid.context > 1 else PartitionSpec(BATCH)
    batch_specs = jax.tree.map(lambda _: rows, batch)
    loss = _loss(model, grid, parts, sequence, execution)

    def local_step(state: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
        frozen = state.get("frozen")
        slopes = jax.value_and_grad(lambda weights, part: loss(beside(weights, frozen), part))
        value, grads = accumulated(slopes, state["weights"], batch, execution.accumulate)
        grads = jax.tree.map(lambda g, w: _reduced(g, w, grid), grads, tree)
        weights, moments = updated(state["weights"], state["moments"], grads)
        return state | {"weights": weights, "moments": moments}, summed(value, grid, (*AXES, CONTEXT))

    step = jax.shard_map(
        local_step,
        mesh=mesh,
        in_specs=(state_specs, batch_specs),
        out_specs=(state_specs, PartitionSpec()),
        check_vma=False,
    )
    args = jax.tree.map(
        lambda s, p: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=NamedSharding(mesh, p)),
        (state, batch),
        (state_specs, batch_specs),
    )
    return Program(step, args, donate=(0,), mesh=mesh, notes=left_out(model, train, grid))


def _shaped(tree: Tree, dtype: str, grid: Grid) -> tuple[Tree, Tree]:
    """Shapes and partition specs of weights."""
    return (
        jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, dtype), tree, is_leaf=is_weight),
        jax.tree.map(lambda w: spec_of(w.split, grid), tree, is_leaf=is_weight),
    )


def adapters_tree(tree: Tree, train: Train) -> Tree:
    """The adapters of every layer: all that is trained beside a frozen base."""
    return {"layers": [[adapters(w, train.lora_rank, train.lora_targets) for w in row] for row in tree["layers"]]}


def beside(weights: Tree, frozen: Tree | None = None) -> Tree:
    """What a step multiplies by: the weights that it trains, those of adapters beside the frozen ones."""
    if frozen is None:
        return weights
    rows = zip(frozen["layers"], weights["layers"], strict=True)
    return frozen | {"layers": [[base | own for base, own in zip(*row, strict=True)] for row in rows]}


def dtype_of(precision: str) -> str:
    """The type that arrays of a precision have: tf32 is a way to multiply float32.

    >>> dtype_of("bf16"), dtype_of("tf32")
    ('bfloat16', 'float32')
    """
    return {"fp32": "float32", "tf32": "float32", "fp16": "float16"}.get(precision, "bfloat16")


def grid_of(mesh: Mesh, dtype: str, sequence: int) -> Grid:
    """The mesh's axes; the residual stream is split along the sequence if that is possible."""
    sizes = {str(name): int(size) for name, size in zip(mesh.axis_names, mesh.devices.shape, strict=True)}
    data, fsdp, expert, tensor = (sizes[name] for name in AXES)
    context = sizes.get(CONTEXT, 1)
    return Grid(data, fsdp, expert, tensor, dtype, sequence // context % tensor == 0, context)


def left_out(model: Model, train: Train | None, grid: Grid) -> tuple[str, ...]:
    """What the program doesn't do as the model's authors do, in words."""
    notes = []
    if model.mtp_layers:
        notes.append("the multi-token-prediction layers are left out")
    if model.experts:
        notes.append(
            "experts take even shares of the tokens of a device"
            + ("; no balancing loss" if train else ", unless a step has very few")
        )
    if model.vocab and (rows := padded_vocab(model, grid.tensor)) != model.vocab:
        notes.append(f"the vocabulary of {model.vocab} is padded to {rows}, to be split {grid.tensor} ways")
    if train and not grid.spread:
        notes.append(
            f"the tokens of a sequence can't be split {grid.tensor} ways: norms and residuals are repeated "
            "on each device of the tensor axis"
        )
    if train and train.precision == "int8":
        notes.append("gradients are rounded to the nearest of 8 bits, where AQT draws")
    if train and train.lora_rank:
        layers = "the attention projections" if train.lora_targets == "attention" else "every linear layer"
        notes.append(
            f"adapters of rank {train.lora_rank} on {layers}, without dropout; the base is frozen in {grid.dtype}"
        )
    if train and train.optimizer in STAND_INS:
        notes.append(f"the update of {train.optimizer} is compiled as {STAND_INS[train.optimizer]}")
    return tuple(notes)


def is_weight(leaf: object) -> bool:
    """Whether a leaf of a tree is one weight."""
    return isinstance(leaf, Weight)


def weights_tree(model: Model, parts: Sequence[Segment], sequence: int, grid: Grid) -> Tree:
    """Every weight of the model; refuses a mesh whose axes don't divide them."""
    tree = {
        "outer": outer_weights(model, sequence, grid.tensor),
        "layers": [[layer_weights(model, kind, s.repeats, grid.tensor) for kind in s.kinds] for s in parts],
    }
    for path, weight in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_weight)[0]:
        for size, axes in zip(weight.shape, weight.split, strict=True):
            names = [a for a in ((axes,) if isinstance(axes, str) else axes or ()) if getattr(grid, a) > 1]
            if size % prod(getattr(grid, a) for a in names):
                raise Refusal(
                    f"{path[-1].key}: a dimension of {size} can't be split by "
                    + " * ".join(f"{a}({getattr(grid, a)})" for a in names)
                )
    return tree


def spec_of(split: Split, grid: Grid) -> PartitionSpec:
    """The axes that have more than one member, dimension by dimension."""

    def one(axes: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        names = tuple(a for a in ((axes,) if isinstance(axes, str) else axes or ()) if getattr(grid, a) > 1)
        return names if len(names) > 1 else names[0] if names else None

    return PartitionSpec(*(one(axes) for axes in split))


def _reduced(grad: jax.Array, weight: Weight, grid: Grid) -> jax.Array:
    """Gradients summed over the batch axes the weight isn't split over (a gather's transpose did the others)."""
    split = {a for axes in weight.split for a in ((axes,) if isinstance(axes, str) else axes or ())}
    over = [name for name in (*BATCH, CONTEXT) if name not in split]
    if "tensor" not in split:
        over.append("tensor")
    return summed(grad, grid, over)


def _batch(model: Model, samples: int, sequence: int) -> Tree:
    def numbers(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((samples, *shape), jnp.int32)

    if model.family == "vit":
        patches = (samples, sequence - 1, model.patch**2 * model.channels)
        return {"patches": jax.ShapeDtypeStruct(patches, jnp.bfloat16), "classes": numbers()}
    if model.family != "encoder":
        return {"tokens": numbers(sequence), "targets": numbers(sequence)}
    masked = ceil(sequence * MASKED)
    out = {"tokens": numbers(sequence), "masked": numbers(masked), "targets": numbers(masked)}
    return (
        out
        | ({"types": numbers(sequence)} if model.token_types else {})
        | ({"next": numbers()} if model.pooler else {})
    )


def _loss(
    model: Model, grid: Grid, parts: Sequence[Segment], sequence: int, execution: Execution
) -> Callable[[Tree, Tree], jax.Array]:
    """This device's share of the mean loss: the sum over all devices of the mesh is the loss of the batch."""
    states = _states(model, grid, parts, sequence, execution)

    def loss(weights: Tree, batch: Tree) -> jax.Array:
        outer, x = weights["outer"], states(weights, batch)
        if model.family == "vit":
            mean = cross_entropy(_class_scores(x, outer, grid)[:, None], batch["classes"][:, None]).mean()
        else:
            mean = _language_loss(x, outer, batch, model, grid, execution.chunked_loss)
        return mean / (grid.batch * grid.context * grid.tensor)

    return loss


def _states(
    model: Model, grid: Grid, parts: Sequence[Segment], sequence: int, execution: Execution
) -> Callable[[Tree, Tree], jax.Array]:
    """The residual stream after all layers and the last norm, whole along the sequence."""

    def run(x: jax.Array, weights: Sequence[Tree], segment: Segment) -> jax.Array:
        def body(x: jax.Array, w: Sequence[Tree]) -> tuple[jax.Array, None]:
            for kind, mine in zip(segment.kinds, w, strict=True):
                heads, width = model.heads // grid.tensor, head_dim(model)
                attend = attention(
                    execution.platform,
                    sequence,
                    heads,
                    width,
                    model.causal,
                    kind.window,
                    execution.block_size,
                    grid.context,
                )
                x = block(x, mine, model, grid, attend, kind.moe, uses_rotary(model))
            return x, None

        return jax.lax.scan(recomputed(body, execution.recompute, bool(grid.low)), x, weights)[0]

    def states(weights: Tree, batch: Tree) -> jax.Array:
        outer = weights["outer"]
        x = embedded(model, outer, batch, grid)
        for segment, mine in zip(parts, weights["layers"], strict=True):
            x = run(x, mine, segment)
        if model.final_norm:
            x = norm(x, outer, "norm_out", model.norm_params != 1)
        return whole_sequence(x, grid)

    return states


def _class_scores(x: jax.Array, outer: Tree, grid: Grid) -> jax.Array:
    """Logits of the classes, from the class token."""
    scores: jax.Array = x[:, 0] @ gathered(outer["head"], grid, 0) + outer["head_bias"].astype(x.dtype)
    return scores


def classify_step(model: Model, mesh: Mesh, images: int, precision: str, platform: str = "tpu") -> Program:
    """Inference of a ViT on one device: (weights, batch) -> logits of the classes."""
    sequence, parts = model.image_tokens, segments(model)
    grid = grid_of(mesh, dtype_of(precision), sequence)
    tree = weights_tree(model, parts, sequence, grid)
    weights = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, grid.dtype), tree, is_leaf=is_weight)
    states = _states(model, grid, parts, sequence, Execution(images, platform=platform))

    def step(weights: Tree, batch: Tree) -> jax.Array:
        return _class_scores(states(weights, batch), weights["outer"], grid)

    batch = {"patches": _batch(model, images, sequence)["patches"]}
    return Program(step, (weights, batch), mesh=mesh, notes=left_out(model, None, grid))


def head_dim(model: Model) -> int:
    """Width of a query of one head."""
    return model.latent.nope_dim + model.latent.rope_dim if model.latent else model.head_dim


def uses_rotary(model: Model) -> bool:
    """Whether positions are turned into the queries and keys."""
    return not model.learned_positions and model.family != "vit"


def recomputed(body: Callable[..., Any], recompute: Recompute, low: bool = False) -> Callable[..., Any]:
    """`body` with the wanted tensors kept for the backward pass; of products in 8 bits the results, not their sums."""
    policies = jax.checkpoint_policies
    if recompute.policy == "none":
        return body
    if recompute.policy == "dots" and low:
        policy = policies.save_only_these_names(*DOTS)
    elif recompute.policy == "dots":
        policy = policies.checkpoint_dots_with_no_batch_dims
    elif recompute.offload:
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(recompute.keep),
            names_which_can_be_offloaded=list(recompute.offload),
            offload_src="device",
            offload_dst="pinned_host",
        )
    else:
        policy = policies.save_only_these_names(*recompute.keep)
    return jax.checkpoint(body, policy=policy, prevent_cse=False)


def embedded(model: Model, outer: Tree, batch: Tree, grid: Grid) -> jax.Array:
    """Tokens or patches to the residual stream, split along the sequence over the tensor axis."""
    if model.family == "vit":
        x = batch["patches"].astype(grid.dtype) @ outer["patches"].astype(grid.dtype)
        x = x + outer["patches_bias"].astype(grid.dtype)
        first = jnp.broadcast_to(outer["class"].astype(grid.dtype), (x.shape[0], 1, x.shape[2]))
        return own_part(jnp.concatenate([first, x], 1) + outer["positions"].astype(grid.dtype), grid)
    x = looked_up(outer, batch["tokens"], grid)
    if model.learned_positions:
        x = x + own_part(gathered(outer["positions"], grid, 1)[: batch["tokens"].shape[1]], grid, 0)
    if model.token_types:
        x = x + gathered(outer["types"], grid, 1)[own_part(batch["types"], grid)]
    return norm(x, outer, "norm_in", model.norm_params != 1) if model.embedding_norm else x


def looked_up(outer: Tree, tokens: jax.Array, grid: Grid) -> jax.Array:
    """Rows of the embedding; where the vocabulary is split, each device looks up its own and they are summed."""
    table = gathered(outer["embed"], grid, 1)
    if grid.tensor == 1:
        return table[tokens]
    rows = table.shape[0]
    local = tokens - jax.lax.axis_index("tensor") * rows
    mine = (local >= 0) & (local < rows)
    return split_sequence(jnp.where(mine[..., None], table[jnp.clip(local, 0, rows - 1)], 0), grid)


def _language_loss(x: jax.Array, outer: Tree, batch: Tree, model: Model, grid: Grid, chunked: bool) -> jax.Array:
    """Mean over this device's predictions: the next token, or BERT's masked tokens and next sentence."""
    token_loss = _chunked_loss if chunked else _whole_loss
    if model.family != "encoder":
        return token_loss(x, outer, batch["targets"], model, grid)
    first = x[:, 0]
    x = jnp.take_along_axis(x, batch["masked"][..., None], 1)
    x = jax.nn.gelu(x @ gathered(outer["mlm"], grid, 0) + outer["mlm_bias"].astype(x.dtype))
    loss = token_loss(norm(x, outer, "norm_mlm", True), outer, batch["targets"], model, grid)
    if model.pooler:
        pooled = jnp.tanh(first @ gathered(outer["pooler"], grid, 0) + outer["pooler_bias"].astype(x.dtype))
        logits = pooled @ outer["next"].astype(x.dtype) + outer["next_bias"].astype(x.dtype)
        loss = loss + cross_entropy(logits[:, None], batch["next"][:, None]).mean()
    return loss


def logits_of(x: jax.Array, outer: Tree, model: Model, grid: Grid, head: jax.Array) -> jax.Array:
    """This device's columns of the output layer for [batch, sequence, width]; padding can't be predicted."""
    logits = jnp.einsum("bsd,dv->bsv", x, head)
    if "head_bias" in outer:
        logits = logits + outer["head_bias"].astype(logits.dtype)
    if head.shape[1] * grid.tensor == model.vocab:
        return logits
    first = jax.lax.axis_index("tensor") * head.shape[1]
    return jnp.where(first + jnp.arange(head.shape[1]) < model.vocab, logits, -1e9)


def output_layer(outer: Tree, model: Model, grid: Grid) -> jax.Array:
    """The matrix from the residual stream to this device's part of the vocabulary."""
    if not model.tied:
        return gathered(outer["head"], grid, 0)
    # gathered again (the barrier inside keeps it apart from the lookup's): else the table lies there through all layers
    return gathered(outer["embed"], grid, 1).T


def _chunked_loss(x: jax.Array, outer: Tree, targets: jax.Array, model: Model, grid: Grid) -> jax.Array:
    """Mean cross entropy over the vocabulary, a chunk of the sequence at a time; logits are never kept."""
    head = output_layer(outer, model, grid)
    batch, sequence, width = x.shape
    wanted = batch * sequence * head.shape[1] * 4 / LOGITS_BYTES
    chunks = next((n for n in range(1, sequence + 1) if sequence % n == 0 and n >= wanted), sequence)
    rows = x.reshape(batch, chunks, sequence // chunks, width).swapaxes(0, 1)
    wants = targets.reshape(batch, chunks, sequence // chunks).swapaxes(0, 1)

    @jax.checkpoint
    def one(total: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + cross_entropy(logits_of(part[0], outer, model, grid, head), part[1], grid.tensor).sum(), None

    total, _ = jax.lax.scan(one, jnp.zeros((), jnp.float32), (rows, wants))
    return total / (batch * sequence)


def _whole_loss(x: jax.Array, outer: Tree, targets: jax.Array, model: Model, grid: Grid) -> jax.Array:
    """Mean cross entropy over the vocabulary, the logits of all tokens kept for the backward pass."""
    logits = logits_of(x, outer, model, grid, output_layer(outer, model, grid))
    return cross_entropy(logits, targets, grid.tensor).mean()
