"""What an iteration of a replica is made of: seconds by cause, before any stack's coefficients. Arrays.

Products, experts, streams and collectives depend on how many tokens an iteration holds; attention on the contexts
they read. Shapes come from `ops`, kernels and wires from `predict`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Accelerators, Chip, load
from chipwise.catalog.calibration import Calibration
from chipwise.io.brief import brief
from chipwise.ops.operations import Matmul, StreamKind
from chipwise.ops.table import token_table
from chipwise.predict.model.fabric import Wires, exchange_seconds, gather_seconds, reduce_seconds, send_seconds
from chipwise.predict.model.kernels import ComputeSpec, head_factor, matmul_seconds, stream_seconds
from chipwise.predict.model.precision import peak_of
from chipwise.predict.model.shapes import Products
from chipwise.predict.site import compute_spec, slice_for, wires
from chipwise.serving.formats import Format, Formats, formats
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.split import Split
from chipwise.workload.families.recurrent import state_bytes
from chipwise.workload.model import Model

Array = NDArray[np.float64]

# A replica's own all-reduce writes to every peer at once: seconds of start, by the tables of TensorRT-LLM 1.3
# and vLLM 0.24 on NVLink (ai-dynamo/aiconfigurator 0.12, collectives of up to 128 KB, 2026-08)
ONE_SHOT_S = 4.5e-6
SCORE_PASSES = 4.5  # times unfused attention in fp32 moves its scores: masking and softmax read and write
SCORED = 256.0  # sequences whose next token an iteration scores, at most, as far as time is concerned
SKEW = 0.5  # routing isn't even: the r-th most liked of a layer's experts is chosen in proportion to r^-0.5. Assumed.


@brief
@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of an iteration on the chips of one replica; arrays over the tokens in it."""

    tokens: Array
    products: Array  # of the layers, with the element-wise work around them
    experts: Array
    head: Array
    collectives: Array  # with the sends between pipeline stages
    layers: float
    moe_layers: float
    latent_layers: float
    linear_layers: float
    context_s: float  # decode attention, for each earlier token read
    window_s: float  # decode attention of layers with a window, for each sequence
    pair_s: float  # prompt attention, for each pair of tokens
    window_pair_s: float  # prompt attention of layers with a window, for each new token


def parts(
    spec: ReplicaSpec, calibration: Calibration, tokens: Array, old_kernels: bool = False, prompt: bool = False
) -> Parts:
    """The parts of iterations with these numbers of tokens. `old_kernels`: the cache is read for every query head.

    `prompt`: of an encoder-decoder the pass of prompts through its encoder, else that of answers through its decoder.

    A context that is shorter than a window on average does not fill it.

    A pipeline of pp stages holds pp batches at once, each of a pp-th of the tokens, so that an iteration takes as long
    as all layers take for one of them.
    """
    model, chip, split, typical = spec.model, spec.chip, spec.split, spec.typical
    fmt = formats(chip, model, spec.precision, spec.kv_precision)
    links = wires(slice_around(chip, split.chips), calibration) if split.chips > 1 else None
    batch = np.maximum(np.ceil(tokens / split.pp), 1.0)
    rows = np.maximum(np.ceil(batch / split.dp), 1.0)  # of one attention group
    specs = {f.arithmetic: _compute_spec(chip, f.arithmetic, calibration) for f in (fmt.base, fmt.dense, fmt.experts)}
    high = specs[fmt.base.arithmetic]
    ops, layers = token_table(model, prompt), model.read_layers if prompt else model.written_layers
    products, experts, head = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    for op in ops.matmuls:
        if op.groups > 1:
            experts = experts + _experts(op, batch, split, fmt.experts, specs[fmt.experts.arithmetic])
        elif op.place == "head":
            n = op.n / split.tp if op.split == "n" else op.n
            f = fmt.base
            scored = Products(np.minimum(rows, SCORED), _one(n), _one(op.k), 1.0, f.in_bytes, f.weight_bytes)
            head = head + matmul_seconds(high, scored, fmt.act_bytes)
        else:
            products = products + _product(op, rows, split, fmt, specs)
    for s in ops.streams:
        moved = s.rows * rows * s.bytes_per_row * s.count * fmt.act_bytes / 2
        if s.place == "layer" and s.kind is not StreamKind.DROPOUT:
            products = products + stream_seconds(high, moved / (split.tp if s.split else 1))
    if model.patch:  # an image is one token here, with the attention of all its patches
        products = products + rows * model.image_tokens**2 * _pair_rate(model, split, high) * model.layers
    kept = float(model.window) if model.mixer == "linear" else min(float(model.window), typical)
    wires_s = _collectives(model, layers, split, rows, batch, fmt, links) + _sends(model, split, rows, fmt, links)
    apart = 0 if model.mixer == "window" else model.windowed_layers
    return Parts(
        tokens,
        products,
        experts,
        head,
        wires_s,
        float(layers),
        float(model.moe_layers),
        float(model.layers if model.latent else 0),
        float(apart),
        context_seconds(model, split, fmt, high, old_kernels),
        _window(model, split, fmt, high, kept),
        pair_seconds(model, split, high, fmt.base.arithmetic == "fp32"),
        _window_pair(model, split, high, min(kept, typical / 2)),
    )


def slice_around(chip: Chip, chips: int) -> Accelerators:
    """The smallest slice that holds so many chips: two chips of a TPU's host are linked, though no slice has two."""
    if chip.id not in load().slices:
        return slice_for(chip, chips)
    return slice_for(chip, min((n for n in load().slices[chip.id].chip_counts() if n >= chips), default=chips))


def _compute_spec(chip: Chip, dtype: str, calibration: Calibration) -> ComputeSpec:
    peak = peak_of(chip, dtype)
    assert peak is not None  # `formats` names what the chip has
    return compute_spec(chip, dtype, peak, calibration)


def _one(value: float) -> Array:
    return np.asarray(value, dtype=np.float64)


def _product(op: Matmul, rows: Array, split: Split, fmt: Formats, specs: dict[str, ComputeSpec]) -> Array:
    f = fmt.dense if op.quantized else fmt.base
    n = op.n / split.tp if op.split == "n" else op.n
    k = op.k / split.tp if op.split == "k" else op.k
    product = Products(rows * op.rows, _one(n), _one(k), 1.0, f.in_bytes, f.weight_bytes)
    return np.asarray(op.count * matmul_seconds(specs[f.arithmetic], product, fmt.act_bytes))


def most_loaded(picks: Array, ranks: float) -> Array:
    """Picks of the busiest of `ranks` among which this many a rank are thrown at random.

    >>> most_loaded(np.array([100.0]), 1.0).tolist()
    [100.0]
    """
    if ranks <= 1:
        return picks
    return np.asarray(picks + np.sqrt(2 * np.log(ranks) * picks))


def experts_hit(picks: Array, experts: float, skew: float = SKEW) -> Array:
    """Experts that at least one of `picks` choices falls on, at least one; the r-th most liked is chosen as r^-skew.

    >>> experts_hit(np.array([1.0, 1e6]), 8.0).tolist()
    [1.0, 8.0]
    """
    liked = np.arange(1, max(round(experts), 1) + 1) ** -skew
    missed = np.exp(np.multiply.outer(picks, np.log1p(-np.minimum(liked / liked.sum(), 1 - 1e-12))))
    return np.asarray(np.clip(experts - missed.sum(-1), 1.0, experts))


def _experts(op: Matmul, tokens: Array, split: Split, f: Format, e: ComputeSpec) -> Array:
    """Grouped products over the experts that a batch really touches, on the busiest chip."""
    picks = most_loaded(np.maximum(tokens * op.rows / split.ep, 1.0), float(split.ep))
    hit = experts_hit(picks, op.groups / split.ep)
    n = op.n / split.expert_tp if op.split == "n" else op.n
    k = op.k / split.expert_tp if op.split == "k" else op.k
    products = Products(picks / hit, _one(n), _one(k), hit, f.in_bytes, f.weight_bytes)
    return np.asarray(op.count * matmul_seconds(e, products))


def one_shot_seconds(links: Wires, size: float, data: Array) -> Array:
    """All-reduce inside the fast domain: every chip writes to every other at once, or the ring, what is faster."""
    ring = reduce_seconds(links, _one(size), _one(1.0), data)
    if links.shape or links.fabric.kind == "pcie" or size > links.domain:
        return ring
    rate = links.fabric.scale_up * links.coefficients.up
    direct = ONE_SHOT_S + (size - 1) * data / rate
    two_shot = 2 * ONE_SHOT_S + 2 * (size - 1) / size * data / rate
    return np.asarray(np.minimum(np.minimum(direct, two_shot), ring))


def _collectives(
    model: Model, layers: int, split: Split, rows: Array, tokens: Array, fmt: Formats, links: Wires | None
) -> Array:
    """Two all-reduces a layer under tensor parallelism; dispatch and combine where experts are apart."""
    if links is None or split.tp * split.dp == 1:
        return np.zeros_like(rows)
    data = rows * model.d_model * fmt.act_bytes
    moe = model.moe_layers
    out = np.zeros_like(rows)
    if split.tp > 1:
        each = one_shot_seconds(links, split.tp, data)
        out = out + each * (layers + (layers if split.dp == 1 else model.dense_layers))
    if split.dp > 1 and moe:
        group = _one(split.tp * split.dp)
        if split.ep > 1 and model.experts is not None:
            sent = data * model.experts.per_token / max(split.tp, 1)
            both = 2 * exchange_seconds(links, group, _one(1.0), sent, float(model.experts.per_token))
        else:
            both = 2 * gather_seconds(links, group, _one(1.0), tokens * model.d_model * fmt.act_bytes)
        out = out + both * moe
    return np.asarray(out)


def _sends(model: Model, split: Split, rows: Array, fmt: Formats, links: Wires | None) -> Array:
    if links is None or split.pp == 1:
        return np.zeros_like(rows)
    return send_seconds(links, _one(split.tp * split.dp), rows * model.d_model * fmt.act_bytes) * (split.pp - 1)


def context_seconds(model: Model, split: Split, fmt: Formats, e: ComputeSpec, old_kernels: bool = False) -> float:
    """Decode attention: seconds for each token of context a sequence reads, all layers that attend in full."""
    if not model.writes:
        return 0.0
    full = model.written_layers - model.windowed_layers
    often = model.heads / model.kv_heads if old_kernels else 1.0
    return often * _read_seconds(model, split, fmt, e) * full / split.pp / split.dp


def _window(model: Model, split: Split, fmt: Formats, e: ComputeSpec, kept: float) -> float:
    """Decode attention of the layers that keep so many tokens: seconds for each sequence."""
    if model.ssm is not None:  # a state is read and written in every step, in its own precision
        moved = 2 * model.ssm.layers * state_bytes(model.ssm) / split.tp
        return moved / split.pp / split.dp / (e.bandwidth * e.coefficients.memory)
    return model.windowed_layers * kept / split.pp / split.dp * _read_seconds(model, split, fmt, e)


def _read_seconds(model: Model, split: Split, fmt: Formats, e: ComputeSpec) -> float:
    """One layer: bytes of the keys and values of one token, or the products over them, what is slower."""
    if model.latent is not None:
        width, heads = model.latent.kv_rank + model.latent.rope_dim, model.heads / split.tp
        read, flops = width * fmt.kv_bytes, 2 * heads * (width + model.latent.kv_rank)
    else:
        kv_heads = max(model.kv_heads / split.tp, 1.0)
        read = 2 * kv_heads * model.head_dim * fmt.kv_bytes
        flops = 4 * model.heads / split.tp * model.head_dim
    return max(read / (e.bandwidth * e.coefficients.memory), flops / (e.peak * DECODE_RATE))


# Share of the matrix peak that decode attention reaches where many query heads share a cached one: MLA kernels of
# TensorRT-LLM 1.3 on Hopper and Blackwell (ai-dynamo/aiconfigurator 0.12, 2026-08: 0.30 to 0.58)
DECODE_RATE = 0.35


def pair_seconds(model: Model, split: Split, e: ComputeSpec, unfused: bool = False) -> float:
    """Prompt attention: seconds for each pair of a new token and an earlier one, all layers that attend in full."""
    if model.family in ("cnn", "vit", "dit"):
        return 0.0
    return _pair_rate(model, split, e, unfused) * (model.read_layers - model.windowed_layers) / split.pp / split.dp


def _window_pair(model: Model, split: Split, e: ComputeSpec, seen: float) -> float:
    """Prompt attention of the layers with a window: seconds for each new token."""
    if not model.windowed_layers:
        return 0.0
    return model.windowed_layers * seen / split.pp / split.dp * _pair_rate(model, split, e)


def _pair_rate(model: Model, split: Split, e: ComputeSpec, unfused: bool = False) -> float:
    """One layer: seconds for each pair."""
    if model.latent is not None:
        dims = float(model.latent.nope_dim + model.latent.rope_dim + model.latent.v_dim)
    else:
        dims = 2.0 * model.head_dim
    c = e.coefficients
    heads = model.heads / split.tp
    if unfused:  # all scores are computed, masked or not, and go through memory
        all_pairs = 2.0 if model.causal_prompt else 1.0
        moved = 4 * SCORE_PASSES * heads / (e.bandwidth * c.memory)
        return all_pairs * (2 * heads * dims / (e.peak * c.matmul) + moved)
    rate = e.peak * c.attention * head_factor(dims / 2, e.mxu, c.attention_head)
    return 2 * heads * dims / rate
