"""A Llama-style decoder in plain PyTorch: RMSNorm, rotary positions, grouped queries, SwiGLU, an untied head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

ROPE_BASE = 10_000.0  # RoFormer (arXiv 2104.09864)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a decoder."""

    layers: int
    d: int
    h: int
    hk: int
    f: int
    vocab: int

    @property
    def head(self) -> int:
        """Width of one head."""
        return self.d // self.h


@dataclass(slots=True)
class Cache:
    """Keys and values of one layer: (b, hk, length, head) each."""

    keys: torch.Tensor
    values: torch.Tensor


def rotary(length: int, head: int, device: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of the positions."""
    rates = ROPE_BASE ** (-torch.arange(0, head, 2, device=device, dtype=torch.float32) / head)
    angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), rates)
    both = torch.cat((angles, angles), -1)
    return both.cos().to(dtype), both.sin().to(dtype)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Queries or keys turned by their positions."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


class Norm(nn.Module):
    """RMSNorm with a weight."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize the last axis."""
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class Block(nn.Module):
    """Attention and a gated MLP, each behind a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.norm1, self.norm2 = Norm(shape.d), Norm(shape.d)
        self.q = nn.Linear(shape.d, shape.d, bias=False)
        self.k, self.v = (nn.Linear(shape.d, shape.hk * shape.head, bias=False) for _ in range(2))
        self.o = nn.Linear(shape.d, shape.d, bias=False)
        self.gate, self.up = (nn.Linear(shape.d, shape.f, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.f, shape.d, bias=False)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: Cache | None = None, position: int = 0
    ) -> torch.Tensor:
        """One layer; with a cache, keys and values are written at `position`, and a lone token attends to all of it."""
        b, s, _ = x.shape
        shape, y = self.shape, self.norm1(x)
        q = rotated(self.q(y).view(b, s, shape.h, shape.head).transpose(1, 2), cos, sin)
        k = rotated(self.k(y).view(b, s, shape.hk, shape.head).transpose(1, 2), cos, sin)
        v = self.v(y).view(b, s, shape.hk, shape.head).transpose(1, 2)
        if cache is not None:
            cache.keys[:, :, position : position + s] = k
            cache.values[:, :, position : position + s] = v
        if cache is not None and s == 1:
            k, v = cache.keys, cache.values
        out = F.scaled_dot_product_attention(q, k, v, is_causal=s > 1, enable_gqa=shape.h != shape.hk)
        x = x + self.o(out.transpose(1, 2).reshape(b, s, shape.d))
        y = self.norm2(x)
        wide: torch.Tensor = self.down(F.silu(self.gate(y)) * self.up(y))
        return x + wide


class Decoder(nn.Module):
    """Embedding, blocks, a last norm and the output layer."""

    def __init__(self, shape: Shape, remat: bool = False) -> None:
        super().__init__()
        self.shape, self.remat = shape, remat
        self.embed = nn.Embedding(shape.vocab, shape.d)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.d)
        self.head = nn.Linear(shape.d, shape.vocab, bias=False)

    def forward(self, tokens: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Logits of every position."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, cos, sin, use_reentrant=False) if self.remat else block(x, cos, sin)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits

    def serve(
        self, tokens: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, caches: list[Cache], position: int
    ) -> torch.Tensor:
        """Logits of the last position, with the caches filled from `position` on."""
        x = self.embed(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cos, sin, cache, position)
        logits: torch.Tensor = self.head(self.norm(x[:, -1]))
        return logits


def weights_at_random(model: nn.Module) -> None:
    """Weights as models begin with them: normal, 0.02 wide."""
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
