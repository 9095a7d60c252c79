"""Published runs under an open load: read, replayed and scored."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from chipwise.calibrate.first_tokens import Run, errors, fitted, read, simulated
from chipwise.catalog.calibration import load_calibration
from chipwise.errors import InputError
from chipwise.predict.estimate import Distance
from chipwise.serving.service import run, service, serving_target
from chipwise.validate import open_rows
from chipwise.validate.open_loop import predict_open_row
from chipwise.validate.run import validate
from chipwise.workload.serve import Arrival

ROOT = Path(__file__).resolve().parents[2] / "validation"


@pytest.fixture(scope="module")
def published():
    return read(ROOT)


@pytest.fixture(scope="module")
def runs(published):
    calibration = load_calibration(bench=False)
    return [simulated(row, calibration) for row in published]


def raw():
    with (ROOT / "rows" / "open_loop.csv").open() as file:
        return next(csv.DictReader(file))


def test_the_promise_holds_on_the_published_runs():
    of = validate([ROOT / "rows" / "open_loop.csv"]).scores["by_metric"]
    assert of["ttft"]["eligible"] == of["ttft"]["predicted"] == 28
    assert of["ttft"]["median_ape"] <= 0.18
    assert of["tpot"]["median_ape"] <= 0.10
    assert of["e2e"]["median_ape"] <= 0.10
    assert min(some["coverage90"] for some in of.values()) >= 0.85


@pytest.mark.parametrize(
    ("column", "text", "field"),
    [
        ("rate", "-1", "rate"),
        ("rate", "fast", "rate"),
        ("prefix_hit", "2", "prefix_hit"),
        ("framework", "?", "framework"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_its_field(column, text, field):
    with pytest.raises(InputError, match=field):
        open_rows.read({**raw(), column: text})


def test_a_run_whose_requests_waited_for_a_full_server_is_not_scored():
    assert open_rows.why_not({**raw(), "ttft_mean_ms": "100000"}) == "queueing above capacity"
    assert open_rows.why_not({**raw(), "rate": ""}) == "no rate"


def test_the_fit_finds_what_runs_were_made_with(runs):
    truth = {"request_s": {"base": 0.6, "stack:vllm": 0.0}, "stream": {"base": 0.5, "stack:vllm": 0.0}}
    off = errors(runs, truth)
    made = [_with(run, run.observed_s / 2.718281828 ** float(e)) for run, e in zip(runs, off, strict=True)]
    assert median(abs(e) for e in errors(made, fitted(made))) < 0.05 < median(abs(e) for e in errors(made, fitted([])))


def _with(one: Run, seconds: float) -> Run:
    return replace(one, row=replace(one.row, observed={**one.row.observed, "ttft": seconds}))


def test_users_of_a_closed_loop_meet_what_their_benchmark_adds(published):
    row, calibration = published[0], load_calibration(bench=False)
    serve = replace(row.workload.serve, arrival=Arrival("closed", users=16))
    closed = serving_target(replace(row.workload, serve=serve), row.chip, calibration, "vllm")
    shown = run(service(closed, row.split), count=400).ttft.mean
    mine = predict_open_row(row, calibration)["ttft"]
    assert shown.value > 1.5 * mine.value
    assert mine.distance is Distance.REGIME
    assert mine.high / mine.value < shown.high / shown.value
    unseen = predict_open_row(replace(row, stack=_stack("sglang")), calibration)["ttft"]
    assert unseen.high / unseen.value > mine.high / mine.value  # nobody has published SGLang under an open load


def _stack(name):
    from chipwise.catalog import find_stack

    return find_stack(name)
