"""PyTorch modules of the kinds people hand in, each tiny."""

import torch
from torch import nn


@torch.library.custom_op("cases::fast_relu", mutates_args=())
def fast_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


@fast_relu.register_fake
def _(x):
    return torch.empty_like(x)


class Custom(nn.Module):
    def forward(self, x):
        return fast_relu(x + 1)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Mask(nn.Module):
    def forward(self, x):
        return x[x > 0].sum()


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 128)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        with torch.no_grad():
            y = torch.sin(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.linear(y)
        return self.dropout(z.float()).square().mean()


class Keywords(nn.Module):
    def forward(self, x, scale, *, shift=None):
        return x * scale + shift


def custom():
    return Custom(), (torch.zeros(8, 128),)


def branch():
    return Branch(), (torch.zeros(8, 128),)


def mask():
    return Mask(), (torch.zeros(8, 128),)


def regions():
    return {"module": Regions(), "args": (torch.zeros(8, 128),), "train": True, "optimizer": "sgd"}


def keywords():
    return {
        "module": Keywords(),
        "args": (torch.zeros(8, 128), 2.0),
        "kwargs": {"shift": torch.ones(128)},
        "dynamic_shapes": {"x": {0: torch.export.Dim("batch")}, "scale": None, "shift": None},
    }


def reads_a_value():
    width = int(torch.full((), 64.0).item())
    return nn.Linear(width, 8), (torch.zeros(4, width),)


def not_a_module():
    return torch.relu, (torch.zeros(4),)
