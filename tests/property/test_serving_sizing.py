"""A service is sized by its replicas: linear in the demand, never refused afterwards, enough in a whole-fleet run."""

from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lane
from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, Terms
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.replicas import queueing_margin
from chipwise.compare.serving.row import ServingRow
from chipwise.knowledge import Knowledge
from chipwise.serving.capacity import COUNT, holds, trial_requests
from chipwise.serving.service import run
from chipwise.serving.trials import ReplicaTrials, largest_load
from chipwise.workload import load_serving

KNOWLEDGE = Knowledge(load_calibration(bench=False), today=date(2026, 9, 1))
SERVICES = {
    "chat": ("llama-3.1-8b", {"input": 800, "output": 200, "slo": {"ttft": "2s", "tpot": "40ms"}}),
    "long": ("qwen3-32b", {"input": 20000, "output": 2000, "slo": {"ttft": "10s", "tpot": "50ms"}}),
    "free": ("llama-3.1-8b", {"input": 300, "output": 100}),
    "bert": ("bert-large", {"input": 128, "slo": {"e2e": "50ms"}}),
}
PAIRS = [("chat", "h100"), ("chat", "l40s"), ("chat", "v5e"), ("long", "h100"), ("free", "l4"), ("bert", "t4")]
RATES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
KNOWN = {}


def comparer(service, rate=1.0):
    """One comparer for a service, whose replicas are searched once, at another demand."""
    if service not in KNOWN:
        model, serve = SERVICES[service]
        work = load_serving(overrides={"model": model, "serve": {**serve, "arrival": {"rate": 1}}})
        KNOWN[service] = ServingComparer.of(work, Terms(), KNOWLEDGE)
    return KNOWN[service].times(rate)


def sized(service, chip, rate) -> ServingRow:
    row = comparer(service, rate).evaluate(Candidate.read(chip))
    assert isinstance(row, ServingRow), row
    return row


@pytest.mark.parametrize("service, chip", PAIRS)
def test_cost_is_monotone_and_near_linear_in_the_rate(service, chip):
    rows = [sized(service, chip, rate) for rate in RATES]
    usd = [row.ondemand.usd.value for row in rows]
    assert all(a <= b for a, b in pairwise(usd))
    each = max(row.split.chips for row in rows)
    for (a, b), (less, more) in zip(pairwise(rows), pairwise(RATES), strict=True):
        if a.accelerators.count >= 20 * each:  # whole replicas and instances matter no longer
            assert b.ondemand.usd.value / a.ondemand.usd.value == pytest.approx(more / less, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PAIRS), st.floats(1.0, 1000.0))
def test_what_was_sized_sustains_its_demand_and_is_not_refused_as_a_named_count(pair, rate):
    row = sized(*pair, rate)
    assert holds(row.served) and row.load.value >= rate * (1 - 1e-9)
    assert row.load.low <= row.load.value <= row.load.high
    again = comparer(pair[0], rate).evaluate(Candidate.read(str(row.accelerators)))
    assert isinstance(again, ServingRow) and again.load.value >= rate * (1 - 1e-9)


@pytest.mark.parametrize("service, chip, rate", [("chat", "h100", 100), ("chat", "v5e", 30), ("long", "h100", 1.5)])
def test_a_whole_fleet_run_long_enough_sustains_it_too(service, chip, rate):
    row = sized(service, chip, rate)
    of = row.served.service.with_replicas(row.fleet.replicas)
    assert 2 <= of.replicas <= 40
    assert holds(run(of, count=2 * COUNT * of.replicas, seed=1, rate=rate))


@pytest.mark.parametrize("service, chip", [("chat", "h100"), ("bert", "t4")])
def test_random_arrivals_cost_a_margin(service, chip):
    for one in comparer(service).replicas(load().chips[chip]):
        assert 0 <= queueing_margin(one) < 1


@pytest.mark.parametrize("slower", [0.9, 1.6])
def test_a_slower_replica_is_read_from_the_runs_of_this_one(slower):
    one = comparer("chat").replicas(load().chips["h100"])[0]
    requests = trial_requests(one.service.target)
    read = largest_load(ReplicaTrials(one.service, requests), one.load.value, 1.01, slower=slower) / slower
    own = largest_load(ReplicaTrials(one.service.slower(slower), requests), one.load.value / slower, 1.01)
    assert read == pytest.approx(own, rel=0.015)


def test_runs_are_shared_by_services_that_differ_in_the_seconds_of_their_slo():
    tight = comparer("chat")
    slo = tuple(replace(bound, seconds=2 * bound.seconds) for bound in tight.workload.serve.slo)
    loose = tight.under(slo)
    assert loose.runs is tight.runs and loose.known is not tight.known
    pairs = zip(tight.replicas(load().chips["h100"]), loose.replicas(load().chips["h100"]), strict=False)
    assert all(b.load.value >= a.load.value for a, b in pairs)


OFFLINE = {
    "model": "llama-3.1-8b",
    "serve": {"input": 500, "output": 100, "offline": {"requests": 10000, "deadline": "1h"}},
}
NAMED = [(service, chip, rate) for service, chip in PAIRS for rate in RATES if rate <= 200]


@pytest.mark.sampled
@pytest.mark.parametrize("service, chip, rate", lane.share(NAMED, of=6))
def test_a_free_count_is_never_worse_than_a_named_one(service, chip, rate):
    market = comparer(service, rate)
    free = market.evaluate(Candidate.read(chip))
    most = free.accelerators.count
    counts = sorted({1, 2, 4, 8, max(1, most // 2), max(1, most - 1), most, most + 1, most * 2})
    for count in counts:
        if chip in load().slices and not load().slices[chip].shape_for(count):
            continue
        row = market.evaluate(Candidate.read(f"{chip}:{count}"))
        if isinstance(row, ServingRow) and row.ondemand is not None:
            assert free.ondemand.usd.value <= row.ondemand.usd.value * (1 + 1e-9), count


@pytest.mark.parametrize("chip", ["h100", "l4", "v5e"])
def test_a_free_count_of_an_offline_job_is_never_worse_than_a_named_one(chip):
    market = ServingComparer.of(load_serving(overrides=OFFLINE), Terms(), KNOWLEDGE)
    free = market.evaluate(Candidate.read(chip)).by("cost").value
    for count in (1, 2, 4, 8, 16, 32):
        if chip in load().slices and not load().slices[chip].shape_for(count):
            continue
        row = market.evaluate(Candidate.read(f"{chip}:{count}"))
        if isinstance(row, ServingRow):
            assert free <= row.by("cost").value * (1 + 1e-9), count
