"""Which products the TPU compiler is asked about: a seeded design over four decades, attention and convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log

from chipwise.catalog import Chip
from chipwise.catalog.compilers import tpu_compilers
from chipwise.predict.model.systolic import TUNED_FROM

LARGEST_BYTES = 6e9  # operands and result: they fit on every generation
LARGEST_FLOPS = 2.0**43  # 16384^3
SMALLEST_FLOPS = 2.0**21

# Published products, so that measurements and the compiler meet on the same shapes
# (AI-Hypercomputer/tpu-recipes, microbenchmarks)
PUBLISHED = (1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """One product: `batch` times [m, k] x [k, n], or a convolution seen as one."""

    kind: str  # "matmul", "attention" or "conv"
    dtype: str
    batch: int
    m: int
    n: int
    k: int
    order: str = "nn"  # "tn": the left operand lies transposed (gradient of weights), "nt": the right one
    window: tuple[int, ...] = ()  # of a convolution: images, side, channels in, channels out, kernel, stride

    @property
    def key(self) -> tuple[str, ...]:
        """What tells rows apart."""
        sizes = (self.batch, self.m, self.n, self.k)
        return (self.kind, self.dtype, *(str(size) for size in sizes), self.order, "x".join(map(str, self.window)))

    @property
    def tuned(self) -> bool:
        """Whether recipes' options are used, where the generation has such; they cost four times the compile."""
        plain = self.kind == "matmul" and self.dtype == "bf16" and self.order == "nn" and self.batch == 1
        return plain and self.m * self.n * self.k >= TUNED_FROM


def swept() -> tuple[str, ...]:
    """TPUs whose compilers are asked: those of which the catalog knows what the compiler does with a product."""
    return tuple(chip for chip, compiler in tpu_compilers().items() if compiler.sweep is not None)


def design(chip: Chip) -> list[SweepRequest]:
    """Everything asked for one chip, the most telling first: a sweep that is cut short leaves a usable table."""
    wide, core = _plain("bf16", 16, 0), _core("bf16", 26, 500)
    published = [SweepRequest("matmul", "bf16", 1, size, size, size) for size in PUBLISHED]
    first = [*published, *_mixed(core[:14], wide[:8])]
    second = [*_ordered("tn", 8, 1000), *_ordered("nt", 6, 1100), *_batched(6), *_attention(), *_convolutions()]
    third = _mixed(core[14:], wide[8:])
    low = [request for dtype in ("int8", "fp8") if dtype in chip.peak for request in _core(dtype, 8, 1500)]
    return list(dict.fromkeys([*first, *second, *third, *low, *_core("fp32", 6, 1900)]))


def _radical(index: int, base: int) -> float:
    """Van der Corput's sequence: fills [0, 1) evenly.

    >>> [_radical(i, 2) for i in (1, 2, 3, 4)]
    [0.5, 0.25, 0.75, 0.125]
    """
    out, scale = 0.0, 1.0
    while index:
        index, digit = divmod(index, base)
        scale /= base
        out += digit * scale
    return out


def _sizes(low: tuple[int, int, int], high: tuple[int, int, int], seed: int) -> Iterator[tuple[int, int, int]]:
    """m, n, k evenly over the logarithms: multiples of 128, of 100, and any number, in turn."""
    index = seed + 1
    while True:
        sizes = []
        for axis, base in enumerate((2, 3, 5)):
            bottom, top = log(low[axis]), log(high[axis])
            size = exp(bottom + (top - bottom) * _radical(index, base))
            sizes.append(_rounded(size, int(7 * _radical(index * 3 + axis, 7))))
        yield sizes[0], sizes[1], sizes[2]
        index += 1


def _rounded(size: float, way: int) -> int:
    step = 128 if way < 4 and size >= 128 else 100 if way < 6 and size >= 400 else 8 if way < 6 else 1
    return max(round(size / step) * step, step)


def _fits(m: int, n: int, k: int, in_bytes: float) -> bool:
    work = 2.0 * m * n * k
    return SMALLEST_FLOPS <= work <= LARGEST_FLOPS and in_bytes * (m * k + k * n + m * n) <= LARGEST_BYTES


def _take(
    count: int, dtype: str, low: tuple[int, int, int], high: tuple[int, int, int], seed: int
) -> list[SweepRequest]:
    out: list[SweepRequest] = []
    for m, n, k in _sizes(low, high, seed):
        if _fits(m, n, k, 4.0):
            out.append(SweepRequest("matmul", dtype, 1, m, n, k))
            if len(out) == count:
                return out
    raise AssertionError("the sequence has no end")


def _plain(dtype: str, count: int, seed: int) -> list[SweepRequest]:
    """Four decades of every size."""
    return _take(count, dtype, (8, 16, 16), (80_000, 80_000, 80_000), seed)


def _core(dtype: str, count: int, seed: int) -> list[SweepRequest]:
    """What models are made of."""
    return _take(count, dtype, (256, 512, 512), (32_768, 20_000, 20_000), seed)


def _mixed(many: list[SweepRequest], few: list[SweepRequest]) -> list[SweepRequest]:
    out: list[SweepRequest] = []
    step = max(len(many) // max(len(few), 1), 1)
    for i, request in enumerate(many):
        out.append(request)
        if i % step == 0 and i // step < len(few):
            out.append(few[i // step])
    return [*out, *few]  # `design` drops what is there already


def _ordered(order: str, count: int, seed: int) -> list[SweepRequest]:
    return [SweepRequest("matmul", "bf16", 1, a.m, a.n, a.k, order) for a in _core("bf16", count, seed)]


def _batched(count: int) -> list[SweepRequest]:
    sizes = _sizes((128, 128, 128), (2_048, 2_048, 2_048), 1_200)
    return [
        SweepRequest("matmul", "bf16", 4 << i % 4, m, n, k) for i, (m, n, k) in zip(range(count), sizes, strict=False)
    ]


def _attention() -> list[SweepRequest]:
    """The two products of an attention block, scores and values, by head size."""
    out = []
    for batch, length in ((32, 1024), (16, 4096)):
        for head in (64, 128, 256):
            out.append(SweepRequest("attention", "bf16", batch, length, length, head, "nt"))
            out.append(SweepRequest("attention", "bf16", batch, length, head, length))
    return out


def _convolutions() -> list[SweepRequest]:
    """ResNet-50 on 64 images: side of the input, channels in and out, kernel, stride."""
    out = []
    for side, cin, cout, kernel, stride in (
        (224, 3, 64, 7, 2), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (28, 128, 128, 3, 1), (28, 512, 128, 1, 1),
        (14, 256, 256, 3, 1), (14, 256, 1024, 1, 1), (7, 512, 512, 3, 1),
    ):  # fmt: skip
        rows = 64 * (side // stride) ** 2
        window = (64, side, cin, cout, kernel, stride)
        out.append(SweepRequest("conv", "bf16", 1, rows, cout, cin * kernel**2, "nn", window))
    return out
