"""Sampling: medians and ranges as given, the analytic percentiles where there are some, and equal in every process."""

import subprocess
import sys
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cost.sampling import END, P10, Input, drawn, medians, spread, tornado

POSITIVE = st.floats(1e-6, 1e6)
FACTOR = st.floats(1.0, 20.0)


@given(POSITIVE, FACTOR, FACTOR)
def test_the_median_and_the_ends_of_the_range_are_those_given(value, down, up):
    x = Input("x", value, value / down, value * up)
    assert x.at(0.0) == pytest.approx(value)
    assert (x.at(-END), x.at(END)) == (pytest.approx(x.low), pytest.approx(x.high))
    assert x.low * (1 - 1e-9) <= x.at(P10) <= value * (1 + 1e-9) <= x.at(-P10) * (1 + 1e-6)


@given(POSITIVE, FACTOR, FACTOR, st.integers(0, 2**32 - 1))
def test_nine_draws_in_ten_lie_in_the_range(value, down, up, seed):
    x = Input("x", value, value / down, value * up)
    got = x.draw(4_000, seed)
    inside = np.mean((got >= x.low * (1 - 1e-9)) & (got <= x.high * (1 + 1e-9)))
    sides = (down > 1 + 1e-6) + (up > 1 + 1e-6)  # of the median that have a range
    assert inside == pytest.approx(1 - 0.05 * sides, abs=0.025)


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.integers(0, 99))
def test_what_may_be_zero_is_never_less_and_a_cap_is_kept(low, high, seed):
    x = Input("x", low, 0.0, low + high, most=low + high / 2)
    got = x.draw(500, seed)
    assert got.min() >= 0 and got.max() <= x.most


def product(inputs):
    def total(x):
        out = 1.0
        for each in inputs:
            out = out * x[each.name]
        return out

    return total


@pytest.mark.parametrize("seed", range(5))
def test_a_product_of_lognormals_has_the_analytic_percentiles(seed):
    # the logarithms add up: the median is the product of the medians, the variance of the logarithm is their sum
    sigmas, values = (0.1, 0.25, 0.4), (3.0, 7.0, 0.5)
    inputs = [
        Input(f"x{i}", v, v * exp(-END * s), v * exp(END * s))
        for i, (v, s) in enumerate(zip(values, sigmas, strict=True))
    ]
    got = spread(product(inputs)(drawn(inputs, 200_000, seed)))
    whole, median = sqrt(sum(s * s for s in sigmas)), 3.0 * 7.0 * 0.5
    assert got.p50 == pytest.approx(median, rel=0.01)
    assert got.p10 == pytest.approx(median * exp(P10 * whole), rel=0.01)
    assert got.p90 == pytest.approx(median * exp(-P10 * whole), rel=0.01)
    assert product(inputs)(medians(inputs)) == pytest.approx(median)


def test_the_tornado_of_a_product_is_sorted_and_exact():
    inputs = [Input("small", 2.0, 1.8, 2.2), Input("large", 5.0, 2.0, 12.5), Input("known", 3.0, 3.0, 3.0)]
    got = tornado(inputs, product(inputs))
    assert [swing.name for swing in got] == ["large", "small"]
    low = 5.0 * exp(P10 * log(5.0 / 2.0) / END)
    assert got[0].usd_low == pytest.approx(2.0 * 3.0 * low)
    assert got[0].swing == pytest.approx(abs(got[0].usd_high - got[0].usd_low))


def test_an_input_that_does_nothing_is_left_out():
    inputs = [Input("used", 2.0, 1.0, 4.0), Input("unused", 2.0, 1.0, 4.0)]
    assert [s.name for s in tornado(inputs, lambda x: x["used"])] == ["used"]


def test_draws_depend_on_the_seed_and_the_name_alone():
    a, b = Input("a", 1.0, 0.5, 2.0), Input("b", 1.0, 0.5, 2.0)
    alone, together = drawn([a], 100, 7), drawn([b, a], 100, 7)
    assert (alone["a"] == together["a"]).all() and not (together["a"] == together["b"]).any()
    assert not (a.draw(100, 7) == a.draw(100, 8)).any()


def test_draws_are_equal_in_another_process():
    code = "from chipwise.cost.sampling import Input; print(Input('a', 1.0, 0.5, 2.0).draw(50, 3).tolist())"
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1] == f"{Input('a', 1.0, 0.5, 2.0).draw(50, 3).tolist()}\n"
