"""The most bytes a PyTorch training step of a decoder holds: bookkeeping of what autograd keeps, by moments.

Three moments can hold most: the loss (scores in fp32, their softmax and its gradient, with everything kept), the first
block of the backward pass, and its end (all gradients, and the layer being computed again where blocks are). Counted by
hand on `bench.frameworks.torch_decoder`; within 1 % of an H200's allocator on eager steps (`chipwise validate --rows`).
"""

from __future__ import annotations

from chipwise.ops.point import Point
from chipwise.ops.work import WIDTH, decoder_weights
from chipwise.predict.estimate import Estimate
from chipwise.predict.learn.bench_calibration import BenchCalibration

WORKSPACE = 70e6  # bytes that cuBLAS keeps for itself (H200, PyTorch 2.11: 64 to 90 MB, 2026-11-15)
FP32 = 4.0
# Of one layer a token: both norms' results, queries, attention's result and the input of the second norm; keys and
# values; the two wide products, the activation and their product
WIDTHS, KEYS, FEEDS = 5.0, 2.0, 4.0
COMPILED_WIDTHS = 3.0  # torch.compile computes the norms' results again
UNMEASURED = (1.0, 0.85, 1.15)  # ratio and its interval where nothing was measured: a guess, and wide
EAGER_SCORES = 3.0  # fp32 tensors of all scores at once: the softmax, the gradient into it and out of it


def training_peak(point: Point) -> float:
    """Bytes of the caching allocator at most: weights and AdamW's states in the point's precision."""
    sizes, width = point.sizes, float(WIDTH[point.dtype])
    tokens, layers, d = float(sizes["b"] * sizes["s"]), sizes["layers"], sizes["d"]
    kv = sizes["hk"] * (d // sizes["h"])
    weights = decoder_weights(sizes).total * width
    table = sizes["vocab"] * d * width
    layer = ((COMPILED_WIDTHS if point.compile else WIDTHS) * d + KEYS * kv + FEEDS * sizes["f"]) * tokens * width
    inputs = layers * tokens * d * width
    kept = inputs + (0.0 if point.remat else layers * layer)
    scores = tokens * sizes["vocab"]
    loss = 3 * weights + kept + 2 * tokens * d * width + EAGER_SCORES * FP32 * scores
    first = 3 * weights + kept + table + (2 * layer if point.remat else FEEDS * sizes["f"] * tokens * width)
    last = 4 * weights + (max(layer - table, 0.0) if point.remat else 0.0)
    if point.compile:  # scores never leave bf16 whole; the table's gradient is summed in fp32
        loss = 3 * weights + kept + scores * width
        last = 4 * weights + 2 * table
    return max(loss, first, last) + WORKSPACE


def way(point: Point) -> str:
    """How a training step runs, as far as its memory goes."""
    return "compiled" if point.compile else "eager"


def predict_peak(point: Point, bench: BenchCalibration) -> Estimate:
    """Bytes that a training step holds at most: bookkeeping times what measured steps held over theirs."""
    counted = training_peak(point)
    middle, low, high = bench.peaks.get(way(point), UNMEASURED)
    return Estimate(
        counted * middle,
        counted * low,
        counted * high,
        "modelled",
        f"bookkeeping, corrected by steps measured with {bench.framework}"
        if way(point) in bench.peaks
        else "bookkeeping; no such step was measured",
    )
