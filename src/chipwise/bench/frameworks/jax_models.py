"""A Llama-style decoder in plain JAX: one step of training, a prefill, one decoded token.

Training and prefill scan over stacked layers. Decoding has its layers unrolled, each with weights and cache of its own:
slices of a stack would be copied before each product, which doubles the traffic of what is bound by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from chipwise.bench.frameworks.interface import Case
from chipwise.bench.frameworks.jax_attention import Implementation, attend, with_attention
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
from chipwise.bench.frameworks.jax_kernels import rms_norm
from chipwise.bench.frameworks.jax_optim import (
    Reference,
    adamw_state,
    adamw_step,
    copied,
    cross_entropy,
    seeded,
    threaded,
)
from chipwise.ops.point import Point
from chipwise.ops.work import head_width

ROPE_BASE = 500_000.0
BATCHES = 4  # of different tokens, in turn
Layer = dict[str, Array]
Weights = dict[str, Any]


def init_decoder(sizes: Mapping[str, int], dtype: Any) -> Weights:
    """Random weights; those of the layers stacked along their first axis."""
    layers, d, f, vocab = sizes["layers"], sizes["d"], sizes["f"], sizes["vocab"]
    keys = sizes["hk"] * head_width(sizes)
    shapes = {"q": (d, d), "k": (d, keys), "v": (d, keys), "o": (d, d), "gate": (d, f), "up": (d, f), "down": (f, d)}
    blocks = {name: seeded(f"block.{name}", (layers, *shape), dtype, 0.02) for name, shape in shapes.items()}
    norms = {name: seeded(f"block.{name}", (layers, d), dtype, 0.02, mean=1.0) for name in ("norm1", "norm2")}
    return {
        "embedding": seeded("embedding", (vocab, d), dtype, 0.02),
        "blocks": blocks | norms,
        "norm": seeded("norm", (d,), dtype, 0.02, mean=1.0),
        "head": seeded("head", (d, vocab), dtype, 0.02),
    }


def rotary(positions: Array, width: int) -> tuple[Array, Array]:
    """Cosines and sines of rotary positions, (positions, 1, width / 2), in fp32."""
    frequencies = ROPE_BASE ** (-jnp.arange(0, width // 2, dtype=jnp.float32) * 2 / width)
    angles = positions.astype(jnp.float32)[:, None, None] * frequencies
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: Array, turns: tuple[Array, Array]) -> Array:
    """Turn the halves of each head's vector by their positions' angles."""
    cos, sin = turns
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1).astype(x.dtype)


def heads(x: Array, weight: Array, width: int) -> Array:
    """A projection split into heads of a width."""
    return jnp.reshape(x @ weight, (*x.shape[:-1], -1, width))


def feed_forward(x: Array, w: Layer) -> Array:
    """SwiGLU with its norm and the residual."""
    y = rms_norm(x, w["norm2"])
    return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


def block(
    x: Array, w: Layer, turns: tuple[Array, Array], width: int, implementation: Implementation
) -> tuple[Array, tuple[Array, Array]]:
    """One layer over whole sequences; also gives its keys and values."""
    y = rms_norm(x, w["norm1"])
    q, k = rotate(heads(y, w["q"], width), turns), rotate(heads(y, w["k"], width), turns)
    v = heads(y, w["v"], width)
    out = attend(q, k, v, causal=True, implementation=implementation)
    return feed_forward(x + out.reshape(x.shape) @ w["o"], w), (k, v)


def hidden_states(
    w: Weights, tokens: Array, width: int, implementation: Implementation, *, remat: bool = False, cache: bool = False
) -> tuple[Array, Any]:
    """Normalised states after the last layer, and every layer's keys and values where a cache is wanted."""
    turns = rotary(jnp.arange(tokens.shape[1]), width)
    layer = partial(block, turns=turns, width=width, implementation=implementation)
    run = jax.checkpoint(layer) if remat else layer

    def step(x: Array, one: Layer) -> tuple[Array, Any]:
        x, kept = run(x, one)
        return x, kept if cache else None

    x, kept = lax.scan(step, w["embedding"][tokens], w["blocks"])
    return rms_norm(x, w["norm"]), kept


def loss_of(
    w: Weights, tokens: Array, targets: Array, *, width: int, implementation: Implementation, remat: bool = False
) -> Array:
    """Mean cross-entropy over the full vocabulary."""
    x, _ = hidden_states(w, tokens, width, implementation, remat=remat)
    return cross_entropy(x @ w["head"], targets)


def build_train(point: Point, context: Context) -> Case:
    """A step of training by AdamW, weights and states in the point's precision, threaded from call to call."""
    dtype, width = model_dtype(point, context), head_width(point.sizes)
    shape = (point.sizes["b"], point.sizes["s"] + 1)
    rows = [integers(i, shape, point.sizes["vocab"]) for i in range(BATCHES)]
    batches = [(row[:, :-1], row[:, 1:]) for row in rows]
    weights = init_decoder(point.sizes, dtype)
    loss = partial(loss_of, width=width, remat=point.remat)
    reference = Reference(partial(loss, implementation="xla"))
    return with_attention(
        point,
        context,
        lambda implementation: threaded(
            point,
            context,
            adamw_step(partial(loss, implementation=implementation)),
            adamw_state(weights),
            batches,
            reference,
        ),
    )


def prefill(w: Weights, tokens: Array, *, width: int, implementation: Implementation) -> tuple[Array, Any]:
    """Logits of the last position and the filled cache."""
    x, kept = hidden_states(w, tokens, width, implementation, cache=True)
    return x[:, -1] @ w["head"], kept


def build_prefill(point: Point, context: Context) -> Case:
    """Whole sequences through the model; the cache is made anew in each call."""
    dtype, width = model_dtype(point, context), head_width(point.sizes)
    weights = init_decoder(point.sizes, dtype)
    shape = (point.sizes["b"], point.sizes["s"])
    batches = [integers(i, shape, point.sizes["vocab"]) for i in range(BATCHES)]
    program = with_attention(
        point,
        context,
        lambda implementation: compiled(
            partial(prefill, width=width, implementation=implementation),
            weights,
            batches[0],
            precision=precision_name(point.dtype),
            context=context,
        ),
    )

    def check() -> float:
        wide = compiled(
            partial(prefill, width=width, implementation="xla"), widened(weights), batches[0], precision="highest"
        )
        return relative_error(program(weights, batches[0])[0], wide(widened(weights), batches[0])[0])

    return case(point, lambda i: program(weights, batches[i % BATCHES]), check if small_model(point) else None)


def decode(
    w: Weights, cache: list[tuple[Array, Array]], tokens: Array, *, width: int, implementation: Implementation
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Logits of the next token for each sequence, whose own key and value take the cache's last place."""
    x = w["embedding"][tokens][:, None]
    position = cache[0][0].shape[1] - 1
    turns = rotary(jnp.asarray([position]), width)
    filled = []
    for one, (keys, values) in zip(w["blocks"], cache, strict=True):
        y = rms_norm(x, one["norm1"])
        q, k = rotate(heads(y, one["q"], width), turns), rotate(heads(y, one["k"], width), turns)
        keys = lax.dynamic_update_slice_in_dim(keys, k, position, axis=1)
        values = lax.dynamic_update_slice_in_dim(values, heads(y, one["v"], width), position, axis=1)
        out = attend(q, keys, values, causal=False, implementation=implementation)
        x = feed_forward(x + out.reshape(x.shape) @ one["o"], one)
        filled.append((keys, values))
    return rms_norm(x[:, 0], w["norm"]) @ w["head"], filled


def init_unrolled(sizes: Mapping[str, int], dtype: Any) -> tuple[Weights, list[tuple[Array, Array]]]:
    """Random weights with a list of layers, and a random cache of length `s` for each layer."""
    stacked = init_decoder(sizes, dtype)
    blocks = [jax.tree.map(lambda x, i=i: x[i], stacked["blocks"]) for i in range(sizes["layers"])]
    shape = (sizes["b"], sizes["s"], sizes["hk"], head_width(sizes))
    cache = [(normal(2 * i, shape, dtype), normal(2 * i + 1, shape, dtype)) for i in range(sizes["layers"])]
    return stacked | {"blocks": blocks}, cache


def build_decode(point: Point, context: Context) -> Case:
    """One token for each of `b` sequences with `s` tokens in a donated cache."""
    dtype, width = model_dtype(point, context), head_width(point.sizes)
    weights, cache = init_unrolled(point.sizes, dtype)
    batches = [integers(i, (point.sizes["b"],), point.sizes["vocab"]) for i in range(BATCHES)]
    program = with_attention(
        point,
        context,
        lambda implementation: compiled(
            partial(decode, width=width, implementation=implementation),
            weights,
            cache,
            batches[0],
            donate=(1,),
            precision=precision_name(point.dtype),
            context=context,
        ),
    )
    held = [cache]

    def call(i: int) -> object:
        logits, held[0] = program(weights, held[0], batches[i % BATCHES])
        return logits

    def check() -> float:
        precise = (widened(weights), widened(held[0]), batches[0])
        wide = compiled(partial(decode, width=width, implementation="xla"), *precise, precision="highest")
        found, _ = program(weights, copied(held[0]), batches[0])
        return relative_error(found, wide(*precise)[0])

    return case(point, call, check if small_model(point) else None)
