"""How much work one call of a point is: the same count for every framework.

FLOPs are the useful ones: a product of (m x k) and (k x n) is 2mnk, causal attention counts half of the square, and
what is computed again in the backward pass isn't counted, with one exception: `sdpa_fwdbwd` is 3.5 times `sdpa_fwd`, as
the papers on fused attention count it, because such kernels can't avoid forming the scores twice. Norms, activations
and the optimizer aren't counted in models.

Bytes are the fewest that must pass through memory if every operand is read once and every result written once. In
models they are those of weights, states and caches; activations, which may stay on the chip, aren't counted.
In collectives they are the bytes each device must send, the bus bandwidth's numerator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chipwise.errors import InputError
from chipwise.ops.point import Point
from chipwise.workload.cnn import resnet_convs

WIDTH: Mapping[str, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}  # bytes of an element
IMAGE = 224  # pixels a side, for every vision model here
CLASSES = 1000
_RESULT_WIDTH = {**WIDTH, "fp8": 2, "int8": 4}  # of a product: fp8 gives bf16, int8 gives int32
_TRAINING = 3  # forward, and in the backward pass the gradients of inputs and of weights
_SDPA_FWDBWD = 3.5  # five products in the backward pass against two in the forward pass, plus those two
# one AdamW step reads weight, gradient and both moments and writes weight and moments: 7 elements and 16 operations;
# around it, training reads the weights in both passes and writes the gradients: 3 more. SGD with momentum has one
# state instead of two.
_ADAMW_TRAFFIC, _ADAMW_FLOPS, _SGD_TRAFFIC, _PASSES_TRAFFIC = 7, 16, 5, 3


@dataclass(frozen=True, slots=True)
class Work:
    """One call: FLOPs, bytes, items (tokens, images, rows or elements) and the parameters of the model."""

    flops: float = 0.0
    moved_bytes: float = 0.0
    items: float = 0.0
    params: int = 0


def work_of(point: Point) -> Work:
    """The work of one call of a point.

    >>> work_of(Point("kernels", "gemm", "bf16", {"m": 4096, "n": 4096, "k": 4096})).flops
    137438953472.0
    >>> work_of(Point("vision", "resnet50_infer", "bf16", {"b": 1})).params
    25557032
    """
    if point.kind not in _COUNTERS:
        raise InputError("kind", point.kind, f"one of {', '.join(_COUNTERS)}")
    if point.dtype not in WIDTH:
        raise InputError("dtype", point.dtype, f"one of {', '.join(WIDTH)}")
    return _COUNTERS[point.kind](point)


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of a transformer by how they are used."""

    block: int  # in products, all layers
    head: int  # in the product that gives the logits
    entry: int  # that make the first activations: embedding or patches with positions
    vectors: int  # norms and biases

    @property
    def total(self) -> int:
        """All of them."""
        return self.block + self.head + self.entry + self.vectors


def decoder_weights(sizes: Mapping[str, int]) -> Weights:
    """Weights of a Llama-style decoder: no biases, RMSNorm, gated feed-forward, the head not tied to the embedding.

    >>> decoder_weights({"layers": 32, "d": 4096, "h": 32, "hk": 8, "f": 14336, "vocab": 128256}).total
    8030261248
    """
    layers, d, f = sizes["layers"], sizes["d"], sizes["f"]
    keys = sizes["hk"] * head_width(sizes)
    return Weights(
        block=layers * (2 * d * d + 2 * d * keys + 3 * d * f),
        head=d * sizes["vocab"],
        entry=d * sizes["vocab"],
        vectors=(2 * layers + 1) * d,
    )


def vit_weights(sizes: Mapping[str, int]) -> Weights:
    """Weights of a vision transformer with a class token, learned positions and biases everywhere.

    >>> vit_weights({"s": 197, "layers": 12, "d": 768, "h": 12, "f": 3072}).total  # ViT-B/16
    86567656
    """
    layers, d, f = sizes["layers"], sizes["d"], sizes["f"]
    patches = 3 * patch_side(sizes["s"]) ** 2 * d
    biases = layers * (3 * d + d + f + d) + d + CLASSES
    return Weights(
        block=layers * (4 * d * d + 2 * d * f),
        head=d * CLASSES,
        entry=patches + d + sizes["s"] * d,
        vectors=(2 * layers + 1) * 2 * d + biases,
    )


def head_width(sizes: Mapping[str, int]) -> int:
    """Width of one attention head of a transformer of width `d` with `h` heads."""
    if sizes["d"] % sizes["h"]:
        raise InputError("h", sizes["h"], f"a divisor of the model's width d({sizes['d']})")
    _grouped(sizes["h"], sizes.get("hk", sizes["h"]))
    return sizes["d"] // sizes["h"]


def _grouped(h: int, hk: int) -> None:
    if h % hk:
        raise InputError("hk", hk, f"a divisor of the query heads h({h})")


def patch_side(tokens: int) -> int:
    """Pixels a side of a patch, from the tokens of an image with its class token.

    >>> patch_side(197), patch_side(257)
    (16, 14)
    """
    side = math.isqrt(max(tokens - 1, 0))
    if side < 1 or side * side != tokens - 1 or IMAGE % side:
        raise InputError("s", tokens, f"a class token and n x n patches, with n a divisor of {IMAGE} (197, 257, 785)")
    return IMAGE // side


def _gemm(p: Point) -> Work:
    m, n, k = p.sizes["m"], p.sizes["n"], p.sizes["k"]
    moved = (m * k + k * n) * WIDTH[p.dtype] + m * n * _RESULT_WIDTH[p.dtype]
    return Work(2.0 * m * n * k, float(moved), float(m * n))


def _copy(p: Point) -> Work:
    return Work(0.0, 2.0 * p.sizes["bytes"], float(p.sizes["bytes"] // WIDTH[p.dtype]))


def _add(p: Point) -> Work:
    elements = float(p.sizes["bytes"] // WIDTH[p.dtype])
    return Work(elements, 3.0 * p.sizes["bytes"], elements)


def _rmsnorm(p: Point) -> Work:
    m, n = p.sizes["m"], p.sizes["n"]
    return Work(4.0 * m * n, float((2 * m * n + n) * WIDTH[p.dtype]), float(m * n))


def _softmax(p: Point) -> Work:
    m, n = p.sizes["m"], p.sizes["n"]
    return Work(4.0 * m * n, float(2 * m * n * WIDTH[p.dtype]), float(m * n))


def _attention_flops(b: int, h: int, queries: int, keys: int, d: int, *, causal: bool) -> float:
    return 4.0 * b * h * queries * keys * d * (0.5 if causal else 1.0)


def _sdpa(p: Point) -> Work:
    b, h, hk, s, d = (p.sizes[name] for name in ("b", "h", "hk", "s", "d"))
    _grouped(h, hk)
    flops = _attention_flops(b, h, s, s, d, causal=p.causal)
    moved = 2.0 * b * s * (h + hk) * d * WIDTH[p.dtype]  # queries, output, keys, values
    if p.kind == "sdpa_fwdbwd":  # backward: those again, the output's gradient, and three gradients
        return Work(_SDPA_FWDBWD * flops, 3.0 * moved, float(b * s))
    return Work(flops, moved, float(b * s))


def _gather(p: Point) -> Work:
    m, k = p.sizes["m"], p.sizes["k"]
    return Work(0.0, float(2 * m * k * WIDTH[p.dtype] + 4 * m), float(m))  # with an int32 index for each row


def _adamw(p: Point) -> Work:
    count = p.sizes["count"]
    return Work(float(_ADAMW_FLOPS * count), float(_ADAMW_TRAFFIC * count * WIDTH[p.dtype]), float(count), count)


def _train(p: Point) -> Work:
    b, s, layers = p.sizes["b"], p.sizes["s"], p.sizes["layers"]
    w = decoder_weights(p.sizes)
    attention = layers * _attention_flops(b, 1, s, s, p.sizes["d"], causal=True)
    flops = _TRAINING * (2.0 * (w.block + w.head) * b * s + attention)
    moved = (_ADAMW_TRAFFIC + _PASSES_TRAFFIC) * w.total * WIDTH[p.dtype]
    return Work(flops, float(moved), float(b * s), w.total)


def _cache_bytes(p: Point) -> int:
    """Bytes of the keys and values of `b` sequences of `s` tokens."""
    return 2 * p.sizes["layers"] * p.sizes["b"] * p.sizes["s"] * p.sizes["hk"] * head_width(p.sizes) * WIDTH[p.dtype]


def _prefill(p: Point) -> Work:
    b, s, layers = p.sizes["b"], p.sizes["s"], p.sizes["layers"]
    w = decoder_weights(p.sizes)
    attention = layers * _attention_flops(b, 1, s, s, p.sizes["d"], causal=True)
    flops = 2.0 * w.block * b * s + 2.0 * w.head * b + attention  # logits of the last position alone
    return Work(flops, float((w.block + w.head + w.vectors) * WIDTH[p.dtype] + _cache_bytes(p)), float(b * s), w.total)


def _decode(p: Point) -> Work:
    b, s, layers = p.sizes["b"], p.sizes["s"], p.sizes["layers"]
    w = decoder_weights(p.sizes)
    attention = layers * _attention_flops(b, 1, 1, s, p.sizes["d"], causal=False)
    flops = 2.0 * (w.block + w.head) * b + attention
    return Work(flops, float((w.block + w.head + w.vectors) * WIDTH[p.dtype] + _cache_bytes(p)), float(b), w.total)


def _resnet50(p: Point) -> Work:
    b, convs = p.sizes["b"], resnet_convs([3, 4, 6, 3], bottleneck=True, image=IMAGE)
    products = [(c.count * c.c_in * c.c_out * c.kernel**2, c.out**2) for c in convs]
    products.append((convs[-1].c_out * CLASSES, 1))
    params = sum(n for n, _ in products) + 2 * sum(c.count * c.c_out for c in convs) + CLASSES
    flops = 2.0 * b * sum(n * times for n, times in products)
    return _vision(p, flops, params, _SGD_TRAFFIC)


def _vit(p: Point) -> Work:
    b, s, layers, d = (p.sizes[name] for name in ("b", "s", "layers", "d"))
    head_width(p.sizes)
    w = vit_weights(p.sizes)
    patches = 3 * patch_side(s) ** 2 * d
    flops = 2.0 * b * (w.block * s + patches * (s - 1) + w.head)
    flops += layers * _attention_flops(b, 1, s, s, d, causal=False)
    return _vision(p, flops, w.total, _ADAMW_TRAFFIC)


def _vision(p: Point, forward_flops: float, params: int, traffic: int) -> Work:
    train = p.kind.endswith("_train")
    moved = params * WIDTH[p.dtype] * (traffic + _PASSES_TRAFFIC if train else 1)
    return Work(forward_flops * (_TRAINING if train else 1), float(moved), float(p.sizes["b"]), params)


def _collective(p: Point) -> Work:
    size, n = p.sizes["bytes"], p.sizes["devices"]
    sent = {"all_reduce": 2 * (n - 1) / n, "all_gather": n - 1.0}.get(p.kind, (n - 1) / n) * size
    return Work(0.0, sent, float(size // WIDTH[p.dtype]))


_COUNTERS: Mapping[str, Callable[[Point], Work]] = {
    "gemm": _gemm,
    "copy": _copy,
    "add": _add,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "sdpa_fwd": _sdpa,
    "sdpa_fwdbwd": _sdpa,
    "gather": _gather,
    "adamw": _adamw,
    "train": _train,
    "prefill": _prefill,
    "decode": _decode,
    "resnet50_train": _resnet50,
    "resnet50_infer": _resnet50,
    "vit_train": _vit,
    "vit_infer": _vit,
    "all_reduce": _collective,
    "all_gather": _collective,
    "reduce_scatter": _collective,
    "all_to_all": _collective,
}
