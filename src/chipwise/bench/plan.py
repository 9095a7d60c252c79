"""Which points a suite measures: a few tiny ones, a quick sweep of minutes, or a full one.

Sizes are drawn so that they fill the space (a fixed low-discrepancy sequence over logarithms) beside round ones that
models use; what needs more memory than the device has is left out, not tried. A CPU gets what it can do in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from chipwise.bench.frameworks.interface import Device
from chipwise.errors import InputError
from chipwise.ops.point import SUITES, Point
from chipwise.ops.work import WIDTH, decoder_weights, work_of

SIZES = ("tiny", "quick", "full")
FITS = 0.6  # of the memory that a point may need by the estimate here
CPU_FLOPS = {"tiny": 1e10, "quick": 2e10, "full": 2e11}  # of a call on a CPU: about a second on a few cores
CPU_BYTES = 2**30
CPU_SHARE = 8  # one in so many products is measured on a CPU
_PRIMES = (2, 3, 5, 7)  # bases of the Halton sequence, one an axis

# name: layers, d, h, hk, f, vocab. Small to large, with few layers where the layers are wide: a step's time per layer
# is what is fitted. Widths of published models (GPT-2 small to Llama 3 70B); other depths.
DECODERS: Mapping[str, tuple[int, int, int, int, int, int]] = {
    "tiny": (2, 64, 4, 2, 128, 256),
    "mini": (4, 256, 4, 4, 1024, 8192),  # for CPUs
    "small": (8, 768, 12, 12, 3072, 50304),
    "medium": (12, 1024, 16, 16, 4096, 32000),
    "llama-1b": (8, 2048, 32, 8, 8192, 128256),
    "llama-3b": (8, 3072, 24, 8, 8192, 32000),
    "openllama-3b": (6, 3200, 32, 32, 8640, 32000),  # heads 100 wide, which fused attention has to pad
    "llama-8b": (6, 4096, 32, 8, 14336, 32000),
    "llama-13b": (4, 5120, 40, 40, 13824, 32000),
    "llama-70b": (2, 8192, 64, 8, 28672, 32000),
}
_NAMES = ("layers", "d", "h", "hk", "f", "vocab")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a decoder to measure."""

    model: str
    b: int
    s: int
    compile: bool = False
    remat: bool = False
    dtype: str = "bf16"
    layers: int = 0  # other than the preset's, where a compiler's time grows with them


# Training: eager over the models, batches and lengths, half of them recomputed; compiled with few layers
_TRAIN_QUICK = (
    Step("small", 16, 1024),
    Step("small", 4, 512),
    Step("small", 8, 2048, remat=True),
    Step("medium", 8, 1024),
    Step("medium", 2, 4096),
    Step("medium", 16, 512, remat=True),
    Step("llama-1b", 4, 1024),
    Step("llama-1b", 2, 4096, remat=True),
    Step("llama-3b", 4, 2048),
    Step("llama-3b", 1, 1024),
    Step("llama-3b", 2, 8192, remat=True),
    Step("llama-8b", 2, 2048),
    Step("llama-8b", 8, 1024, remat=True),
    Step("llama-13b", 2, 2048),
    Step("llama-13b", 1, 4096, remat=True),
    Step("llama-70b", 2, 2048),
    Step("openllama-3b", 2, 1024),
    Step("openllama-3b", 1, 4096, remat=True),
    Step("small", 8, 1024, compile=True, layers=4),
    Step("llama-1b", 4, 2048, compile=True, layers=4),
    Step("medium", 4, 2048, compile=True, remat=True, layers=4),
    Step("llama-8b", 2, 1024, compile=True, layers=3),
    Step("llama-13b", 1, 2048, compile=True, remat=True, layers=2),
    Step("llama-70b", 1, 2048, compile=True, layers=1),
    *(
        Step(model, b, s, dtype=dtype)
        for dtype in ("fp32", "tf32")
        for model, b, s in (("small", 8, 512), ("small", 2, 2048), ("medium", 2, 512))
    ),
    Step("small", 8, 512, dtype="fp16"),
)
_TRAIN_FULL = (
    *_TRAIN_QUICK,
    *(
        Step(model, b, s, remat=remat, compile=compiled)
        for model in ("small", "llama-1b", "llama-8b")
        for b, s in ((1, 8192), (4, 2048), (16, 512))
        for remat in (False, True)
        for compiled in (False, True)
    ),
)
_TRAIN_CPU = (
    Step("mini", 2, 64),
    Step("mini", 4, 128),
    Step("mini", 2, 256, remat=True),
    Step("mini", 1, 512),
    Step("mini", 2, 128, compile=True),
    Step("mini", 4, 64, compile=True),
    Step("mini", 2, 64, dtype="fp32"),
)
_PREFILL_CPU = (("mini", 1, 128), ("mini", 2, 256), ("mini", 4, 128), ("mini", 1, 512))
_DECODE_CPU = (("mini", 1, 128), ("mini", 4, 256), ("mini", 16, 128), ("mini", 2, 1024))
_PREFILL = (
    ("openllama-3b", 4, 512),
    ("openllama-3b", 1, 3072),
    ("small", 4, 512),
    ("small", 1, 4096),
    ("medium", 8, 512),
    ("medium", 2, 2048),
    ("llama-1b", 1, 512),
    ("llama-1b", 4, 2048),
    ("llama-3b", 2, 1024),
    ("llama-3b", 1, 8192),
    ("llama-8b", 1, 256),
    ("llama-8b", 4, 1024),
    ("llama-13b", 2, 4096),
    ("llama-70b", 4, 512),
    ("llama-1b", 16, 2048),
    ("llama-3b", 6, 3072),
    ("llama-8b", 8, 2048),
)
_DECODE = (
    ("openllama-3b", 2, 512),
    ("openllama-3b", 16, 2048),
    ("openllama-3b", 1, 4096),
    ("openllama-3b", 64, 512),
    ("small", 1, 256),
    ("small", 32, 1024),
    ("medium", 64, 512),
    ("medium", 8, 8192),
    ("llama-1b", 1, 1024),
    ("llama-1b", 16, 512),
    ("llama-1b", 128, 2048),
    ("llama-3b", 4, 4096),
    ("llama-3b", 64, 1024),
    ("llama-8b", 1, 512),
    ("llama-8b", 8, 2048),
    ("llama-8b", 32, 512),
    ("llama-8b", 64, 4096),
    ("llama-13b", 2, 1024),
    ("llama-13b", 16, 4096),
    ("llama-70b", 1, 2048),
    ("llama-70b", 96, 512),
)


def points(suite: str, device: Device, size: str, framework: str) -> list[Point]:
    """What one suite measures on a device, in order; `all` is every suite."""
    if size not in SIZES:
        raise InputError("suite_size", size, f"one of {', '.join(SIZES)}")
    if suite == "all":
        return [point for name in SUITES for point in points(name, device, size, framework)]
    if suite not in _SUITES:
        raise InputError("suite", suite, f"one of {', '.join((*SUITES, 'all'))}")
    unique = {point.key(): point for point in _SUITES[suite](device, size, framework)}
    fitting = [point for point in unique.values() if needed_bytes(point) <= FITS * device.memory_bytes]
    return _for_cpu(fitting, size) if device.platform == "cpu" else fitting


def _for_cpu(fitting: Sequence[Point], size: str) -> list[Point]:
    """Those that a CPU can do in seconds, and a few of the many products."""
    light = [p for p in fitting if work_of(p).flops <= CPU_FLOPS[size] and needed_bytes(p) <= CPU_BYTES]
    products = [p for p in light if p.kind == "gemm"]
    kept = set(map(id, products if size == "tiny" else products[::CPU_SHARE]))
    return [p for p in light if p.kind != "gemm" or id(p) in kept]


def needed_bytes(point: Point) -> float:
    """Roughly what a point holds in memory: enough to leave out what can't fit."""
    sizes, width = point.sizes, WIDTH[point.dtype]
    if point.kind in ("train", "prefill", "decode"):
        weights = decoder_weights(sizes).total * width
        tokens = sizes["b"] * sizes["s"]
        if point.kind != "train":
            return weights + 4.0 * tokens * sizes["d"] * width * max(sizes["layers"], 4)
        kept = tokens * sizes["layers"] * width * (sizes["d"] if point.remat else 20 * sizes["d"] + 4 * sizes["f"])
        return 4.0 * weights + kept + 14.0 * tokens * sizes["vocab"]
    if point.kind.startswith("sdpa"):
        return 16.0 * sizes["b"] * sizes["h"] * sizes["s"] * sizes["d"] * width
    if point.kind == "gemm":
        return 2.0 * width * (sizes["m"] * sizes["k"] + sizes["n"] * sizes["k"]) + 4.0 * sizes["m"] * sizes["n"]
    if point.kind.startswith(("resnet", "vit")):
        return sizes["b"] * 2e8 * width / 2
    if point.kind == "adamw":
        return 8.0 * sizes["count"] * width  # weights, gradients, two moments, in two sets
    if point.kind == "gather":
        return 2.0 * width * (sizes["n"] + sizes["m"]) * sizes["k"]
    return 8.0 * sizes.get("bytes", sizes.get("m", 0) * sizes.get("n", 0) * width)


def halton(index: int, base: int) -> float:
    """The index-th number of the van der Corput sequence of a base: fills (0, 1) evenly.

    >>> [halton(i, 2) for i in (1, 2, 3)]
    [0.5, 0.25, 0.75]
    """
    out, share = 0.0, 1.0
    while index:
        share /= base
        out += share * (index % base)
        index //= base
    return out


def spread(count: int, *ranges: tuple[float, float, int]) -> Iterator[tuple[int, ...]]:
    """Sizes that fill ranges (low, high, multiple) evenly over their logarithms.

    >>> list(spread(2, (64, 256, 64), (8, 8, 8)))
    [(128, 8), (64, 8)]
    """
    for index in range(1, count + 1):
        drawn = (
            exp(log(low) + halton(index, base) * (log(high) - log(low)))
            for (low, high, _), base in zip(ranges, _PRIMES, strict=False)
        )
        yield tuple(max(round(x / step), 1) * step for x, (_, _, step) in zip(drawn, ranges, strict=True))


# Products: round ones of models, then draws: wide ones, skinny ones (few rows, as decoding has), odd ones
_ROUND = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (2048, 2048, 2048),
    (1024, 1024, 1024),
    (512, 512, 512),
    (4096, 14336, 4096),
    (4096, 4096, 14336),
    (8192, 28672, 8192),
    (2048, 8192, 2048),
    (16384, 768, 3072),
)
_WIDE = ((512, 24576, 128), (512, 24576, 128), (384, 16384, 128))
_SKINNY = ((1, 384, 1), (768, 32768, 64), (768, 16384, 64))
_ODD = ((100, 12000, 1), (300, 12000, 16), (300, 12000, 16))
_SLOW = frozenset({"fp32", "tf32"})  # precisions that get an eighth of the largest sizes
_COUNTS = {  # of draws by precision: wide, skinny, odd
    "quick": {
        "bf16": (170, 90, 60),
        "fp16": (10, 5, 5),
        "fp8": (60, 30, 16),
        "int8": (44, 26, 14),
        "tf32": (44, 26, 14),
        "fp32": (36, 22, 12),
    },
    "full": {
        "bf16": (400, 240, 160),
        "fp16": (60, 30, 20),
        "fp8": (120, 60, 30),
        "int8": (120, 70, 40),
        "tf32": (120, 70, 40),
        "fp32": (90, 50, 30),
    },
}
_JAX_QUICK = ((4096, 4096, 4096), (8192, 4096, 2048), (64, 8192, 4096))  # JAX compiles and tunes every shape
_SLOWER = 6  # so many times fewer of them in a full sweep


def gemms(size: str, framework: str) -> Iterator[Point]:
    """Matrix products over shapes and precisions."""
    if size == "tiny":
        for dtype in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8"):
            yield _kernel("gemm", dtype, m=64, n=96, k=48)
        yield _kernel("gemm", "fp32", m=7, n=65, k=33)
        return
    if few(size, framework):
        for dtype in _COUNTS[size]:
            for m, n, k in _JAX_QUICK[: None if dtype == "bf16" else 1]:
                yield _kernel("gemm", dtype, m=m, n=n, k=k)
        return
    share = _SLOWER if framework == "jax" else 1
    for dtype, counts in _COUNTS[size].items():
        half = 2 if dtype in _SLOW else 1
        for m, n, k in _ROUND:
            yield _kernel("gemm", dtype, m=m // half, n=n // half, k=k // half)
        for count, ranges in zip(counts, (_WIDE, _SKINNY, _ODD), strict=True):
            narrower = [(low, max(high / half, low), step) for low, high, step in ranges]
            for m, n, k in spread(count // share, *narrower):
                yield _kernel("gemm", dtype, m=m, n=n, k=k)


# Attention: (h, hk, d) of models; b fills the device at each length
_HEADS = (
    (32, 8, 128),
    (16, 16, 64),
    (12, 12, 64),
    (64, 8, 128),
    (32, 32, 128),
    (24, 8, 128),
    (40, 10, 96),
    (8, 1, 256),
    (32, 32, 100),
    (16, 16, 80),
)
_LENGTHS = {
    "quick": (512, 1024, 2048, 4096, 8192, 16384),
    "full": (256, 512, 1024, 1536, 2048, 4096, 8192, 16384, 32768),
}


def attentions(size: str, framework: str) -> Iterator[Point]:
    """Fused attention forward and backward, causal, with and without grouped queries; a few of full attention."""
    if size == "tiny":
        for kind in ("sdpa_fwd", "sdpa_fwdbwd"):
            yield _kernel(kind, "fp32", b=2, h=4, hk=2, s=48, d=16)
        yield Point("kernels", "sdpa_fwd", "bf16", {"b": 1, "h": 2, "hk": 2, "s": 32, "d": 16}, causal=False)
        return
    for kind in ("sdpa_fwd", "sdpa_fwdbwd"):  # small ones, for CPUs too
        yield _kernel(kind, "bf16", b=2, h=8, hk=8, s=256, d=64)
        yield _kernel(kind, "bf16", b=1, h=8, hk=2, s=512, d=128)
    heads = _HEADS if framework == "torch" else _HEADS[:1] if few(size, framework) else _HEADS[:3]
    for kind in ("sdpa_fwd", "sdpa_fwdbwd"):
        for i, (h, hk, d) in enumerate(heads):
            lengths = _LENGTHS[size] if size == "full" else _LENGTHS[size][i % 2 :: 2]
            for j, s in enumerate(lengths if framework == "torch" else lengths[::2]):
                tokens = 16384 * (1 + (i + j) % 3)
                yield _kernel(kind, "bf16", b=max(tokens * 16 // (s * h), 1), h=h, hk=hk, s=s, d=d)
        yield Point("kernels", kind, "bf16", {"b": 8, "h": 16, "hk": 16, "s": 1024, "d": 64}, causal=False)


def streams(size: str, framework: str) -> Iterator[Point]:
    """Copies, sums, norms, softmax, gathers and optimizer updates."""
    if size == "tiny":
        for kind in ("copy", "add"):
            yield _kernel(kind, "fp32", bytes=65536)
        for kind in ("rmsnorm", "softmax"):
            yield _kernel(kind, "fp32", m=32, n=96)
        yield _kernel("gather", "fp32", m=64, n=256, k=32)
        yield _kernel("adamw", "fp32", count=4096)
        return
    steps = 2 if few(size, framework) else 7 if size == "quick" else 12
    for kind in ("copy", "add"):
        for i in range(steps):
            yield _kernel(kind, "bf16", bytes=round(2**20 * 1024 ** (i / (steps - 1))) // 4096 * 4096)
    for kind in ("rmsnorm", "softmax"):
        for m, n in spread(2 if steps == 2 else 4 * steps, (256, 65536, 64), (512, 16384, 128)):
            yield _kernel(kind, "bf16", m=m, n=n)
    for m, n, k in ((4096, 32000, 2048), (16384, 128256, 4096), (1024, 50304, 768)):
        yield _kernel("gather", "bf16", m=m, n=n, k=k)
    for count in (2**24, 2**26, 2**27, 2**28, 2**29)[:: 2 if steps < 7 else 1]:
        yield _kernel("adamw", "bf16", count=count)


def few(size: str, framework: str) -> bool:
    """Whether only a taste is measured: JAX in a quick sweep, where every shape costs a compile."""
    return size == "quick" and framework == "jax"


def _kernel(kind: str, dtype: str, **sizes: int) -> Point:
    return Point("kernels", kind, dtype, sizes)


def _kernels(device: Device, size: str, framework: str) -> Iterator[Point]:
    yield from gemms(size, framework)
    yield from streams(size, framework)
    yield from attentions(size, framework)


def _decoder(suite: str, kind: str, step: Step) -> Point:
    sizes = {"b": step.b, "s": step.s, **dict(zip(_NAMES, DECODERS[step.model], strict=True))}
    sizes |= {"layers": step.layers} if step.layers else {}
    return Point(suite, kind, step.dtype, sizes, step.compile, step.remat, model=step.model)


def _train(device: Device, size: str, framework: str) -> Iterator[Point]:
    if size == "tiny":
        steps: Sequence[Step] = tuple(
            Step("tiny", 2, 32, compiled, remat, dtype)
            for compiled, remat, dtype in ((False, False, "fp32"), (False, True, "bf16"), (True, False, "fp32"))
        )
    elif device.platform == "cpu":
        steps = _TRAIN_CPU
    else:
        steps = _TRAIN_QUICK if size == "quick" else _TRAIN_FULL
    if framework == "jax":  # runs compiled alone
        steps = [step for step in steps if step.compile][: 2 if few(size, framework) else None]
    yield from (_decoder("train", "train", step) for step in steps)


def _serve(device: Device, size: str, framework: str) -> Iterator[Point]:
    if size == "tiny":
        for kind in ("prefill", "decode"):
            yield _decoder("serve", kind, Step("tiny", 2, 32, framework == "jax"))
        return
    on_cpu = device.platform == "cpu"
    share = 8 if few(size, framework) and not on_cpu else 1
    prefill, decode = (_PREFILL_CPU, _DECODE_CPU) if on_cpu else (_PREFILL, _DECODE)
    for kind, steps in (("prefill", prefill), ("decode", decode)):
        for model, b, s in steps[share - 1 :: share]:
            yield _decoder("serve", kind, Step(model, b, s, framework == "jax"))


def _vision(device: Device, size: str, framework: str) -> Iterator[Point]:
    compiled = framework == "jax"
    vit = {"s": 197, "layers": 12, "d": 768, "h": 12, "f": 3072}  # ViT-B/16 (arXiv 2010.11929)
    if size == "tiny":
        yield Point("vision", "resnet50_infer", "fp32", {"b": 1}, compiled)
        yield Point("vision", "vit_train", "fp32", {"b": 2, "s": 17, "layers": 2, "d": 32, "h": 2, "f": 64}, compiled)
        return
    one = few(size, framework)
    for b in (64,) if one else (16, 48, 96, 192, 384):
        yield Point("vision", "resnet50_train", "bf16", {"b": b}, compiled)
    for b in () if one else (1, 2, 32, 256):
        yield Point("vision", "resnet50_infer", "bf16", {"b": b}, compiled)
    for dtype in () if one else ("tf32", "fp32", "fp16"):
        for b in (32, 128):
            yield Point("vision", "resnet50_train", dtype, {"b": b}, compiled)
    for b in () if one else (32, 128):
        yield Point("vision", "vit_train", "bf16", {"b": b, **vit}, compiled)
        yield Point("vision", "vit_infer", "bf16", {"b": b, **vit}, compiled)
    if framework == "torch" and device.platform != "cpu":
        for b in (256,) if size == "quick" else (64, 256):
            yield Point("vision", "resnet50_train", "bf16", {"b": b}, True)


def _collectives(device: Device, size: str, framework: str) -> Iterator[Point]:
    if device.count < 2:
        return
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        for mib in (1,) if size == "tiny" else (1, 16, 256) if size == "quick" else (1, 4, 16, 64, 256, 1024):
            yield Point("collectives", kind, "bf16", {"bytes": mib * 2**20, "devices": device.count})


_SUITES: Mapping[str, Callable[[Device, str, str], Iterator[Point]]] = {
    "kernels": _kernels,
    "train": _train,
    "serve": _serve,
    "vision": _vision,
    "collectives": _collectives,
}
