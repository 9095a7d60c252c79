"""Intervals of kernels: by what bounds them, and the wider the less was measured of their kind."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chipwise.calibrate.kernel_widths import LEARNED, UNSEEN, Error, learn
from chipwise.catalog import load
from chipwise.predict.estimate import Distance
from chipwise.predict.microbenchmark import Kernel
from chipwise.validate.kernel_widths import ANY, Regime, bounds_of, distance_of, regime_of

PRODUCT = Kernel("gemm", "fp16", m=4096, n=4096, k=4096)
MEASURED = {"gemm/half": {"h100": ["lab"]}, "reduce": {"a100-80gb": ["lab"]}}


def errors(group: str, values: list[float], op: str = "gemm", distance: Distance = Distance.CHIP) -> list[Error]:
    return [Error(op=op, regime=Regime.BULK, distance=distance, group=group, value=value) for value in values]


@pytest.mark.parametrize(
    ("kernel", "chip", "source", "distance"),
    [
        (PRODUCT, "h100", "lab", Distance.SOURCE),
        (PRODUCT, "h100", "others", Distance.CHIP),
        (PRODUCT, "h200", "lab", Distance.DESIGN),
        (PRODUCT, "a100-80gb", "lab", Distance.VENDOR),
        (PRODUCT, "mi300x", "lab", Distance.NOBODY),
        (PRODUCT.sized(dtype="fp32"), "h100", "lab", Distance.NOBODY),
        (Kernel("reduce", "fp16", data=1e6, chips=8), "h100", "lab", Distance.VENDOR),
        (Kernel("copy", data=1e6), "h100", "lab", Distance.NOBODY),
    ],
)
def test_distance_is_to_the_nearest_kernel_of_its_kind(
    kernel: Kernel, chip: str, source: str, distance: Distance
) -> None:
    assert distance_of(kernel, load().chips[chip], source, MEASURED) is distance


def test_what_does_not_fill_the_chip_is_bound_by_overhead() -> None:
    assert regime_of(PRODUCT, 1e-3) is Regime.BULK
    assert regime_of(PRODUCT.sized(m=127), 1e-3) is Regime.OVERHEAD
    assert regime_of(Kernel("reduce", data=1e3, chips=8), 30e-6) is Regime.OVERHEAD
    assert regime_of(Kernel("reduce", data=1e9, chips=8), 1e-3) is Regime.BULK


def test_a_farther_interval_holds_the_nearer_ones() -> None:
    rows = errors("near", [-0.3, 0.4]) + errors("far", [-0.1, 0.1], distance=Distance.NOBODY)
    widths = learn(rows)
    for op in ("gemm", ANY):
        ends = [bounds_of(widths, op, Regime.BULK, d) for d in (Distance.SOURCE, *LEARNED)]
        for (low, high), (lower, higher) in pairwise(ends):
            assert lower <= low and high <= higher


def test_a_source_that_was_never_seen_has_longer_tails_than_one_that_was() -> None:
    rows = [error for i in range(15) for error in errors(f"group {i}", [v / 100 for v in range(-50, 51)])]
    widths = learn(rows)
    own, other = (bounds_of(widths, "gemm", Regime.BULK, d) for d in (Distance.SOURCE, Distance.CHIP))
    assert -UNSEEN < other[0] < own[0] < 0 < own[1] < other[1] < UNSEEN


def test_a_group_of_many_rows_weighs_as_much_as_one_of_few() -> None:
    many = errors("many", [0.0] * 1000)
    few = [error for i in range(14) for error in errors(f"few {i}", [0.3])]
    assert bounds_of(learn(many + few), "gemm", Regime.BULK, Distance.SOURCE)[1] == 0.3


def test_an_operation_nobody_measured_has_the_errors_of_all_others() -> None:
    widths = learn(errors("one", [-0.2, 0.2]) + errors("two", [-0.1, 0.5], op="reduce"))
    ends = bounds_of(widths, "exchange", Regime.BULK, Distance.NOBODY)
    assert ends == bounds_of(widths, ANY, Regime.BULK, Distance.NOBODY)
    assert ends[0] <= -0.2 and ends[1] >= 0.5


def test_a_regime_without_any_error_takes_those_of_the_other() -> None:
    widths = learn(errors("one", [-0.2, 0.2]))
    at = [bounds_of(widths, "gemm", regime, Distance.CHIP) for regime in Regime]
    assert at[0] == at[1]
