"""Diffusion transformers beyond DiT: MMDiT (Esser et al. 2024; FLUX, Qwen-Image) and video (Wan, 2025)."""

from __future__ import annotations

from chipwise.workload.model import Joint, Model

TIME_WIDTH = 256  # sinusoidal features of the time step (diffusers, embeddings.py, 2026-08)


def _embedder(inputs: int, d: int) -> int:
    """Two linear layers with biases."""
    return inputs * d + d + d * d + d


def joint_counts(m: Model) -> dict[str, int]:
    """Parameters of an MMDiT by class."""
    j = m.joint
    assert j is not None
    d, bias = m.d_model, int(m.bias)
    square = d * d + d * bias
    up = 2 if m.gated else 1
    mlp = (up + 1) * d * m.d_ff + (up * m.d_ff + d) * bias
    text = 2 * j.double - (1 if j.text_ends else 0)  # streams that end with an output projection and an MLP
    double = 2 * j.double * 3 * square + text * square + j.dual * 4 * square
    single = j.single * (4 * square - d * bias)  # one bias for what attention and MLP give together
    modulation = _modulation(j) * square
    times = _embedder(TIME_WIDTH, d) * (2 if j.guidance else 1)
    pooled = _embedder(j.pooled_dim, d) if j.pooled_dim else 0
    outside = times + pooled + 2 * square
    per_head = 2 * m.head_dim if m.qk_norm else 0
    return {
        "embedding": d * (m.channels * m.patch**2 + bias) + j.text_dim * d + d * bias,
        "positions": j.position_side**2 * d,
        "attention": double + single,
        "mlp": text * mlp + j.single * mlp,
        "norms": per_head * (2 * j.double + j.single + j.dual),
        "head": m.patch**2 * m.out_channels * (d + bias),
        "conditioning": modulation + outside,
        "conditioning_outside": outside + (modulation if j.shared_modulation else 0),
    }


def _modulation(j: Joint) -> int:
    """Projections of width d x d for shifts, scales and gates, all blocks: 6 a stream, 3 of a single block."""
    if j.shared_modulation:
        return 2 * 6 * bool(j.double) + 3 * bool(j.single)
    last = 4 if j.text_ends else 0  # the text's stream of the last block has shift and scale alone
    return 12 * j.double + 3 * j.single + 3 * j.dual - last


def video_counts(m: Model) -> dict[str, int]:
    """Parameters of a video diffusion transformer by class, all its denoisers."""
    v = m.video
    assert v is not None
    d = m.d_model
    square = d * d + d
    image = 2 * square + d if v.image_tokens else 0  # keys and values of the image, and a norm of the keys
    mlp = 2 * d * m.d_ff + m.d_ff + d
    time = _embedder(TIME_WIDTH, d) + 6 * square
    text = _embedder(v.text_dim, d)
    picture = (_embedder_wide(v.image_dim, d) + 2 * v.image_dim + 2 * d) if v.image_tokens else 0
    once = {
        "embedding": d * (m.channels * m.patch**2 + 1) + text + picture,
        "attention": m.layers * (8 * square + image),
        "mlp": m.layers * mlp,
        "norms": m.layers * (4 * d + 2 * d),  # of queries and keys of both attentions, and before the second
        "head": m.patch**2 * m.out_channels * (d + 1),
        "conditioning": m.layers * 6 * d + time + 2 * d,
        "conditioning_outside": time + 2 * d,
    }
    return {name: v.denoisers * n for name, n in once.items()}


def _embedder_wide(inputs: int, d: int) -> int:
    """Wan's image embedder: a square layer, then one to the model's width."""
    return inputs * inputs + inputs + inputs * d + d


def lora_pairs(m: Model) -> list[tuple[int, int, int]]:
    """(inputs, outputs, how many) of the attentions' projections."""
    d = m.d_model
    if m.video:
        return [(d, d, 8 * m.layers)]
    j = m.joint
    assert j is not None
    return [(d, d, 8 * j.double + 4 * j.single + 4 * j.dual)]
