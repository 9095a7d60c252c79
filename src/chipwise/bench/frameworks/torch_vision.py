"""ResNet-50 v1.5 and vision transformers through PyTorch: training and inference at 224 x 224."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from chipwise.bench.frameworks.interface import Case, Device, Unsupported
from chipwise.bench.frameworks.torch_kernels import DTYPES, tf32
from chipwise.bench.frameworks.torch_models import BATCHES, compiled
from chipwise.ops.point import Point
from chipwise.ops.work import CLASSES, IMAGE, patch_side, work_of

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


def resnet50() -> nn.Module:
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
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, CLASSES))


class Vit(nn.Module):
    """A vision transformer with a class token, pre-norm and GELU."""

    def __init__(self, tokens: int, layers: int, d: int, h: int, f: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, d, patch_side(tokens), patch_side(tokens))
        self.first = nn.Parameter(torch.zeros(1, 1, d))
        self.positions = nn.Parameter(torch.randn(1, tokens, d) * 0.02)
        self.blocks = nn.ModuleList(VitBlock(d, h, f) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the classes."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x[:, 0]))
        return logits


class VitBlock(nn.Module):
    """Attention over all patches, and an MLP."""

    def __init__(self, d: int, h: int, f: int) -> None:
        super().__init__()
        self.h = h
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, f), nn.GELU(), nn.Linear(f, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, d))
        wide: torch.Tensor = self.mlp(self.norm2(x))
        return x + wide


def build(point: Point, on: str, device: Device) -> Case:
    """A training step or a forward pass on a batch of images."""
    if point.dtype not in ("fp32", "tf32", "bf16", "fp16"):
        raise Unsupported(f"{point.dtype} convolutions are not in PyTorch")
    tf32(point.dtype == "tf32")
    dtype, side = DTYPES[point.dtype], IMAGE
    resnet, training = point.kind.startswith("resnet"), point.kind.endswith("train")
    with torch.device(on):
        model = resnet50() if resnet else Vit(*(point.sizes[name] for name in ("s", "layers", "d", "h", "f")))
    model = model.to(dtype).train(training)
    if resnet:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = [torch.randn(point.sizes["b"], 3, side, side, device=on, dtype=dtype) for _ in range(BATCHES)]
    if resnet:
        images = [x.to(memory_format=torch.channels_last) for x in images]
    labels = [torch.randint(0, CLASSES, (point.sizes["b"],), device=on) for _ in range(BATCHES)]
    run = compiled(model, point.compile)
    call = _training(model, run, images, labels, resnet) if training else _inference(run, images)
    work = work_of(point)
    return Case(call, work.flops, work.moved_bytes, work.items, sum(p.numel() for p in model.parameters()))


def _training(
    model: nn.Module, run: nn.Module, images: list[torch.Tensor], labels: list[torch.Tensor], resnet: bool
) -> Callable[[int], object]:
    optimizer: torch.optim.Optimizer = (
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        if resnet
        else torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    )

    def call(i: int) -> object:
        loss = F.cross_entropy(run(images[i % BATCHES]).float(), labels[i % BATCHES])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return call


def _inference(run: nn.Module, images: list[torch.Tensor]) -> Callable[[int], object]:
    @torch.no_grad()
    def call(i: int) -> object:
        return run(images[i % BATCHES])

    return call
