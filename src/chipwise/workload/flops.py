"""FLOPs of one forward pass in closed form, for what is said of a workload; `chipwise.ops` has them by operation."""

from __future__ import annotations

from chipwise.workload.families import seq2seq, unet
from chipwise.workload.model import Model
from chipwise.workload.params import count

_FLOPS_PER_PARAM = 2  # forward, per parameter and token


def pass_flops(m: Model, tokens: float) -> float:
    """FLOPs of one pass over `tokens` tokens; what conditions all tokens of an image alike is computed once for it.

    >>> from chipwise.workload.presets import preset
    >>> f"{50 * pass_flops(preset('dit-xl-2'), 256):.2e}"  # 119 billion multiply-adds a pass, as its authors print
    '1.19e+13'
    """
    if m.encoder:  # the prompt; its answer passes the decoder
        return seq2seq.encoder_flops(m, tokens)
    if not m.denoises:
        return _FLOPS_PER_PARAM * count(m).active * tokens
    if m.unet:
        return _unet(m)
    p, n, d = count(m), float(m.image_tokens), m.d_model
    scores = 2 * n * n * d * m.layers
    if m.joint:  # text and image tokens pass as many weights, of their own or shared ones
        image = n - m.joint.text_tokens
        work = m.layers * (4 * d * d + (3 if m.gated else 2) * d * m.d_ff) * n
        work += m.joint.dual * (4 * d * d * image + 2 * image * image * d)
        return _FLOPS_PER_PARAM * (work + scores + p.conditioning)
    if m.video:  # keys and values of the text and of a conditioning image come from few tokens
        beside = m.video.text_tokens + m.video.image_tokens
        work = m.layers * ((6 * d * d + 2 * d * m.d_ff) * n + 2 * d * d * beside + 2 * n * beside * d)
        return _FLOPS_PER_PARAM * (work + scores + p.conditioning / m.video.denoisers)
    return _FLOPS_PER_PARAM * ((p.attention + p.mlp + p.embedding + p.head) * n + p.conditioning + scores)


def _unet(m: Model) -> float:
    """Convolutions, and the transformer blocks with their scores."""
    assert m.unet is not None
    u = m.unet
    work = float(sum(c.count * c.c_in * c.c_out * c.kernel**2 * c.out**2 for c in m.convs))
    for b in unet.blocks(u, m.image):
        d, rows = b.c_out, float(b.side**2)
        text = 2 * u.text_tokens * u.text_dim * d
        inside = rows * (18 * d * d) + text + 2 * rows * (rows + u.text_tokens) * d
        work += b.depth * inside + (2 * rows * d * d if b.depth else 0)
    return _FLOPS_PER_PARAM * work
