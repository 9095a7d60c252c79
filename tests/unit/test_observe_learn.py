"""Runs that were observed correct predictions: how far, how surely, and not by what was sick."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from math import exp, log

import pytest

import chipwise as cw
from chipwise.catalog import parse, telemetry_files
from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.telemetry_files import ObservedRun, Telemetry, TelemetryGroup
from chipwise.layout import search
from chipwise.observe.learn.groups import learned, outliers
from chipwise.observe.learn.lesson import lesson
from chipwise.observe.learn.runs import LeftOut, Source
from chipwise.observe.log import read_lines
from chipwise.predict.prediction import predict
from lane import ALL

SLOWER = 1.2  # the chip of the simulation, against what is published of it
SCATTER = 0.03  # of runs
START = 1793610000.0
JOBS = [("llama-3.1-8b", 64, "8k", "h100:8"), ("llama-3.1-8b", 128, "4k", "h100:8"), ("qwen3-8b", 64, "4k", "h100:8"),
        ("llama-3.1-8b", 128, "8k", "h100:16"), ("qwen3-8b", 128, "8k", "h100:16")]  # fmt: skip
NEXT = [
    ("llama-3.1-8b", 256, "8k", "h100:32"),
    ("mistral-7b", 64, "4k", "h100:8"),
    ("llama-3.1-8b", 32, "8k", "h100:4"),
]


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A data folder of the test's own; what is accepted there ends with it."""
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path / "data"))
    load_calibration.cache_clear()
    yield tmp_path / "data" / "calibration" / "telemetry"
    monkeypatch.undo()
    load_calibration.cache_clear()


def plain():
    return replace(load_calibration(), telemetry=Telemetry())


def job(model, batch, sequence):
    return cw.load(model, batch=batch, sequence=sequence, steps=1000)


def lines(seconds, steps=50, seed=1, slow_at=None):
    rng, at, out = random.Random(seed), START, []
    for step in range(1, steps + 1):
        took = seconds * (1 + rng.gauss(0, 0.02)) * (1.15 if slow_at and step >= slow_at else 1)
        at += took
        stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        out.append(f"[{stamp}] iteration {step} | elapsed time per iteration (ms): {took * 1e3:.2f} | lm loss: 2.5 |")
    return out


def source(row, seed, times=SLOWER, steps=50, slow_at=None):
    """A run on a chip that is slower than what is published of it."""
    model, batch, sequence, on = row
    work, acc = job(model, batch, sequence), parse(on)
    seconds = cw.predict(work, on, knowledge=cw.Knowledge(calibration=plain())).step.value
    scatter = exp(random.Random(seed).gauss(0, SCATTER))
    log = read_lines(lines(seconds * times * scatter, steps, seed, slow_at))
    return Source(name=f"run-{seed}", log=log, workload=work, accelerators=acc, layout=None)


def runs(count, rng, first=0):
    return [
        ObservedRun(name=f"r{n}", digest=f"d{n}", chip="h100", chips=8, stack="megatron", program="decoder/bf16", base="b",
                    at=START + n, steps=50, observed_seconds=SLOWER * exp(rng.gauss(0, SCATTER)), predicted_seconds=1.0)
        for n in range(first, first + count)
    ]  # fmt: skip


def accept(answer):
    path = telemetry_files.write([change.after for change in answer.groups], answer.kept, cw.Knowledge.default().today)
    load_calibration.cache_clear()
    return path


def test_after_five_jobs_predictions_are_right_again():
    before = {row: cw.predict(job(*row[:3]), row[3]).step for row in NEXT}
    answer = lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration())
    (change,) = answer.groups
    assert change.before is None and change.after.factor == pytest.approx(SLOWER, rel=0.05) and change.after.runs == 5
    accept(answer)
    errors, held = [], 0
    for row in NEXT:
        after = cw.predict(job(*row[:3]), row[3])
        true = before[row].value * SLOWER
        errors.append(abs(after.step.value / true - 1))
        held += after.step.low <= true <= after.step.high
        assert after.step.high / after.step.value < before[row].high / before[row].value
        assert "5 runs of your own" in after.step.because
        assert any("5 runs of your own on h100" in words for words in after.prediction.assumptions)
    assert sum(errors) / len(errors) < 0.05 and held == len(NEXT)
    cw.accepted_telemetry(revert=True)
    assert {row: cw.predict(job(*row[:3]), row[3]).step for row in NEXT} == before


@pytest.mark.sampled
def test_the_interval_holds_nine_of_ten_of_the_next_jobs():
    rng, held, tested = random.Random(7), 0, 0
    for _ in range(4000 if ALL else 600):
        group = learned(runs(5, rng))
        for run in runs(5, rng, first=5):
            held += group.low <= run.log_ratio <= group.high
            tested += 1
    assert 0.85 <= held / tested <= 0.95


def test_the_search_and_the_prediction_agree_with_what_was_learned():
    accept(lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration()))
    work, acc, known = job("llama-3.1-8b", 64, "8k"), parse("h100:8"), load_calibration()
    best = search(work, acc, known).best
    assert best.seconds == pytest.approx(predict(work, acc, best.layout, known).step.value, rel=1e-6)
    assert best.layout == search(work, acc, plain()).best.layout


def test_runs_that_were_sick_or_tell_too_little_are_left_out():
    sick, short = source(JOBS[0], 1, steps=120, slow_at=60), source(JOBS[0], 2, steps=9)
    silent = Source(name="s", log=read_lines([f"step: {n} loss: 2.5" for n in range(50)]), workload=sick.workload,
                    accelerators=sick.accelerators, layout=None)  # fmt: skip
    big = Source(name="b", log=sick.log, workload=cw.load("llama-3.1-405b", batch=64, sequence="8k", steps=9),
                 accelerators=sick.accelerators, layout=None)  # fmt: skip
    healthy = source(JOBS[0], 4)
    answer = lesson([sick, short, silent, replace(big, log=healthy.log), healthy], load_calibration())
    reasons = [run.candidate.left_out for run in answer.runs]
    assert reasons == [LeftOut.SICK, LeftOut.FEW_STEPS, LeftOut.FEW_STEPS, LeftOut.UNPREDICTED, LeftOut.FEW_RUNS]
    assert answer.groups == [] and not answer.changed


def test_an_outlier_moves_nothing():
    rng = random.Random(3)
    healthy = runs(6, rng)
    wrong = replace(healthy[0], digest="w", observed_seconds=3.0)
    assert outliers([*healthy, wrong]) == {"w"}
    assert learned([*healthy, wrong]) == learned(healthy)
    few = source(JOBS[0], 9, times=3.0)
    answer = lesson([*(source(row, seed) for seed, row in enumerate(JOBS)), few], load_calibration())
    assert answer.runs[-1].candidate.left_out is LeftOut.OUTLIER and answer.groups[0].after.runs == 5


def test_later_runs_test_what_was_accepted_and_are_added():
    accept(lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration()))
    answer = lesson([source(row, seed + 20) for seed, row in enumerate(JOBS)], load_calibration())
    assert answer.groups[0].before.runs == 5 and answer.groups[0].after.runs == 10
    assert sum(run.held for run in answer.runs) >= 4
    again = lesson([source(row, seed, steps=60) for seed, row in enumerate(JOBS)], load_calibration())
    assert again.groups[0].after.runs == 5  # the same runs, further on


def test_what_was_learned_beside_another_calibration_does_not_count():
    accept(lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration()))
    known = load_calibration()
    other = replace(known, training=replace(known.training, date="2031-01-01"))
    work = job("llama-3.1-8b", 64, "8k")
    moved = cw.predict(work, "h100:8", knowledge=cw.Knowledge(calibration=other))
    assert moved.step == cw.predict(work, "h100:8", knowledge=cw.Knowledge(calibration=plain())).step
    assert any("do not count" in words for words in moved.prediction.assumptions)


def test_no_runs_make_a_step_that_physics_does_not_allow():
    work, known = job("llama-3.1-8b", 64, "8k"), plain()
    base = cw.predict(work, "h100:8", knowledge=cw.Knowledge(calibration=known))
    group = TelemetryGroup(chip="h100", stack=base.prediction.stack.id, program="decoder/bf16", base=known.training.date,
                           log_factor=log(0.2), low=log(0.19), high=log(0.21), runs=5, steps=99, date="2026-11-01")  # fmt: skip
    fast = replace(known, telemetry=Telemetry({group.key: group}))
    answer = cw.predict(work, "h100:8", layout=str(base.layout), knowledge=cw.Knowledge(calibration=fast))
    assert answer.step.value == base.step.value and "runs observed would make it faster" in answer.step.because
    assert answer.mfu <= 1


def test_files_are_dated_kept_and_taken_back(own):
    first = accept(lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration()))
    second = accept(lesson([source(row, seed + 20) for seed, row in enumerate(JOBS)], load_calibration()))
    assert [path.parent for path in (first, second)] == [own, own] and first.name < second.name
    assert cw.accepted_telemetry().groups[0].runs == 10
    assert (
        cw.accepted_telemetry(revert=True).groups[0].runs == 5 and second.with_name(second.name + ".reverted").exists()
    )
    assert cw.accepted_telemetry(revert=True).groups == []
    with pytest.raises(cw.Refusal, match="nothing to take back"):
        cw.accepted_telemetry(revert=True)
    own.mkdir(exist_ok=True)
    (own / "2026-01-01-001.json").write_text("{}")
    load_calibration.cache_clear()
    with pytest.raises(cw.BrokenFile, match="--revert"):
        load_calibration()
    cw.accepted_telemetry(revert=True)


def test_the_example_is_shown_accepted_and_taken_back():
    answer = cw.learn_from_runs("examples/observe/runs.yaml")
    document = json.loads(json.dumps(answer.to_dict()))
    assert (
        document["accepted"] is None and document["groups"][0]["runs"] == 5 and document["groups"][0]["before"] is None
    )
    assert [run["left_out"] for run in document["runs"]] == [None] * 5 + ["sick"]
    assert "Nothing has changed yet" in str(answer)
    cw.learn_from_runs("examples/observe/runs.yaml", accept=True)
    with pytest.raises(cw.Refusal, match="nothing to accept"):
        cw.learn_from_runs("examples/observe/runs.yaml", accept=True)
    assert cw.accepted_telemetry().to_dict()["groups"][0]["chip"] == "h100"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runs: []", "a list under `runs`"),
        ("logs: [a]", "a list under `runs`"),
        ("runs: [a]", "runs\\[0\\].*mapping of log"),
        ("runs: [{log: a, on: 'h100:8'}]", "runs\\[0\\].workload"),
        ("runs: [{log: a, workload: b, on: 'h100:8', chips: 8}]", "runs\\[0\\].chips.*one of log"),
        ("runs: [{log: none.log, workload: llama-3.1-8b, on: 'h100:8'}]", "no such file"),
    ],
)
def test_a_file_of_runs_is_refused_in_one_line(tmp_path, text, words):
    (tmp_path / "runs.yaml").write_text(text)
    with pytest.raises(cw.InputError, match=words):
        cw.learn_from_runs(tmp_path / "runs.yaml")
    with pytest.raises(cw.InputError, match="file"):
        cw.learn_from_runs()
