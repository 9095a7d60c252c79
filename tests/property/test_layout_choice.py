"""Which layout is chosen: never much slower than the fastest, none simpler as fast, memory left free, axes that exist."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import CALIBRATIONS, cases

import chipwise as cw
from chipwise.catalog import load, parse
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import DoesNotFit, NoLayout, Refusal
from chipwise.layout import RESERVE, enumerate_layouts, evaluate, search
from chipwise.layout.named import read_layout
from chipwise.layout.results import TIE, SearchResult
from chipwise.layout.search import search_listed
from chipwise.layout.simplicity import intricacy
from chipwise.predict.model.layouts import Layouts
from chipwise.predict.setup import set_up, stack_of
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset

CLOSE = 1e-9


def legal_of(workload, acc):
    return enumerate_layouts(workload.model, workload.train, acc, stack_of(workload, acc.chip).parallel)


@settings(max_examples=60)
@given(cases(chips=(1, 4, 16, 64)), CALIBRATIONS, st.floats(0.2, 1.0))
def test_the_best_is_the_simplest_within_one_percent_of_the_fastest_of_all(case, calibration, share):
    workload, acc = case[0], parse(case[1])
    work, legal = set_up(workload, acc, calibration), legal_of(workload, acc)
    layouts = legal.layouts
    seconds, need = (
        np.concatenate([each.ravel() for each in arrays])
        for arrays in zip(*(evaluate(work, g) for g in legal.grids), strict=True)
    )
    limit = float(np.quantile(need, share))
    found = search_listed(work, legal, limit)
    assert isinstance(found, SearchResult) and found.best.bytes <= limit
    fits = need <= limit
    fastest = seconds[fits].min()
    assert found.best.seconds <= fastest * (1 + TIE) * (1 + CLOSE)
    rows = intricacy(layouts)
    near = np.flatnonzero(fits & (seconds <= fastest * (1 + TIE) * (1 - CLOSE)))
    chosen = tuple(intricacy(Layouts.of([found.best.layout]))[0])
    assert min(tuple(row) for row in rows[near]) >= chosen
    assert found.best is found.top[0]
    assert found.best.seconds <= min(f.seconds for f in (*found.top, *found.front)) * (1 + TIE) * (1 + CLOSE)


@settings(max_examples=40)
@given(cases(chips=(4, 64)), CALIBRATIONS, st.integers(0, 2**32))
def test_a_search_times_layouts_as_they_are_answered(case, calibration, seed):
    rng = random.Random(seed)
    workload, acc = case[0], parse(case[1])
    work = set_up(workload, acc, calibration)
    for grid in legal_of(workload, acc).grids:
        seconds, _ = evaluate(work, grid)
        some = [rng.randrange(len(grid)) for _ in range(5)]
        single = [grid.at(i) for i in some]
        np.testing.assert_allclose(seconds.ravel()[some], work.seconds(single), rtol=1e-6)
        taken = grid.take(np.array(some))
        assert [taken.at(i) for i in range(len(some))] == [replace(x, micro_batch=float(x.micro_batch)) for x in single]


def test_measured_steps_count_in_a_search_as_in_a_prediction():
    work = cw.load("vit-b-16", batch=1024, samples="1M")
    found = cw.layouts(work, on="h200:8")
    assert cw.predict(work, on="h200:8").step.value == pytest.approx(found.best.seconds, rel=1e-6)


@settings(max_examples=60)
@given(cases(chips=(8, 64)), st.sampled_from([s for s in load().stacks.values() if "train" in s.work]))
def test_no_layout_uses_an_axis_its_stack_lacks(case, stack):
    workload, acc = case[0], parse(case[1])
    has = stack.parallel
    x = enumerate_layouts(workload.model, workload.train, acc, has).layouts
    for axis, values in (("tp", x.tp), ("pp", x.pp), ("vpp", x.vpp), ("cp", x.cp), ("ep", x.ep)):
        assert axis in has.axes or np.all(values == 1)
    assert set(np.unique(x.zero)) <= set(has.zero) | {0}
    assert np.all((x.pp == 1) | (x.zero <= has.zero_pp))


@pytest.mark.parametrize(
    ("stack", "on", "layout", "lacks"),
    [
        ("pytorch", "h100:8", "pp=2", "pp"),
        ("fsdp", "h100:8", "tp=2", "tp"),
        ("deepspeed", "h100:8", "pp=2,vpp=2", "vpp"),
        ("deepspeed", "h100:8", "pp=2,zero=3", "ZeRO stage 3 with pp"),
        ("maxtext", "v5p:8", "zero=2", "ZeRO stage 2"),
        ("", "trainium2:16", "cp=2", "cp"),
        ("", "gaudi3:8", "tp=2", "tp"),
    ],
)
def test_a_layout_named_with_an_axis_the_stack_lacks_is_refused(stack, on, layout, lacks):
    job = Workload("x", preset("llama-3.1-8b"), Train(64, 8192, stack=stack))
    with pytest.raises(NoLayout, match=f"has no {lacks}; it has dp"):
        cw.predict(job, on=on, layout=layout)


def tight():
    """A run whose smallest layout on one chip leaves some memory free, but little; and that share."""
    acc = parse("h100:1")
    for sequence in range(1024, 65536, 512):
        job = Workload("x", preset("llama-3.2-1b"), Train(1, sequence, recompute="none"))
        least = search(job, acc, load_calibration(bench=False), headroom=0.0).least_bytes
        free = 1 - RESERVE - least / acc.chip.usable_bytes
        if free < 0.04:
            return job, free
    raise AssertionError


def test_headroom_is_required_and_said():
    job, free = tight()
    assert 0 < free < 0.05
    with pytest.raises(
        DoesNotFit, match=r"does not fit on h100:1 with 5 % of the memory free: .* `--headroom 0` would do"
    ):
        cw.layouts(job, on="h100:1")
    with pytest.raises(DoesNotFit, match="--headroom 0"):
        cw.predict(job, on="h100:1")
    with pytest.raises(Refusal, match="--headroom 0"):
        cw.compare(job, on="h100:1")
    for layouts in (cw.layouts(job, on="h100:1", headroom=0), cw.layouts(job, on="h100:1", headroom=f"{free * 99}%")):
        assert layouts.result.headroom(layouts.best) == pytest.approx(free * parse("h100").chip.usable_bytes)
    assert cw.compare(job, on="h100:1", headroom=0).pick
    named = cw.predict(job, on="h100:1", layout=str(layouts.best.layout))
    assert "less than the headroom of 5 % of the memory" in str(named)
    assert "headroom of" not in str(cw.predict(job, on="h100:1", headroom=0))


@pytest.mark.parametrize("percent", [0, 5, 20])
def test_the_best_leaves_the_headroom_free(percent):
    job = Workload("x", preset("llama-3.1-8b"), Train(128, 8192))
    found = cw.layouts(job, on="h100:64", headroom=percent).result
    usable = parse("h100").chip.usable_bytes
    assert found.required == pytest.approx(usable * percent / 100)
    assert found.limit == pytest.approx(usable * (1 - RESERVE - percent / 100))
    assert min(found.headroom(f) for f in (*found.top, *found.front)) >= found.required


@pytest.mark.parametrize("layout", ["tp=4", "fsdp=64", "tp=2,pp=2"])
def test_what_a_named_layout_leaves_open_is_filled_in_by_the_same_rule(layout):
    job, acc = Workload("x", preset("llama-3.1-8b"), Train(128, 8192)), parse("h100:64")
    calibration = load_calibration(bench=False)
    read = read_layout(layout, job, acc, calibration, None)
    usable = acc.chip.usable_bytes
    assert set_up(job, acc, calibration).memory(Layouts.of([read])).total[0] <= usable * (1 - RESERVE - 0.05)
