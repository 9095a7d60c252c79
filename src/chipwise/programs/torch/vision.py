"""ResNet-50 v1.5 and vision transformers in plain PyTorch."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from chipwise.programs.torch.block import Block

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride (arXiv 1512.03385)


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut; the stride is in the 3x3 one (v1.5)."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False),
            nn.BatchNorm2d(4 * width),
        )
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inside != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        return F.relu(self.main(x) + self.short(x), inplace=True)


def resnet50(classes: int) -> nn.Module:
    """ResNet-50 v1.5."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = 64
    for width, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(inside, width, stride if block == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


class Vit(nn.Module):
    """A vision transformer with a class token and learned positions."""

    def __init__(
        self, *, patch: int, tokens: int, layers: int, width: int, heads: int, inner: int, classes: int
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, inner, causal=False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the classes."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x[:, 0]))
        return logits
