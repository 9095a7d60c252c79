"""What a point consists of: formulas of single kernels, and the terms that a step's time is a sum of.

Fitting (`calibrate`) and predicting (`points`) share them. Terms of time are in seconds: what the part would take if
products and attention ran as measured on their own and streams at the chip's full bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip
from chipwise.errors import Refusal
from chipwise.ops.point import Point
from chipwise.ops.work import WIDTH, decoder_weights, work_of
from chipwise.predict.model.kernels import ComputeSpec, KernelCoefficients, attention_seconds, matmul_seconds
from chipwise.predict.model.shapes import Attention, Products

Array = NDArray[np.float64]
Sizes = Mapping[str, int]
Seconds = Callable[[Sequence[Point]], Array]  # of kernels on their own, with no floor

STREAMS = ("copy", "add", "rmsnorm", "softmax", "gather", "adamw")
AGAIN = 1 / 3  # of a step's streams are the forward pass's, done again where blocks are recomputed
MICRO = 1e-6  # a term counted in layers is a microsecond each
ALIGNED = 8  # elements: fused attention pads heads of other widths first


def compute_spec_of(chip: Chip, dtype: str, coefficients: KernelCoefficients) -> ComputeSpec:
    """The chip's figures for one precision, with coefficients."""
    if dtype not in chip.peak:
        raise Refusal(f"{chip.id} has no {dtype} peak in the catalog", "measure in one of " + ", ".join(chip.peak))
    return ComputeSpec(chip.peak[dtype], chip.bandwidth, float(chip.cores), chip.mxu, coefficients)


def base_seconds(chip: Chip, kind: str, dtype: str, coefficients: KernelCoefficients, points: Sequence[Point]) -> Array:
    """Seconds of kernels of one kind and precision by formula."""
    made = compute_spec_of(chip, dtype, coefficients)
    size = float(WIDTH[dtype])

    def column(name: str) -> Array:
        return np.array([p.sizes[name] for p in points], float)

    if kind == "gemm":
        m, n = np.sort(np.stack([column("m"), column("n")]), axis=0)  # tiles are listed with the narrow side as rows
        out = 4.0 if dtype in ("fp32", "tf32", "int8") else 2.0
        return matmul_seconds(made, Products(m, n, column("k"), in_bytes=size, weight_bytes=size), out)
    if kind.startswith("sdpa"):
        s, d = column("s"), column("d")
        seen = np.where([p.causal for p in points], s / 2, s)
        arguments = (column("b"), column("h"), column("hk"))
        both = np.stack([_attention(made, arguments, float(width), s, seen, kind) for width in np.unique(d)])
        return np.asarray(both[np.searchsorted(np.unique(d), d), np.arange(len(points))])
    moved = np.array([work_of(p).moved_bytes for p in points])
    return np.asarray(moved / (chip.bandwidth * coefficients.memory) + coefficients.launch_s)


def _attention(
    made: ComputeSpec, arguments: tuple[Array, Array, Array], width: float, s: Array, seen: Array, kind: str
) -> Array:
    shape = Attention(*arguments, width, width, s, seen)
    forward = attention_seconds(made, shape)
    return forward if kind == "sdpa_fwd" else forward + attention_seconds(made, shape, backward=True)


def features(kind: str, points: Sequence[Point], chip: Chip) -> Array:
    """Where points of a kind lie: logarithms of sizes, and how full the last wave of tiles is."""
    if kind == "gemm":
        m, n, k = (np.array([p.sizes[name] for p in points], float) for name in "mnk")
        waves = np.ceil(m / 128) * np.ceil(n / 256) / max(chip.cores, 1)
        idle = np.where(waves > 1, np.ceil(waves) / waves - 1, 0.0)
        return np.stack([np.log(m), np.log(n), np.log(k), 2 * idle], 1)
    if kind.startswith("sdpa"):
        rows = [
            (
                0.5 * np.log(p.sizes["b"] * p.sizes["h"]),
                np.log(p.sizes["s"]),
                4 * np.log(p.sizes["d"]),
                0.5 * np.log(p.sizes["h"] / p.sizes["hk"]),
                2 * float(p.causal),
                2 * float(p.sizes["d"] % ALIGNED > 0),
            )
            for p in points
        ]
        return np.array(rows)
    names = {"copy": ("bytes",), "add": ("bytes",), "adamw": ("count",), "gather": ("m", "k")}.get(kind, ("m", "n"))
    return np.asarray(np.log(np.array([[float(p.sizes[name]) for name in names] for p in points])))


def decoder_products(sizes: Sizes, rows: float) -> list[tuple[float, int, int]]:
    """The products of one layer's forward pass: (rows, columns, depth)."""
    d, f = sizes["d"], sizes["f"]
    kv = sizes["hk"] * (d // sizes["h"])
    return [(rows, n, k) for n, k in ((d, d), (kv, d), (kv, d), (d, d), (f, d), (f, d), (d, f))]


def _gemm_points(dtype: str, shapes: Sequence[tuple[float, float, float]]) -> list[Point]:
    return [Point("kernels", "gemm", dtype, {"m": int(m), "n": int(n), "k": int(k)}) for m, n, k in shapes]


def product_seconds(point: Point, seconds: Seconds) -> tuple[float, float]:
    """Seconds of a step's products (forward, backward), each as if on its own."""
    sizes = point.sizes
    rows = float(sizes["b"] if point.kind == "decode" else sizes["b"] * sizes["s"])
    scored = rows if point.kind == "train" else float(sizes["b"])
    layer = decoder_products(sizes, rows)
    head = [(scored, sizes["vocab"], sizes["d"])]
    forward = seconds(_gemm_points(point.dtype, layer + head))
    ahead = float(forward[:-1].sum() * sizes["layers"] + forward[-1])
    if point.kind != "train":
        return ahead, 0.0
    behind = seconds(_gemm_points(point.dtype, [s for m, n, k in layer + head for s in ((m, k, n), (n, k, m))]))
    return ahead, float(behind[:-2].sum() * sizes["layers"] + behind[-2:].sum())


def attention_points(point: Point, kind: str) -> list[Point]:
    """The attention of one layer as a kernel."""
    s = point.sizes
    return [
        Point(
            "kernels",
            kind,
            point.dtype if point.dtype != "tf32" else "fp32",
            {"b": s["b"], "h": s["h"], "hk": s["hk"], "s": s["s"], "d": s["d"] // s["h"]},
        )
    ]


def decoder_terms(point: Point, chip: Chip, products: Seconds, forward: Seconds, both: Seconds) -> dict[str, float]:
    """The terms of a training step or a prefill."""
    sizes, width = point.sizes, WIDTH[point.dtype]
    layers, tokens = sizes["layers"], sizes["b"] * sizes["s"]
    ahead, behind = product_seconds(point, products)
    once = layers * float(forward(attention_points(point, "sdpa_fwd"))[0])
    stream = layers * tokens * width / chip.bandwidth
    if point.kind == "prefill":
        return {"products": ahead, "attention": once, "width": stream * sizes["d"], "feed": stream * sizes["f"]}
    attention = layers * float(both(attention_points(point, "sdpa_fwdbwd"))[0])
    again = float(point.remat)
    return {
        "products": ahead * (1 + again) + behind,
        "attention": attention + again * once,
        "width": stream * sizes["d"] * (1 + AGAIN * again),
        "feed": stream * sizes["f"] * (1 + AGAIN * again),
        "scores": tokens * sizes["vocab"] * width / chip.bandwidth,
        "update": decoder_weights(sizes).total * width / chip.bandwidth,
    }


def decode_terms(point: Point, chip: Chip) -> dict[str, float]:
    """The terms of one token: weights, the cache, and what a layer takes whatever its size."""
    sizes, width = point.sizes, WIDTH[point.dtype]
    weights = decoder_weights(sizes)
    head = sizes["d"] // sizes["h"]
    cache = 2.0 * sizes["b"] * sizes["s"] * sizes["hk"] * head * sizes["layers"]
    rows = sizes["b"] * sizes["layers"] * (4 * sizes["d"] + 3 * sizes["f"])
    padded = float(head % ALIGNED > 0)
    return {
        "weights": (weights.block + weights.head) * width / chip.bandwidth,
        "cache": cache * width / chip.bandwidth,
        "padded": padded * cache * width / chip.bandwidth,
        "padded_layers": padded * MICRO * sizes["layers"],
        "rows": rows * width / chip.bandwidth,
        "layers": MICRO * sizes["layers"],
    }


def image_terms(point: Point, chip: Chip) -> dict[str, float]:
    """The terms of a vision model: images, and a constant."""
    return {"images": point.sizes["b"] * MICRO, "layers": MICRO * 50}
