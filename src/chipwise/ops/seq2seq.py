"""Encoder-decoders as operations: the encoder reads, the decoder writes and attends to both."""

from __future__ import annotations

from dataclasses import replace

from chipwise.ops.operations import Attention, Matmul, OpTable, Stream
from chipwise.workload.families import seq2seq
from chipwise.workload.model import Model
from chipwise.workload.params import count


def table(m: Model, sequence: int) -> OpTable:
    """One forward pass over one sample: `sequence` tokens read (T5), or written beside a fixed input (Whisper)."""
    return _table(m, sequence, *seq2seq.rows(m, sequence))


def prompt_table(m: Model) -> OpTable:
    """One token read: the encoder, and what it leaves for the decoder's attention to it."""
    return _of_rows(_table(m, 1, 1.0, 0.0))


def answer_table(m: Model) -> OpTable:
    """One token written, with what the encoder made in the cache."""
    return _of_rows(_table(m, 1, 0.0, 1.0))


def _of_rows(t: OpTable) -> OpTable:
    """A table without the operations that have no rows."""
    matmuls, streams = tuple(x for x in t.matmuls if x.rows), tuple(x for x in t.streams if x.rows)
    return replace(t, matmuls=matmuls, attention=(), streams=streams)


def _table(m: Model, sequence: int, read: float, written: float) -> OpTable:
    e = m.encoder
    assert e is not None
    d, width = m.d_model, m.heads * m.head_dim
    encoder, decoder = e.layers, m.layers - e.layers
    matmuls = [
        *_attention("encoder", read, width, d, encoder),
        *_mlp(m, "encoder", read, encoder),
        *_attention("decoder", written, width, d, decoder),
        Matmul("cross_q", written, width, d, decoder, "n"),
        Matmul("cross_kv", read, 2 * width, d, decoder, "n"),
        Matmul("cross_out", written, d, width, decoder, "k"),
        *_mlp(m, "decoder", written, decoder),
        Matmul("head", written, m.vocab, d, 1, "n", place="head", quantized=False),
    ]
    if e.mels:  # two convolutions of three taps; the second halves the frames
        matmuls.append(Matmul("audio_in", 2 * read, d, 3 * e.mels, 1, "", place="stem", quantized=False))
        matmuls.append(Matmul("audio_frames", read, d, 3 * d, 1, "", place="stem", quantized=False))
    cores = (
        Attention(m.heads, m.heads, m.head_dim, m.head_dim, read, read, False, encoder),
        Attention(m.heads, m.heads, m.head_dim, m.head_dim, written, written, True, decoder),
        Attention(m.heads, m.heads, m.head_dim, m.head_dim, written, read, False, decoder),
    )
    mean = (encoder * read + decoder * written) / m.layers
    return OpTable(m, sequence, tuple(matmuls), cores, tuple(_streams(m, read, written)), count(m), 0, mean)


def _attention(part: str, rows: float, width: int, d: int, layers: int) -> list[Matmul]:
    return [
        Matmul(f"{part}_qkv", rows, 3 * width, d, layers, "n"),
        Matmul(f"{part}_attention_out", rows, d, width, layers, "k"),
    ]


def _mlp(m: Model, part: str, rows: float, layers: int) -> list[Matmul]:
    wide = 2 * m.d_ff if m.gated else m.d_ff
    return [
        Matmul(f"{part}_mlp_in", rows, wide, m.d_model, layers, "n"),
        Matmul(f"{part}_mlp_out", rows, m.d_model, m.d_ff, layers, "k"),
    ]


def _streams(m: Model, read: float, written: float) -> list[Stream]:
    """Element-wise traffic, two bytes an element: a decoder layer has three norms and residuals, an encoder's two."""
    e = m.encoder
    assert e is not None
    d, decoder, per = m.d_model, m.layers - e.layers, 3 if m.gated else 2
    made = [Stream("embedding", read + written, 2 * 2 * d, 1, 1, True, "stem")]
    for part, rows, layers, norms in (("encoder", read, e.layers, 2), ("decoder", written, decoder, 3)):
        made.append(Stream(f"{part}_norms", rows, 2 * 2 * d, layers * norms, 1, True))
        made.append(Stream(f"{part}_residuals", rows, 2 * 3 * d, layers * norms, 1, True))
        made.append(Stream(f"{part}_activation", rows, 2 * per * m.d_ff, layers, 1, True))
    made.append(Stream("loss", written, 10 * m.vocab, 1, 4, True, "head"))
    return made
