"""Attention of the reference programs: the splash kernel on TPUs, cuDNN's if asked, else the compiler's own fusion."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from chipwise.errors import Refusal
from chipwise.programs.jax.context import order, own_blocks, own_positions
from chipwise.programs.program import BLOCK

# Of q [batch, heads, sequence, qk], k, v [batch, kv heads, sequence, qk or v] and one sink a head or None.
Attend = Callable[[jax.Array, jax.Array, jax.Array, jax.Array | None], jax.Array]

SPLASH_HEAD = 64  # smallest head the kernel pads well


def attention(
    platform: str,
    sequence: int,
    heads: int,
    head_dim: int,
    causal: bool = True,
    window: int = 0,
    block: int = BLOCK,
    parts: int = 1,
) -> Attend:
    """Attention over `heads` query heads, scaled inside; fewer key heads are shared evenly.

    Of whole sequences, or with the queries of one of `parts` devices that share each.
    """
    scale = head_dim**-0.5
    if platform == "tpu" and sequence % (128 * parts) == 0 and head_dim >= SPLASH_HEAD:
        return _splash(sequence, heads, scale, causal, window, block, parts)
    if platform == "cudnn" and not window and parts == 1:
        return _cudnn(scale, causal)
    return _plain(sequence, scale, causal, window, parts)


def _splash(sequence: int, heads: int, scale: float, causal: bool, window: int, block: int, parts: int) -> Attend:
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    here = sequence // parts
    size = next(b for b in (block, 512, 256, 128) if b <= max(here, 128) and here % b == 0)
    sizes = kernels.BlockSizes(
        block_q=size,
        block_kv=size,
        block_kv_compute=min(size, 512),
        block_q_dkv=size,
        block_kv_dkv=size,
        block_kv_dkv_compute=min(size, 512),
        use_fused_bwd_kernel=True,
    )
    shape = (sequence, sequence)
    mask: masks.Mask
    if window:
        mask = masks.LocalMask(shape, (window - 1, 0) if causal else (window // 2, window // 2), 0)
    else:
        mask = masks.CausalMask(shape) if causal else masks.FullMask(shape)
    if parts > 1 and not isinstance(mask, masks.FullMask):
        mask.q_sequence = order(sequence, parts)  # all but the full one are computed from positions
    share = coverage(sequence, causal, window)

    def attend(q: jax.Array, k: jax.Array, v: jax.Array, sinks: jax.Array | None) -> jax.Array:
        kernel = kernels.make_splash_mha(
            mask=masks.MultiHeadMask([mask] * heads), head_shards=1, q_seq_shards=parts, block_sizes=sizes
        )
        if parts > 1:
            kernel = own_blocks(kernel, parts)
        with jax.named_scope(f"splash[{share:.6f}]"):  # the kernel's mask doesn't show in its shapes
            out: jax.Array = jax.vmap(kernel, (0, 0, 0, None, None))((q * scale).astype(q.dtype), k, v, None, sinks)
            return out

    return attend


def _cudnn(scale: float, causal: bool) -> Attend:
    def attend(q: jax.Array, k: jax.Array, v: jax.Array, sinks: jax.Array | None) -> jax.Array:
        if sinks is not None:
            raise Refusal("cuDNN's attention knows no sinks")
        q, k, v = (t.swapaxes(1, 2) for t in (q, k, v))
        out = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=causal, implementation="cudnn")
        return out.swapaxes(1, 2)

    return attend


def coverage(sequence: int, causal: bool, window: int) -> float:
    """Share of the score matrix that the mask leaves.

    >>> coverage(4, True, 0), coverage(4, False, 0), coverage(4, True, 2)
    (0.625, 1.0, 0.4375)
    """
    if window and window < sequence and not causal:
        side = min(window // 2, sequence - 1)
        return (sequence * (2 * side + 1) - side * (side + 1)) / sequence**2
    if window and window < sequence:
        return (window * (window + 1) / 2 + (sequence - window) * window) / sequence**2
    return (sequence + 1) / (2 * sequence) if causal else 1.0


def attention_mask(queries: jax.Array, keys: jax.Array, causal: bool, window: int) -> jax.Array:
    """Which keys each query attends to, by their positions."""
    ahead = queries[:, None] - keys[None, :]
    if not causal:
        return jnp.abs(ahead) <= window // 2 if window else jnp.full(ahead.shape, True)
    return (ahead >= 0) & (ahead < window) if window else ahead >= 0


def weights_of(scores: jax.Array, sinks: jax.Array | None) -> jax.Array:
    """Softmax of [batch, heads, queries, keys]; a sink takes its share and gives nothing."""
    if sinks is None:
        return jax.nn.softmax(scores)
    sink = jnp.broadcast_to(sinks.astype(scores.dtype)[None, :, None, None], (*scores.shape[:3], 1))
    return jax.nn.softmax(jnp.concatenate([scores, sink], -1))[..., :-1]


def _plain(sequence: int, scale: float, causal: bool, window: int, parts: int) -> Attend:
    def attend(q: jax.Array, k: jax.Array, v: jax.Array, sinks: jax.Array | None) -> jax.Array:
        group = q.shape[1] // k.shape[1]
        k, v = (jnp.repeat(t, group, axis=1) if group > 1 else t for t in (k, v))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q * scale, k).astype(jnp.float32)
        if causal or window:
            keys = jnp.arange(sequence)
            queries = own_positions(sequence // parts, parts)
            scores = jnp.where(attention_mask(queries, keys, causal, window), scores, -1e30)
        return jnp.einsum("bhqk,bhkd->bhqd", weights_of(scores, sinks).astype(q.dtype), v)

    return attend
