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
from chipwise.programs.torch.vision import Vit, resnet50


def build(point: Point, on: str, device: Device) -> Case:
    """A training step or a forward pass on a batch of images."""
    if point.dtype not in ("fp32", "tf32", "bf16", "fp16"):
        raise Unsupported(f"{point.dtype} convolutions are not in PyTorch")
    tf32(point.dtype == "tf32")
    dtype, side = DTYPES[point.dtype], IMAGE
    resnet, training = point.kind.startswith("resnet"), point.kind.endswith("train")
    with torch.device(on):
        model = resnet50(CLASSES) if resnet else _vit(point)
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


def _vit(point: Point) -> nn.Module:
    sizes = point.sizes
    blocks = {"width": sizes["d"], "heads": sizes["h"], "inner": sizes["f"], "layers": sizes["layers"]}
    return Vit(patch=patch_side(sizes["s"]), tokens=sizes["s"], classes=CLASSES, **blocks)


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
