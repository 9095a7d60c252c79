"""A character-level transformer on the text that ships with chipwise, in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chipwise.numerics.data import passages, text
from chipwise.programs.torch.block import Block

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 48, 3, 2, 48, 8
optimizer = {"name": "adamw", "learning_rate": 3e-3, "beta2": 0.99}


class CharTransformer(nn.Module):
    """Scores of the next character at every position."""

    def __init__(self) -> None:
        super().__init__()
        _, characters = text()
        self.tokens = nn.Embedding(characters, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, 4 * WIDTH, causal=True, bias=False) for _ in range(LAYERS)))
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
