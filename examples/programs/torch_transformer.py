"""A small decoder-only transformer in plain PyTorch: RMSNorm, rotary embeddings, causal attention, SwiGLU.

chipwise check examples/programs/torch_transformer.py:forward --on v5e:1
chipwise check examples/programs/torch_transformer.py:train --on v5e:2x2
"""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS, LENGTH = 2048, 256, 4, 2, 128


class Attention(nn.Module):
    """Causal self-attention with rotary position embeddings."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Attend over x of shape (batch, length, width)."""
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Apply rotary embeddings to (batch, heads, length, head width)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Block(nn.Module):
    """Attention and a gated feed-forward layer, each with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads)
        self.up = nn.Linear(width, 8 * width // 3 // 128 * 128 * 2, bias=False)
        self.down = nn.Linear(8 * width // 3 // 128 * 128, width, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """One layer."""
        x = x + self.attention(self.norm1(x), cos, sin)
        gate, value = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


class Transformer(nn.Module):
    """A decoder-only language model."""

    def __init__(self, vocab: int, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        half = width // heads // 2
        angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits for every position of (batch, length) tokens."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def forward() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The module and example inputs."""
    model = Transformer(VOCAB, WIDTH, HEADS, LAYERS, LENGTH).eval()
    return model, (torch.zeros(2, LENGTH, dtype=torch.long),)


def train() -> dict:
    """A training step: cross-entropy of the next token, AdamW."""
    tokens = torch.zeros(8, LENGTH, dtype=torch.long)
    return {
        "module": Transformer(VOCAB, WIDTH, HEADS, LAYERS, LENGTH),
        "args": (tokens,),
        "train": True,
        "loss": lambda logits, labels: F.cross_entropy(logits.flatten(0, 1), labels.flatten()),
        "targets": (tokens,),
        "optimizer": "adamw",
    }


def train_data_parallel() -> dict:
    """The same step with the batch over an axis named data and the weights sharded as FSDP does."""
    shardings = {"params": "fsdp", "args": [("data",)], "targets": [("data",)]}
    return {**train(), "axes": {"data": -1}, "shardings": shardings}


def seven_billion() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Seven billion parameters: no memory is taken for them when only compiled."""
    model = Transformer(32000, 4096, 32, 32, 2048).to(torch.bfloat16).eval()
    return model, (torch.zeros(1, 2048, dtype=torch.long),)
