"""Traces of jobs with workloads or estimates, from YAML and CSV."""

import pytest

from chipwise.errors import ChipwiseError
from chipwise.route.pool import Pool
from chipwise.route.simulate.trace import read_trace

H100 = Pool("h100", "local", "h100", "gpu", 16, unit=8, usd_per_chip_hour=3.0, watts_chip=1000.0)
SPOT = Pool("spot", "local", "h100", "gpu", 16, unit=8, usd_per_chip_hour=1.0, terms="spot", interruptions=0.5)
JOB = "name: one\nestimates: {h100: 2h}\nchips: 8\n"


def read(folder, text, name="t.yaml", pools=(H100,), **files):
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    for other, content in files.items():
        (folder / f"{other}.yaml").write_text(content, encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return read_trace(folder / name, pools)


def test_repeated_jobs_arrive_one_after_another_under_names_of_their_own(tmp_path):
    trace = read(
        tmp_path,
        "name: day\njobs:\n  - {arrival: 1h, every: 30min, count: 3, job: job.yaml}\n"
        "  - {arrival: 0s, name: first, job: job.yaml}\n",
    )
    assert (trace.name, trace.kind) == ("day", "jobs")
    assert [(a.id, a.at) for a in trace.arrivals] == [
        ("first", 0.0),
        ("one#1", 3600.0),
        ("one#2", 5400.0),
        ("one#3", 7200.0),
    ]
    assert all(a.options[0].seconds.value == pytest.approx(7200.0, rel=1e-3) for a in trace.arrivals)


def test_what_an_entry_says_stands_in_place_of_the_jobs_own(tmp_path):
    [arrival] = read(
        tmp_path, "jobs:\n  - {arrival: 100s, deadline: 1h, owner: me, priority: 3, job: job.yaml}\n"
    ).arrivals
    assert (arrival.job.deadline, arrival.job.owner, arrival.job.priority) == (3700.0, "me", 3.0)


def test_a_jobs_own_deadline_counts_from_its_arrival(tmp_path):
    [arrival] = read(tmp_path, "jobs:\n  - {arrival: 100s, job: due.yaml}\n", due=JOB + "deadline: 2h\n").arrivals
    assert arrival.job.deadline == 7300.0


def test_a_file_of_several_jobs_is_an_arrival_each(tmp_path):
    two = "jobs:\n  - {name: a, estimates: {h100: 1h}, chips: 8}\n  - {name: b, estimates: {h100: 2h}, chips: 16}\n"
    trace = read(tmp_path, "jobs:\n  - {arrival: 0s, job: two.yaml}\n", two=two)
    assert [(a.id, a.options[0].chips) for a in trace.arrivals] == [("a", 8), ("b", 16)]


def test_rows_of_a_csv_are_sorted_by_arrival_and_keep_their_names(tmp_path):
    trace = read(
        tmp_path,
        "arrival_s,job,job_id,deadline_s,priority,owner\n60,job.yaml,late,,,\n5,job.yaml,soon,100,2,me\n",
        "t.csv",
    )
    assert [(a.id, a.at) for a in trace.arrivals] == [("soon", 5.0), ("late", 60.0)]
    assert (trace.arrivals[0].job.deadline, trace.arrivals[0].job.priority, trace.arrivals[0].job.owner) == (
        105.0,
        2.0,
        "me",
    )


def test_where_chips_may_be_taken_away_the_undisturbed_time_is_kept_beside_the_expected(tmp_path):
    [arrival] = read(tmp_path, "jobs:\n  - {arrival: 0s, job: job.yaml}\n", pools=(H100, SPOT)).arrivals
    assert [o.pool for o in arrival.options] == ["h100", "spot"] and len(arrival.calm) == 2
    assert arrival.calm[1].value == pytest.approx(7200.0, rel=1e-3) and arrival.options[1].seconds.value > 7300.0


def test_a_job_too_wide_for_every_pool_has_the_reason_of_each(tmp_path):
    [arrival] = read(
        tmp_path, "jobs:\n  - {arrival: 0s, job: wide.yaml}\n", pools=(H100, SPOT), wide=JOB.replace("8", "64")
    ).arrivals
    assert (
        not arrival.options and {u.pool for u in arrival.infeasible} == {"h100", "spot"} and "h100" in arrival.refusal()
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.yaml", "jobs:\n  - {arrival: 0s, job: job.yaml, count: 0}\n", "count"),
        ("t.yaml", "jobs:\n  - {arrival: 0s, job: job.yaml, priority: .nan}\n", "priority"),
        ("t.yaml", "jobs:\n  - {arrival: .nan, job: job.yaml}\n", "arrival"),
        ("t.yaml", "jobs:\n  - {arrival: 0s, job: job.yaml, deadline: -1h}\n", "deadline"),
        ("t.csv", "arrival_s,job\nnan,job.yaml\n", "arrival_s"),
        ("t.csv", "arrival_s,job\n0,job.yaml,x\n", "cells"),
        ("t.csv", "arrival_s,job\n", "at least one job"),
        ("t.csv", "arrival_s,job,deadline_s\n0,job.yaml,-3\n", "deadline_s"),
    ],
)
def test_a_bad_entry_is_refused_with_its_field(tmp_path, name, text, said):
    with pytest.raises(ChipwiseError, match=said):
        read(tmp_path, text, name)
