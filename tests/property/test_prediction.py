"""What must hold for the answer about one layout."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import cases

from chipwise.catalog import parse, scaled
from chipwise.catalog.calibration import load_calibration
from chipwise.layout import enumerate_layouts
from chipwise.predict.prediction import predict

RANDOM = st.randoms(use_true_random=False)


def some_layout(workload, acc, rng):
    layouts = enumerate_layouts(workload.model, workload.train, acc).layouts
    return layouts.at(rng.randrange(len(layouts)))


@settings(max_examples=60)
@given(cases(), st.integers(1, 1_000_000), st.sampled_from(("sequences", "images")), RANDOM)
def test_time_to_train_times_rate_is_what_is_trained_on(case, steps, unit, rng):
    workload, acc = case[0], parse(case[1])
    workload = replace(workload, train=replace(workload.train, steps=steps, samples_unit=unit))
    found = predict(workload, acc, some_layout(workload, acc, rng), load_calibration(bench=False))
    amount = workload.train.samples if unit == "images" else workload.train.tokens
    time, rate = found.duration, found.tokens_per_s
    assert time.value * rate.value == pytest.approx(amount, rel=1e-12)
    assert time.low * rate.high == pytest.approx(amount, rel=1e-12)
    assert time.high * rate.low == pytest.approx(amount, rel=1e-12)


@settings(max_examples=60)
@given(cases(), RANDOM)
def test_an_answer_adds_up(case, rng):
    workload, acc = case[0], parse(case[1])
    found = predict(workload, acc, some_layout(workload, acc, rng), load_calibration(bench=False))
    assert sum(found.parts.values()) == pytest.approx(found.step.value, rel=1e-9)
    assert sum(v for k, v in found.memory.items() if k != "total") == pytest.approx(found.memory["total"], rel=1e-12)
    assert 0 < found.step.low <= found.step.value <= found.step.high
    assert found.bound_s <= found.step.value and 0 < found.mfu < 1
    assert found.layout.chips == acc.count


@settings(max_examples=40)
@given(cases(), RANDOM)
def test_the_answer_for_a_better_chip_is_at_least_as_fast(case, rng):
    workload, acc = case[0], parse(case[1])
    layout = some_layout(workload, acc, rng)
    twice = replace(acc, chip=scaled(acc.chip, 2.0))
    slow, fast = (predict(workload, where, layout, load_calibration(bench=False)).step.value for where in (acc, twice))
    assert fast <= slow * (1 + 1e-12)
