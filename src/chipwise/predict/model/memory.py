"""Memory of one chip by tensor class: exact bookkeeping, many layouts at once. Bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chipwise.ops.operations import OpTable
from chipwise.ops.table import MASKED
from chipwise.predict.model.components import ExecutionTarget
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.model.stages import Stages, stages
from chipwise.predict.model.training import DEQUANTIZED, TrainCosts

Array = NDArray[np.float64]

SQUARES = 2.5  # unfused attention keeps scores, probabilities and a one-byte dropout mask (Korthikanti et al. 2022)
NARROW = 0.5  # of the inputs of a layer's last product, the part that `selective` recomputes from its activation
BLOCK_INPUTS = 0.25  # of a CNN's maps, those between residual blocks of four: kept by `full` recomputation

WIDE = ("mlp_in", "shared_in", "expert_in", "single_in", "state_in")  # products whose results an activation reads
CHUNK = 0.75e9  # logits of a chunk of the sequence, 4 bytes each, and their gradient in 2 (programs/jax)
WHOLE = 3.0  # inputs of a layer made whole over the tensor axis: forward's, made again, and their gradient

# Kept free for the runtime, communication buffers and fragmentation, which the bookkeeping does not count.
# An assumption, not a measurement.
RESERVE = 0.06


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes per chip by class; `total` is their sum."""

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    head: Array  # logits and their gradient
    gathered: Array  # layers whose sharded weights are being gathered, and what is dequantized
    total: Array

    def at(self, i: int) -> dict[str, float]:
        """Bytes by class of the i-th layout."""
        return {f.name: float(getattr(self, f.name)[i]) for f in fields(self)}


def saved_bytes(
    ops: OpTable, act: float, flash: bool, low: float | None = None, xla: bool = False
) -> tuple[float, float, float]:
    """Bytes a sequence leaves for the backward pass, all layers: (all, without cheap ones, layer inputs).

    Every product keeps its input; norms, activations and attention keep theirs. `selective` recomputation
    drops what streams and attention keep; `full` keeps the input of each layer. XLA's `selective` keeps the
    results of products that the backward pass needs (queries, keys, values, the wide ones of the MLP) and the input
    of each layer (jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims, as XLA allocates it).
    """
    layer = [m for m in ops.matmuls if m.place == "layer" and not m.name.endswith("scores")]  # fused: not kept
    low = act if low is None else min(low, act)
    ratio = low / act  # low-precision products keep their inputs quantized
    inputs = ratio * sum(m.count * m.rows * m.k for m in layer if m.name not in ("q_up", "kv_up"))
    narrow = ratio * sum(m.count * m.rows * m.k for m in layer if m.name.endswith("_out"))
    # attention keeps q, k, v and the row sums; unfused attention keeps the square matrices as well
    core = sum(c.count * c.queries * (c.heads * c.qk_dim + c.kv_heads * (c.qk_dim + c.v_dim)) for c in ops.attention)
    square = (
        0.0 if flash else sum(c.count * c.queries * min(c.span, c.queries) * c.heads * SQUARES for c in ops.attention)
    )
    d, n = ops.model.d_model, ops.model.layers
    wide = sum(m.count * m.rows * m.n for m in layer if m.name.endswith(WIDE))
    cheap = 2 * n * ops.rows * d + wide  # inputs of the norms, input of the activation
    if ops.model.convs:
        cheap = sum(m.count * m.rows * m.n * m.blocks for m in layer)
        return act * 2 * cheap, act * cheap, act * cheap * BLOCK_INPUTS
    everything = act * (inputs + core + square + cheap)
    some = core + wide + n * ops.rows * d if xla else inputs - NARROW * narrow + core
    return everything, act * some, act * n * ops.rows * d


def _fullest_stage(ops: OpTable, of: Stages, pp: Array) -> tuple[Array, Array]:
    """Parameters (dense, of experts) of the pipeline stage that holds most.

    The first stage has the embedding, the last the output layer (or a copy of the embedding).
    """
    p, layers = ops.params, float(max(ops.model.layers, 1))
    first, last = p.embedding + p.positions, p.head or p.embedding
    inside = p.total - p.experts - first - p.head
    each = inside / layers
    fullest = np.maximum(each * of.middle, np.maximum(each * of.first + first, each * of.last + last))
    return np.where(pp == 1, float(p.total - p.experts), fullest), p.experts * of.middle / layers


def _kept_layers(of: Stages, pp: Array, micro_batches: Array) -> Array:
    """Layers times micro-batches of the stage that keeps most: each keeps one for itself and every stage behind it."""
    second = np.maximum(pp - 1, 1.0)
    return np.maximum(of.first * np.minimum(micro_batches, pp), of.middle * np.minimum(micro_batches, second))


def memory(
    ops: OpTable, target: ExecutionTarget, layouts: Layouts, global_batch: float, costs: TrainCosts
) -> MemoryUse:
    """Bytes per chip of every layout."""
    num, traits, devices = target.numerics, target.traits, target.devices
    tp, cp, ep, mbs = layouts.tp, layouts.cp, layouts.ep, layouts.micro_batch
    pp, dp, shard = layouts.pp, layouts.dp, layouts.shard
    p = ops.params
    on_stages = stages(ops, pp)
    dense, experts = _fullest_stage(ops, on_stages, pp)
    dense, experts = dense / tp, experts / (tp * ep)
    group = np.maximum(shard * cp, 1.0)
    e_group = np.maximum(group / ep, 1.0)

    def kept(sharded: NDArray[np.bool_]) -> Array:
        return np.where(sharded, dense / group + experts / e_group, dense + experts)

    weights = kept(layouts.zero == 3) * (costs.base.weight_bytes if costs.base else num.weight_bytes)
    if num.weight_bytes >= 4.0 and not costs.frozen:
        master = 0.0
    else:
        master = costs.state_bytes if costs.state_bytes > num.weight_bytes else 0.0
    gradients = kept(layouts.zero >= 2) * num.grad_bytes * costs.trained
    optimizer = kept(layouts.zero >= 1) * (master + costs.states * costs.state_bytes) * costs.trained
    full, some, inputs = saved_bytes(ops, num.act_bytes, traits.flash, num.low_bytes, traits.xla)
    per = mbs / (cp * tp)
    # layer inputs stay whole without sequence parallelism
    whole = mbs / cp if not traits.sequence_parallel else per
    n_mb = global_batch / (dp * mbs)
    # interleaving adds a share of a micro-batch
    more = 1 + np.where(layouts.vpp > 1, (pp - 1) / (pp * layouts.vpp), 0.0)
    held = _kept_layers(on_stages, pp, n_mb) * more / max(ops.model.layers, 1)
    one_layer = (full / max(ops.model.layers, 1)) * per
    kept_acts = np.select(
        [layouts.recompute == 0, layouts.recompute == 1, layouts.recompute == 2],
        [full * per, some * per, inputs * whole],
        0.0,
    )
    scale = kept_acts * held
    working = np.where(layouts.recompute >= 2, 2 * one_layer, one_layer)
    activations = scale + working
    scored = ops.rows * (MASKED if ops.model.family == "encoder" else 1.0)
    logits = ops.model.vocab * scored * mbs / (cp * tp) * (traits.score_bytes or num.act_bytes + 4.0)
    layer_weights = p.per_layer_dense / tp + p.per_layer_experts / (tp * ep)
    sharded = (layouts.zero == 3) & (group > 1)
    gather_bytes = costs.base.weight_bytes if costs.base else num.gather_bytes
    gathered = np.where(sharded, 2 * layer_weights * gather_bytes * devices, 0.0)
    if costs.base:  # one matrix at a time is made whole in 16 bits
        gathered = gathered + DEQUANTIZED * max(m.n * m.k for m in ops.matmuls if m.place == "layer") / tp
    if traits.xla:  # the loss is taken in chunks; its weights, and a tensor-parallel layer's input, are made whole
        whole_head = 2 * (p.head or p.embedding) / tp * num.gather_bytes * devices
        logits = np.minimum(logits, CHUNK * devices) + np.where(sharded, whole_head, 0.0)
        stream = ops.rows * ops.model.d_model * num.act_bytes * mbs / cp
        activations = activations + np.where(tp > 1, WHOLE * stream * (1 - 1 / tp), 0.0)
    total = weights + gradients + optimizer + activations + logits + gathered
    return MemoryUse(weights, gradients, optimizer, activations, logits, gathered, total)
