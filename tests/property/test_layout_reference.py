"""The arrays agree with a plain scalar reading of the same equations."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scalar_reference as plain
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import CALIBRATIONS, UNCALIBRATED, cases

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.layout import enumerate_layouts, evaluate
from chipwise.ops.table import build
from chipwise.predict.model.components import Traits
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.setup import set_up
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset

TRAITS = st.builds(Traits, st.booleans(), st.booleans(), st.booleans())


def check(work, layouts, rows):
    breakdown, use = work.schedule(work.components(layouts)), work.memory(layouts)
    for i in rows:
        x = layouts.at(i)
        seconds = plain.step(work.ops, work.target, x, work.global_batch, work.costs, work.coefficients)
        for name, value in seconds.items():
            # waiting is the small difference of two large numbers: it is held to the step it is part of
            assert float(getattr(breakdown, name)[i]) == pytest.approx(value, rel=1e-9, abs=1e-9 * seconds["total"]), (
                name,
                x,
            )
        assert float(breakdown.total[i]) == pytest.approx(seconds["total"], rel=1e-9)
        needed = plain.memory(work.ops, work.target, x, work.global_batch, work.costs)
        for name, value in needed.items():
            assert use.at(i)[name] == pytest.approx(value, rel=1e-9), (name, x)


@settings(max_examples=200)
@given(cases(), TRAITS, CALIBRATIONS, st.randoms(use_true_random=False))
def test_arrays_agree_with_the_scalar_reference(case, traits, calibration, rng):
    workload, acc = case[0], parse(case[1])
    work = set_up(workload, acc, calibration)
    work = replace(work, target=replace(work.target, traits=traits))
    layouts = enumerate_layouts(workload.model, workload.train, acc).layouts
    check(work, layouts, [rng.randrange(len(layouts)) for _ in range(12)])


@pytest.mark.parametrize("name", ["resnet-50", "vit-b-16", "dit-xl-2", "bert-large", "deepseek-v3"])
@pytest.mark.parametrize("place", ["h100:64", "v5p:64", "mi300x:64"])
def test_presets_agree_with_the_scalar_reference(name, place):
    model = preset(name)
    workload = Workload(name, model, Train(1024, model.image_tokens or 512))
    acc = parse(place)
    layouts = enumerate_layouts(model, workload.train, acc).layouts
    check(
        set_up(workload, acc, load_calibration(bench=False)),
        layouts,
        range(0, len(layouts), max(1, len(layouts) // 20)),
    )


@pytest.mark.parametrize("place", ["h100:16", "gb200:16", "v5p:16", "mi300x:16"])
def test_layouts_no_search_lists_agree_with_the_scalar_reference(place):
    work = set_up(Workload("x", preset("mixtral-8x7b"), Train(64, 4096)), parse(place), load_calibration(bench=False))
    odd = [
        Layout(dp=16, zero=1),  # a ZeRO stage over one replica: every chip keeps all of the state
        Layout(dp=16, zero=2, micro_batch=4),
        Layout(dp=16, zero=3, recompute="offload"),
        Layout(dp=16, ep=8, zero=2, shard=4),  # fewer replicas share the state than experts are spread over
        Layout(tp=16, zero=3, shard=1, micro_batch=0.5),
        Layout(dp=2, pp=8, vpp=4, pipe_inner=True, recompute="full"),
        Layout(cp=16),
        Layout(cp=8, dp=2, zero=3, ep=8),
    ]
    check(work, Layouts.of(odd), range(len(odd)))


@settings(max_examples=30)
@given(cases())
def test_a_grid_times_its_layouts_as_if_they_were_written_out(case):
    workload, acc = case[0], parse(case[1])
    work = set_up(workload, acc, UNCALIBRATED)
    for grid in enumerate_layouts(workload.model, workload.train, acc).grids:
        seconds, need = evaluate(work, grid)
        flat = grid.flat()
        np.testing.assert_allclose(seconds.ravel(), work.schedule(work.components(flat)).total, rtol=1e-12)
        np.testing.assert_allclose(need.ravel(), work.memory(flat).total, rtol=1e-12)


@settings(max_examples=20)
@given(cases())
def test_the_parts_of_a_step_and_of_memory_add_up(case):
    workload, acc = case[0], parse(case[1])
    work = set_up(workload, acc, UNCALIBRATED)
    layouts = enumerate_layouts(workload.model, workload.train, acc).layouts
    step, use = work.schedule(work.components(layouts)), work.memory(layouts)
    outside = ("total", "hidden")
    parts = sum(getattr(step, f.name) for f in fields(step) if f.name not in outside)
    np.testing.assert_allclose(parts, step.total, rtol=1e-9)
    classes = sum(getattr(use, f.name) for f in fields(use) if f.name != "total")
    np.testing.assert_allclose(classes, use.total, rtol=1e-12)


@pytest.mark.parametrize(("name", "share"), [("bert-large", 0.15), ("llama-3.1-8b", 1.0)])
def test_an_encoder_scores_its_masked_tokens_alone(name, share):
    ops = build(preset(name), 512)
    assert [m.rows for m in ops.matmuls if m.place == "head"] == [pytest.approx(share * 512)]
    assert [s.rows for s in ops.streams if s.place == "head"] == [pytest.approx(share * 512)]


def test_layouts_survive_the_round_trip_through_arrays():
    found = enumerate_layouts(preset("llama-3.1-8b"), Train(64, 8192), parse("h100:64"))
    layouts = found.layouts
    some = [layouts.at(i) for i in range(0, len(layouts), 97)]
    again = Layouts.of(some)
    assert [again.at(i) for i in range(len(some))] == some
