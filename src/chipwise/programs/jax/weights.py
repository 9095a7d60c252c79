"""Weights of the reference transformers: shapes and the axes each dimension is split over."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import ceil, lcm

from chipwise.workload.model import Model

Split = tuple[str | tuple[str, ...] | None, ...]
SHARD = ("fsdp", "expert", "context")  # a dense weight is split over all of them
EXPERT_SHARD = ("fsdp", "context")  # and those of an expert, besides the experts themselves
TILE = 128  # a padded vocabulary is a multiple of this on each device (Megatron-LM's make-vocab-size-divisible-by)


@dataclass(frozen=True, slots=True)
class Weight:
    """One array: its whole shape, and the mesh axes of each dimension."""

    shape: tuple[int, ...]
    split: Split


@dataclass(frozen=True, slots=True)
class Kind:
    """What one layer of a repeating pattern is."""

    moe: bool
    window: int  # 0: attends in full


@dataclass(frozen=True, slots=True)
class Segment:
    """`repeats` times the same run of layers, compiled once as a loop."""

    kinds: tuple[Kind, ...]
    repeats: int

    @property
    def layers(self) -> int:
        """Layers of the segment."""
        return len(self.kinds) * self.repeats


def segments(model: Model, unrolled: bool = False) -> tuple[Segment, ...]:
    """The layers of a model as loops over their repeating pattern, or each on its own.

    >>> from chipwise.workload.presets import preset
    >>> [(len(s.kinds), s.repeats) for s in segments(preset("llama-3.1-8b"))]
    [(1, 32)]
    """
    kinds = [_kind(model, i) for i in range(model.layers)]
    if unrolled:
        return tuple(Segment((kind,), 1) for kind in kinds)
    first = model.experts.first_dense if model.experts else 0
    period = lcm(
        model.global_every if model.window and model.global_every > 1 else 1,
        model.experts.every if model.experts else 1,
    )
    rest = kinds[first:]
    whole = len(rest) // period
    middle = [Segment(tuple(rest[:period]), whole)] if whole else []
    return (*_runs(kinds[:first]), *middle, *_runs(rest[whole * period :]))


def _runs(kinds: list[Kind]) -> list[Segment]:
    """Layers one after another, those alike joined."""
    return [Segment((kind,), len(list(same))) for kind, same in groupby(kinds)]


def _kind(model: Model, layer: int) -> Kind:
    experts = model.experts
    moe = (
        experts is not None
        and layer >= experts.first_dense
        and ((layer - experts.first_dense) % experts.every == experts.every - 1)
    )
    local = (
        bool(model.window)
        and model.global_every != 1
        and (model.global_every == 0 or layer % model.global_every != model.global_every - 1)
    )
    return Kind(moe, model.window if local else 0)


def kv_heads(model: Model, tensor: int) -> int:
    """Key and value heads of one device: those its query heads use, shared ones once where they line up.

    >>> from chipwise.workload.presets import preset
    >>> [kv_heads(preset("llama-3.1-8b"), tensor) for tensor in (1, 8, 16)]  # eight heads
    [8, 1, 1]
    """
    if model.kv_heads % tensor == 0:
        return model.kv_heads // tensor
    heads, group = model.heads // tensor, model.heads // model.kv_heads
    return 1 if group % heads == 0 else heads


def padded_vocab(model: Model, tensor: int) -> int:
    """Rows of the embedding: the vocabulary, padded in whole tiles where the tensor axis doesn't divide it.

    >>> from chipwise.workload.presets import preset
    >>> padded_vocab(preset("gpt2"), 1), padded_vocab(preset("gpt2"), 4)
    (50257, 50688)
    """
    if model.vocab % tensor == 0:
        return model.vocab
    return ceil(model.vocab / (TILE * tensor)) * TILE * tensor


class _Table(dict[str, Weight]):
    """Weights by name, stacked `repeats` times (0: not stacked)."""

    def __init__(self, repeats: int = 0) -> None:
        super().__init__()
        self.repeats = repeats

    def put(self, name: str, shape: tuple[int, ...], *split: str | tuple[str, ...] | None) -> None:
        stack = (self.repeats,) if self.repeats else ()
        self[name] = Weight((*stack, *shape), (*(None for _ in stack), *split))

    def put_norm(self, name: str, width: int, vectors: int) -> None:
        for suffix in ("", "_bias")[:vectors]:
            self.put(name + suffix, (width,), None)

    def put_mlp(self, name: str, width: int, model: Model) -> None:
        for part in ("_up", "_gate") if model.gated else ("_up",):
            self.put(name + part, (model.d_model, width), SHARD, "tensor")
            if model.bias:
                self.put(name + part + "_bias", (width,), "tensor")
        self.put(name + "_down", (width, model.d_model), "tensor", SHARD)
        if model.bias:
            self.put(name + "_down_bias", (model.d_model,), None)


def layer_weights(model: Model, kind: Kind, repeats: int, tensor: int = 1) -> dict[str, Weight]:
    """Weights of one position of a segment, stacked over its repeats."""
    out = _Table(repeats)
    for i in range(model.norms_per_layer):
        out.put_norm(f"norm_{i + 1}", model.d_model, model.norm_params)
    _attention_weights(out, model, tensor)
    if not kind.moe or model.experts is None:
        out.put_mlp("w", model.d_ff, model)
        return dict(out)
    d, e = model.d_model, model.experts
    out.put("router", (d, e.count), None, None)
    if model.bias or e.router_bias:
        out.put("router_bias", (e.count,), None)
    for name in ("e_up", "e_gate") if model.gated else ("e_up",):
        out.put(name, (e.count, d, e.d_ff), "expert", EXPERT_SHARD, "tensor")
        if model.bias:
            out.put(name + "_bias", (e.count, e.d_ff), "expert", "tensor")
    out.put("e_down", (e.count, e.d_ff, d), "expert", "tensor", EXPERT_SHARD)
    if model.bias:
        out.put("e_down_bias", (e.count, d), "expert", None)
    if e.shared_d_ff:
        out.put_mlp("s", e.shared_d_ff, model)
    return dict(out)


def _attention_weights(out: _Table, model: Model, tensor: int) -> None:
    d, h, kv, k = model.d_model, model.heads, model.kv_heads, model.head_dim
    if model.latent:
        m = model.latent
        if m.q_rank:
            out.put("q_down", (d, m.q_rank), SHARD, None)
            out.put_norm("q_norm", m.q_rank, 1)
        out.put("q_up", (m.q_rank or d, h, m.nope_dim + m.rope_dim), SHARD, "tensor", None)
        out.put("kv_down", (d, m.kv_rank + m.rope_dim), SHARD, None)
        out.put_norm("kv_norm", m.kv_rank, 1)
        out.put("kv_up", (m.kv_rank, h, m.nope_dim + m.v_dim), SHARD, "tensor", None)
        out.put("wo", (h, m.v_dim, d), "tensor", None, SHARD)
    else:
        shared = "tensor" if kv % tensor == 0 else None  # fewer heads than devices: each has them all
        for name, heads, split in (("q", h, "tensor"), ("k", kv, shared), ("v", kv, shared)):
            out.put("w" + name, (d, heads, k), SHARD, split, None)
            if model.bias or model.qkv_bias:
                out.put("b" + name, (heads, k), split, None)
        out.put("wo", (h, k, d), "tensor", None, SHARD)
        if model.qk_norm:
            out.put_norm("q_norm", k, 1)
            out.put_norm("k_norm", k, 1)
        if model.bias or model.out_bias:
            out.put("bo", (d,), None)
    if model.sinks:
        out.put("sinks", (h,), "tensor")


def outer_weights(model: Model, tokens: int, tensor: int = 1) -> dict[str, Weight]:
    """Embeddings, norms outside the layers, and the output layer; `tokens` of a sequence."""
    d, out = model.d_model, _Table()
    if model.family == "vit":
        out.put("patches", (model.patch**2 * model.channels, d), None, None)
        out.put("patches_bias", (d,), None)
        out.put("class", (d,), None)
        out.put("positions", (tokens, d), None, None)
        if model.classes:
            out.put("head", (d, model.classes), SHARD, None)
            out.put("head_bias", (model.classes,), None)
    else:
        vocab = padded_vocab(model, tensor)
        out.put("embed", (vocab, d), "tensor", SHARD)
        if model.learned_positions:
            out.put("positions", (max(model.learned_positions, tokens), d), None, SHARD)
        if model.token_types:
            out.put("types", (model.token_types, d), None, SHARD)
        if model.embedding_norm:
            out.put_norm("norm_in", d, model.norm_params)
        if not model.tied:
            out.put("head", (d, vocab), SHARD, "tensor")
        if model.head_bias:
            out.put("head_bias", (vocab,), "tensor")
    if model.family == "encoder":  # the masked-language-model head, before the vocabulary
        out.put("mlm", (d, d), SHARD, None)
        out.put("mlm_bias", (d,), None)
        out.put_norm("norm_mlm", d, 2)
    if model.pooler:
        out.put("pooler", (d, d), SHARD, None)
        out.put("pooler_bias", (d,), None)
        out.put("next", (d, 2), None, None)
        out.put("next_bias", (2,), None)
    if model.final_norm:
        out.put_norm("norm_out", d, model.norm_params)
    return dict(out)
