"""Blocks of the reference transformers, on one device's shards: norms, attention, dense and expert MLPs.

Whatever comes out as partial sums over the tensor axis is summed once by `split_sequence`; an output bias is
therefore added divided by the size of that axis.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from chipwise.programs.jax.attention import Attend
from chipwise.programs.jax.collectives import Grid, split_sequence, whole_sequence
from chipwise.programs.jax.context import every_key, positions
from chipwise.programs.jax.linear import linear
from chipwise.programs.jax.weights import kv_heads
from chipwise.workload.model import Model

Weights = dict[str, Any]
Part = Callable[[jax.Array], jax.Array]


def norm(x: jax.Array, weights: Weights, name: str, centered: bool = False) -> jax.Array:
    """RMSNorm, or LayerNorm if `centered`, with what is learned of it; computed in float32."""
    y = x.astype(jnp.float32)
    if centered:
        y = y - y.mean(-1, keepdims=True)
    y = y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
    if name in weights:
        y = y * weights[name]
    if name + "_bias" in weights:
        y = y + weights[name + "_bias"]
    return y.astype(x.dtype)


def rotary(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary positions on [batch, sequence, heads, head_dim]."""
    half = x.shape[-1] // 2
    angles = positions.astype(jnp.float32)[:, None] * 1e4 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)


def attend_block(h: jax.Array, w: Weights, model: Model, grid: Grid, attend: Attend, rope: bool) -> jax.Array:
    """Attention of sequences `h`, whole but for context parallelism: partial sums over the tensor axis come out."""
    q, k, v = qkv(h, w, model, grid, positions(h.shape[1], grid), rope)
    k, v = (every_key(t, grid) for t in (k, v))
    q, k, v = (checkpoint_name(t, n) for t, n in ((q, "query_proj"), (k, "key_proj"), (v, "value_proj")))
    return attended(checkpoint_name(by_heads(attend, q, k, v, w), "context"), w, grid)


def by_heads(attend: Attend, q: jax.Array, k: jax.Array, v: jax.Array, w: Weights) -> jax.Array:
    """`attend` on [batch, sequence, heads, ...]."""
    q, k, v = (t.transpose(0, 2, 1, 3) for t in (q, k, v))
    return attend(q, k, v, w.get("sinks")).transpose(0, 2, 1, 3)


def attended(context: jax.Array, w: Weights, grid: Grid) -> jax.Array:
    """The output projection of [batch, sequence, heads, v_dim]: partial sums over the tensor axis."""
    out = linear(context, w, "wo", grid)
    return _biased(out, w, "bo", grid.tensor)


def qkv(
    h: jax.Array, w: Weights, model: Model, grid: Grid, positions: jax.Array, rope: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Queries, keys and values [batch, sequence, this device's heads, ...] of whole sequences."""
    if model.latent:
        q_nope, q_rope, latent, k_rope = latent_qkv(h, w, model, grid, positions)
        up = linear(latent, w, "kv_up", grid)
        k_nope, v = jnp.split(up, [model.latent.nope_dim], axis=-1)
        k_rope = jnp.broadcast_to(k_rope[:, :, None], (*k_nope.shape[:3], model.latent.rope_dim))
        return jnp.concatenate([q_nope, q_rope], -1), jnp.concatenate([k_nope, k_rope], -1), v
    q = linear(h, w, "wq", grid)
    k, v = (linear(h, w, n, grid, lambda weight: _own_heads(weight, 1, model, grid)) for n in ("wk", "wv"))
    if "bq" in w:
        q = q + w["bq"].astype(q.dtype)
        k, v = (t + _own_heads(w["b" + n], 0, model, grid).astype(t.dtype) for t, n in ((k, "k"), (v, "v")))
    if model.qk_norm:
        q, k = norm(q, w, "q_norm"), norm(k, w, "k_norm")
    if rope:
        q, k = rotary(q, positions), rotary(k, positions)
    return q, k, v


def latent_qkv(
    h: jax.Array, w: Weights, model: Model, grid: Grid, positions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Multi-head latent attention: queries without and with positions, the latent vector, the shared key."""
    m = model.latent
    assert m is not None
    low = h
    if m.q_rank:
        low = norm(linear(h, w, "q_down", grid), w, "q_norm")
    q = linear(low, w, "q_up", grid)
    kv = linear(h, w, "kv_down", grid)
    latent = norm(kv[..., : m.kv_rank], w, "kv_norm")
    k_rope = rotary(kv[..., None, m.kv_rank :], positions)[:, :, 0]
    return q[..., : m.nope_dim], rotary(q[..., m.nope_dim :], positions), latent, k_rope


def _own_heads(weight: jax.Array, axis: int, model: Model, grid: Grid) -> jax.Array:
    """Key or value heads that this device's query heads use, where the heads aren't split over devices."""
    if model.kv_heads % grid.tensor == 0:
        return weight
    heads, group = model.heads // grid.tensor, model.heads // model.kv_heads
    first = jax.lax.axis_index("tensor") * heads
    many = kv_heads(model, grid.tensor)
    return jnp.take(weight, (first + jnp.arange(many)) // group, axis=axis)


def _biased(x: jax.Array, w: Weights, name: str, parts: int = 1) -> jax.Array:
    return x + (w[name] / parts).astype(x.dtype) if name in w else x


def dense_mlp(h: jax.Array, w: Weights, model: Model, grid: Grid, names: str = "w") -> jax.Array:
    """Gated (SiLU) or plain (GELU) MLP; partial sums over the tensor axis come out."""
    up = checkpoint_name(linear(h, w, names + "_up", grid), "mlpwi_0")
    up = _biased(up, w, names + "_up_bias")
    if model.gated:
        gate = checkpoint_name(linear(h, w, names + "_gate", grid), "mlpwi_1")
        up = jax.nn.silu(_biased(gate, w, names + "_gate_bias")) * up
    else:
        up = jax.nn.gelu(up)
    down = linear(up, w, names + "_down", grid)
    return _biased(down, w, names + "_down_bias", grid.tensor)


def routing(rows: jax.Array, w: Weights, model: Model) -> tuple[jax.Array, jax.Array]:
    """The share and the number of each expert a row is sent to, [rows, per_token]."""
    experts = model.experts
    assert experts is not None
    scores = rows.astype(jnp.float32) @ w["router"].astype(jnp.float32)
    return jax.lax.top_k(jax.nn.softmax(_biased(scores, w, "router_bias")), experts.per_token)


def expert_mlp(h: jax.Array, w: Weights, model: Model, grid: Grid) -> jax.Array:
    """Mixture of experts. Each takes its even share of this device's rows; rows above that share are dropped.

    The experts of one group lie on the devices of the `expert` axis; rows travel there and back by all-to-all.
    """
    experts = model.experts
    assert experts is not None
    batch, sequence, width = h.shape
    rows = h.reshape(batch * sequence, width)
    shares, picks = routing(rows, w, model)
    sent = picks.reshape(-1)  # one entry for each row and expert it goes to
    capacity = ceil(sent.size / experts.count)
    order = jnp.argsort(sent, stable=True)
    loads = (sent[:, None] == jnp.arange(experts.count)).sum(0)
    starts = jnp.cumsum(loads) - loads
    filled = jnp.minimum(starts[:, None] + jnp.arange(capacity), sent.size - 1)  # beyond a load: read, never used
    routed = rows[order[filled] // experts.per_token]
    if grid.expert > 1:
        routed = jax.lax.all_to_all(routed, "expert", split_axis=0, concat_axis=1, tiled=True)
    down = checkpoint_name(_experts(routed, w, model, grid), "moe_mlpwo")
    if grid.expert > 1:
        down = jax.lax.all_to_all(down, "expert", split_axis=1, concat_axis=0, tiled=True)
    rank = jnp.argsort(order) - starts[sent]
    back = down.reshape(-1, width)[sent * capacity + jnp.minimum(rank, capacity - 1)]
    share = jnp.where(rank < capacity, shares.reshape(-1), 0)[:, None].astype(back.dtype)
    out: jax.Array = (back * share).reshape(batch, sequence, experts.per_token, width).sum(2)
    if experts.shared_d_ff:
        out = out + dense_mlp(h, w, model, grid, "s")
    return out


def few_experts(h: jax.Array, w: Weights, model: Model, grid: Grid) -> jax.Array:
    """Mixture of experts for so few rows that most experts are idle: only the weights of those used are read."""
    experts = model.experts
    assert experts is not None
    rows = h.reshape(-1, h.shape[-1])
    shares, picks = routing(rows, w, model)
    named = {n: t for n, t in w.items() if n.startswith("e_")}
    sums = []
    for row in range(rows.shape[0]):
        out = jnp.zeros((1, 1, h.shape[-1]), h.dtype)
        for i in range(experts.per_token):
            one = {n: jax.lax.dynamic_slice_in_dim(t, picks[row, i], 1) for n, t in named.items()}
            out = out + _experts(rows[None, row, None], one, model, grid) * shares[row, i].astype(h.dtype)
        sums.append(out[0])
    out = jnp.concatenate(sums).reshape(h.shape)
    return out + dense_mlp(h, w, model, grid, "s") if experts.shared_d_ff else out


def _experts(routed: jax.Array, w: Weights, model: Model, grid: Grid) -> jax.Array:
    """The MLPs of this device's experts on [experts, rows, width]."""

    def into(name: str, label: str) -> jax.Array:
        out: jax.Array = checkpoint_name(linear(routed, w, name, grid), label)
        return out + w[name + "_bias"][:, None].astype(out.dtype) if name + "_bias" in w else out

    up = into("e_up", "moe_mlpwi_0")
    up = jax.nn.silu(into("e_gate", "moe_mlpwi_1")) * up if model.gated else jax.nn.gelu(up)
    down = linear(up, w, "e_down", grid)
    if "e_down_bias" in w:
        down = down + (w["e_down_bias"] / grid.tensor)[:, None].astype(down.dtype)
    return down


def block(x: jax.Array, w: Weights, model: Model, grid: Grid, attend: Attend, moe: bool, rope: bool) -> jax.Array:
    """One layer on the residual stream, which is split along the sequence over the tensor axis."""
    mlp = expert_mlp if moe else dense_mlp
    return residual(
        checkpoint_name(x, "decoder_layer_input"),
        w,
        model,
        grid,
        lambda h: attend_block(h, w, model, grid, attend, rope),
        lambda h: mlp(h, w, model, grid),
    )


def residual(x: jax.Array, w: Weights, model: Model, grid: Grid, mix: Part, wide: Part) -> jax.Array:
    """One layer of attention `mix` and MLP `wide` on whole sequences.

    Norms come before them, after the sum (BERT), or on both sides (Gemma 2).
    """
    centered, after = model.norm_params != 1, model.family == "encoder" and not model.final_norm

    def added(x: jax.Array, out: jax.Array, name: str, label: str) -> jax.Array:
        out = checkpoint_name(split_sequence(out, grid), label)
        if after:
            return norm(x + out, w, name, centered)
        return x + (norm(out, w, name, centered) if name in w else out)

    def before(x: jax.Array, name: str) -> jax.Array:
        return whole_sequence(x if after else norm(x, w, name, centered), grid)

    h = before(x, "norm_1")
    if model.parallel_block:
        return added(x, mix(h) + wide(before(x, "norm_2") if "norm_2" in w else h), "", "out_proj")
    x = added(x, mix(h), "norm_1" if after else "norm_3", "out_proj")
    return added(x, wide(before(x, "norm_2")), "norm_2" if after else "norm_4", "mlpwo")
