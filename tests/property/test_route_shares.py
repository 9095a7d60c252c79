"""Shares of time by the interior-point method, against the simplex method of HiGHS on the same program."""

from __future__ import annotations

import numpy as np
from benchmarks.gavel.compiled import rank
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.io.jit import lent
from chipwise.route.policies import fair_share_kernels
from chipwise.route.policies.lp_highs import Bases, Sharing
from chipwise.route.policies.throughput_per_dollar import DEAREST, planned, scored


@st.composite
def clusters(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rates, priorities and chips of jobs, and chips of pools; every job can run somewhere."""
    seed, jobs, pools = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(seed)
    rate = 10.0 ** rng.uniform(-5, -2, (jobs, 1)) * 10.0 ** rng.uniform(-1, 0, (jobs, pools))
    rate[rng.random((jobs, pools)) < 0.2] = 0.0
    rate[np.arange(jobs), rng.integers(0, pools, jobs)] = 10.0 ** rng.uniform(-5, -2, jobs)
    chips = np.where(rate > 0, rng.choice([1, 2, 4], (jobs, 1)), 0).astype(np.int64)
    weight = rng.choice([0.5, 1.0, 2.0], jobs) if draw(st.booleans()) else np.ones(jobs)
    return rate, weight, chips, rng.integers(4, 33, pools)


@given(clusters())
def test_the_level_and_the_sum_are_those_of_the_simplex_method(cluster):
    rate, weight, chips, total = cluster
    shares, gap = fair_share_kernels.max_min(rate, weight, chips, lent(total))
    assert gap <= fair_share_kernels.NOTHING
    assert (shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-5).all()
    assert ((shares * chips).sum(axis=0) <= total * (1 + 1e-5)).all() and (shares[rate == 0] == 0).all()
    gain = rate / rate.max(axis=1)[:, None]
    program = Sharing(gain / weight[:, None], chips / total, np.ones(len(rate)))
    level = program.most_alike(np.ones(len(rate)))
    program.most_in_all(level, gain)
    got = (shares * gain).sum(axis=1)
    np.testing.assert_allclose((got / weight).min(), level, rtol=2e-4)
    assert got.sum() >= (program.shares() * gain).sum() * (1 - 2e-3)


@given(clusters(), st.floats(0, 1e5))
def test_no_smaller_ratio_of_finish_times_can_be_had_by_all(cluster, oldest):
    rate, weight, chips, total = cluster
    age = np.linspace(0, oldest, len(rate))
    alone = fair_share_kernels.alone(rate, *map(lent, (np.zeros(rate.shape), weight, chips, total)))
    shares, gap = fair_share_kernels.finish_time(rate, age, alone, chips, lent(total))
    assert gap <= fair_share_kernels.NOTHING
    worst = ((age + 1 / (shares * rate).sum(axis=1)) / alone).max()
    top = rate.max(axis=1)
    program = Sharing(rate / top[:, None], chips / total, np.ones(len(rate)))
    best = ((age + 1 / top) / alone).max()
    assert worst >= best * (1 - 1e-3)
    if worst > best * (1 + 5e-3):  # a ratio a little smaller asks for more than there is
        assert program.most_alike(fair_share_kernels.demand(worst * (1 - 5e-3), age, alone, top)) < 1 + 1e-6


@given(clusters())
def test_a_plan_fits_pays_at_most_twice_the_least_and_leaves_no_room_that_somebody_could_use(cluster):
    rate, weight, chips, total = cluster
    with np.errstate(divide="ignore"):
        seconds = np.where(rate > 0, 1 / rate, np.inf)
    usd = seconds * np.linspace(1, 3, len(total))
    score, order = np.empty(rate.shape), np.empty(rate.shape)
    nobody = np.full(len(rate), -1)
    rank(np.arange(len(seconds)), seconds, usd, chips, weight, nobody, total, score, order)
    left = total.copy()
    turns = np.arange(len(seconds))
    pairs, key, _ = scored(turns, *map(lent, (seconds, usd, chips, weight)), nobody, total, score)
    plan = planned(turns, pairs[np.argsort(key, kind="stable")], lent(seconds), score, lent(chips), left)
    runs = np.flatnonzero(plan >= 0)
    used = np.bincount(plan[runs], chips[runs, plan[runs]], minlength=len(total))
    assert (used <= total).all() and (left == total - used).all()
    assert (usd[runs, plan[runs]] <= DEAREST * usd[runs].min(axis=1)).all()
    first = order[runs, plan[runs]].max(initial=-np.inf)
    assert (order[nobody[:0]].size == 0) and all(order[j].min() > first for j in np.flatnonzero(plan < 0))


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(9, 14), st.integers(1, 6))
def test_programs_that_begin_from_the_last_basis_end_where_those_from_nothing_do(seed, jobs, pools, steps):
    rng = np.random.default_rng(seed)

    def row():
        speed = np.where(rng.random(pools) < 0.3, 0.0, rng.uniform(0.1, 1.0, pools))
        speed[rng.integers(pools)] = 1.0
        return speed, float(rng.choice([1, 2, 4])), float(rng.choice([0.5, 1, 2]))

    total, open_jobs, bases = rng.integers(4, 33, pools).astype(float), {k: row() for k in range(jobs)}, Bases()
    for step in range(steps):
        speed, chips, weight = (np.array(part) for part in zip(*open_jobs.values(), strict=True))
        takes, many, worth = chips[:, None] / total, np.ones(len(speed)), speed
        names = [str(job).encode() for job in open_jobs]
        warm = Sharing(speed / weight[:, None], takes, many, names, bases)
        cold = Sharing(speed / weight[:, None], takes, many)
        levels = [program.most_alike(np.ones(len(speed))) for program in (warm, cold)]
        np.testing.assert_allclose(levels[0], levels[1], rtol=1e-7)
        for program in (warm, cold):
            program.most_in_all(levels[1], worth)
        np.testing.assert_allclose((warm.shares() * worth).sum(), (cold.shares() * worth).sum(), rtol=1e-6)
        shares = warm.shares()
        assert (shares.sum(axis=1) <= 1 + 1e-6).all() and ((shares * takes).sum(axis=0) <= 1 + 1e-6).all()
        gone = [job for job in open_jobs if rng.random() < 0.3][: len(open_jobs) - 1]
        open_jobs = {job: what for job, what in open_jobs.items() if job not in gone}
        open_jobs |= {f"{step}-{k}": row() for k in range(int(rng.integers(0, 8)))}
