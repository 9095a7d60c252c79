"""A convolutional network on handwritten digits (8x8, from scikit-learn), in PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chipwise.numerics.data import digits

BATCH = 64
optimizer = {"name": "adamw", "learning_rate": 2e-3}


def model() -> nn.Module:
    """Two convolutions and a classifier."""
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(1, 16, 3, padding=1),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(16, 32, 3, padding=1),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            classify=nn.Linear(32 * 4, 10),
        )
    )


def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross entropy of ten classes."""
    return F.cross_entropy(net(batch[0]), batch[1])


def batches(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Shuffled pictures."""
    for images, labels in digits(seed, BATCH):
        yield torch.from_numpy(images)[:, None], torch.from_numpy(labels).long()
