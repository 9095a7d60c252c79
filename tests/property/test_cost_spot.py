"""The expected time of interrupted runs: its invariants, and a simulation that shares no code with it."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lane
from chipwise.cost.spot import Hazard, best_interval, daly, expected, optimal, young
from chipwise.cost.spot_draws import draw
from chipwise.errors import InputError

WORK = st.floats(600.0, 1e6)
MEAN = st.floats(300.0, 1e7)
SHORT = st.floats(0.0, 2000.0)


@given(WORK, st.floats(30.0, 1e6), SHORT, SHORT)
def test_without_interruptions_a_run_is_its_work_and_its_checkpoints(work, interval, write, restart):
    got = expected(work, Hazard(inf, write, restart), interval)
    assert got.wall_s == pytest.approx(work + got.segments * write)
    assert (got.segments - 1) * got.interval_s < work <= got.segments * got.interval_s * (1 + 1e-6)


@given(WORK, MEAN, st.floats(1.0, 1000.0), st.floats(1.0, 1000.0), SHORT, st.floats(1.01, 10.0))
def test_more_interruptions_are_never_cheaper(work, mean, write, restart, wait, factor):
    rare, often = Hazard(mean, write, restart, wait), Hazard(mean / factor, write, restart, wait)
    assert expected(work, often).wall_s >= expected(work, rare).wall_s * (1 - 1e-9)
    assert expected(work, often).billed_s >= work


@given(WORK, MEAN, st.floats(1.0, 1000.0), st.floats(1.0, 1000.0), st.floats(0.02, 50.0))
def test_the_optimum_is_a_minimum(work, mean, write, restart, factor):
    hazard = Hazard(mean, write, restart)
    best = optimal(work, hazard)
    assert expected(work, hazard, best).wall_s <= expected(work, hazard, best * factor).wall_s * (1 + 1e-9)


@given(WORK, MEAN, st.floats(1.0, 1000.0), SHORT, SHORT, st.floats(1.01, 5.0))
def test_dearer_checkpoints_restarts_and_waits_are_never_faster(work, mean, write, restart, wait, factor):
    hazard = Hazard(mean, write, restart, wait)
    for name in ("checkpoint_s", "restart_s", "wait_s"):
        slower = replace(hazard, **{name: getattr(hazard, name) * factor})
        assert expected(work, slower).wall_s >= expected(work, hazard).wall_s * (1 - 1e-9)


@given(st.floats(1.0, 100.0), st.floats(1e4, 1e7))
def test_young_and_daly_come_near_the_exact_interval_where_checkpoints_are_short(write, mean):
    exact = best_interval(write, mean)
    assert daly(write, mean) == pytest.approx(exact, rel=2e-3)
    assert young(write, mean) == pytest.approx(exact, rel=0.2)


@given(WORK, MEAN, st.floats(1.0, 500.0), SHORT)
def test_the_parts_add_up(work, mean, write, restart):
    got = expected(work, Hazard(mean, write, restart, 60.0))
    if got.wall_s < inf:
        assert got.wall_s == pytest.approx(got.work_s + got.checkpoints_s + got.lost_s + got.restarts_s + got.wait_s)
        assert got.stretch >= 1.0


def test_a_run_that_can_never_finish_a_segment_takes_for_ever():
    assert expected(1e6, Hazard(100.0, 100_000.0, 10.0)).wall_s == inf


@pytest.mark.parametrize(
    ("work", "mean", "write"), [(0.0, 1.0, 1.0), (inf, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, -1.0)]
)
def test_times_that_make_no_sense_are_refused(work, mean, write):
    with pytest.raises(InputError):
        expected(work, Hazard(mean, write, 0.0))


def simulated(rng, work, hazard, interval):
    """One run, interruption by interruption, on a clock: nothing of the formulas is used."""
    clock = done = 0.0
    struck = rng.exponential(hazard.mean_s)  # the next interruption
    while done < work:
        segment = min(interval, work - done) if work - done > interval * (1 + 1e-9) else work - done
        end = clock + segment + hazard.checkpoint_s
        while struck < end:
            back = struck + hazard.wait_s  # nothing runs and nothing is interrupted while it waits
            struck = back + rng.exponential(hazard.mean_s)
            while struck < back + hazard.restart_s:
                back = struck + hazard.wait_s
                struck = back + rng.exponential(hazard.mean_s)
            end = back + hazard.restart_s + segment + hazard.checkpoint_s
        clock, done = end, done + segment
    return clock


GRID = [
    (mean, write, restart, work, share)
    for mean in (600.0, 3_600.0, 40_000.0)
    for write in (5.0, 120.0, 600.0)
    for restart in (60.0, 600.0)
    for work in (1_800.0, 30_000.0)
    for share in (0.5, 1.0, 2.0)
]


@pytest.mark.sampled
@pytest.mark.parametrize("mean", sorted({case[0] for case in GRID}))
def test_the_expected_time_meets_a_simulation_within_two_percent(mean):
    rng = np.random.default_rng(20_261_115)
    for _, write, restart, work, share in lane.share([case for case in GRID if case[0] == mean], of=5):
        hazard = Hazard(mean, write, restart, 30.0)
        interval = min(optimal(work, hazard) * share, work)
        model = expected(work, hazard, interval).wall_s
        runs, total, error = 0, 0.0, inf
        while runs < 1_500 or (runs < 20_000 and error > 0.005):
            times = [simulated(rng, work, hazard, interval) for _ in range(500)]
            total, runs = total + sum(times), runs + 500
            error = float(np.std(times)) / total * runs**0.5  # standard error of the mean, as a share
        assert total / runs == pytest.approx(model, rel=0.02), (mean, write, restart, work, share)


@pytest.mark.parametrize(
    ("mean", "write", "work"), [(600.0, 300.0, 3_600.0), (3_600.0, 60.0, 86_400.0), (36_000.0, 10.0, 3e6)]
)
def test_drawn_times_meet_the_expected_time_and_the_simulated_percentiles(mean, write, work):
    hazard = Hazard(mean, write, 120.0, 60.0)
    model = expected(work, hazard)
    many = [np.full(20_000, x) for x in (work, model.interval_s, mean, write, 120.0, 60.0)]
    drawn = draw(np.random.default_rng(5), *many)
    assert drawn.wall_s.mean() == pytest.approx(model.wall_s, rel=0.01)
    assert drawn.billed_s.mean() == pytest.approx(model.billed_s, rel=0.01)
    assert drawn.interruptions.mean() == pytest.approx(model.interruptions, rel=0.03)
    if work < 1e5:
        rng = np.random.default_rng(6)
        times = [simulated(rng, work, hazard, model.interval_s) for _ in range(4_000)]
        assert np.quantile(drawn.wall_s, [0.1, 0.5, 0.9]) == pytest.approx(
            np.quantile(times, [0.1, 0.5, 0.9]), rel=0.02
        )
