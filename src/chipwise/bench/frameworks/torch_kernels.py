"""Single kernels through PyTorch, as a model would call them: products, streams, norms, attention, gathers, AdamW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from chipwise.bench.frameworks.interface import Case, Device, Unsupported
from chipwise.ops.point import Point
from chipwise.ops.work import work_of

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CHECKED_FLOPS, CHECKED_BYTES = 2e9, 2**24  # larger work is not computed again in float64
SETS = 64  # most sets of inputs
SHARE = 0.25  # of the memory that they may take together
FP8_FROM = (8, 9)  # compute capability with fp8 products

# Kinds short enough that the host's launches would be measured: on a GPU a graph holds some of them in a row
CAPTURED = frozenset({"gemm", "copy", "add", "rmsnorm", "softmax", "sdpa_fwd", "gather"})
UNIT, WARM_UP = 16, 3  # of them in a graph at least; calls before it is captured
LONG_BYTES, LONG_FLOPS = 2**28, 1e11  # from here on launches hide behind the work (and a graph's copies are slower)

Make = Callable[[], tuple[torch.Tensor, ...]]
Run = Callable[..., torch.Tensor]


def build(point: Point, on: str, device: Device) -> Case:
    """One kernel with its sets of inputs."""
    make, run, reference = _KINDS[point.kind](point, on)
    work = work_of(point)
    tf32(point.dtype == "tf32")
    first = make()
    inputs = [first, *(make() for _ in range(sets(first, device) - 1))]
    count, unit = len(inputs), 1

    def single(i: int) -> object:
        return run(*inputs[i % count])

    call: Callable[[int], object] = single

    def check() -> float:
        tf32(point.dtype == "tf32")
        return distance(run(*inputs[0]), reference(*inputs[0]))

    if on != "cpu" and point.kind in CAPTURED and work.moved_bytes < LONG_BYTES and work.flops < LONG_FLOPS:
        unit = count * -(-UNIT // count)  # whole rounds over the sets, so that no replay begins with a warm one
        call = captured(lambda _: [single(i) for i in range(unit)])
    small = work.flops <= CHECKED_FLOPS and work.moved_bytes <= CHECKED_BYTES and reference is not None
    return Case(call, work.flops, work.moved_bytes, work.items, check=check if small else None, unit=unit)


def captured(call: Callable[[int], object]) -> Callable[[int], object]:
    """The call as one CUDA graph: no launches from the host."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(WARM_UP):
            call(i)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(0)

    def replay(i: int, held: object = call) -> object:  # the call holds the tensors that the graph reads
        graph.replay()
        return None

    return replay


def tf32(on: bool) -> None:
    """Let fp32 products use the matrix units' tf32, or not."""
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def sets(inputs: Sequence[torch.Tensor], device: Device) -> int:
    """How many sets of such inputs pass twice the last-level cache, within a share of memory."""
    size = max(sum(t.numel() * t.element_size() for t in inputs), 1)
    return int(max(1, min(SETS, 2 * device.cache_bytes // size + 1, SHARE * device.memory_bytes // size)))


def distance(out: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative Frobenius distance from a float64 reference."""
    wide = out.double().cpu()
    return float(torch.linalg.vector_norm(wide - reference) / torch.linalg.vector_norm(reference))


def _wide(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [t.double().cpu() for t in tensors]


def _gemm(point: Point, on: str) -> tuple[Make, Run, Any]:
    m, n, k = (point.sizes[name] for name in "mnk")
    if point.dtype == "fp8":
        return _gemm_fp8(m, n, k, on)
    if point.dtype == "int8":
        return _gemm_int8(m, n, k, on)
    if point.dtype == "tf32" and on == "cpu":
        raise Unsupported("tf32 is a mode of NVIDIA's matrix units")
    dtype = DTYPES[point.dtype]

    def make() -> tuple[torch.Tensor, ...]:
        return (torch.randn(m, k, device=on, dtype=dtype), torch.randn(k, n, device=on, dtype=dtype))

    return make, torch.mm, lambda a, b: torch.mm(*_wide(a, b))


def _gemm_fp8(m: int, n: int, k: int, on: str) -> tuple[Make, Run, Any]:
    if on == "cpu":
        raise Unsupported("PyTorch has no fp8 products on the CPU")
    if torch.cuda.get_device_capability() < FP8_FROM:
        raise Unsupported(f"fp8 products need compute capability {FP8_FROM[0]}.{FP8_FROM[1]}")
    if k % 16 or n % 16:
        raise Unsupported("fp8 products take k and n in multiples of 16")
    one = torch.ones((), device=on)

    def make() -> tuple[torch.Tensor, ...]:
        return (
            torch.randn(m, k, device=on).to(torch.float8_e4m3fn),
            torch.randn(n, k, device=on).to(torch.float8_e4m3fn).t(),
        )

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    return make, run, lambda a, b: torch.mm(*_wide(a, b))


def _gemm_int8(m: int, n: int, k: int, on: str) -> tuple[Make, Run, Any]:
    if on != "cpu" and (m <= 16 or k % 8 or n % 8):
        raise Unsupported("int8 products take more than 16 rows, and k and n in multiples of 8")

    def make() -> tuple[torch.Tensor, ...]:
        a = torch.randint(-127, 128, (m, k), device=on, dtype=torch.int8)
        return a, torch.randint(-127, 128, (n, k), device=on, dtype=torch.int8).t()

    return make, torch._int_mm, lambda a, b: torch.mm(*_wide(a, b))


def _copy(point: Point, on: str) -> tuple[Make, Run, Any]:
    dtype = DTYPES[point.dtype]
    count = max(point.sizes["bytes"] // dtype.itemsize, 1)

    def make() -> tuple[torch.Tensor, ...]:
        return torch.randn(count, device=on, dtype=dtype), torch.empty(count, device=on, dtype=dtype)

    return make, lambda a, out: out.copy_(a), lambda a, out: _wide(a)[0]


def _add(point: Point, on: str) -> tuple[Make, Run, Any]:
    dtype = DTYPES[point.dtype]
    count = max(point.sizes["bytes"] // dtype.itemsize, 1)

    def make() -> tuple[torch.Tensor, ...]:
        a, b = (torch.randn(count, device=on, dtype=dtype) for _ in range(2))
        return a, b, torch.empty(count, device=on, dtype=dtype)

    return make, lambda a, b, out: torch.add(a, b, out=out), lambda a, b, out: torch.add(*_wide(a, b))


def _rmsnorm(point: Point, on: str) -> tuple[Make, Run, Any]:
    m, n, dtype = point.sizes["m"], point.sizes["n"], DTYPES[point.dtype]

    def make() -> tuple[torch.Tensor, ...]:
        return torch.randn(m, n, device=on, dtype=dtype), torch.randn(n, device=on, dtype=dtype)

    def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (n,), w, 1e-5)

    return make, run, lambda x, w: run(*_wide(x, w))


def _softmax(point: Point, on: str) -> tuple[Make, Run, Any]:
    m, n, dtype = point.sizes["m"], point.sizes["n"], DTYPES[point.dtype]

    def make() -> tuple[torch.Tensor, ...]:
        return (torch.randn(m, n, device=on, dtype=dtype),)

    return make, lambda x: torch.softmax(x, -1), lambda x: torch.softmax(_wide(x)[0], -1)


def _sdpa(point: Point, on: str) -> tuple[Make, Run, Any]:
    b, h, hk, s, d = (point.sizes[name] for name in ("b", "h", "hk", "s", "d"))
    dtype, causal, back = DTYPES[point.dtype], point.causal, point.kind == "sdpa_fwdbwd"

    def make() -> tuple[torch.Tensor, ...]:
        q = torch.randn(b, h, s, d, device=on, dtype=dtype, requires_grad=back)
        k, v = (torch.randn(b, hk, s, d, device=on, dtype=dtype, requires_grad=back) for _ in range(2))
        return (q, k, v, torch.randn(b, h, s, d, device=on, dtype=dtype)) if back else (q, k, v)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=h != hk)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor | None = None) -> torch.Tensor:
        out = attend(q, k, v)
        return out if grad is None else torch.autograd.grad(out, (q, k, v), grad)[0]

    def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor | None = None) -> torch.Tensor:
        wide = [t.detach().double().cpu().requires_grad_(back) for t in (q, k, v)]
        out = attend(*wide)
        return out if grad is None else torch.autograd.grad(out, wide, grad.double().cpu())[0]

    return make, run, reference


def _gather(point: Point, on: str) -> tuple[Make, Run, Any]:
    rows, table, width = (point.sizes[name] for name in "mnk")
    dtype = DTYPES[point.dtype]

    def make() -> tuple[torch.Tensor, ...]:
        return torch.randint(0, table, (rows,), device=on), torch.randn(table, width, device=on, dtype=dtype)

    return make, F.embedding, lambda i, t: F.embedding(i.cpu(), _wide(t)[0])


def _adamw(point: Point, on: str) -> tuple[Make, Run, Any]:
    count, dtype = point.sizes["count"], DTYPES[point.dtype]
    parts = 16  # tensors, as a few layers have

    def make() -> tuple[torch.Tensor, ...]:
        return tuple(torch.randn(max(count // parts, 1), device=on, dtype=dtype) for _ in range(2 * parts))

    optimizers: dict[int, torch.optim.Optimizer] = {}

    def run(*tensors: torch.Tensor) -> torch.Tensor:
        first = tensors[0]
        if id(first) not in optimizers:
            for weight, grad in zip(tensors[:parts], tensors[parts:], strict=True):
                weight.grad = grad
            optimizers[id(first)] = torch.optim.AdamW(tensors[:parts], lr=1e-4, fused=True)
        optimizers[id(first)].step()
        return first

    return make, run, None


_KINDS = {
    "gemm": _gemm,
    "copy": _copy,
    "add": _add,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "sdpa_fwd": _sdpa,
    "sdpa_fwdbwd": _sdpa,
    "gather": _gather,
    "adamw": _adamw,
}
