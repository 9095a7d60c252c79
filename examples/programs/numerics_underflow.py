"""A PyTorch program that trains in fp32 and bf16, but in fp16 only with loss scaling: its gradients are tiny.

The loss is weighed by 1e-5, as an auxiliary loss may be. Gradients of the scores are then about 1e-8, below the
smallest number of fp16 (6e-8), and become 0.

    chipwise numerics examples/programs/numerics_underflow.py
"""

from collections import OrderedDict
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

WEIGHT, FEATURES, CLASSES, BATCH = 1e-5, 16, 8, 128
optimizer = {"name": "adamw", "learning_rate": 3e-3, "epsilon": 1e-15}
steps = 100


def model() -> nn.Module:
    """A perceptron with one hidden layer; chipwise sets the seed before it calls this."""
    return nn.Sequential(OrderedDict(hidden=nn.Linear(FEATURES, 32), tanh=nn.Tanh(), scores=nn.Linear(32, CLASSES)))


def loss(net: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Cross entropy with a small weight."""
    features, labels = batch
    return WEIGHT * F.cross_entropy(net(features), labels)


def batches(seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Points around one centre for each class."""
    chance = torch.Generator().manual_seed(seed)
    centres = torch.randn(CLASSES, FEATURES, generator=chance)
    while True:
        labels = torch.randint(CLASSES, (BATCH,), generator=chance)
        yield centres[labels] + torch.randn(BATCH, FEATURES, generator=chance), labels
