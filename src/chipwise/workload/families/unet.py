"""Diffusion U-Nets (Rombach et al. 2022; SDXL, Podell et al. 2023), written out as the blocks they are."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.workload.model import Conv, Model, UNet

_TIME = 4  # the time step's embedding is so many times as wide as the first resolution (diffusers, 2026-08)


@dataclass(frozen=True, slots=True)
class Block:
    """A residual block, and the transformer blocks after it."""

    c_in: int
    c_out: int
    side: int
    depth: int


def blocks(u: UNet, image: int) -> list[Block]:
    """Every residual block in order: down, middle, up.

    >>> sdxl = UNet((320, 640, 1280), (0, 2, 10))
    >>> len(blocks(sdxl, 128)), sum(b.depth for b in blocks(sdxl, 128))
    (17, 70)
    """
    made, skips = [], [u.channels[0]]  # what the way down leaves for the way up
    c = u.channels[0]
    last = len(u.channels) - 1
    for level, (width, depth) in enumerate(zip(u.channels, u.depth, strict=True)):
        side = image >> level
        for _ in range(u.blocks):
            made.append(Block(c, width, side, depth))
            c = width
            skips.append(c)
        if level < last:
            skips.append(c)  # the convolution that halves the side
    middle = u.depth[-1] if u.middle is None else u.middle
    made += [Block(c, c, image >> last, middle), Block(c, c, image >> last, 0)]
    for level in reversed(range(len(u.channels))):
        for _ in range(u.blocks + 1):
            made.append(Block(c + skips.pop(), u.channels[level], image >> level, u.depth[level]))
            c = u.channels[level]
    return made


def convs(u: UNet, image: int, channels: int, out_channels: int) -> tuple[Conv, ...]:
    """The convolutions: the first, those of every block, those between resolutions, the last."""
    first = u.channels[0]
    made = [Conv("stem", channels, first, 3, image)]
    for i, b in enumerate(blocks(u, image)):
        made += [Conv(f"block{i}.in", b.c_in, b.c_out, 3, b.side), Conv(f"block{i}.out", b.c_out, b.c_out, 3, b.side)]
        if b.c_in != b.c_out:
            made.append(Conv(f"block{i}.skip", b.c_in, b.c_out, 1, b.side))
    for level, width in enumerate(u.channels[:-1]):
        made.append(Conv(f"down{level}", width, width, 3, image >> (level + 1), stride=2))
        made.append(Conv(f"up{level}", u.channels[level + 1], u.channels[level + 1], 3, image >> level))
    return (*made, Conv("last", first, out_channels, 3, image))


def counts(m: Model) -> dict[str, int]:
    """Parameters by class."""
    u = m.unet
    assert u is not None
    first = u.channels[0]
    time = _TIME * first
    made = blocks(u, m.image)
    attending = [b for b in made if b.depth]
    embed = first * time + time + time * time + time
    added = u.added_dim * time + time + time * time + time if u.added_dim else 0
    return {
        "conv": sum(c.count * (c.c_in * c.c_out * c.kernel**2 + c.c_out) for c in m.convs),
        "attention": sum(b.depth * _attention(b.c_out, u) + 2 * (b.c_out**2 + b.c_out) for b in attending),
        "mlp": sum(b.depth * (12 * b.c_out**2 + 9 * b.c_out) for b in attending),  # gated: 8 widths in, 4 out
        "norms": sum(2 * (b.c_in + b.c_out) + 2 * b.c_out * bool(b.depth) + 6 * b.depth * b.c_out for b in made)
        + 2 * first,
        "norms_outside": 2 * first,
        "conditioning": sum(time * b.c_out + b.c_out for b in made) + embed + added,
        "conditioning_outside": embed + added,
    }


def _attention(width: int, u: UNet) -> int:
    """Self-attention and attention to the text of one transformer block; only the outputs have biases."""
    return 4 * width**2 + 2 * width**2 + 2 * u.text_dim * width + 2 * width


def time_width(u: UNet) -> int:
    """Width of the time step's embedding."""
    return _TIME * u.channels[0]


def lora_pairs(m: Model) -> list[tuple[int, int, int]]:
    """(inputs, outputs, how many) of the attentions' projections."""
    u = m.unet
    assert u is not None
    made = [b for b in blocks(u, m.image) if b.depth]
    return [(b.c_out, b.c_out, 6 * b.depth) for b in made] + [(u.text_dim, b.c_out, 2 * b.depth) for b in made]
