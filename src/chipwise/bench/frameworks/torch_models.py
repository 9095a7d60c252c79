"""Steps of a decoder through PyTorch: training, prefill, and decode captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from chipwise.bench.frameworks.interface import GRADIENT_SLACK, Case, Device, Unsupported
from chipwise.bench.frameworks.torch_kernels import DTYPES, captured, distance, tf32
from chipwise.ops.point import Point
from chipwise.ops.work import work_of
from chipwise.programs.torch.decoder import Cache, Decoder, Shape, rotary, weights_at_random

BATCHES = 4  # different batches that training takes in turn
CHECKED_PARAMS = 2_000_000  # larger models are not computed again in float64


def build(point: Point, on: str, device: Device) -> Case:
    """A step of the decoder that the point describes."""
    if point.dtype not in DTYPES:
        raise Unsupported(f"PyTorch's decoder runs in {', '.join(DTYPES)}; {point.dtype} needs kernels of its own")
    if point.dtype == "tf32" and on == "cpu":
        raise Unsupported("tf32 is a mode of NVIDIA's matrix units")
    tf32(point.dtype == "tf32")
    shape = Shape(*(point.sizes[name] for name in ("layers", "d", "h", "hk", "f", "vocab")))
    with torch.device(on):
        model = Decoder(shape, point.remat).to(DTYPES[point.dtype])
    weights_at_random(model)
    call, check = (_train if point.kind == "train" else _prefill if point.kind == "prefill" else _decode)(
        model, point, on
    )
    work = work_of(point)
    small = work.params <= CHECKED_PARAMS
    return Case(
        call,
        work.flops,
        work.moved_bytes,
        work.items,
        sum(p.numel() for p in model.parameters()),
        check if small else None,
        slack=GRADIENT_SLACK if point.kind == "train" else 1.0,
    )


def _tokens(point: Point, on: str, length: int) -> torch.Tensor:
    return torch.randint(0, point.sizes["vocab"], (point.sizes["b"], length), device=on)


def compiled(function: Any, use_compiler: bool) -> Any:
    """The function through torch.compile, from a clean state, or as it is."""
    if not use_compiler:
        return function
    torch._dynamo.reset()
    return torch.compile(function)


def _train(model: Decoder, point: Point, on: str) -> tuple[Callable[[int], object], Callable[[], float]]:
    shape, s = model.shape, point.sizes["s"]
    cos, sin = rotary(s, shape.head, on, DTYPES[point.dtype])
    batches = [(_tokens(point, on, s), _tokens(point, on, s)) for _ in range(BATCHES)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def loss_of(tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = model(tokens, cos, sin)
        return F.cross_entropy(logits.float().view(-1, shape.vocab), targets.view(-1))

    step = compiled(loss_of, point.compile)

    def call(i: int) -> object:
        loss = step(*batches[i % BATCHES])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def check() -> float:
        """Of all gradients: the loss of random weights says little, it is near the logarithm of the vocabulary."""
        step(*batches[0]).backward()
        result = gradients(model)
        optimizer.zero_grad(set_to_none=True)
        wide = Decoder(shape).double()
        wide.load_state_dict({k: v.double().cpu() for k, v in model.state_dict().items()})
        tokens, targets = (t.cpu() for t in batches[0])
        logits = wide(tokens, *rotary(s, shape.head, "cpu", torch.float64))
        F.cross_entropy(logits.view(-1, shape.vocab), targets.view(-1)).backward()
        return distance(result, gradients(wide))

    return call, check


def gradients(model: torch.nn.Module) -> torch.Tensor:
    """All of them in a row."""
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])


def _caches(model: Decoder, point: Point, on: str, length: int) -> list[Cache]:
    shape, b = model.shape, point.sizes["b"]
    dtype = DTYPES[point.dtype]
    return [
        Cache(*(torch.randn(b, shape.hk, length, shape.head, device=on, dtype=dtype) for _ in range(2)))
        for _ in range(shape.layers)
    ]


def _prefill(model: Decoder, point: Point, on: str) -> tuple[Callable[[int], object], Callable[[], float]]:
    shape, s = model.shape, point.sizes["s"]
    cos, sin = rotary(s, shape.head, on, DTYPES[point.dtype])
    batches = [_tokens(point, on, s) for _ in range(BATCHES)]
    caches = _caches(model, point, on, s)
    serve = compiled(model.serve, point.compile)

    @torch.no_grad()
    def call(i: int) -> object:
        return serve(batches[i % BATCHES], cos, sin, caches, 0)

    def check() -> float:
        return _against_double(model, point, batches[0], call(0))

    return call, check


@torch.no_grad()
def _against_double(model: Decoder, point: Point, tokens: torch.Tensor, result: Any) -> float:
    shape = model.shape
    wide = Decoder(shape).double()
    wide.load_state_dict({k: v.double().cpu() for k, v in model.state_dict().items()})
    angles = rotary(tokens.shape[1], shape.head, "cpu", torch.float64)
    return distance(result, wide(tokens.cpu(), *angles)[:, -1])


def _decode(model: Decoder, point: Point, on: str) -> tuple[Callable[[int], object], Callable[[], float]]:
    """One token for each sequence, at position s - 1 of a cache s long."""
    shape, s = model.shape, point.sizes["s"]
    cos, sin = (table[-1:] for table in rotary(s, shape.head, on, DTYPES[point.dtype]))
    tokens, caches = _tokens(point, on, 1), _caches(model, point, on, s)
    serve = compiled(model.serve, point.compile)

    @torch.no_grad()
    def plain(i: int) -> object:
        return serve(tokens, cos, sin, caches, s - 1)

    def check() -> float:
        return _decode_check(model, point, on)

    return (plain if on == "cpu" else captured(plain)), check


@torch.no_grad()
def _decode_check(model: Decoder, point: Point, on: str) -> float:
    """A prompt through the cache, then one token more, against the whole in float64."""
    s, dtype = point.sizes["s"], DTYPES[point.dtype]
    tokens, caches = _tokens(point, on, s), _caches(model, point, on, s)
    cos, sin = rotary(s, model.shape.head, on, dtype)
    if s > 1:
        model.serve(tokens[:, :-1], cos[:-1], sin[:-1], caches, 0)
    return _against_double(model, point, tokens, model.serve(tokens[:, -1:], cos[-1:], sin[-1:], caches, s - 1))
