"""What must hold for every layout of every workload on every chip."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import CALIBRATIONS, UNCALIBRATED, cases

from chipwise.catalog import parse, scaled
from chipwise.layout import enumerate_layouts
from chipwise.layout.front import pareto, sieve
from chipwise.layout.results import TIE, SearchResult
from chipwise.layout.search import search_listed
from chipwise.predict.setup import set_up

SLACK = 1 + 1e-12


def timed(workload, acc, calibration):
    work = set_up(workload, acc, calibration)
    layouts = enumerate_layouts(workload.model, workload.train, acc).layouts
    return work.schedule(work.components(layouts)).total


@settings(max_examples=60)
@given(cases(chips=(1, 4, 16, 64, 256)))
def test_every_layout_is_legal(case):
    workload, acc = case[0], parse(case[1])
    model, train = workload.model, workload.train
    x = enumerate_layouts(model, train, acc).layouts
    assert np.all(x.dp * x.tp * x.pp * x.cp == acc.count)
    assert np.all(train.global_batch % (x.dp * x.micro_batch) == 0)
    assert np.all(model.heads % x.tp == 0)
    kv = model.heads if model.latent else model.kv_heads
    assert np.all((kv % x.tp == 0) | (x.tp % kv == 0))
    assert np.all(x.pp <= model.layers) and np.all(x.pp * x.vpp <= model.layers + model.mtp_layers + 2)
    assert np.all((x.vpp == 1) | ((x.pp > 1) & ((train.global_batch / (x.dp * x.micro_batch)) % x.pp == 0)))
    assert np.all((x.cp == 1) | (train.sequence / x.cp >= 1024))
    assert np.all((x.dp * x.cp) % x.ep == 0)
    assert np.all(x.ep == 1) if model.experts is None else np.all(model.experts.count % x.ep == 0)
    assert np.all((x.zero > 0) | (x.shard == 1)) and np.all(x.dp % x.shard == 0)
    assert np.all((x.zero == 0) | (x.dp * x.cp > 1))
    if model.family == "encoder":
        assert np.all((x.pp == 1) & (x.cp == 1))


@settings(max_examples=30)
@given(cases(chips=(8, 64)))
def test_no_layout_is_listed_twice(case):
    workload, acc = case[0], parse(case[1])
    x = enumerate_layouts(workload.model, workload.train, acc).layouts
    fields = (x.dp, x.tp, x.pp, x.cp, x.ep, x.vpp, x.micro_batch, x.zero, x.shard, x.recompute, x.pipe_inner)
    assert len(np.unique(np.stack(fields), axis=1).T) == len(x)


@settings(max_examples=60)
@given(cases(), st.sampled_from((1.1, 2.0, 10.0)), CALIBRATIONS)
def test_more_memory_bandwidth_is_never_slower(case, factor, calibration):
    workload, acc = case[0], parse(case[1])
    faster = replace(acc, chip=replace(acc.chip, bandwidth=acc.chip.bandwidth * factor))
    assert np.all(timed(workload, faster, calibration) <= timed(workload, acc, calibration) * SLACK)


@settings(max_examples=40)
@given(
    cases(),
    st.sampled_from((1.1, 2.0, 10.0)),
    st.sampled_from(("scale_up", "link", "scale_out", "host_link")),
    CALIBRATIONS,
)
def test_faster_links_are_never_slower(case, factor, which, calibration):
    workload, acc = case[0], parse(case[1])
    fabric = acc.chip.fabric
    better = replace(fabric, **{which: getattr(fabric, which) * factor})
    faster = replace(acc, chip=replace(acc.chip, fabric=better))
    assert np.all(timed(workload, faster, calibration) <= timed(workload, acc, calibration) * SLACK)


@settings(max_examples=40)
@given(cases(), st.sampled_from((1.1, 2.0, 10.0)), CALIBRATIONS)
def test_a_chip_better_in_everything_is_at_least_as_fast(case, factor, calibration):
    workload, acc = case[0], parse(case[1])
    # calibration knows that a watt carries only so much arithmetic: the better chip has the power to match
    better = scaled(acc.chip, factor)
    faster = replace(acc, chip=better)
    assert np.all(timed(workload, faster, calibration) <= timed(workload, acc, calibration) * SLACK)


def fastest(found: SearchResult) -> float:
    return found.front[0].seconds  # the best is the simplest of those as good as equal


@settings(max_examples=25)
@given(cases(chips=(4, 16, 64)), st.floats(0.5, 64), st.floats(1.0, 4.0))
def test_more_memory_never_refuses_a_layout_nor_slows_the_best(case, gigabytes, factor):
    workload, acc = case[0], parse(case[1])
    work, legal = set_up(workload, acc, UNCALIBRATED), enumerate_layouts(workload.model, workload.train, acc)
    small, large = (search_listed(work, legal, gigabytes * 1e9 * f) for f in (1.0, factor))
    if isinstance(small, SearchResult):
        assert isinstance(large, SearchResult)
        assert large.too_large <= small.too_large
        assert fastest(large) <= fastest(small)


@settings(max_examples=25)
@given(cases(chips=(4, 16, 64)))
def test_the_search_finds_what_a_full_sort_finds(case):
    workload, acc = case[0], parse(case[1])
    work, legal = set_up(workload, acc, UNCALIBRATED), enumerate_layouts(workload.model, workload.train, acc)
    layouts = legal.layouts
    seconds, need = work.schedule(work.components(layouts)).total, work.memory(layouts).total
    limit = float(np.median(need))
    found = search_listed(work, legal, limit)
    fits = need <= limit
    assert found.evaluated == len(layouts) and found.too_large == np.count_nonzero(~fits)
    np.testing.assert_allclose(fastest(found), seconds[fits].min(), rtol=1e-12)
    assert found.best is found.top[0] and found.best.seconds <= fastest(found) * (1 + TIE)
    np.testing.assert_allclose(found.least_bytes, need.min(), rtol=1e-12)
    assert [f.seconds for f in found.top[1:]] == sorted(f.seconds for f in found.top[1:])
    front = pareto(seconds[fits], need[fits])
    for f in found.front:  # nothing is better in both
        better = (seconds < f.seconds * (1 - 1e-9)) & (need <= f.bytes * (1 + 1e-9)) & fits
        assert not better.any()
    assert abs(len(front) - len(found.front)) <= 0.2 * len(front) + 2  # ties may be told apart either way


@given(st.lists(st.tuples(st.floats(1, 10), st.floats(1, 10)), min_size=1, max_size=40), st.floats(1, 10))
def test_the_sieve_keeps_the_front(points, limit):
    seconds, need = np.array(points).T.copy()
    kept = sieve(seconds, need, limit)
    assert np.all(need[kept] <= limit)
    fits = np.flatnonzero(need <= limit)
    expected = {(seconds[i], need[i]) for i in fits[pareto(seconds[fits], need[fits])]}
    got = {(seconds[i], need[i]) for i in kept[pareto(seconds[kept], need[kept])]}
    assert got == expected
