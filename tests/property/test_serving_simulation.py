"""What holds for every fleet and every stream of requests."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import TICK, cases, streams
from serving_reference import reference

import chipwise
from chipwise.serving.measures import measure
from chipwise.serving.requests import draw
from chipwise.serving.requests import given as requests_of
from chipwise.serving.simulate import Fleet, Simulation, gap_edges, simulate
from chipwise.serving.step_times import EngineConfig, StepTimeTable
from chipwise.workload.serve import Arrival, Lengths, Serve

CHAT = Serve(
    Lengths(((0.01, 20.0), (0.5, 200.0), (0.99, 1500.0))),
    Lengths(((0.01, 5.0), (0.5, 60.0), (0.99, 300.0))),
    Arrival("poisson", rate=5.0),
)
ENGINE = StepTimeTable(np.maximum(8e-3, 0.1e-3 * np.arange(2049)), 2e-8, 1e-9, 1e-5, 300.0, 1000.0)


@settings(max_examples=300)
@given(cases())
def test_equals_stepping_iterations_one_by_one(case):
    requests, fleet = case
    run = simulate(requests, fleet)
    asked, replicas = reference(requests, fleet)
    for name in ("arrival", "start", "first", "finish"):
        expected = [getattr(q, name) for q in asked]
        np.testing.assert_allclose(getattr(run, f"{name}_s"), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert run.preempted.tolist() == [q.preempted for q in asked]
    totals = run.totals
    np.testing.assert_allclose(totals.busy_s.sum(0), [r.busy for r in replicas], rtol=1e-9)
    np.testing.assert_allclose(totals.kv_block_s.sum(0), [r.block_s for r in replicas], rtol=1e-9)
    assert totals.iterations.sum(0).tolist() == [r.iterations for r in replicas]
    assert totals.prompt_tokens.sum(0).tolist() == [r.prompt_tokens for r in replicas]
    assert run.peak_blocks.tolist() == [r.most_blocks for r in replicas]
    gaps = np.concatenate([np.diff(q.tokens_at) for q in asked])
    np.testing.assert_array_equal(run.gaps.sum(0), np.histogram(gaps, gap_edges())[0])
    assert run.gap_s.sum() == pytest.approx(gaps.sum(), rel=1e-9)
    shift = fleet.prefill.replicas if fleet.prefill else 0
    last = np.where(run.replica < 0, run.prefilled_by, run.replica + shift)
    assert last.tolist() == [q.replica for q in asked]


@given(cases())
def test_no_request_is_lost_and_no_cache_overflows(case):
    requests, fleet = case
    run = simulate(requests, fleet)
    assert np.all(run.arrival_s <= run.start_s)
    assert np.all(run.start_s < run.first_s)
    assert np.all((run.first_s < run.finish_s) == (requests.output > 1))
    # every token is the first of a request, one that a decoding step made, or the one that a prompt done again gave
    again = run.gaps.sum() - run.totals.decode_tokens.sum()
    assert len(requests) + run.gaps.sum() == requests.output.sum()
    assert 0 <= again <= run.preempted.sum() == run.totals.preemptions.sum()
    shift = fleet.prefill.replicas if fleet.prefill else 0
    assert np.all(run.peak_blocks[shift:] <= fleet.kv_blocks)
    if fleet.prefill:
        assert np.all(run.peak_blocks[:shift] <= fleet.prefill.kv_blocks)
    if fleet.config.reserve:
        assert not run.preempted.any()


@given(cases(split=False))
def test_a_replica_works_exactly_while_it_has_requests(case):
    requests, fleet = case
    run = simulate(requests, fleet)
    for r in range(fleet.replicas):
        here = np.flatnonzero(run.replica == r)
        there = 0.0  # seconds with a request
        until = -np.inf
        for i in here[np.argsort(run.arrival_s[here], kind="stable")]:
            there += max(0.0, run.finish_s[i] - max(until, run.arrival_s[i]))
            until = max(until, run.finish_s[i])
        assert run.totals.busy_s[:, r].sum() == pytest.approx(there, rel=1e-12)


@given(cases())
def test_littles_law(case):
    measured = measure(simulate(*case))
    assert measured.in_system == pytest.approx(measured.little, rel=1e-9)


@settings(max_examples=40)
@given(streams(), st.integers(1, 5))
def test_more_replicas_never_delay_a_request_of_equal_ones_in_turn(requests, replicas):
    """One at a time, all equally long: in turn is the same as one queue for all, where a server more helps everyone."""
    equal = requests_of(
        requests.arrival_s if requests.kind == "trace" else None, np.ones(len(requests)), np.ones(len(requests))
    )
    fleet = Fleet(
        StepTimeTable(np.full(2, 50 * TICK)),
        1,
        EngineConfig(most_sequences=1, most_tokens=1, block=1),
        replicas,
        "round_robin",
    )
    fewer, more = simulate(equal, fleet), simulate(equal, replace(fleet, replicas=replicas + 1))
    assert np.all(more.finish_s <= fewer.finish_s)
    assert np.all(more.start_s <= fewer.start_s)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(2.0, 40.0), st.integers(1, 4))
def test_twice_the_replicas_are_not_slower_on_the_mean(seed, rate, replicas):
    """Of the same requests. A batch can always fall unluckily for one of them; over 400 the mean may lose 2 %."""
    requests = draw(CHAT, 400, seed, rate=rate)
    fleet = Fleet(ENGINE, 2000, EngineConfig(most_sequences=64, most_tokens=2048), replicas)
    fewer, more = simulate(requests, fleet), simulate(requests, replace(fleet, replicas=2 * replicas))
    for run in ("first_s", "finish_s"):
        before, after = (np.mean(getattr(x, run) - x.arrival_s) for x in (fewer, more))
        assert after <= before * 1.02


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.8])
def test_waiting_for_a_constant_service(load):
    """M/D/1: the mean wait is load x service / (2 (1 - load))."""
    service = 0.01
    serve = Serve(Lengths.fixed(1), Lengths.fixed(0), Arrival("poisson", rate=load / service))
    fleet = Fleet(StepTimeTable(np.full(2, service)), 1, EngineConfig(most_sequences=1, most_tokens=1))
    run = simulate(serve, fleet, count=2_000_000, seed=1)
    waited = float(np.mean((run.start_s - run.arrival_s)[run.counted]))
    assert waited == pytest.approx(load * service / (2 * (1 - load)), rel=0.02)
    measured = measure(run)
    assert measured.busy == pytest.approx(load, rel=0.01)
    assert measured.queue == pytest.approx(measured.request_rate.value * waited, rel=0.01)
    assert not measured.saturated


def digest(run: Simulation) -> str:
    """Of every bit that a run gives."""
    found = hashlib.sha256()
    for each in fields(run):
        value = getattr(run, each.name)
        if isinstance(value, np.ndarray):
            found.update(value.tobytes())
    for each in fields(run.totals):
        found.update(getattr(run.totals, each.name).tobytes())
    return found.hexdigest()


def one_run() -> str:
    fleet = Fleet(ENGINE, 300, EngineConfig(most_sequences=16, most_tokens=256), 3, "prefix")
    run = simulate(replace(CHAT, prefix_hit=0.4), fleet, count=800, seed=7, rate=25.0)
    assert run.preempted.any()
    return digest(run)


def test_equal_bits_again_and_in_another_process():
    first = one_run()
    assert one_run() == first
    folders = [str(Path(__file__).parent), str(Path(chipwise.__file__).parents[1])]
    line = [sys.executable, "-c", "from test_serving_simulation import one_run; print(one_run())"]
    there = subprocess.run(
        line, env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)}, check=True, capture_output=True, text=True
    )
    assert there.stdout.strip() == first


@given(cases())
def test_rates_add_up_over_a_run_that_counts_whole(case):
    requests, fleet = case
    run = simulate(requests, fleet)
    found = measure(run)
    if run.steady:
        return
    assert found.request_rate.value * found.seconds == pytest.approx(len(requests))
    assert found.token_rate.value * found.seconds == pytest.approx(requests.output.sum())
    assert found.good == 1.0 and found.goodput == pytest.approx(found.request_rate.value)
    assert 0 <= found.kv_use <= found.kv_peak <= 1
