"""Servers' windows correct predictions of serving: a slower chip in simulation, its sick runs, and the runs after."""

import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from math import exp

import numpy as np
import pytest

import chipwise as cw
from chipwise.catalog import parse, telemetry_files
from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.telemetry_files import Telemetry
from chipwise.observe.exporters import Sample
from chipwise.observe.learn.devices import unfit_attempts
from chipwise.observe.learn.groups import learned
from chipwise.observe.learn.lesson import lesson
from chipwise.observe.learn.runs import LeftOut, Source, candidate
from chipwise.observe.learn.windows import busy_windows
from chipwise.observe.log import read_lines
from chipwise.observe.records import ServingWindow
from chipwise.observe.store.store import open_store
from chipwise.serving.service import run, service, serving_target, settled
from chipwise.serving.simulate import simulate
from chipwise.serving.split import Split

SLOWER, SCATTER, WINDOW_S = 1.2, 0.03, 10.0
START = 1793610000.0
JOBS = [("llama-3.1-8b", 400, 150, 4.0, 1), ("llama-3.1-8b", 800, 200, 5.0, 1), ("qwen3-8b", 500, 300, 3.0, 1),
        ("llama-3.1-70b", 400, 200, 4.0, 8), ("llama-3.1-8b", 1500, 150, 4.0, 2)]  # fmt: skip
NEXT = [("mistral-7b", 600, 200, 4.0, 1), ("llama-3.1-8b", 300, 300, 6.0, 1), ("llama-3.1-70b", 800, 150, 5.0, 8)]


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A data folder of the test's own."""
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path / "data"))
    load_calibration.cache_clear()
    yield
    monkeypatch.undo()
    load_calibration.cache_clear()


def plain():
    return replace(load_calibration(), telemetry=Telemetry())


def workload(row):
    model, prompt, answer, rate, _ = row
    return cw.load(model, input_len=prompt, output_len=answer, rate=rate)


def served(row, calibration, slower=1.0, seed=1, count=6000):
    """A server's run in simulation, on a chip that is so many times as slow."""
    work = workload(row)
    target = serving_target(work, parse("h100").chip, calibration)
    of = service(target, Split(tp=row[4]))
    of = settled(of, run(of, count=300, seed=seed)).slower(slower)
    return of, simulate(work.serve, of.fleet(), count=count, seed=seed)


def windows_of(done):
    """What its log would say every ten seconds: sequences at that moment, tokens since the last."""
    requests = done.requests
    edges = np.arange(0.0, done.end_s, WINDOW_S)
    written = np.zeros(len(edges))
    for first, finish, tokens in zip(done.first_s, done.finish_s, requests.output, strict=True):
        share = np.clip((edges - first) / max(finish - first, 1e-9), 0.0, 1.0)
        written += 1.0 * (edges >= first) + share * (tokens - 1)
    read = np.array([requests.input[done.start_s <= edge].sum() for edge in edges], dtype=float)
    running = [int(((done.start_s <= edge) & (done.finish_s > edge)).sum()) for edge in edges]
    rates = [np.diff(total) / WINDOW_S for total in (read, written)]
    return list(zip(running[1:], *rates, strict=True))


def log_of(rows, begin=START, slow_from=None):
    lines = []
    for place, (running, prompts, written) in enumerate(rows):
        at = datetime.fromtimestamp(begin + place * WINDOW_S, UTC)
        slow = 1.15 if slow_from is not None and place >= slow_from else 1.0
        lines.append(
            f"INFO {at:%m-%d %H:%M:%S} [loggers.py:271] Engine 000: Avg prompt throughput: {prompts:.1f} tokens/s, "
            f"Avg generation throughput: {written / slow:.1f} tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
            f"GPU KV cache usage: 8.1%, Prefix cache hit rate: 0.0%"
        )
    return lines


def source(row, seed, times=SLOWER, extra=(), count=6000, **more):
    scatter = exp(random.Random(seed).gauss(0, SCATTER))
    _, done = served(row, plain(), times * scatter, seed, count)
    lines = [*log_of(windows_of(done), START + seed * 86400, **more), *extra]
    return Source(name=f"server-{seed}", log=read_lines(lines), workload=workload(row),
                  accelerators=parse(f"h100:{row[4]}"), layout=f"tp={row[4]}")  # fmt: skip


@pytest.mark.thorough
def test_servers_on_a_slower_chip_make_predictions_right_again():
    answer = lesson([source(row, seed) for seed, row in enumerate(JOBS)], load_calibration())
    assert [change.candidate.left_out for change in answer.runs] == [None] * len(JOBS)
    (change,) = answer.groups
    assert change.after.program == "serve/decoder/bf16" and change.after.runs == 5
    assert change.after.factor == pytest.approx(SLOWER, rel=0.05)
    before = {row: prediction(row) for row in NEXT}
    telemetry_files.write([one.after for one in answer.groups], answer.kept, cw.Knowledge.default().today)
    load_calibration.cache_clear()
    errors = []
    for row in NEXT:
        after, true = prediction(row), served(row, plain(), SLOWER, 99)[1]
        gaps = (true.finish_s - true.first_s) / np.maximum(true.requests.output - 1, 1)
        observed = float(gaps[true.warm :].mean())
        errors.append(abs(after.tpot.mean.value / observed - 1))
        assert after.tpot.mean.low <= observed <= after.tpot.mean.high
        assert after.ttft.mean.value > before[row].ttft.mean.value
        assert "5 runs of your own of such servers on h100" in after.tpot.mean.because
    assert sum(errors) / len(errors) < 0.05
    cw.accepted_telemetry(revert=True)
    assert prediction(NEXT[0]).tpot.mean.value == before[NEXT[0]].tpot.mean.value


def prediction(row):
    work = workload(row)
    of = service(serving_target(work, parse("h100").chip, load_calibration()), Split(tp=row[4]))
    return run(of, count=1500, seed=99, settle=True)


@pytest.mark.thorough
def test_the_interval_holds_the_servers_that_come_after():
    """Split by time: what five servers taught, on servers of later days, under loads of their own."""
    rng, runs = random.Random(5), []
    for day in range(16):
        model, prompt, answer, _, chips = JOBS[day % 3]
        found = candidate(source((model, prompt, answer, rng.uniform(3, 16), chips), day), load_calibration())
        assert found.run is not None
        runs.append(found.run)
    held = tested = 0
    for _ in range(60):
        rng.shuffle(runs)
        group = learned(runs[:5])
        held += sum(group.low <= later.log_ratio <= group.high for later in runs[5:])
        tested += len(runs) - 5
    assert 0.85 <= held / tested <= 0.95


def test_sick_servers_teach_nothing():
    throttled = "kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."
    assert candidate(source(JOBS[0], 1, extra=[throttled]), load_calibration()).left_out is LeftOut.SICK
    busy = (*JOBS[0][:3], 15.0, 1)
    slowed = candidate(source(busy, 2, count=70_000, slow_from=220), load_calibration())
    assert slowed.left_out is LeftOut.SICK and "slowed" in slowed.detail
    few = source(JOBS[0], 3)
    few.log.serving[25:] = []
    assert candidate(few, load_calibration()).left_out is LeftOut.FEW_STEPS


def test_what_a_line_is_of_has_to_be_known():
    several = replace(source(JOBS[0], 1), accelerators=parse("h100:2"), layout="tp=1")
    left = candidate(several, load_calibration())
    assert left.left_out is LeftOut.UNPREDICTED and "2 replicas" in left.detail
    with pytest.raises(cw.InputError, match="layout"):
        candidate(replace(several, layout="fsdp=2"), load_calibration())


def test_a_window_counts_with_the_mean_of_its_ends_and_only_where_something_was_written():
    rows = [ServingWindow(running=r, generation_tokens_per_s=g) for r, g in
            ((9, 90), (9, 90), (9, 90), (9, 90), (10, 95), (30, 200), (0, 50), (0, 0), (None, 10), (8, None))]  # fmt: skip
    assert [window.running for window in busy_windows(rows)] == [9, 9.5, 20, 15]


def test_a_file_names_servers_beside_runs(tmp_path):
    row = JOBS[0]
    _, done = served(row, plain(), SLOWER, 1)
    (tmp_path / "server.log").write_text("\n".join(log_of(windows_of(done))) + "\n")
    (tmp_path / "serve.yaml").write_text("model: llama-3.1-8b\nserve: {input: 400, output: 150, arrival: {rate: 4}}\n")
    (tmp_path / "runs.yaml").write_text("runs:\n  - {log: server.log, workload: serve.yaml, on: 'h100:1'}\n")
    (change,) = cw.learn_from_runs(tmp_path / "runs.yaml").lesson.runs
    assert change.candidate.left_out is LeftOut.FEW_RUNS and change.observed / change.before == pytest.approx(
        1.2, rel=0.1
    )


def test_attempts_on_throttled_or_lost_devices_teach_nothing(tmp_path):
    now = int(time.time())
    with open_store(str(tmp_path / "telemetry.db")) as store:
        for at, hot in ((now - 30, 0.0), (now - 20, 1.0), (now - 10, 0.0)):
            store.write(
                [
                    Sample("device_throttled_by_heat", "n1", "GPU-0", (("attempt", "a-1"),), hot),
                    Sample("device_throttled_by_heat", "n2", "GPU-1", (("attempt", "a-2"),), 0.0),
                    Sample("device_lost", "n3", "GPU-2", (("attempt", "a-3"),), 1.0),
                    Sample("device_throttled_by_heat", "n4", "GPU-3", (), 1.0),  # shared: nobody's
                ],
                at,
            )
        unfit = unfit_attempts(store)
    assert unfit == {"a-1": "n1 GPU-0 was throttled by heat", "a-3": "n3 GPU-2 was lost"}
    left = candidate(replace(source(JOBS[0], 1), unfit=unfit["a-1"]), load_calibration())
    assert left.left_out is LeftOut.SICK and left.detail == "n1 GPU-0 was throttled by heat"
