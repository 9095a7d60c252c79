"""Diffusion U-Nets as operations: convolutions, and transformer blocks at some resolutions."""

from __future__ import annotations

from chipwise.ops.convolution import convolution, norm
from chipwise.ops.diffusion import scores
from chipwise.ops.operations import Matmul, OpTable, Stream
from chipwise.workload.families.unet import Block, blocks, time_width
from chipwise.workload.model import Model, UNet
from chipwise.workload.params import count


def table(m: Model, sequence: int) -> OpTable:
    """One pass over one latent image and its text."""
    u = m.unet
    assert u is not None
    matmuls, streams = [], []
    for i, c in enumerate(m.convs):
        matmuls.append(convolution(c, first=i == 0, quantized=c.kernel > 1))
        # a group norm reads twice and writes before the convolution; the activation reads and writes
        streams.append(norm(c.name + "_norm", float(c.out * c.out), c.c_in, c.count))
    for i, b in enumerate(blocks(u, m.image)):
        matmuls.append(_once(f"block{i}.time", b.c_out, time_width(u)))
        if b.depth:
            matmuls += _transformer(f"block{i}", b, u)
            streams += _streams(f"block{i}", b)
    return OpTable(m, sequence, tuple(matmuls), (), tuple(streams), count(m), 0, float(m.image**2))


def _once(name: str, n: float, k: float) -> Matmul:
    return Matmul(name, 1.0, n, k, 1, "", quantized=False, per_sequence=True)


def _transformer(name: str, b: Block, u: UNet) -> list[Matmul]:
    """Self-attention, attention to the text and a gated MLP, `depth` times between two projections."""
    d, rows, text = b.c_out, float(b.side**2), float(u.text_tokens)
    return [
        Matmul(f"{name}.project", rows, d, d, 2, ""),
        Matmul(f"{name}.qkv", rows, 3 * d, d, b.depth, ""),
        scores(f"{name}.scores", rows, rows, d, b.depth),
        Matmul(f"{name}.attention_out", rows, d, d, 2 * b.depth, ""),  # of both attentions
        Matmul(f"{name}.cross_q", rows, d, d, b.depth, ""),
        Matmul(f"{name}.cross_kv", text, 2 * d, u.text_dim, b.depth, ""),
        scores(f"{name}.cross_scores", rows, text, d, b.depth),
        Matmul(f"{name}.mlp_in", rows, 8 * d, d, b.depth, ""),
        Matmul(f"{name}.mlp_out", rows, d, 4 * d, b.depth, ""),
    ]


def _streams(name: str, b: Block) -> list[Stream]:
    d, rows = b.c_out, float(b.side**2)
    return [
        Stream(f"{name}.norms", rows, 2 * 2 * d, 3 * b.depth, 1, False),
        Stream(f"{name}.residuals", rows, 2 * 3 * d, 3 * b.depth, 1, False),
        Stream(f"{name}.activation", rows, 2 * 3 * 4 * d, b.depth, 1, False),
    ]
