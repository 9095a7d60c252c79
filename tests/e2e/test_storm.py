"""All that can go wrong at once, in each place where jobs run: nothing is lost, nothing is run twice.

These are small; `make chaos` is the whole of it: see storm.py.
"""

import os

import pytest
import storm
from storm import Size

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that fills up"),
]


def weathered(result, kills):
    print(" | ".join(result.row()), result.outcome.left)
    assert result.problems == [], result.problems[:20]
    assert result.outcome.lost == result.outcome.doubled == 0
    assert result.outcome.states == {"succeeded": result.size.jobs}
    assert result.outcome.kills >= kills  # the last ones may find all jobs done


@pytest.mark.slow
def test_sixty_local_jobs_weather_a_small_storm(tmp_path):
    weathered(storm.local(tmp_path, Size(60, 3, 3, fault_s=3.0, clock_s=1.0, hostile=1)), 3)


@pytest.mark.slow
def test_four_hundred_local_jobs_weather_a_storm(tmp_path):
    weathered(storm.local(tmp_path, Size(400, 14, 6, fault_s=20.0)), 15)


@pytest.mark.slow
def test_four_hundred_jobs_of_two_routers_on_postgresql_weather_a_storm(tmp_path):
    weathered(storm.postgresql(tmp_path, Size(400, 10, 6, 4, fault_s=20.0)), 15)


@pytest.mark.slow
def test_a_hundred_jobs_on_slurm_weather_a_storm(tmp_path):
    weathered(storm.slurm(tmp_path, Size(100, 6, 4, 5, fault_s=20.0)), 8)
