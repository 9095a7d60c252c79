"""Replays in rounds: the rules against Gavel's own figures, and our policies against Gavel's."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gavel.compiled import COMPILED
from benchmarks.gavel.rounds import GAVEL_REALLOCATE_S, Result, replay
from gavel_reference import fifo_perf, isolated, max_min_fairness_perf, max_sum_throughput, reference
from gavel_traces import FOLDER, made

from chipwise.errors import Refusal
from chipwise.route.policies import POLICIES
from chipwise.route.simulate.gavel_trace import GavelTrace, read_gavel_trace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seed0() -> GavelTrace:
    return read_gavel_trace(FOLDER)


@pytest.fixture(scope="module")
def gavel() -> dict[str, dict[str, float]]:
    with (FOLDER / "results.csv").open() as file:
        return {
            row["policy"]: {k: float(v) for k, v in row.items() if k != "policy" and v} for row in csv.DictReader(file)
        }


def jct_of(policy: str) -> np.ndarray:
    with (FOLDER / "per_job_jct.csv").open() as file:
        return np.array([float(row[policy]) for row in csv.DictReader(file)])


@pytest.mark.parametrize(
    ("name", "allocate", "fifo", "shuffled"),
    [("fifo_perf", fifo_perf, True, False), ("isolated", isolated, False, True)],
)
def test_gavels_own_rules_in_our_rounds_give_gavels_figures_exactly(seed0, gavel, name, allocate, fifo, shuffled):
    simulator = reference(seed0, allocate, fifo=fifo, shuffled=shuffled)
    jct = simulator.jct()
    assert np.round(jct, 1).tolist() == jct_of(name).tolist()
    for key, ours in (
        ("avg_jct_s", jct.mean()),
        ("median_jct_s", np.median(jct)),
        ("makespan_s", simulator.now),
        ("p99_jct_s", np.percentile(jct, 99)),
    ):
        assert ours == pytest.approx(gavel[name][key], abs=0.0501)
    assert simulator.spent == pytest.approx(gavel[name]["cost_usd"], abs=0.00501)
    assert simulator.rounds == gavel[name]["rounds"]
    assert (simulator.busy / simulator.work.count).mean() / simulator.now == pytest.approx(
        gavel[name]["utilization"], abs=1e-4
    )


def test_gavels_fair_policy_in_our_rounds_is_within_the_bands_of_another_solver(gavel):
    avg, makespan, spent = alone("reference(read_gavel_trace(FOLDER), max_min_fairness_perf)")
    theirs = gavel["max_min_fairness_perf"]
    assert avg == pytest.approx(theirs["avg_jct_incl_dropped_s"], rel=0.10)
    assert makespan == pytest.approx(theirs["makespan_s"], rel=0.005)
    assert spent == pytest.approx(theirs["cost_usd"], rel=0.04)


def alone(simulator: str) -> list[float]:
    """Figures of a simulator in a process of its own: which of many equal optima HiGHS returns depends on what ran before."""
    code = (
        "from gavel_reference import *; from gavel_traces import FOLDER; from chipwise.route.simulate.gavel_trace import read_gavel_trace; "
        f"c = {simulator}; print(c.jct().mean(), c.now, c.spent)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, env=env, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def test_the_recipe_makes_the_trace_of_seed_0(seed0):
    ours = made(0)
    for name in ("arrival", "workload", "chips", "steps", "rate"):
        assert np.array_equal(getattr(ours, name), getattr(seed0, name))


@pytest.mark.parametrize("reallocate_s", [0.0, GAVEL_REALLOCATE_S])
def test_most_work_for_a_dollar_is_sooner_done_and_cheaper_than_every_policy_of_gavels(seed0, gavel, reallocate_s):
    ours = replay(seed0, "max-throughput-per-dollar", reallocate_s)
    assert ours.completed == 300 and not ours.refused
    assert ours.avg_jct_s < min(row["avg_jct_incl_dropped_s"] for row in gavel.values()) * 0.98
    assert ours.cost_usd < min(row["cost_usd"] for row in gavel.values()) * 0.97


@pytest.mark.parametrize("reallocate_s", [0.0, GAVEL_REALLOCATE_S])
def test_fair_shares_are_as_good_as_gavels_on_average_and_at_the_99th_percentile(seed0, gavel, reallocate_s):
    ours, theirs = replay(seed0, "max-min-fair", reallocate_s), gavel["max_min_fairness_perf"]
    assert ours.completed == 300
    assert ours.avg_jct_s < theirs["avg_jct_incl_dropped_s"]
    assert ours.p99_jct_s < theirs["p99_jct_s"]


@pytest.mark.parametrize("seed", [1, 8, 9])
def test_on_other_seeds_as_well(seed):
    work = made(seed)
    theirs = [
        reference(work, fifo_perf, fifo=True),
        reference(work, max_min_fairness_perf),
        reference(work, max_sum_throughput(by_cost=True)),
        reference(work, max_sum_throughput(by_cost=False)),
    ]
    best, fair = replay(work, "max-throughput-per-dollar"), replay(work, "max-min-fair")
    assert best.avg_jct_s < min(c.jct().mean() for c in theirs) and best.cost_usd < min(c.spent for c in theirs)
    assert fair.avg_jct_s < theirs[1].jct().mean()
    assert fair.p99_jct_s < np.percentile(theirs[1].jct(), 99)


@pytest.mark.parametrize("reallocate_s", [0.0, GAVEL_REALLOCATE_S])
@pytest.mark.parametrize("policy", COMPILED)
def test_the_compiled_way_gives_the_same_bits(policy, reallocate_s):
    for work in (made(3, 120, 300.0), made(4, 60, 2000.0)):
        assert same(replay(work, policy, reallocate_s), replay(work, policy, reallocate_s, compiled=False))


def test_the_compiled_way_gives_the_same_bits_when_jobs_wait_too_long():
    work = made(5, 400, 30.0)  # so many at once that some wait for more than a day
    assert replay(work, "max-throughput-per-dollar").jct_s.max() > 2 * 86_400
    for policy in ("fastest", "max-throughput-per-dollar", "max-min-fair"):
        assert same(replay(work, policy), replay(work, policy, compiled=False))


def same(one: Result, other: Result) -> bool:
    return (
        np.array_equal(one.jct_s, other.jct_s)
        and one.cost_usd == other.cost_usd
        and one.rounds == other.rounds
        and one.decisions == other.decisions
        and one.makespan_s == other.makespan_s
    )


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"least-energy"}))
def test_every_policy_runs_every_job_once_and_never_beats_the_best_pool(policy):
    work = made(6, 60)
    found = replay(work, policy)
    alone = work.steps[:, None] / np.where(work.rate > 0, work.rate, np.nan)
    assert found.completed == 60 and (found.jct_s > np.nanmin(alone, axis=1) * (1 - 1e-12)).all()
    least = np.nanmin(alone * work.chips[:, None] * work.usd_per_chip_hour / 3600, axis=1).sum()
    assert found.cost_usd >= least * (1 - 1e-9)
    assert 0 < found.utilization <= 1 and 0 < found.fairness.jain <= 1


# as they were when the rounds were a part of the package, to twelve digits
ROUNDS = {
    "fastest": (13464.0970008, 102818.965904, 699.080136109),
    "max-min-fair": (11199.3494013, 42111.4989856, 651.106013835),
    "max-throughput-per-dollar": (10253.6273092, 45322.7750372, 652.645813406),
}


@pytest.mark.parametrize("policy", ROUNDS)
def test_figures_in_rounds_do_not_change(seed0, policy):
    ours = replay(seed0, policy)
    assert (ours.avg_jct_s, ours.p99_jct_s, ours.cost_usd) == pytest.approx(ROUNDS[policy], rel=1e-9)


def test_ties_and_waits_of_jobs_leave_with_them(seed0):
    """A policy whose decision has a `tie` or `wait` a job: rows of those that are done are taken out with the rest."""
    ours = replay(seed0, "cheapest-within-deadline", GAVEL_REALLOCATE_S)
    assert ours.completed == 300


def test_the_benchmark_replays_any_gavel_trace(tmp_path):
    for name in ("jobs.csv", "throughput.csv", "cluster.csv"):
        shutil.copy(FOLDER / name, tmp_path)
    asked = ["--policy", "max-throughput-per-dollar", "--reallocate-every", "1920s", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gavel", str(tmp_path), *asked],
        cwd=FOLDER.parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    (figures,) = json.loads(done.stdout)["ours"].values()
    assert list(figures) == ["max-throughput-per-dollar"] and figures["max-throughput-per-dollar"]["completed"] == 300


def test_the_benchmark_refuses_a_folder_that_is_not_there_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gavel", str(tmp_path / "none")],
        cwd=FOLDER.parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "a folder with jobs.csv" in done.stderr


def test_energy_can_not_be_ranked_where_no_watts_are_known(seed0):
    with pytest.raises(Refusal, match="no watts"):
        replay(seed0, "least-energy")
