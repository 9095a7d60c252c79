"""Gavel traces from files: what is read, replayed in rounds and by events, refused, and what is wrong with a file."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gavel.rounds import replay
from benchmarks.gavel.simulator import refusals
from gavel_traces import FOLDER

from chipwise.errors import ChipwiseError, InputError
from chipwise.route.policies import policy_named
from chipwise.route.simulate import events
from chipwise.route.simulate.gavel_trace import read_gavel_trace
from chipwise.route.simulate.measures import measure
from chipwise.route.simulate.policy_scheduler import PolicyScheduler

JOBS = "job_id,arrival_s,workload,scale_factor,total_steps,priority_weight,slo_s\n"
RATES = (
    "workload,accelerator,scale_factor,steps_per_s\nA,fast,1,2\nA,slow,1,1\nA,fast,4,4\nB,slow,1,0\nC,slow,1,0.001\n"
)
CLUSTER = "accelerator,count,per_server,usd_per_hour\nfast,2,2,3.6\nslow,2,2,0.36\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS + "0,0,A,1,1000,1,600\n1,10,A,1,500,1,\n")
    (tmp_path / "throughput.csv").write_text(RATES)
    (tmp_path / "cluster.csv").write_text(CLUSTER)
    return tmp_path


def test_jobs_rates_and_pools_are_read_as_they_stand(folder):
    work = read_gavel_trace(folder)
    assert work.pools == ("fast", "slow") and work.jobs == ("0", "1")
    assert work.rate.tolist() == [[2, 1], [2, 1]] and work.slo.tolist() == [600, np.inf]
    assert not refusals(work)


def test_a_round_ends_with_its_last_job_and_an_arrival_waits_for_it(folder):
    found = replay(read_gavel_trace(folder), "fastest")
    # job 0: 720 steps by 360 s, 280 more by 500 s; job 1 comes at 10 s, starts at 360 s, ends at 610 s
    assert found.jct_s.tolist() == [500.0, 600.0]
    assert found.makespan_s == 610.0 and found.rounds == 2
    assert found.cost_usd == pytest.approx(3.6 * 750 / 3600)
    assert (found.deadline_misses, found.with_deadline) == (0, 1)


def test_the_clock_jumps_when_nothing_runs_and_a_late_deadline_is_counted(folder):
    (folder / "jobs.csv").write_text(JOBS + "a,0,A,1,100,1,10\nb,5000.5,A,1,2,1,\n")
    found = replay(read_gavel_trace(folder), "fastest")
    assert found.jct_s.tolist() == pytest.approx([50.0, 1.0]) and found.deadline_misses == 1


def test_a_new_job_waits_for_the_next_allocation(folder):
    (folder / "jobs.csv").write_text(JOBS + "0,0,A,1,3600,1,\n1,10,A,1,20,1,\n")
    assert replay(read_gavel_trace(folder), "fastest").jct_s.tolist() == [1800.0, 360.0]
    # 1,920 s after the first allocation nothing runs any more, and nobody comes: it is made again at once
    assert replay(read_gavel_trace(folder), "fastest", 1920.0).jct_s.tolist() == [1800.0, 1800.0]


@pytest.mark.parametrize(("row", "why"), [
    ("2,20,B,1,5,1,", "no rate above 0"), ("2,20,A,4,5,1,", "has 2 of the 4"), ("2,20,Z,1,5,1,", "no rate above 0"),
    ("2,20,C,1,5,1,", "not one step in a round"),
])  # fmt: skip
def test_a_job_that_can_run_nowhere_is_refused_at_once_and_others_go_on(folder, row, why):
    (folder / "jobs.csv").write_text((folder / "jobs.csv").read_text() + row + "\n")
    found = replay(read_gavel_trace(folder), "max-min-fair")
    assert found.completed == 2 and np.isnan(found.jct_s[2])
    ((job, reason),) = found.refused
    assert job == "2" and why in reason and "fast: " in reason and "slow: " in reason


def test_nothing_but_refused_jobs_is_an_answer_too(folder):
    (folder / "jobs.csv").write_text(JOBS + "0,0,B,1,5,1,\n")
    found = replay(read_gavel_trace(folder), "fastest")
    assert found.completed == 0 and len(found.refused) == 1 and np.isnan(found.avg_jct_s)


@pytest.mark.parametrize(("file", "old", "new", "said"), [
    ("jobs.csv", "0,0,A", "0,-1,A", "jobs.csv line 2 arrival_s"),
    ("jobs.csv", "1,10,A", "1,nan,A", "jobs.csv line 3 arrival_s"),
    ("jobs.csv", "0,0,A", "0,20,A", "jobs.csv line 3 arrival_s"),
    ("jobs.csv", "1,10,A", "0,10,A", "jobs.csv line 3 job_id"),
    ("jobs.csv", "A,1,1000", "A,0,1000", "jobs.csv line 2 scale_factor"),
    ("jobs.csv", "A,1,1000", "A,1,10.5", "jobs.csv line 2 total_steps"),
    ("jobs.csv", "1000,1,600", "1000,0,600", "jobs.csv line 2 priority_weight"),
    ("jobs.csv", "1000,1,600", "1000,1,soon", "jobs.csv line 2 slo_s"),
    ("jobs.csv", "0,0,A,1", "0,0,A,1,7", "jobs.csv line 2"),
    ("jobs.csv", "workload", "work", "jobs.csv line 1"),
    ("throughput.csv", "A,fast,1,2", "A,fast,1,-2", "throughput.csv line 2 steps_per_s"),
    ("throughput.csv", "A,slow,1,1", "A,fast,1,1", "throughput.csv line 3 workload"),
    ("throughput.csv", "steps_per_s", "steps", "throughput.csv line 1"),
    ("cluster.csv", "fast,2,2", "fast,2.5,2", "cluster.csv line 2 count"),
    ("cluster.csv", "slow,2", "fast,2", "cluster.csv line 3 accelerator"),
    ("cluster.csv", "0.36", "free", "cluster.csv line 3 usd_per_hour"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_with_file_line_and_column(folder, file, old, new, said):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_gavel_trace(folder)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


@pytest.mark.parametrize("file", ["jobs.csv", "throughput.csv", "cluster.csv"])
def test_missing_and_empty_files_are_named(folder, file):
    (folder / file).write_text("")
    with pytest.raises(ChipwiseError, match=file):
        read_gavel_trace(folder)
    (folder / file).unlink()
    with pytest.raises(ChipwiseError, match=file):
        read_gavel_trace(folder)


def test_a_folder_must_exist(tmp_path):
    with pytest.raises(InputError, match=r"^trace: "):
        read_gavel_trace(tmp_path / "none")


def test_seconds_between_allocations_are_at_least_0(folder):
    with pytest.raises(InputError, match=r"^reallocate_s: "):
        replay(read_gavel_trace(folder), "fastest", -1.0)


def test_the_example_is_read_from_a_copy_too(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "copy")
    assert len(read_gavel_trace(tmp_path / "copy").jobs) == 300


def test_a_refused_job_with_a_deadline_misses_it(folder):
    (folder / "jobs.csv").write_text(JOBS + "0,0,A,1,100,1,600\n1,10,A,4,5,1,600\n")
    found = replay(read_gavel_trace(folder), "fastest")
    assert (found.completed, len(found.refused), found.deadline_misses, found.with_deadline) == (1, 1, 1, 2)


def by_events(folder, policy):
    trace = read_gavel_trace(folder).trace()
    return measure(events.replay(trace, PolicyScheduler(policy, policy_named(policy), trace.pools)))


def test_the_event_simulator_replays_a_gavel_trace_without_rounds(folder):
    figures = by_events(folder, "fastest")
    # both run on fast chips from their arrival: 1,000 and 500 steps at 2 a second
    assert figures.avg_jct_s == pytest.approx((500 + 250) / 2)
    assert figures.cost_usd == pytest.approx(3.6 * 750 / 3600)
    assert (figures.deadlines, figures.deadline_misses) == (1, 0)
    assert figures.energy_kwh is None


def test_stopping_and_moving_repeats_nothing_in_a_gavel_trace(folder):
    (folder / "jobs.csv").write_text(JOBS + "".join(f"{i},{i},A,1,4000,1,\n" for i in range(6)))
    figures = by_events(folder, "max-min-fair")
    assert figures.completed == 6 and figures.preemptions > 0 and figures.lost_chip_s == 0


@pytest.mark.parametrize(("row", "why"), [("2,20,B,1,5,1,", "no rate above 0"), ("2,20,A,4,5,1,", "has 2 of the 4")])
def test_the_event_simulator_refuses_what_can_run_nowhere(folder, row, why):
    (folder / "jobs.csv").write_text((folder / "jobs.csv").read_text() + row + "\n")
    figures = by_events(folder, "fastest")
    ((reason, count),) = figures.reasons
    assert (figures.completed, figures.refused, count) == (2, 1, 1) and why in reason


def test_by_events_our_policies_beat_gavels_on_its_own_trace():
    with (FOLDER / "results.csv").open() as file:
        gavel = list(csv.DictReader(file))
    ours = by_events(FOLDER, "max-throughput-per-dollar")
    assert ours.completed == 300
    assert ours.avg_jct_s < min(float(row["avg_jct_incl_dropped_s"]) for row in gavel)
    assert ours.cost_usd < min(float(row["cost_usd"]) for row in gavel)
