"""Diffusion transformers as operations: text and image tokens together (MMDiT), and video with text beside it.

Scores of attentions that are not the whole sequence against itself (to text, or among image tokens alone) are written
as products with the keys: rows x keys x width, once for the scores and once for the values.
"""

from __future__ import annotations

from chipwise.ops.operations import Attention, Matmul, OpTable, Stream
from chipwise.workload.families.diffusion import TIME_WIDTH
from chipwise.workload.model import Model
from chipwise.workload.params import count


def scores(name: str, rows: float, keys: float, width: int, times: float) -> Matmul:
    """Scores and weighted values of `rows` queries over `keys` keys, all heads together."""
    return Matmul(name, rows, 2 * keys, width, times, "k", quantized=False)


def joint_table(m: Model, sequence: int) -> OpTable:
    """One pass over one image and its text."""
    j = m.joint
    assert j is not None
    d, text = m.d_model, float(j.text_tokens)
    rows = float(m.image_tokens)
    image = rows - text
    ends = j.double - (1 if j.text_ends else 0)
    wide = 2 * m.d_ff if m.gated else m.d_ff
    matmuls = [
        Matmul("image_qkv", image, 3 * d, d, j.double, "n"),
        Matmul("image_attention_out", image, d, d, j.double, "k"),
        Matmul("image_mlp_in", image, wide, d, j.double, "n"),
        Matmul("image_mlp_out", image, d, m.d_ff, j.double, "k"),
        Matmul("text_qkv", text, 3 * d, d, j.double, "n"),
        Matmul("text_attention_out", text, d, d, ends, "k"),
        Matmul("text_mlp_in", text, wide, d, ends, "n"),
        Matmul("text_mlp_out", text, d, m.d_ff, ends, "k"),
        _once("conditioning", 6 * d, d, 2 if j.shared_modulation else 2 * j.double),
        Matmul("text_in", text, d, j.text_dim, 1, "", place="stem", quantized=False),
        *_ends(m, image),
    ]
    if j.single:
        matmuls += [
            Matmul("single_in", rows, 3 * d + wide, d, j.single, "n"),
            Matmul("single_out", rows, d, d + m.d_ff, j.single, "k"),
            _once("single_conditioning", 3 * d, d, 1 if j.shared_modulation else j.single),
        ]
    if j.dual:
        matmuls += [
            Matmul("dual_qkv", image, 3 * d, d, j.dual, "n"),
            Matmul("dual_attention_out", image, d, d, j.dual, "k"),
            _once("dual_conditioning", 3 * d, d, j.dual),
            scores("dual_scores", image, image, d, j.dual),
        ]
    core = Attention(m.heads, m.heads, m.head_dim, m.head_dim, rows, rows, False, m.layers)
    return OpTable(m, sequence, tuple(matmuls), (core,), _streams(m, rows, 2), count(m), 0, rows)


def video_table(m: Model, sequence: int) -> OpTable:
    """One pass over one video and its text."""
    v = m.video
    assert v is not None
    d, n = m.d_model, m.layers
    rows = float(m.image_tokens)
    beside = [("text", float(v.text_tokens))]
    if v.image_tokens:
        beside.append(("image", float(v.image_tokens)))
    matmuls = [
        Matmul("qkv", rows, 3 * d, d, n, "n"),
        Matmul("attention_out", rows, d, d, n, "k"),
        Matmul("cross_q", rows, d, d, n, "n"),
        Matmul("cross_out", rows, d, d, n, "k"),
        Matmul("mlp_in", rows, m.d_ff, d, n, "n"),
        Matmul("mlp_out", rows, d, m.d_ff, n, "k"),
        _once("conditioning", 6 * d, d, 1),
        Matmul("text_in", float(v.text_tokens), d, v.text_dim, 1, "", place="stem", quantized=False),
        *_ends(m, rows),
    ]
    for name, keys in beside:
        matmuls.append(Matmul(f"{name}_kv", keys, 2 * d, d, n, "n"))
        matmuls.append(scores(f"{name}_scores", rows, keys, d, n))
    core = Attention(m.heads, m.heads, m.head_dim, m.head_dim, rows, rows, False, n)
    return OpTable(m, sequence, tuple(matmuls), (core,), _streams(m, rows, 3), count(m), 0, rows)


def _once(name: str, n: float, k: float, times: float) -> Matmul:
    """A product of one row a sample: what the time step and the text decide for all tokens alike."""
    return Matmul(name, 1.0, n, k, times, "n", quantized=False, per_sequence=True)


def _ends(m: Model, rows: float) -> list[Matmul]:
    """Patches in, noise out, and the embedding of the time step."""
    patch = m.patch * m.patch
    return [
        Matmul("patches", rows, m.d_model, patch * m.channels, 1, "", place="stem", quantized=False),
        Matmul("head", rows, patch * m.out_channels, m.d_model, 1, "n", place="head", quantized=False),
        Matmul("time", 1.0, m.d_model, TIME_WIDTH, 1, "", place="stem", quantized=False, per_sequence=True),
    ]


def _streams(m: Model, rows: float, steps: int) -> tuple[Stream, ...]:
    """Element-wise traffic, two bytes an element: a modulated norm and a gated residual for each step of a block."""
    d, n, per = m.d_model, m.layers, 3 if m.gated else 2
    return (
        Stream("norms", rows, 2 * 2 * d, n * steps, 1, True),
        Stream("residuals", rows, 2 * 3 * d, n * steps, 1, True),
        Stream("rotary", rows, 2 * 2 * 2 * d, n, 2, True),
        Stream("activation", rows, 2 * per * m.d_ff, n, 1, True),
    )
