"""A small residual network in plain PyTorch.

chipwise check examples/programs/torch_cnn.py:forward --on v5e:1
"""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """Two 3x3 convolutions with batch norm around a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One residual block."""
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, three residual blocks, and a classifier."""

    def __init__(self, width: int = 32, classes: int = 100) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        )
        self.blocks = nn.Sequential(
            Residual(width, width, 1), Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2)
        )
        self.classify = nn.Linear(4 * width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores of (batch, 3, height, width) images."""
        return self.classify(self.blocks(self.stem(images)).mean((2, 3)))


def forward() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The module and example inputs."""
    return ResNet().eval(), (torch.zeros(4, 3, 64, 64),)


def train() -> dict:
    """A training step with SGD and momentum; batch norm keeps its running statistics."""
    return {
        "module": ResNet(),
        "args": (torch.zeros(16, 3, 64, 64),),
        "train": True,
        "loss": F.cross_entropy,
        "targets": (torch.zeros(16, dtype=torch.long),),
        "optimizer": "sgd",
    }
