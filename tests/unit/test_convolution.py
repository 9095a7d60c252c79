"""Convolutions read their inputs once, and what lies around them is as fused as the stack fuses it."""

import numpy as np
import pytest

import chipwise as cw
from chipwise.catalog import find_stack, load
from chipwise.ops.operations import Matmul, StreamKind, Window
from chipwise.ops.table import build
from chipwise.predict.model.convolution import Fusion, convolution_shapes, traffic
from chipwise.predict.site import fusion
from chipwise.workload.presets import preset

ROWS = np.array([1000.0])


def bytes_read(shape):
    return float((shape.batch * shape.m * shape.k * shape.share)[0])


def test_three_by_three_windows_read_what_one_by_one_windows_read():
    wide = Matmul("c", 1.0, 64, 64 * 9, 1, window=Window(9, 1))
    point = Matmul("c", 1.0, 64, 64, 1, window=Window(1, 1))
    for a, b in zip(convolution_shapes(wide, ROWS, False), convolution_shapes(point, ROWS, False), strict=True):
        assert bytes_read(a) == pytest.approx(bytes_read(b))


def test_every_pass_multiplies_as_often_as_the_convolution_does():
    for window in (Window(9, 1), Window(9, 4), Window(1, 4), Window(49, 4, of_data=True)):
        op = Matmul("c", 1.0, 128, 64 * window.taps, 1, window=window)
        for shape in convolution_shapes(op, ROWS, False):
            assert float((shape.batch * shape.m * shape.n * shape.k)[0]) == pytest.approx(1000 * 128 * 64 * window.taps)


def test_a_stride_of_two_reads_four_times_what_it_writes():
    forward, back, _ = convolution_shapes(Matmul("c", 1.0, 64, 64 * 9, 1, window=Window(9, 4)), ROWS, False)
    assert bytes_read(forward) == pytest.approx(4 * 1000 * 64)
    assert bytes_read(back) == pytest.approx(1000 * 64)
    assert float(back.m[0]) == 4000


def test_systolic_arrays_get_the_channels_of_every_tap_in_whole_lanes():
    op = Matmul("c", 1.0, 64, 64 * 9, 1, window=Window(9, 1))
    forward, *_ = convolution_shapes(op, ROWS, True)
    assert float(forward.k[0]) == 128 * 9
    assert bytes_read(forward) == pytest.approx(64_000)  # what is read isn't padded


def test_narrow_groups_are_multiplied_side_by_side():
    op = Matmul("c", 1.0, 4, 4 * 9, 1, window=Window(9, 1, groups=32))
    forward, *_ = convolution_shapes(op, ROWS, False)
    assert float(forward.batch[0]) == 2 and float(forward.n[0]) == 64
    assert bytes_read(forward) == pytest.approx(1000 * 4 * 32)


@pytest.mark.parametrize("kind", [StreamKind.NORM, StreamKind.JOIN])
def test_what_is_fused_more_moves_less(kind):
    stream = next(s for s in build(preset("resnet-50"), 1).streams if s.kind is kind)
    separate, together, products = (sum(traffic(stream, how)) for how in Fusion)
    assert products < together < separate


def test_groups_of_channels_change_neither_flops_nor_launches():
    ops = build(preset("resnext-101-32x4d"), 1)
    assert sum(m.count for m in ops.matmuls) == 1 + sum(c.count for c in preset("resnext-101-32x4d").convs)
    assert ops.flops_forward == pytest.approx(2 * 8.0e9, rel=0.02)  # 8.0 G multiply-adds (arXiv 1611.05431, table 1)


def test_stacks_fuse_as_they_do():
    chips = load().chips
    assert fusion(find_stack("pytorch"), chips["h100"]) is Fusion.SEPARATE
    assert fusion(find_stack("mxnet"), chips["h100"]) is Fusion.TOGETHER
    assert fusion(find_stack("tensorflow"), chips["v4"]) is Fusion.PRODUCTS


# Images/s a chip: mlcommons/training_results_v0.7 (tpu-v4-16-TF, 2020) and v1.0 (dgxa100, 2021), v3.0 (dgxh100, 2023);
# NVIDIA/DeepLearningExamples, ConvNets (AMP, 2021)
PUBLISHED = [
    ("resnet-50", "v4:8", 2048, "bf16", "tensorflow", 3478),
    ("resnet-50", "a100-80gb:8", 3264, "fp16", "mxnet", 3312),
    ("resnet-50", "h100:8", 3200, "fp16", "mxnet", 7008),
    ("resnet-50", "a100-80gb:1", 256, "fp16", "pytorch", 2470),
    ("resnext-101-32x4d", "a100-80gb:1", 128, "fp16", "pytorch", 1211),
]


@pytest.mark.parametrize(("model", "place", "batch", "precision", "stack", "images"), PUBLISHED)
def test_published_rates_are_met_within_half_and_lie_in_the_interval(model, place, batch, precision, stack, images):
    run = cw.load(model, steps=1, batch=batch, precision=precision, stack=stack)
    step = cw.predict(run, on=place).step
    seconds = batch / (images * int(place.partition(":")[2]))
    assert step.low <= seconds <= step.high
    assert 2 / 3 < step.value / seconds < 3 / 2
