"""Prefill and decode of a decoder: whole prompts to a KV cache, then one token a sequence and step.

Tensor parallel over the heads, the inner width and the vocabulary; sequences over the data axis. The cache of a layer
that attends within a window is a ring of that many tokens; with latent attention it holds the latent vectors, and
decoding works on them directly (the up-projection is folded into queries and outputs). All sequences of a decoding
batch are equally long: `position` is one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from chipwise.errors import Refusal
from chipwise.programs.jax.attention import attention
from chipwise.programs.jax.collectives import Grid, gathered, whole_sequence
from chipwise.programs.jax.layers import (
    Part,
    attended,
    by_heads,
    dense_mlp,
    expert_mlp,
    few_experts,
    latent_qkv,
    norm,
    qkv,
    residual,
)
from chipwise.programs.jax.quantized import restored, stored
from chipwise.programs.jax.transformer import (
    dtype_of,
    embedded,
    grid_of,
    head_dim,
    is_weight,
    left_out,
    logits_of,
    looked_up,
    output_layer,
    spec_of,
    uses_rotary,
    weights_tree,
)
from chipwise.programs.jax.weights import Kind, Segment, kv_heads, segments
from chipwise.programs.program import BLOCK, Program
from chipwise.workload.model import Model

FEW = 16  # rows times experts each goes to, up to which single experts are read; unrolled, so not many
MODES = ("prefill", "decode")
SEQUENCES = ("data", "fsdp", "expert")
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Serving:
    """How a model is served: `context` tokens of room in the cache, weights in bf16 or int8."""

    model: Model
    mesh: Mesh
    batch: int  # sequences on the whole mesh
    context: int
    precision: str = "bf16"  # of the weights: "bf16", "int8", or "fp32" to check numbers
    platform: str = "tpu"
    block_size: int = BLOCK
    unrolled: bool = False  # each layer with arrays of its own, rather than loops over stacks of equal ones

    @property
    def parts(self) -> tuple[Segment, ...]:
        """The model's layers as they are run."""
        return segments(self.model, self.unrolled)

    @property
    def dtype(self) -> str:
        """What is computed in."""
        return dtype_of(self.precision)

    def grid(self, tokens: int) -> Grid:
        """The mesh, for so many tokens of each sequence at a time."""
        grid = grid_of(self.mesh, self.dtype, tokens)
        if grid.fsdp * grid.expert > 1:
            raise Refusal(
                f"serving splits over data and tensor axes; fsdp({grid.fsdp}) and expert({grid.expert}) must be 1"
            )
        return grid

    def weights(self, grid: Grid) -> tuple[Tree, Tree]:
        """Shapes and partition specs of the weights."""
        model = self.model
        tree = weights_tree(model, self.parts, self.context, grid)
        specs = jax.tree.map(lambda w: spec_of(w.split, grid), tree, is_leaf=is_weight)
        shapes = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, self.dtype), tree, is_leaf=is_weight)
        if self.precision == "int8":
            shapes["layers"], specs["layers"] = stored(shapes["layers"], specs["layers"])
        return shapes, specs

    def cache(self) -> tuple[list[Any], list[Any]]:
        """Shapes and partition specs of the cache: for each segment and position in it, stacked over repeats."""
        model, tensor = self.model, self.grid(1).tensor
        shapes, specs = [], []
        for segment in self.parts:
            row: list[Tree] = []
            for kind in segment.kinds:
                heads: tuple[int, ...] = ()
                if model.latent:
                    widths = {"latent": model.latent.kv_rank, "k_rope": model.latent.rope_dim}
                else:
                    heads, widths = (kv_heads(model, tensor) * tensor,), {"k": model.head_dim, "v": model.head_dim}
                lead = (segment.repeats, self.batch, *heads, slots(kind, self.context))
                row.append({name: jax.ShapeDtypeStruct((*lead, w), self.dtype) for name, w in widths.items()})
            shapes.append(row)
            split = "tensor" if tensor > 1 and not model.latent else None
            specs.append([{name: PartitionSpec(None, SEQUENCES, split) for name in layer} for layer in row])
        return shapes, specs


def slots(kind: Kind, context: int) -> int:
    """Tokens the cache of a layer holds."""
    return min(kind.window, context) if kind.window else context


def serving_step(serving: Serving, mode: str, prompt: int = 0) -> Program:
    """Prefill of prompts of `prompt` tokens (default: the whole context), or one step of decoding."""
    model = serving.model
    if model.family != "decoder" or not model.causal:
        raise Refusal(f"only decoders are served by prefill and decode; {model.name} is of the {model.family} family")
    return _prefill(serving, prompt or serving.context) if mode == "prefill" else _decode(serving)


def _prefill(serving: Serving, prompt: int) -> Program:
    """(weights, tokens) -> (logits of the last position, cache)."""
    model = serving.model
    grid = serving.grid(prompt)
    parts = serving.parts
    shapes, specs = serving.weights(grid)
    tokens = jax.ShapeDtypeStruct((serving.batch, prompt), jnp.int32)

    def step(weights: Tree, tokens: jax.Array) -> tuple[jax.Array, list[Any]]:
        outer, caches = weights["outer"], []
        x = embedded(model, outer, {"tokens": tokens}, grid)
        for segment, mine in zip(parts, weights["layers"], strict=True):
            x, cache = _prefilled(x, mine, segment, serving, grid, prompt)
            caches.append(cache)
        last = whole_sequence(x[:, -1:], grid)[:, -1:]
        return _scored(last, outer, model, grid), caches

    return _program(serving, step, (shapes, tokens), (specs, PartitionSpec(SEQUENCES)), grid, donate=())


def _prefilled(
    x: jax.Array, weights: Sequence[Tree], segment: Segment, serving: Serving, grid: Grid, prompt: int
) -> tuple[jax.Array, list[Tree]]:
    model, rope = serving.model, uses_rotary(serving.model)

    def body(x: jax.Array, w: Sequence[Tree]) -> tuple[jax.Array, list[Tree]]:
        kept = []
        for kind, packed in zip(segment.kinds, w, strict=True):
            mine = restored(packed, serving.dtype)
            held: Tree = {}
            attend = attention(
                serving.platform,
                prompt,
                model.heads // grid.tensor,
                head_dim(model),
                True,
                kind.window,
                serving.block_size,
            )

            def mix(h: jax.Array, mine: Tree = mine, held: Tree = held, attend: Any = attend) -> jax.Array:
                positions = jnp.arange(prompt)
                q, k, v = qkv(h, mine, model, grid, positions, rope)
                if model.latent:
                    held["latent"], held["k_rope"] = latent_qkv(h, mine, model, grid, positions)[2:]
                else:
                    held["k"], held["v"] = (t.transpose(0, 2, 1, 3) for t in (k, v))
                return attended(by_heads(attend, q, k, v, mine), mine, grid)

            x = residual(x, mine, model, grid, mix, _mlp(mine, kind, model, grid, x.shape[0] * prompt))
            kept.append({name: _ring(t, slots(kind, serving.context)) for name, t in held.items()})
        return x, kept

    return jax.lax.scan(body, x, weights, unroll=serving.unrolled or 1)


def _ring(x: jax.Array, size: int) -> jax.Array:
    """The last `size` tokens of [..., tokens, width], each where its position falls in a ring of that size."""
    tokens = x.shape[-2]
    if tokens <= size:
        return jnp.pad(x, (*((0, 0) for _ in x.shape[:-2]), (0, size - tokens), (0, 0)))
    return jnp.roll(x[..., tokens - size :, :], tokens % size, axis=-2)


def _decode(serving: Serving) -> Program:
    """(weights, cache, tokens, position) -> (logits, cache); the cache's memory is taken over."""
    model = serving.model
    grid = serving.grid(1)
    parts = serving.parts
    shapes, specs = serving.weights(grid)
    caches, cache_specs = serving.cache()
    tokens = jax.ShapeDtypeStruct((serving.batch,), jnp.int32)

    def step(weights: Tree, caches: list[Any], tokens: jax.Array, position: jax.Array) -> tuple[jax.Array, list[Any]]:
        outer, kept = weights["outer"], []
        x = looked_up(outer, tokens[:, None], grid)
        if model.learned_positions:
            x = x + jax.lax.dynamic_slice_in_dim(gathered(outer["positions"], grid, 1), position, 1)
        if model.embedding_norm:
            x = norm(x, outer, "norm_in", model.norm_params != 1)
        for segment, mine, cache in zip(parts, weights["layers"], caches, strict=True):
            x, cache = _decoded(x, mine, cache, segment, serving, grid, position)
            kept.append(cache)
        return _scored(x, outer, model, grid), kept

    args = (shapes, caches, tokens, jax.ShapeDtypeStruct((), jnp.int32))
    places = (specs, cache_specs, PartitionSpec(SEQUENCES), PartitionSpec())
    return _program(serving, step, args, places, grid, donate=(1,))


def _decoded(
    x: jax.Array,
    weights: Sequence[Tree],
    cache: list[Tree],
    segment: Segment,
    serving: Serving,
    grid: Grid,
    position: jax.Array,
) -> tuple[jax.Array, list[Tree]]:
    """One token through a segment. The loop only reads the cache; what is new is written after it, in place."""
    model = serving.model

    def body(x: jax.Array, layer: tuple[Sequence[Tree], list[Tree]]) -> tuple[jax.Array, list[Tree]]:
        entries: list[Tree] = []
        for kind, packed, held in zip(segment.kinds, *layer, strict=True):
            mine = restored(packed, serving.dtype)

            def mix(h: jax.Array, mine: Tree = mine, held: Tree = held) -> jax.Array:
                new, queries = _token(h, mine, model, grid, position)
                entries.append(new)
                return _attend_cache(queries, held, new, mine, model, grid, position)

            x = residual(x, mine, model, grid, mix, _mlp(mine, kind, model, grid, x.shape[0]))
        return x, entries

    x, added = jax.lax.scan(body, x, (weights, cache), unroll=serving.unrolled or 1)
    written = [
        {
            name: jax.lax.dynamic_update_slice_in_dim(
                old[name], new[name], position % old[name].shape[-2], old[name].ndim - 2
            )
            for name in old
        }
        for old, new in zip(cache, added, strict=True)
    ]
    return x, written


def _mlp(w: Tree, kind: Kind, model: Model, grid: Grid, tokens: int) -> Part:
    """The MLP of one layer for so many tokens of a device."""
    if not kind.moe or model.experts is None:
        return lambda h: dense_mlp(h, w, model, grid)
    pairs = tokens * model.experts.per_token
    mlp = few_experts if pairs <= min(FEW, model.experts.count) else expert_mlp
    return lambda h: mlp(h, w, model, grid)


def _token(h: jax.Array, w: Tree, model: Model, grid: Grid, position: jax.Array) -> tuple[Tree, tuple[jax.Array, ...]]:
    """What the new token leaves in the cache, and its queries."""
    if model.latent:
        q_nope, q_rope, latent, k_rope = latent_qkv(h, w, model, grid, position[None])
        return {"latent": latent, "k_rope": k_rope}, (q_nope, q_rope)
    q, k, v = qkv(h, w, model, grid, position[None], uses_rotary(model))
    return {"k": k.transpose(0, 2, 1, 3), "v": v.transpose(0, 2, 1, 3)}, (q,)


def _attend_cache(
    queries: tuple[jax.Array, ...], held: Tree, new: Tree, w: Tree, model: Model, grid: Grid, position: jax.Array
) -> jax.Array:
    """Attention of one token over itself and what the cache holds [..., slots, width].

    Slots not yet written are hidden, and the one that the new token will take.
    """
    scale = head_dim(model) ** -0.5
    slot = jnp.arange(next(iter(held.values())).shape[-2])
    hidden = (slot >= position) | (slot == position % slot.size)
    if model.latent:
        up = gathered(w["kv_up"], grid, 0)
        q = jnp.concatenate(
            [jnp.einsum("bshn,rhn->bhr", queries[0], up[..., : model.latent.nope_dim]), queries[1][:, 0]], -1
        )[:, None]
        parts = (slice(None, model.latent.kv_rank), slice(model.latent.kv_rank, None))
        scores, own = (
            sum(
                jnp.einsum("bkhr,btr->bkht", q[..., part], t[n], preferred_element_type=jnp.float32)
                for part, n in zip(parts, ("latent", "k_rope"), strict=True)
            )
            for t in (held, new)
        )
        values, last = held["latent"][:, None], new["latent"][:, None]
    else:
        values, last = held["v"], new["v"]
        q = queries[0].reshape(queries[0].shape[0], values.shape[1], -1, model.head_dim)
        scores, own = (
            jnp.einsum("bkhd,bktd->bkht", q, t["k"], preferred_element_type=jnp.float32) for t in (held, new)
        )
    shares, mine = _shares(jnp.where(hidden, -1e30, scores * scale), own * scale, w.get("sinks"))
    mixed = jnp.einsum("bkht,bktd->bkhd", shares.astype(values.dtype), values) + mine.astype(values.dtype) * last
    mixed = mixed.reshape(mixed.shape[0], 1, -1, mixed.shape[-1])
    if model.latent:
        mixed = jnp.einsum("bshr,rhv->bshv", mixed, up[..., model.latent.nope_dim :])
    return attended(mixed, w, grid)


def _shares(scores: jax.Array, own: jax.Array, sinks: jax.Array | None) -> tuple[jax.Array, jax.Array]:
    """Softmax over the cache's slots, the new token and the sink together: the parts of the first two."""
    top = jnp.maximum(scores.max(-1, keepdims=True), own)
    cached, mine = jnp.exp(scores - top), jnp.exp(own - top)
    total = cached.sum(-1, keepdims=True) + mine
    if sinks is not None:
        total = total + jnp.exp(sinks.astype(jnp.float32).reshape(1, *scores.shape[1:3], 1) - top)
    return cached / total, mine / total


def _scored(x: jax.Array, outer: Tree, model: Model, grid: Grid) -> jax.Array:
    """Logits [batch, this device's part of the vocabulary] of one position, in float32."""
    if model.final_norm:
        x = norm(x, outer, "norm_out", model.norm_params != 1)
    return logits_of(x, outer, model, grid, output_layer(outer, model, grid))[:, 0].astype(jnp.float32)


def _program(
    serving: Serving, step: Any, args: tuple[Any, ...], places: tuple[Any, ...], grid: Grid, donate: tuple[int, ...]
) -> Program:
    mesh = serving.mesh
    columns = "tensor" if grid.tensor > 1 else None
    out = (PartitionSpec(SEQUENCES, columns), serving.cache()[1])
    fn = jax.shard_map(step, mesh=mesh, in_specs=places, out_specs=out, check_vma=False)
    placed = jax.tree.map(
        lambda s, p: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=NamedSharding(mesh, p)), args, places
    )
    return Program(fn, placed, donate=donate, mesh=mesh, notes=left_out(serving.model, None, grid))
