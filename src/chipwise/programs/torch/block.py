"""A pre-norm transformer block in plain PyTorch: LayerNorm, attention over fused projections, a GELU MLP."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Self-attention; `causal` mixes over earlier positions alone."""

    def __init__(self, width: int, heads: int, *, causal: bool, bias: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Mix over positions."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and an MLP, each behind a norm and beside a shortcut; `bias` is of the attention's projections."""

    def __init__(self, width: int, heads: int, inner: int, *, causal: bool, bias: bool = True) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal, bias=bias)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """One block."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))  # type: ignore[no-any-return]
