"""What a training step is made of, before any coefficient: seconds of each kind of work for many layouts.

Kernel shapes depend on (micro-batch, tp, cp, ep) alone, so they are timed once per distinct key and gathered.
Times are per micro-batch and pipeline stage unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chipwise.ops.operations import Matmul, OpTable
from chipwise.predict.model.convolution import FUSED, Fusion, Shape, convolution_shapes, plain_shapes, traffic
from chipwise.predict.model.fabric import (
    Wires,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
    send_seconds,
)
from chipwise.predict.model.kernels import ComputeSpec, attention_seconds, matmul_seconds
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.model.precision import Numerics
from chipwise.predict.model.shapes import Attention, Products
from chipwise.predict.model.stages import stages
from chipwise.predict.model.training import TrainCosts

Array = NDArray[np.float64]
# Counts of passes and launches. They set the shape of a step; its size is fitted (calibrate/priors.py).
SCORE_PASSES = 4.5  # unfused attention: mask and softmax read and write, dropout reads, writes and keeps its mask
# The same where scaling, mask, softmax and dropout are a kernel each. Beside 16 bits the last two run in fp32, between
# casts (docs.pytorch.org/docs/stable/amp.html, ops that autocast to float32; 2026-11-19): 37 bytes a score, else 33
SCORE_PASSES_APART = {2.0: 37 / 2, 4.0: 33 / 4}  # by bytes of a value
STREAM_BACK = 1.5  # kernels of an element-wise operation's backward pass for one forward
STEP_LAUNCHES = 10.0  # multi-tensor kernels of an optimizer step and its gradient norm
LAST = ("mlp_out", "expert_out", "shared_out")
PROJECTIONS = ("qkv", "latent_down", "q_up", "kv_up")  # kept on the host by `offload`, with the layer inputs


@dataclass(frozen=True, slots=True)
class Traits:
    """What a software stack does, as far as the arithmetic of a step depends on it."""

    flash: bool = True  # fused attention
    sequence_parallel: bool = True  # norms and residuals are split with tensor parallelism
    compiled: bool = False  # a compiler leaves out of recomputation what the backward pass does not need
    xla: bool = False  # one XLA program a step: it keeps results of products, and takes the loss in chunks
    fused_softmax: bool = True  # of unfused attention: one kernel from scores to what is multiplied with the values
    score_bytes: float = 0.0  # held for each score of the loss; 0: as computed, and once in fp32
    fusion: Fusion = Fusion.SEPARATE  # of what lies around convolutions


@dataclass(frozen=True, slots=True)
class Components:
    """Raw seconds and counts, one entry per layout."""

    micro_batches: Array
    pp: Array
    vpp: Array
    matmul_f: Array
    matmul_b: Array
    expert_f: Array
    expert_b: Array
    attention_f: Array
    attention_b: Array
    stream_f: Array
    stream_b: Array
    launches_f: Array
    launches_b: Array
    head_matmul: Array  # forward and backward of the output layer
    head_stream: Array
    redo: Array  # 1 where whole layers are recomputed
    redo_matmul: Array
    redo_expert: Array
    redo_some: Array  # 1 where attention and element-wise work is done again
    tensor_f: Array  # collectives
    expert_x: Array  # both directions, forward; the same again backward
    context_f: Array
    pipe: Array
    shard_f: Array
    shard_b: Array
    reduce: Array  # per step
    replicate: Array  # per step, over the outer replicas
    offload: Array
    accumulate: Array
    optimizer: Array  # per step
    launches_step: Array
    dequantize: Array  # 16-bit weights made of a frozen base in 4, each pass

    def take(self, rows: NDArray[np.intp]) -> Components:
        """Some of the entries."""
        return Components(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class ExecutionTarget:
    """Chip, wires and numbers to compute with: where and in what precision the work runs."""

    low: ComputeSpec  # the precision of the quantized products
    high: ComputeSpec  # everything else
    wires: Wires
    numerics: Numerics
    traits: Traits
    host_link: float
    devices: int = 1  # of a chip: each holds its own copy of what is gathered


@dataclass(frozen=True, slots=True)
class _PerKey:
    mm_f: Array
    mm_b: Array
    mm_again: Array  # forward products done again when a layer is recomputed
    mm_fewer: Array  # the same with the attention projections kept
    ex_f: Array
    ex_b: Array
    ex_again: Array
    at_f: Array
    at_b: Array
    st_f: Array
    st_b: Array
    head_mm: Array
    head_st: Array
    tp_f: Array
    ep_x: Array
    cp_f: Array
    boundary: Array  # bytes of the activations between two layers, per chip
    saved: Array  # bytes offloaded per layer and chip


def _key_table(ops: OpTable, target: ExecutionTarget, layouts: Layouts, frozen: bool) -> _PerKey:
    mbs, tp, cp, ep = layouts.key_micro_batch, layouts.key_tp, layouts.key_cp, layouts.key_ep
    zero = np.zeros_like(mbs)
    mm_f, mm_b, ex_f, ex_b, head_mm = zero, zero, zero, zero, zero
    mm_again, mm_fewer, ex_again = zero, zero, zero
    quant = zero
    num = target.numerics
    for op, forward, (f, d, w) in _products(ops, target, layouts, frozen):
        if op.place == "head":
            head_mm = head_mm + op.count * (f + d + w)
        else:
            # nothing in the backward pass needs the output of a layer's last product
            again = 0.0 if target.traits.compiled and op.name in LAST else op.count * f
            if op.groups > 1:
                ex_f, ex_b, ex_again = ex_f + op.count * f, ex_b + op.count * (d + w), ex_again + again
            else:
                mm_f, mm_b, mm_again = mm_f + op.count * f, mm_b + op.count * (d + w), mm_again + again
                mm_fewer = mm_fewer + (0.0 if op.name in PROJECTIONS else again)
        if _is_low(op, num):  # operands are read at two bytes and written at one, twice (also transposed)
            values = forward.m * (forward.k * forward.share + forward.n)
            quant = quant + op.count * forward.batch * values * (2 + 2 * num.low_bytes)
    at_f, at_b, core_stream = _attention_table(ops, target, mbs, tp, cp)
    bandwidth = target.high.bandwidth * target.high.coefficients.memory
    moved = _stream_bytes(ops, target, mbs, tp, cp)
    st_f = (moved.forward + core_stream + 0.5 * quant) / bandwidth
    st_b = (moved.backward + 2 * core_stream + 0.5 * quant) / bandwidth
    mm_f, mm_b = mm_f + moved.products_f / bandwidth, mm_b + moved.products_b / bandwidth
    act = mbs * ops.rows / cp * ops.model.d_model * num.act_bytes
    one = np.ones_like(mbs)
    layers = ops.model.layers
    per_layer = (1 if ops.model.parallel_block else 2) * layers
    tp_f = per_layer * reduce_seconds(target.wires, tp, one, act) if ops.model.heads else zero
    ep_x, cp_f = zero, zero
    e = ops.model.experts
    if e is not None:
        sent = act * e.per_token * (num.dispatch_bytes / num.act_bytes)
        back = act * e.per_token
        top = float(e.per_token)
        ep_x = ops.expert_layers * (
            exchange_seconds(target.wires, ep, tp, sent, top) + exchange_seconds(target.wires, ep, tp, back, top)
        )
    if ops.attention:
        core = ops.attention[0]
        kv = mbs * ops.rows * core.kv_heads / tp * (core.qk_dim + core.v_dim) * num.act_bytes
        if ops.model.latent:
            kv = mbs * ops.rows * (ops.model.latent.kv_rank + ops.model.latent.rope_dim) * num.act_bytes
        cp_f = layers * gather_seconds(target.wires, cp, tp, kv)
    return _PerKey(
        mm_f,
        mm_b,
        mm_again,
        mm_fewer,
        ex_f,
        ex_b,
        ex_again,
        at_f,
        at_b,
        st_f,
        st_b,
        head_mm,
        3 * moved.head / bandwidth,
        tp_f,
        ep_x,
        cp_f,
        act / tp,
        act / tp * (1 + _kept_width(ops) / ops.model.d_model),
    )


@dataclass(frozen=True, slots=True)
class _StreamBytes:
    """Bytes of memory-bound work: of the layers, of the output layer forward, and of what products do beside theirs."""

    forward: Array
    backward: Array
    head: Array
    products_f: Array
    products_b: Array


def _stream_bytes(ops: OpTable, target: ExecutionTarget, mbs: Array, tp: Array, cp: Array) -> _StreamBytes:
    traits, act_bytes = target.traits, target.numerics.act_bytes
    forward = backward = head = products_f = products_b = np.zeros_like(mbs)
    for st in ops.streams:
        sp = tp if st.split and (traits.sequence_parallel or st.name not in ("norms", "residuals")) else 1.0
        rows = st.count * (act_bytes / 2) * mbs * st.rows / cp / sp
        there, back = traffic(st, traits.fusion)
        if st.place == "head":
            head = head + rows * there
        elif st.kind in FUSED and traits.fusion is Fusion.PRODUCTS:
            products_f, products_b = products_f + rows * there, products_b + rows * back
        else:
            forward, backward = forward + rows * there, backward + rows * back
    return _StreamBytes(forward, backward, head, products_f, products_b)


def _is_low(op: Matmul, num: Numerics) -> bool:
    """Whether a product runs on operands below two bytes."""
    return op.quantized and num.low_bytes < 2


def _products(
    ops: OpTable, target: ExecutionTarget, layouts: Layouts, frozen: bool
) -> list[tuple[Matmul, Shape, list[Array]]]:
    """Every product with its shape forward, and its seconds forward, for inputs and for weights.

    All products of one spec are timed in one call.
    """
    mbs, num = layouts.key_micro_batch, target.numerics
    zero = np.zeros_like(mbs)
    shapes: list[tuple[Shape, Shape, Shape]] = []
    queues: dict[ComputeSpec, list[tuple[int, int]]] = {}  # spec -> (product, pass)
    for i, op in enumerate(ops.matmuls):
        shapes.append(_shapes(op, target, layouts))
        forward = target.low if op.quantized else target.high
        back = target.high if _is_low(op, num) and num.back_high else forward
        queues.setdefault(forward, []).append((i, 0))
        passes = [1] * (op.window is None or not op.window.of_data) + [2] * (not frozen)
        queues.setdefault(back, []).extend((i, which) for which in passes)
    times = [[zero, zero, zero] for _ in ops.matmuls]
    for spec, queue in queues.items():
        chosen = [shapes[i][which] for i, which in queue]
        m, n, k, batches = (np.stack([getattr(shape, name) for shape in chosen]) for name in ("m", "n", "k", "batch"))
        width = np.array([[num.low_bytes if _is_low(ops.matmuls[i], num) else num.act_bytes] for i, _ in queue])
        share = np.array([[shape.share] for shape in chosen])
        out = np.array([[num.grad_bytes if which == 2 else num.act_bytes] for _, which in queue])
        seconds_of = matmul_seconds(spec, Products(m, n, k, batches, width * share, width), out)
        for (i, which), seconds in zip(queue, seconds_of, strict=True):
            times[i][which] = seconds
    return [(op, passes[0], seconds) for op, passes, seconds in zip(ops.matmuls, shapes, times, strict=True)]


def _shapes(op: Matmul, target: ExecutionTarget, layouts: Layouts) -> tuple[Shape, Shape, Shape]:
    """The products of an operation of each key: forward, for its input's gradient, for its weights'."""
    mbs, tp, ep = layouts.key_micro_batch, layouts.key_tp, layouts.key_ep
    zero = np.zeros_like(mbs)
    rows = mbs * op.rows / (1.0 if op.per_sequence else layouts.key_cp)
    if op.window is not None:
        return convolution_shapes(op, rows, target.high.mxu > 0)
    n = op.n / tp if op.split == "n" else op.n + zero
    k = op.k / tp if op.split == "k" else op.k + zero
    batch = 1.0 + zero
    if op.groups > 1:
        batch = np.maximum(op.groups / ep, 1.0)
        rows = rows * ep / op.groups
    return plain_shapes(batch, rows, n, k)


def _kept_width(ops: OpTable) -> float:
    """Elements a token leaves in its attention projections, per layer."""
    return sum(m.n for m in ops.matmuls if m.name in PROJECTIONS)


def _attention_table(
    ops: OpTable, target: ExecutionTarget, mbs: Array, tp: Array, cp: Array
) -> tuple[Array, Array, Array]:
    zero = np.zeros_like(mbs)
    f, b, stream = zero, zero, zero
    for core in ops.attention:
        heads = core.heads / tp
        kv = np.maximum(core.kv_heads / tp, 1.0)
        queries = core.queries / cp
        if target.traits.flash:
            shape = Attention(mbs, heads, kv, core.qk_dim, core.v_dim, queries, core.visible + zero)
            f = f + core.count * attention_seconds(target.high, shape)
            b = b + core.count * attention_seconds(target.high, shape, backward=True)
        else:  # two batched products forward, four backward, and the square matrices through memory
            apart = SCORE_PASSES_APART[target.numerics.act_bytes]
            passes = SCORE_PASSES if target.traits.fused_softmax else apart
            span = min(core.span, core.queries) + zero
            act, units = target.numerics.act_bytes, mbs * heads
            one = matmul_seconds(target.high, Products(queries, span, core.qk_dim + zero, units, act, act), act)
            two = matmul_seconds(target.high, Products(queries, core.v_dim + zero, span, units, act, act), act)
            f = f + core.count * (one + two)
            b = b + core.count * 2 * (one + two)
            stream = stream + core.count * mbs * heads * queries * span * act * passes
    return f, b, stream


def components(
    ops: OpTable, target: ExecutionTarget, layouts: Layouts, global_batch: float, costs: TrainCosts
) -> Components:
    """Raw times of one step for every layout."""
    t = _key_table(ops, target, layouts, costs.frozen)
    key, trained = layouts.key, costs.trained
    tp, cp, ep = layouts.tp, layouts.cp, layouts.ep
    pp, dp, shard, vpp = layouts.pp, layouts.dp, layouts.shard, layouts.vpp
    layers, num, wires = float(ops.model.layers), target.numerics, target.wires
    slowest = stages(ops, pp)
    inv, head_share = slowest.slow_layers, slowest.slow_head
    dense, experts = _stage_params(ops, tp, ep, pp)
    z3 = (layouts.zero == 3) & (shard * cp > 1)
    z12 = ((layouts.zero == 1) | (layouts.zero == 2)) & (shard * cp > 1)
    group = shard * cp
    e_group = np.maximum(group / ep, 1.0)
    # the data axis lies outside cp; with the pipeline inside it, outside that as well
    stride = np.where(layouts.pipe_inner, tp * pp, tp)
    e_stride = stride * np.minimum(ep, group)
    # layer by layer; weights gathered and gradients scattered travel alike, so both are timed in one call
    calls = np.maximum(layers / pp, 1.0)
    gather_bytes = costs.base.weight_bytes if costs.base else num.gather_bytes
    widths = np.array([gather_bytes, num.reduce_bytes * trained]).reshape(2, *(1,) * np.ndim(group))
    gather, scatter = calls * gather_seconds(wires, group, stride, dense * widths / calls)
    if ops.model.experts is not None:
        more = calls * gather_seconds(wires, e_group, e_stride, experts * widths / calls)
        gather, scatter = gather + more[0], scatter + more[1]
    rep = dp / shard
    rep_stride = stride * group
    owned = (dense / group + experts / (e_group)) * num.reduce_bytes * trained
    whole = (dense + experts) * num.reduce_bytes * trained
    share = np.where(layouts.zero > 0, owned, whole)
    plain = layouts.zero == 0
    flat = reduce_seconds(wires, dp * cp, stride, whole)
    replicate = np.where(plain, 0.0, reduce_seconds(wires, rep, rep_stride, share))
    # ZeRO 2 keeps no whole gradient, so it reduces every micro-batch
    z2 = layouts.zero == 2
    reduce = np.where(plain, flat, np.where(z12, np.where(z2, gather, scatter + gather), 0.0))
    local = np.where(layouts.zero > 0, dense / group + experts / e_group, dense + experts) * trained
    stream = target.high.bandwidth * target.high.coefficients.memory
    pipe_stride = np.where(layouts.pipe_inner, tp * cp, tp * cp * dp)
    pipe = np.where(pp > 1, 2 * vpp * send_seconds(wires, pipe_stride, t.boundary[key]), 0.0)
    full, some = layouts.recompute == 2, layouts.recompute == 1
    off = layouts.recompute == 3
    kernels = _launches(ops, target)
    return Components(
        micro_batches=global_batch / (dp * layouts.micro_batch),
        pp=pp,
        vpp=vpp,
        matmul_f=t.mm_f[key] * inv,
        matmul_b=t.mm_b[key] * inv,
        expert_f=t.ex_f[key] * inv,
        expert_b=t.ex_b[key] * inv,
        attention_f=t.at_f[key] * inv,
        attention_b=t.at_b[key] * inv,
        stream_f=t.st_f[key] * inv,
        stream_b=t.st_b[key] * inv,
        launches_f=kernels[0] * inv,
        launches_b=kernels[1] * inv,
        head_matmul=t.head_mm[key] * head_share,
        head_stream=t.head_st[key] * head_share,
        redo=(full | off).astype(float),
        redo_matmul=np.where(full, t.mm_again[key], np.where(off, t.mm_fewer[key], 0.0)) * inv,
        redo_expert=np.where(full | off, t.ex_again[key], 0.0) * inv,
        redo_some=(some | full | off).astype(float),
        tensor_f=t.tp_f[key] * inv,
        expert_x=t.ep_x[key] * inv,
        context_f=t.cp_f[key] * inv,
        pipe=pipe,
        shard_f=np.where(z3, gather, 0.0),
        shard_b=np.where(z3, gather + scatter, np.where(z12 & z2, scatter, 0.0)),
        reduce=reduce,
        replicate=replicate,
        offload=np.where(off, 2 * layers * inv * t.saved[key] / target.host_link, 0.0),
        accumulate=(dense + experts) * trained * (2 * num.reduce_bytes) / stream,
        optimizer=local * costs.optimizer_bytes / stream,
        launches_step=np.full_like(dp, kernels[2]),
        dequantize=_dequantized_bytes(costs, tp, ep) * inv / stream,
    )


def _dequantized_bytes(costs: TrainCosts, tp: Array, ep: Array) -> Array:
    """Bytes that a chip moves to make 16-bit weights of a base in 4 bits, once for all layers."""
    if costs.base is None:
        return np.zeros_like(tp)
    base = costs.base
    return np.asarray(base.traffic * ((base.linear - base.experts) / tp + base.experts / (tp * ep)))


def _stage_params(ops: OpTable, tp: Array, ep: Array, pp: Array) -> tuple[Array, Array]:
    p = ops.params
    return (p.total - p.experts) / (tp * pp), p.experts / (tp * ep * pp)


def _launches(ops: OpTable, target: ExecutionTarget) -> tuple[float, float, float]:
    """Kernel launches of the layers forward and backward (whole model), and of the optimizer."""
    mm = sum(m.count for m in ops.matmuls if m.place == "layer")
    at = sum(a.count for a in ops.attention) * (1 if target.traits.flash else 5)
    st = sum(s.count * s.kernels for s in ops.streams if s.place == "layer")
    return mm + at + st, 2 * mm + 2 * at + STREAM_BACK * st, STEP_LAUNCHES
