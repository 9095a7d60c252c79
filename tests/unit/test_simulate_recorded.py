"""Recorded jobs: what a file may hold, where its jobs may run, and how long they take there."""

from math import inf
from pathlib import Path

import pytest

from chipwise.errors import ChipwiseError
from chipwise.route.pool import Pool
from chipwise.route.simulate.recorded import read_recorded

ROOT = Path(__file__).resolve().parents[2]
EXCERPT = ROOT / "examples" / "traces" / "philly-days-20-21.csv"
V100 = Pool("v100", "slurm", "v100", "gpu", 16, usd_per_chip_hour=2.0, watts_chip=300.0)
HOSTS = Pool("a100", "slurm", "a100-80gb", "gpu", 16, unit=8, usd_per_chip_hour=5.0, watts_chip=500.0)
TPU = Pool("v5e", "kubernetes", "v5e", "tpu", 8, shapes=((1, "1x1"), (4, "2x2"), (8, "2x4")), usd_per_chip_hour=1.2)
HEADER = "job_id,arrival_s,gpus,duration_s,virtual_cluster\n"


def read(tmp_path, text, pools=(V100, HOSTS, TPU), speed=None):
    file = tmp_path / "jobs.csv"
    file.write_text(text, encoding="utf-8")
    return read_recorded(file, pools, speed or {})


def test_the_excerpt_is_read_in_order_with_its_owners():
    trace = read_recorded(EXCERPT, (V100,), {})
    assert len(trace.arrivals) == 446 and len({a.job.owner for a in trace.arrivals}) > 3
    assert [a.at for a in trace.arrivals] == sorted(a.at for a in trace.arrivals)


def test_times_are_the_recorded_ones_on_gpus_and_unknown_on_tpus(tmp_path):
    [arrival] = read(tmp_path, HEADER + "7,10,2,3600,vc\n").arrivals
    assert {o.pool: (o.chips, o.seconds.value, o.usd) for o in arrival.options} == {
        "v100": (2, 3600.0, 4.0),
        "a100": (8, 3600.0, 40.0),
    }
    assert [u.pool for u in arrival.infeasible] == ["v5e"] and "such as v5e=2.5" in arrival.infeasible[0].unlock
    assert arrival.job.deadline == inf and arrival.job.owner == "vc"


def test_a_speed_makes_times_shorter_and_opens_other_chips(tmp_path):
    trace = read(tmp_path, HEADER + "7,10,3,3600,vc\n", speed={"a100-80gb": 2.0, "v5e": 0.5})
    [arrival] = trace.arrivals
    assert {o.pool: (o.chips, o.topology, o.seconds.value) for o in arrival.options} == {
        "v100": (3, "", 3600.0),
        "a100": (8, "", 1800.0),
        "v5e": (4, "2x2", 7200.0),
    }
    assert any("a100-80gb 2x" in line for line in trace.assumptions)


def test_what_no_pool_holds_has_no_option(tmp_path):
    [arrival] = read(tmp_path, HEADER + "7,10,17,60,vc\n").arrivals
    assert not arrival.options and "17 chips at once are more than it has: 16" in arrival.refusal()


def test_deadlines_count_from_arrival(tmp_path):
    [arrival] = read(tmp_path, "job_id,arrival_s,gpus,duration_s,deadline_s,priority\na,10,1,60,90,2\n").arrivals
    assert (arrival.job.deadline, arrival.job.priority) == (100.0, 2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job_id,arrival_s,gpus\n1,2,3\n", "the column duration_s"),
        (HEADER.replace("gpus", "gpu") + "1,2,3,4,5\n", "gpus"),
        (HEADER, "at least one job"),
        (HEADER + "1,0,1,5,a\n1,1,1,5,a\n", "each job only once"),
        (HEADER + "1,-5,1,5,a\n", "arrival_s"),
        (HEADER + "1,0,1.5,5,a\n", "a whole number"),
        (HEADER + "1,0,0,5,a\n", "gpus"),
        (HEADER + "1,0,1,0,a\n", "duration_s"),
        (HEADER + "1,0,1,nan,a\n", "duration_s"),
        (HEADER + "1,0,1,5\n", "5 cells"),
        ("", "isn't empty"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(ChipwiseError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize("speed", [{"h100": 2.0}, {"v100": 0.0}, {"v100": 1e9}])
def test_a_speed_that_makes_no_sense_is_refused(tmp_path, speed):
    with pytest.raises(ChipwiseError, match=r"^speed: "):
        read(tmp_path, HEADER + "1,0,1,5,a\n", speed=speed)
