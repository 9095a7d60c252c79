"""PyTorch modules torch.export or XLA refuses."""

import torch
from torch import nn


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # here
            return x
        return -x


class Selected(nn.Module):
    def forward(self, x):
        return x[x > 0]  # here


class Custom(nn.Module):
    def forward(self, x):
        return torch.ops.chipwise_test.scale(x)  # here


@torch.library.custom_op("chipwise_test::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@scale.register_fake
def _(x):
    return torch.empty_like(x)


def branch():
    return Branch(), (torch.ones(8),)


def selected():
    return Selected(), (torch.ones(8),)


def custom():
    return Custom(), (torch.ones(8),)


def double():
    return nn.Linear(8, 8).double(), (torch.ones(4, 8, dtype=torch.float64),)
