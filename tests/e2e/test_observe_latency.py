"""Latencies of a server by the histograms that a store has of it, beside those predicted at its load."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from command import chipwise_here
from ledger_cases import POOLS, options, start

import chipwise as cw
from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.observe.exporters import samples_of
from chipwise.observe.store.store import open_store
from chipwise.route.backend import AttemptStatus
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.serving.service import run, service, serving_target, settled
from chipwise.serving.simulate import simulate
from chipwise.serving.split import Split
from chipwise.workload.load import load_any

RATE, SPAN_S = 6.0, 1800
SERVE = {
    "model": "llama-3.1-8b",
    "serve": {"input": 500, "output": 150, "arrival": {"rate": 1}},
}  # it has six times that
# vLLM's bounds (v1/metrics/loggers.py, 2026-11-16)
TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
TPOT = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
FILE = "pools:\n  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0, terms: owned}\n"


def histogram(name, labels, bounds, values):
    for bound in bounds:
        yield f'vllm:{name}_bucket{{{labels},le="{bound}"}} {(values <= bound).sum()}'
    yield f'vllm:{name}_bucket{{{labels},le="+Inf"}} {len(values)}'
    yield f"vllm:{name}_sum{{{labels}}} {values.sum():.6f}"


def kept(store, began, slower):
    """What two engines would tell, on a chip that is so many times as slow as is predicted."""
    work = load_any(json.dumps(SERVE))
    of = service(serving_target(work, parse("h100").chip, load_calibration()), Split(), 2)
    of = settled(of, run(of, count=300, rate=RATE)).slower(slower)
    done = simulate(work.serve, of.fleet(), count=int(RATE * SPAN_S), rate=RATE)
    ttft = (done.first_s - done.arrival_s) * of.corrections["ttft"].factor / of.corrections["tpot"].factor + of.shown_s
    tpot = (done.finish_s - done.first_s) / (done.requests.output - 1)
    for at in range(0, SPAN_S, 30):
        lines = []
        for engine in range(2):
            labels = f'engine="{engine}",model_name="m"'
            mine = done.replica == engine
            lines += histogram("time_to_first_token_seconds", labels, TTFT, ttft[mine & (done.first_s <= at)])
            lines += histogram(
                "request_time_per_output_token_seconds", labels, TPOT, tpot[mine & (done.finish_s <= at)]
            )
        store.write(samples_of(lines, "gpu-7", "gpu-7:8000"), int(began) + at)


def serving(folder, slower):
    """A server that has run for half an hour, and the histograms of its engines."""
    url, began = str(folder / "ledger.db"), time.time() - SPAN_S
    variants = tuple(Variant(family, family, 2, command=("vllm", "serve")) for family in ("gpu", "tpu"))
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(folder))}, "r1", "host", 1, "fastest", began, 30.0)
        places = tuple(replace(one, layout="tp=1 x 2") for one in options())
        (job,) = ledger.submit([NewJob(Job("chat", variants, workload=json.dumps(SERVE)), places)], began)
        (row,) = ledger.decide("r1", "fastest", [start(job)], began, 1e9, POOLS)
        ledger.mark_submitted(row.id, "4711", began)
        ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began, where="gpu-7"), began)
    with open_store(str(folder / "telemetry.db")) as store:
        kept(store, began, slower)
    (folder / "pools.yaml").write_text(FILE, encoding="utf-8")
    return url, folder / "pools.yaml", folder / "telemetry.db"


def test_a_server_that_does_as_predicted_is_told_so(tmp_path):
    url, pools, store = serving(tmp_path, 1.0)
    of = cw.observe_job(1, url, pools=pools, store=store).observation
    rows = {(row.figure, row.statistic): row for row in of.latencies.rows}
    assert of.latencies.requests_per_s == pytest.approx(RATE, rel=0.1)
    assert {row.verdict.value for row in rows.values()} == {"as predicted"}
    assert rows["tpot", "mean"].ratio == pytest.approx(1.0, abs=0.05)
    p50 = rows["tpot", "p50"]
    assert p50.low <= p50.actual <= p50.high and (p50.low, p50.high) in {(0.0, 0.01), (0.01, 0.025)}


def test_a_slow_server_is_told_in_every_face(tmp_path):
    url, pools, store = serving(tmp_path, 2.5)
    env = {"CHIPWISE_LEDGER": url, "CHIPWISE_STORE": str(store)}
    words = ["--pools", str(pools)]
    shown = chipwise_here("observe", "job", "1", *words, env=env).stdout
    assert "Latencies from" in shown and "TPOT" in shown and "slower" in shown
    rows = json.loads(chipwise_here("observe", "jobs", *words, "-o", "json", env=env).stdout)["jobs"]
    assert rows[0]["verdict"] == "slower" and rows[0]["ratio"] == pytest.approx(2.5, rel=0.15)
    plain = json.loads(chipwise_here("observe", "job", "1", "-o", "json", env=env).stdout)
    assert plain["latencies"] == [] and plain["ratio"] is None


def test_what_can_t_be_predicted_is_shown_with_why(tmp_path):
    url, pools, store = serving(tmp_path, 1.0)
    pools.write_text(FILE.replace("name: h100", "name: other"), encoding="utf-8")
    answer = cw.observe_job(1, url, pools=pools, store=store)
    assert "Not predicted: pool h100 is not in the pools file" in str(answer)
    assert all(row.predicted is None and row.actual > 0 for row in answer.observation.latencies.rows)
    with pytest.raises(cw.InputError):
        cw.observe_job(1, url, store=store)


def test_means_are_sums_over_counts_and_resets_do_not_matter():
    from chipwise.observe.serving.latency import Histogram, latencies

    of = Histogram(bounds={0.1: 90.0, 0.2: 99.0, np.inf: 100.0}, seconds=7.0)
    rows = {row.statistic: row for row in latencies({"ttft": of})}
    assert rows["mean"].actual == pytest.approx(0.07) and rows["p99"].actual == pytest.approx(0.2)
    assert Histogram(bounds={0.1: 0.0, np.inf: 10.0}, seconds=None).quantile(0.5) == (0.1, 0.1, np.inf)
