"""The intermediate form: a model as a table of operations, per sequence, before any splitting.

Rows (the M of a matrix product) are counted per sequence (or image); a layout turns them into rows per
micro-batch and chip. `split` says which dimension tensor parallelism divides: ``n``, ``k`` or nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from chipwise.ops import diffusion, recurrent, seq2seq, unet
from chipwise.ops.convolution import convolution, join, norm
from chipwise.ops.operations import Attention, Matmul, OpTable, Stream, StreamKind
from chipwise.workload.model import Model
from chipwise.workload.params import count

MASKED = 0.15  # share of tokens an encoder predicts in pre-training (BERT, Devlin et al. 2018, section 3.1)


def _mlp(rows: float, d: int, f: int, gated: bool, layers: float, tag: str = "mlp") -> list[Matmul]:
    wide = 2 * f if gated else f
    return [
        Matmul(f"{tag}_in", rows, wide, d, layers, "n"),
        Matmul(f"{tag}_out", rows, d, f, layers, "k"),
    ]


def _attention_matmuls(m: Model, s: float) -> list[Matmul]:
    if m.latent is None:
        q, kv = m.heads * m.head_dim, 2 * m.kv_heads * m.head_dim
        n = m.attention_layers
        if not n:
            return []
        return [
            Matmul("qkv", s, q * (1 + m.gated_attention) + kv, m.d_model, n, "n"),
            Matmul("attention_out", s, m.d_model, q, n, "k"),
        ]
    z = m.latent
    qk = z.nope_dim + z.rope_dim
    down = (z.q_rank or 0) + z.kv_rank + z.rope_dim
    ops = [Matmul("latent_down", s, down, m.d_model, m.layers, "")]
    ops.append(Matmul("q_up", s, m.heads * qk, z.q_rank or m.d_model, m.layers, "n"))
    ops.append(Matmul("kv_up", s, m.heads * (z.nope_dim + z.v_dim), z.kv_rank, m.layers, "n"))
    ops.append(Matmul("attention_out", s, m.d_model, m.heads * z.v_dim, m.layers, "k"))
    if m.indexer:  # its queries come from the latent; one key and the weights of its heads from the stream
        i = m.indexer
        ops.append(Matmul("indexer_queries", s, i.heads * i.dim, z.q_rank or m.d_model, m.layers, "n"))
        ops.append(Matmul("indexer_keys", s, i.dim + i.heads, m.d_model, m.layers, ""))
    return ops


def _mlp_matmuls(m: Model, s: float) -> list[Matmul]:
    e = m.experts
    if e is None:
        return _mlp(s, m.d_model, m.d_ff, m.gated, m.dense_layers) if m.dense_layers else []
    moe = m.moe_layers
    wide = 2 * e.d_ff if m.gated else e.d_ff
    rows, inside = s * e.per_token, e.latent_dim or m.d_model
    ops = [
        Matmul("router", s, e.count, m.d_model, moe, "", quantized=False),
        Matmul("expert_in", rows, wide, inside, moe, "n", groups=e.count),
        Matmul("expert_out", rows, inside, e.d_ff, moe, "k", groups=e.count),
    ]
    if e.latent_dim:
        ops.append(Matmul("expert_down", s, e.latent_dim, m.d_model, moe, ""))
        ops.append(Matmul("expert_up", s, m.d_model, e.latent_dim, moe, ""))
    if e.shared_d_ff:
        ops += _mlp(s, m.d_model, e.shared_d_ff, m.gated, moe, "shared")
    if m.dense_layers:
        ops += _mlp(s, m.d_model, m.d_ff, m.gated, m.dense_layers)
    return ops


def _attention_cores(m: Model, s: float) -> list[Attention]:
    if m.latent is not None:
        qk, v, kv_heads = m.latent.nope_dim + m.latent.rope_dim, m.latent.v_dim, m.heads
    else:
        qk = v = m.head_dim
        kv_heads = m.kv_heads
    if m.ssm:
        full = [Attention(m.heads, kv_heads, qk, v, s, s, m.causal, m.attention_layers)] if m.attention_layers else []
        return [*full, *recurrent.cores(m.ssm, s)]
    local = m.windowed_layers if m.window < s else 0
    if m.indexer and local:  # every pair is scored by the small heads before some are picked
        i = m.indexer
        picked = Attention(m.heads, kv_heads, qk, v, s, m.window, m.causal, local)
        return [picked, Attention(i.heads, 1, i.dim, 0, s, s, m.causal, local)]
    if local:
        cores = [
            Attention(m.heads, kv_heads, qk, v, s, m.window, m.causal, local),
            Attention(m.heads, kv_heads, qk, v, s, s, m.causal, m.layers - local),
        ]
        return [c for c in cores if c.count]
    return [Attention(m.heads, kv_heads, qk, v, s, s, m.causal, m.layers)]


def _layer_streams(m: Model, s: float) -> list[Stream]:
    """Element-wise traffic of the layers, two bytes an element, each tensor once in or out."""
    d, n = m.d_model, m.layers
    q = m.heads * (m.latent.nope_dim + m.latent.rope_dim if m.latent else m.head_dim)
    kv = m.kv_heads * m.head_dim
    streams = [
        Stream("norms", s, 2 * 2 * d, n * m.norms_per_layer, 1, True),
        Stream("residuals", s, 2 * 3 * d, n * 2, 1, True),
    ]
    if m.family == "encoder":  # a value and a byte of its mask are written for each that is read (Devlin et al., A.2)
        streams.append(Stream("dropout", s, 5 * d, n * 2, 1, True, kind=StreamKind.DROPOUT))
    if m.family == "decoder" and not m.learned_positions:
        streams.append(Stream("rotary", s, 2 * 2 * (q + kv), m.attention_layers, 2, True))
    per = 3 if m.gated else 2
    e = m.experts
    moe = m.moe_layers
    if e is not None:
        streams.append(Stream("expert_activation", s * e.per_token, 2 * per * e.d_ff, moe, 1, True))
        streams.append(Stream("permute", s * e.per_token, 2 * 4 * d, moe, 4, True))
        if e.shared_d_ff:
            streams.append(Stream("shared_activation", s, 2 * per * e.shared_d_ff, moe, 1, True))
    if m.dense_layers:
        streams.append(Stream("activation", s, 2 * per * m.d_ff, m.dense_layers, 1, True))
    if m.ssm:
        streams += recurrent.streams(m.ssm, s)
    return streams


def _transformer(m: Model, s: int) -> OpTable:
    p = count(m)
    rows = float(s)
    matmuls = _attention_matmuls(m, rows) + _mlp_matmuls(m, rows)
    if m.ssm:
        matmuls = recurrent.matmuls(m.d_model, m.ssm, rows) + matmuls
    streams = _layer_streams(m, rows)
    if m.family in ("vit", "dit"):
        patch = m.patch * m.patch * m.channels
        matmuls.append(Matmul("patches", rows, m.d_model, patch, 1, "", place="stem", quantized=False))
        out = patch * 2 if m.family == "dit" else m.classes
        if out:
            head_rows = rows if m.family == "dit" else 1.0
            matmuls.append(Matmul("head", head_rows, out, m.d_model, 1, "n", place="head", quantized=False))
        if m.cond_dim:
            matmuls.append(
                Matmul(
                    "conditioning", 1.0, 6 * m.d_model, m.cond_dim, m.layers, "n", quantized=False, per_sequence=True
                )
            )
    else:
        streams.append(Stream("embedding", rows, 2 * 2 * m.d_model, 1, 1, True, "stem"))
        if m.vocab and m.vocab_head:
            heads = 1 + m.mtp_layers
            scored = rows * MASKED if m.family == "encoder" else rows
            matmuls.append(Matmul("head", scored, m.vocab, m.d_model, heads, "n", place="head", quantized=False))
            # logits written, read for the maximum, the sum and the gradient, in fp32 where softmax runs
            streams.append(Stream("loss", scored, 10 * m.vocab, heads, 4, True, "head"))
    cores = _attention_cores(m, rows)
    if m.mtp_layers:  # prediction layers beyond the model's own are layers like them
        share = (m.layers + m.mtp_layers) / m.layers
        matmuls = [replace(x, count=x.count * share) if x.place == "layer" else x for x in matmuls]
        streams = [replace(x, count=x.count * share) if x.place == "layer" else x for x in streams]
        cores = [replace(x, count=x.count * share) for x in cores]
    return OpTable(m, s, tuple(matmuls), tuple(cores), tuple(streams), p, m.moe_layers, rows)


def _cnn(m: Model) -> OpTable:
    matmuls, streams = [], []
    for i, c in enumerate(m.convs):
        rows = float(c.out * c.out)
        matmuls.append(convolution(c, first=i == 0))
        streams.append(norm(f"{c.name}_norm", rows, c.c_out, c.count))
        if c.joins:
            streams.append(join(f"{c.name}_sum", rows, c.c_out, c.joins))
    stem, second = m.convs[0], m.convs[1] if len(m.convs) > 1 else None
    if second is not None and stem.out > second.out * second.stride:  # every value is read, one in four is left
        rows = float(stem.out * stem.out)
        streams.append(Stream("pool", rows, 2 * 1.25 * stem.c_out, 1, 1, False))
    last = m.convs[-1].c_out
    matmuls.append(Matmul("head", 1.0, m.classes, last, 1, "", place="head", quantized=False))
    return OpTable(m, 1, tuple(matmuls), (), tuple(streams), count(m), 0, float(max(c.out for c in m.convs) ** 2))


@lru_cache(maxsize=512)
def token_table(model: Model, prompt: bool) -> OpTable:
    """The operations of one token that is served: of a prompt, or of an answer; attention's scores not included.

    They differ in encoder-decoders alone.
    """
    if model.encoder is None:
        return build(model, 1)
    return seq2seq.prompt_table(model) if prompt else seq2seq.answer_table(model)


@lru_cache(maxsize=512)
def build(model: Model, sequence: int) -> OpTable:
    """The operations of one forward pass of `model` over a sequence of `sequence` tokens (or an image)."""
    special = {
        "encoder-decoder": seq2seq.table, "mmdit": diffusion.joint_table, "video-dit": diffusion.video_table,
        "unet": unet.table,
    }  # fmt: skip
    if model.family in special:
        return special[model.family](model, sequence)
    if model.family == "cnn":
        return _cnn(model)
    if model.family in ("vit", "dit"):
        side = model.image // model.patch
        return _transformer(model, side * side + (1 if model.family == "vit" else 0))
    return _transformer(model, sequence)
