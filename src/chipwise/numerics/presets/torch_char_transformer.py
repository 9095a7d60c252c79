"""A character-level transformer on the text that ships with chipwise, in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chipwise.numerics.data import passages, text

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 48, 3, 2, 48, 8
optimizer = {"name": "adamw", "learning_rate": 3e-3, "beta2": 0.99}


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Mix over earlier positions."""
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm and beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """One block."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))  # type: ignore[no-any-return]


class CharTransformer(nn.Module):
    """Scores of the next character at every position."""

    def __init__(self) -> None:
        super().__init__()
        _, characters = text()
        self.tokens = nn.Embedding(characters, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of (batch, length) characters."""
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions(places))))  # type: ignore[no-any-return]


def model() -> nn.Module:
    """The module."""
    return CharTransformer()


def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross entropy per character."""
    return F.cross_entropy(net(batch[0]).flatten(0, 1), batch[1].flatten())


def batches(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Passages at random."""
    for x, y in passages(seed, BATCH, LENGTH):
        yield torch.from_numpy(x).long(), torch.from_numpy(y).long()
