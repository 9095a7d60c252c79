"""Counters of servers that start again, and engines that print into one log."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from chipwise.observe.demand.requests import printed_rates
from chipwise.observe.log import read_lines
from chipwise.observe.serving.engines import hosts_in
from chipwise.observe.serving.rises import by_hour, rises
from chipwise.observe.store.points import of_samples, rolled_up
from chipwise.workload.load import load_any

START = 1_793_610_000
SERVE = load_any(json.dumps({"model": "llama-3.1-8b", "serve": {"input": 500, "output": 100, "arrival": {"rate": 9}}}))


def counter(rng, resets, seconds=12 * 3600, every=10):
    """Samples of a counter that rises at random and begins again, and how much it rose in all after the first."""
    steps = rng.poisson(3.0, seconds // every).astype(float)
    value, values, total = 0.0, [], 0.0
    for place, step in enumerate(steps):
        if place in resets:
            value = 0.0
        value += step
        total += step if place else 0.0
        values.append(value)
    at = [START + place * every for place in range(len(values))]
    return of_samples([np.array([1])] * len(at), at, [np.array([one]) for one in values]), total


@pytest.mark.parametrize("seed", range(10))
def test_what_a_counter_counted_is_known_though_it_begins_again(seed):
    rng = np.random.default_rng(seed)
    resets = set(rng.choice(np.arange(200, 4000), 3, replace=False).tolist())
    points, total = counter(rng, resets)
    assert sum(rise.amount for rise in rises(points, 0.0)) == pytest.approx(total)
    packed = list(rises(rolled_up(points, 300), 300.0))
    lost = 3.0 * 30 * len(resets)  # what it counted in the windows in which it began again, at most
    assert total - 2 * lost <= sum(rise.amount for rise in packed) <= total


def test_a_rise_over_hours_without_a_sample_is_spread_over_them():
    points = of_samples([np.array([1])] * 2, [7200, 7200 + 4 * 3600], [np.array([0.0]), np.array([400.0])])
    assert by_hour(rises(points, 0.0), 7200 + 1800, 1e9) == {2: 50.0, 3: 100.0, 4: 100.0, 5: 100.0}


def line(at, rate, engine, process=""):
    stamp = datetime.fromtimestamp(at, UTC)
    return (
        f"{process}INFO {stamp:%m-%d %H:%M:%S} [loggers.py:271] Engine {engine}: Avg prompt throughput: 9.0 tokens/s, "
        f"Avg generation throughput: {rate:.1f} tokens/s, Running: 9 reqs, Waiting: 0 reqs, GPU KV cache usage: 8.1%"
    )


def mean_rate(lines, hours):
    log = read_lines(lines)
    return printed_rates(log, SERVE, (START, START + hours * 3600)), log


def test_engines_of_one_log_are_told_apart_and_add_up():
    lines = [line(START + n * 10, 100.0 * (1 + e), f"00{e}") for n in range(360) for e in range(3)]
    rates, log = mean_rate(lines, 1)
    assert {window.engine for window in log.serving} == {"000", "001", "002"}
    assert rates.mean == pytest.approx(6.0, rel=0.01)


def test_a_server_that_took_another_ones_place_does_not_add_up():
    lines = [line(START + n * 10, 100.0, "000", f"(APIServer pid={7 if n < 180 else 8}) ") for n in range(360)]
    rates, log = mean_rate(lines, 1)
    assert {window.engine for window in log.serving} == {"APIServer pid=7/000", "APIServer pid=8/000"}
    assert rates.mean == pytest.approx(1.0, rel=0.02)


def test_ranks_of_sglang_are_told_apart():
    lines = [
        f"[2026-11-02 10:00:{n % 60:02} DP{n % 2} TP0] Decode batch, #running-req: 8, #token: 900, token usage: 0.10, "
        "gen throughput (token/s): 200.00, #queue-req: 0"
        for n in range(60)
    ]
    log = read_lines(lines)
    assert {window.engine for window in log.serving} == {"DP0", "DP1"}


def test_hosts_are_those_that_backends_name():
    assert hosts_in("") == [] and hosts_in("n[08-10]-a") == ["n08-a", "n09-a", "n10-a"]
