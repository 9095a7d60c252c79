"""Encoder-decoders: T5 (Raffel et al. 2019) and Whisper (Radford et al. 2022)."""

from __future__ import annotations

from chipwise.workload.model import Model

# Target tokens for each token read in T5's span corruption: 114 for 512 (google-research/t5x, pretrain_default.gin,
# TASK_FEATURE_LENGTHS, 2021-11)
TARGETS = 114 / 512


def counts(m: Model) -> dict[str, int]:
    """Parameters by class: the decoder has a second attention, to what the encoder made."""
    e = m.encoder
    assert e is not None  # build_model gives every encoder-decoder one
    d, width = m.d_model, m.heads * m.head_dim
    decoder = m.layers - e.layers
    attention = 4 * d * width + (2 * width + d) * m.bias  # Whisper's keys have no bias
    up = 2 if m.gated else 1
    mlp = (up + 1) * d * m.d_ff + (up * m.d_ff + d) * m.bias
    norm = m.norm_params * d
    return {
        "embedding": m.vocab * d,
        "positions": (m.learned_positions + (e.tokens if e.mels else 0)) * d,
        "attention": (e.layers + 2 * decoder) * attention,
        "mlp": m.layers * mlp,
        "norms": (2 * e.layers + 3 * decoder + 2) * norm,
        "norms_outside": 2 * norm,
        "head": 0 if m.tied else m.vocab * d,
        "conv": (3 * e.mels * d + d + 3 * d * d + d) if e.mels else 0,
        "other": 2 * e.relative_buckets * m.heads,
        "other_outside": 2 * e.relative_buckets * m.heads,
    }


def written_params(m: Model) -> int:
    """Weights that a token of an answer passes: the decoder's, without the keys and values of what was read."""
    e = m.encoder
    assert e is not None
    d, width, decoder = m.d_model, m.heads * m.head_dim, m.layers - e.layers
    mlp = (3 if m.gated else 2) * d * m.d_ff
    return decoder * (6 * d * width + mlp) + m.vocab * d


def encoder_flops(m: Model, tokens: float) -> float:
    """FLOPs of the encoder over so many tokens, and of the keys and values that the decoder will read.

    >>> from chipwise.workload.presets import preset
    >>> f"{encoder_flops(preset('whisper-large-v3'), 1500):.2e}"
    '2.59e+12'
    """
    e = m.encoder
    assert e is not None
    d, width, decoder = m.d_model, m.heads * m.head_dim, m.layers - e.layers
    mlp = (3 if m.gated else 2) * d * m.d_ff
    layer = 4 * d * width + mlp + 2 * tokens * width
    audio = 2 * 3 * e.mels * d + 3 * d * d if e.mels else 0
    return 2 * tokens * (e.layers * layer + 2 * decoder * d * width + audio)


def rows(m: Model, sequence: int) -> tuple[float, float]:
    """Tokens that the encoder reads and that the decoder writes of one sample."""
    assert m.encoder is not None
    if m.encoder.tokens:
        return float(m.encoder.tokens), float(sequence)
    return float(sequence), sequence * TARGETS


def lora_pairs(m: Model) -> list[tuple[int, int, int]]:
    """(inputs, outputs, how many) of the attentions' projections."""
    assert m.encoder is not None
    width, attentions = m.heads * m.head_dim, 2 * m.layers - m.encoder.layers
    return [(m.d_model, width, 3 * attentions), (width, m.d_model, attentions)]
