"""A router's jobs as they really run: by what their attempts print, against what was predicted."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from command import chipwise_here, good_here
from ledger_cases import POOLS, job, options, start
from observed_job import STEP_S, printed, running_job

import chipwise as cw
from chipwise.observe.health.records import Condition
from chipwise.observe.jobs.remaining import seconds_of_step
from chipwise.observe.log import read_lines
from chipwise.observe.pace import pace_of
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.route.ledger.records import AttemptEnd
from chipwise.route.pool import Pool
from chipwise.route.router.job_cache import JobCache


@pytest.fixture
def place(tmp_path):
    return running_job(tmp_path)


def test_a_running_job_is_estimated_again(place):
    text, _ = printed(place.began, 250, seconds=6.0)
    place.output.write_text(text)
    seen = cw.observe_job(place.job, place.ledger).observation
    assert (seen.step, seen.total_steps) == (250, 720)
    assert seen.remaining.value == pytest.approx(470 * 6.0, rel=0.01)
    assert seen.remaining.low < 470 * 6.0 < seen.remaining.high
    assert seen.remaining_usd.value == pytest.approx(seen.remaining.value / 3600 * 6.0)
    assert seen.ratio.ratio == pytest.approx(1.2, rel=0.01) and seen.ratio.verdict == "slower"
    assert [finding.condition for finding in seen.findings] == [Condition.SLOW]
    assert seen.findings[0].cost.usd == pytest.approx(247 * 1.0 / 3600 * 6.0, rel=0.05)


def test_a_job_as_predicted_has_nothing(place):
    place.output.write_text(printed(place.began, 298)[0])
    answer = cw.observe_job(place.job, place.ledger)
    assert answer.observation.findings == () or list(answer.observation.findings) == []
    assert "Nothing is wrong" in str(answer) and "are left" in str(answer)
    document = json.loads(json.dumps(answer.to_dict()))
    assert document["ends_at"] == pytest.approx(place.now + document["remaining_seconds"]["value"], abs=30)
    assert document["time"]["goodput"] > 0.95 and document["verdict"] == "as predicted"


def test_a_running_job_that_is_silent_is_hung(place):
    place.output.write_text(printed(place.began, 100)[0])
    (finding,) = cw.observe_job(place.job, place.ledger).observation.findings
    assert finding.condition is Condition.HUNG
    assert finding.cost.seconds == pytest.approx(200 * STEP_S, rel=0.02)
    with open_ledger(place.ledger) as ledger:  # once it has succeeded, what came after its last step was no hang
        ledger.end(place.attempt, AttemptEnd("succeeded", "succeeded", done=1.0, ended=place.now), place.now)
    over = cw.observe_job(place.job, place.ledger).observation
    assert list(over.findings) == [] and over.remaining is None


def test_jobs_are_listed_with_what_is_left(place):
    place.output.write_text(printed(place.began, 250, seconds=6.0)[0])
    with open_ledger(place.ledger) as ledger:
        ledger.submit([NewJob(job("waits"), options())], place.now)
    (row,) = json.loads(good_here("observe", "jobs", "--ledger", place.ledger, "-o", "json"))["jobs"]
    assert (row["step"], row["worst"], row["verdict"]) == (250, "warning", "slower")
    every = good_here("observe", "jobs", "--ledger", place.ledger, "--state", "all")
    assert "250 of 720" in every and "waits" in every and "warning: slow" in every


def test_routers_reckon_with_what_its_steps_take(place):
    """And with what was predicted again once the attempt is over: another place is another pace."""
    place.output.write_text(printed(place.began, 250, seconds=6.0)[0])
    pools = [Pool("h100", "local", "h100", "gpu", 8), Pool("v5e", "local", "v5e", "tpu", 4)]
    with open_ledger(place.ledger) as ledger:

        def shown(cache):
            cache.refresh(ledger.attempts(under_way=True), place.now)
            return {option.pool: option.seconds for option in cache.table.candidate(place.job).options}

        cache = JobCache(ledger, pools)
        before = shown(cache)
        assert "reckon with the steps of 1 run" in good_here("observe", "jobs", "--tell", "--ledger", place.ledger)
        (attempt,) = ledger.attempts(place.job)
        whole = place.now - place.began + 470 * 6.0
        assert attempt.expected.value == pytest.approx(whole, rel=0.01)
        assert attempt.expected.low < whole < attempt.expected.high
        after = shown(cache)
        assert after[attempt.pool] == attempt.expected and before[attempt.pool] != attempt.expected
        assert all(after[name] == before[name] for name in before if name != attempt.pool)
        assert shown(JobCache(ledger, pools)) == after  # of a router that comes later
        story = good_here("jobs", "explain", place.job, "--ledger", place.ledger)
        assert re.search(
            r"by its steps 4[67]\.\d min are left \(4\d\.\d min to 4\d\.\d min\): 7\d\.\d min and \$\S+ in all, not 60\.0 min as predicted",
            story,
        )
        ledger.end(place.attempt, AttemptEnd("lost", "pending", done=0.25, ended=place.now), place.now)
        assert shown(cache) == before
        assert ledger.expect({place.attempt: attempt.expected}, place.now) == 0  # it is over
        assert ledger.check() == []


def test_a_service_tells_routers_nothing(place):
    done = chipwise_here("observe", "jobs", "--tell", "--ledger", "unix:///nowhere/s")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_what_is_not_to_be_had_is_said(place):
    answer = cw.observe_job(place.job, place.ledger)
    assert answer.observation.log is None and "is on this machine" in str(answer)
    place.output.write_text("hello\n")
    assert "no step in a format known" in str(cw.observe_job(place.job, place.ledger))
    for words, expected in ((["job", "9"], "number of a job"), (["job", "1", "--attempt", "3"], "one of job 1: 1")):
        done = chipwise_here("observe", *words, "--ledger", place.ledger)
        assert done.returncode == 2 and expected in done.stderr
    with open_ledger(place.ledger) as ledger:
        (waits,) = ledger.submit([NewJob(job("waits"), options())], place.now)
    with pytest.raises(cw.Refusal, match="has printed nothing"):
        cw.observe_job(waits, place.ledger)


def test_steps_of_the_whole_run_are_read_where_no_workload_says(place):
    with open_ledger(place.ledger) as ledger:
        (name,) = ledger.submit([NewJob(job("plain"), options())], place.now)
        (row,) = ledger.decide("r1", "fastest", [start(name, "v5e")], place.now, 1e9, POOLS)
    folder = place.output.parent.parent / row.id
    folder.mkdir()
    (folder / "output").write_text(printed(place.now, 30, of=900)[0])
    seen = cw.observe_job(name, place.ledger).observation
    assert seen.total_steps == 900 and seen.ratio.predicted.value == pytest.approx(3600 / 900)


def test_the_interval_of_what_is_left_holds_what_it_says():
    """90 % intervals of the mean step over runs with correlated noise and checkpoints hold it in about 90 %."""
    from benchmarks.health import step_times

    runs = np.exp(step_times(np.random.default_rng(3), 200, 1000)) * 5.0
    held = 0
    for run in runs:
        lines = [
            f"iteration {n} | elapsed time per iteration (ms): {took * 1e3:.3f} |" for n, took in enumerate(run[:300])
        ]
        now = seconds_of_step(pace_of(read_lines(lines)))
        held += now.low <= run[300:].mean() <= now.high
    assert 0.8 <= held / len(runs) <= 0.99


def test_what_jobs_took_is_learned_from(place, tmp_path):
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools:\n  - {name: h100, backend: local, chip: h100, count: 8}\n", encoding="utf-8")
    gpt2 = {"model": "gpt2", "train": {"precision": "bf16", "steps": 1000, "global_batch": 64, "sequence": 1024}}
    known = cw.predict(cw.load("gpt2", batch=64, sequence=1024, steps=1000), on="h100:2", layout="fsdp=2").step.value
    with open_ledger(place.ledger) as ledger:
        for seed in range(3):
            new = NewJob(replace(job(f"gpt2-{seed}"), workload=json.dumps(gpt2)), options())
            (name,) = ledger.submit([new], place.now)
            (row,) = ledger.decide("r1", "fastest", [start(name)], place.now, 1e9, POOLS)
            ledger.observe(row.id, AttemptStatus(row.id, "1", "running", started=place.now), place.now)
            folder = tmp_path / "attempts" / row.id
            folder.mkdir()
            (folder / "output").write_text(printed(place.now, 50, known * (1.29 + 0.01 * seed), seed=seed)[0])
    answer = cw.learn_from_runs(pools=pools, ledger=place.ledger)
    assert [change.after.factor for change in answer.lesson.groups] == [pytest.approx(1.3, rel=0.01)]
    assert answer.accepted is None and len(answer.lesson.runs) == 3
    (group,) = cw.observe_drift(pools=pools, ledger=place.ledger).groups
    assert (len(group.runs), group.judged, round(group.level, 1)) == (3, False, 1.3)
    text = good_here("calibrate", "telemetry", "--jobs", "--pools", pools, "--ledger", place.ledger)
    assert "--accept makes predictions" in text and "1.30" in text
    for words, expected in (
        (["--jobs", "--ledger", place.ledger], "--pools FILE"),
        (["--accept"], "a FILE, or --jobs"),
        (["examples/observe/runs.yaml", "--jobs"], "can't combine"),
        (["examples/observe/runs.yaml", "--revert"], "can't combine"),
    ):
        done = chipwise_here(
            "calibrate", "telemetry", *words, env={"CHIPWISE_DATA": str(tmp_path), "CHIPWISE_POOLS": ""}
        )
        assert done.returncode == 2 and expected in done.stderr, done.stderr
