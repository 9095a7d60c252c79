"""Padding on a systolic array: what is wasted and which dimension to change."""

from dataclasses import replace

import pytest

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.compiled.timing.padding import filled, padding
from chipwise.compiled.timing.products import Product
from chipwise.compiled.timing.schedule import Op, Schedule
from chipwise.compiled.timing.timing import clock_rates

V6E, V5E = (clock_rates(parse(name), load_calibration(bench=False)) for name in ("v6e:1", "v5e:1"))


def product(m, n, k, name="dot.1", **more):
    made = Product(m, n, k, 1, "bf16", 2.0 * m * n * k)
    return Op("matmul", name, cycles=1e6, products=(made,), source="model.py:3", **more)


def schedule(*ops):
    return Schedule("main", {"main": list(ops)})


@pytest.mark.parametrize(
    ("sizes", "width", "useful"),
    [
        ((4096, 4096, 4096), 128, 1.0),
        ((4096, 4096, 64), 128, 0.5),
        ((4096, 4096, 64), 256, 0.25),
        ((4, 4096, 4096), 128, 0.5),
        ((4096, 4, 4096), 128, 0.5),
        ((192, 192, 256), 256, 0.75),
    ],
)
def test_share_of_the_array_that_does_work(sizes, width, useful):
    assert filled(*sizes, width)[0] == useful


def test_the_narrowest_dimension_is_named_with_the_multiple_it_needs():
    (waste,) = padding(schedule(product(4096, 4096, 64)), V6E)
    assert (waste.dimension, waste.size, waste.padded, waste.multiple, waste.share) == (
        "contraction",
        64,
        256,
        256,
        0.75,
    )
    assert "multiple of 256" in waste.words


def test_what_fills_the_array_is_not_listed():
    assert padding(schedule(product(4096, 4096, 4096)), V5E) == ()


def test_the_same_product_at_the_same_line_is_one_row():
    (waste,) = padding(schedule(product(4096, 4096, 64), product(4096, 4096, 64, "dot.2")), V5E)
    assert waste.times == 2


def test_a_product_bound_by_memory_loses_nothing_to_padding():
    (waste,) = padding(schedule(product(4096, 4096, 64, hbm=1e12)), V5E)
    assert waste.seconds == pytest.approx(0.0, abs=1e-5)


def test_most_wasted_seconds_come_first():
    rows = padding(
        schedule(product(4096, 4096, 100), replace(product(4096, 4096, 32, "dot.2"), source="other.py:1")), V5E
    )
    assert [each.seconds for each in rows] == sorted((each.seconds for each in rows), reverse=True)


def test_attention_of_narrow_heads_says_to_pack_them():
    op = Op("attention", "splash", attention=(64.0, 2048.0, 2048.0, 64.0, 0.5, 2.0), source="a.py:9")
    (waste,) = padding(schedule(op), V6E)
    assert waste.dimension == "head" and waste.share == 0.75 and "pack heads" in waste.words


def test_a_gpu_has_no_array_to_pad():
    assert padding(schedule(product(100, 100, 3)), clock_rates(parse("h100:1"), load_calibration(bench=False))) == ()
