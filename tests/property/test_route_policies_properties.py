"""What holds for any jobs and pools: room, gangs, fairness, monotony, and that nobody starves."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from route_views import HOUR, board_of, candidate, option, pool, random_board, view_of

from chipwise.route.allocate import allocate, allocate_state
from chipwise.route.job_table import JobTable
from chipwise.route.policies import POLICIES
from chipwise.route.policies.risk import in_time, run_quantile
from chipwise.route.policies.sharing import finish_time_shares, max_min_shares

SEEDS = st.integers(0, 10**6)
RANKING = [name for name in POLICIES if "fair" not in name]


@settings(max_examples=150)
@given(SEEDS, st.sampled_from(sorted(POLICIES)), st.integers(1, 25), st.integers(1, 5))
def test_room_gangs_and_promises_hold_under_every_policy(seed, name, jobs, pools):
    places, board, free = random_board(np.random.default_rng(seed), jobs, pools, deadlines=True)
    view = view_of(board, places, 60.0, free)
    wishes = POLICIES[name](view)
    assert wishes.score.shape == view.seconds.shape and wishes.order.shape in (view.arrival.shape, view.seconds.shape)
    assert not np.isnan(wishes.score).any() and not np.isnan(wishes.order).any()
    room, row = dict(free), {job: j for j, job in enumerate(view.jobs)}
    stopped, started, waits = set(), set(), set()
    for d in allocate(view, wishes, board.option):
        j = row[d.job]
        if d.kind == "stop":
            assert view.restartable[j] and view.pools[view.current_pool[j]] == d.pool
            assert wishes.preempts or wishes.moves
            room[d.pool] += board.option(d.job, d.pool).chips
            stopped.add(d.job)
        elif d.kind == "start":
            p = view.pools.index(d.pool)
            assert np.isfinite(wishes.score[j, p]) and (view.usd[j, p] <= view.budget[j] or view.current_pool[j] >= 0)
            assert view.current_pool[j] < 0 or d.job in stopped
            room[d.pool] -= board.option(d.job, d.pool).chips
            started.add(d.job)
        else:
            waits.add(d.job)
            assert view.current_pool[j] < 0
        assert d.reason
    assert all(left >= 0 for left in room.values())
    assert started | waits >= {job for j, job in enumerate(view.jobs) if view.current_pool[j] < 0}
    assert not started & waits


@settings(max_examples=200)
@given(SEEDS, st.sampled_from(["cheapest", "cheapest-within-deadline"]), st.integers(2, 25), st.integers(2, 5))
def test_no_pool_idles_beside_a_job_that_it_could_start_at_the_same_price(seed, name, jobs, pools):
    """Unless the start would delay a reservation, miss the deadline, or take over twice as long as waiting does."""
    places, board, free = random_board(np.random.default_rng(seed), jobs, pools, deadlines=True)
    view = view_of(board, places, 60.0, free)
    # nobody moves, so chips are only taken; whole dollars, so that many pools cost the same
    view = replace(view, restartable=np.zeros_like(view.restartable), usd=np.ceil(view.usd))
    decision = POLICIES[name](view)
    allocation = allocate_state(view, decision)
    tie = np.broadcast_to(decision.tie, (len(view.jobs),))
    for j in np.flatnonzero((allocation.pos < 0) & (allocation.target >= 0) & (tie > 0)):
        p = int(allocation.target[j])
        end = allocation.predicted[j] + view.seconds[j, p] - view.now
        for q in range(len(view.pools)):
            if view.usd[j, q] > min(1.05 * view.usd[j, p], view.budget[j]) * (1 - 1e-9) or view.last_failed[j, q]:
                continue
            fits = 0 < view.chips[j, q] <= allocation.free[q]
            reserved = allocation.holder[q] >= 0 and allocation.holder[q] != j
            late = decision.latest is not None and view.now > decision.latest[j, q]
            late_there = decision.latest is not None and allocation.predicted[j] > decision.latest[j, p]
            assert not fits or reserved or late or late_there or view.seconds[j, q] > 2 * end * (1 - 1e-9)


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(RANKING))
def test_the_order_of_rows_changes_nothing(seed, name):
    rng = np.random.default_rng(seed)
    places, board, free = random_board(rng, 12, 3, deadlines=True)
    view = view_of(board, places, 60.0, free)
    turned = rng.permutation(len(view.jobs))
    fields = {
        f: getattr(view, f)[turned]
        for f in (
            "arrival",
            "weight",
            "deadline",
            "confidence",
            "budget",
            "restartable",
            "restart_cost_s",
            "current_pool",
            "since",
            "seconds",
            "low",
            "high",
            "usd",
            "joules",
            "chips",
            "variant_order",
            "last_failed",
            "start",
            "served",
            "late",
        )
    }
    other = replace(view, jobs=tuple(view.jobs[k] for k in turned), **fields)
    first, second = ({(d.job, d.kind, d.pool) for d in allocate(v, POLICIES[name](v))} for v in (view, other))
    assert first == second


@settings(max_examples=40)
@given(SEEDS, st.floats(0.01, 100))
def test_scores_of_dollars_scale_with_prices_and_choices_do_not_change(seed, factor):
    places, board, free = random_board(np.random.default_rng(seed), 10, 3)
    view = replace(view_of(board, places, 60.0, free), budget=np.full(10, np.inf))
    other = replace(view, usd=view.usd * factor)
    for name in ("cheapest", "max-throughput-per-dollar", "balanced", "max-min-fair"):
        assert [(d.job, d.kind, d.pool) for d in allocate(view, POLICIES[name](view))] == [
            (d.job, d.kind, d.pool) for d in allocate(other, POLICIES[name](other))
        ]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0.1, 20), st.floats(0.1, 20)), min_size=1, max_size=5),
    st.floats(0.1, 20),
    st.floats(0.01, 20),
)
def test_one_more_pool_never_makes_the_cheapest_cost_more(rows, hours, usd):
    def cost(rows):
        places = [pool(f"p{k}", 4, price) for k, (_, price) in enumerate(rows)]
        board = board_of(places, [candidate("a", [option(p, h, 2) for p, (h, _) in zip(places, rows, strict=True)])])
        view = view_of(board, places)
        (found,) = allocate(view, POLICIES["cheapest"](view), board.option)
        return found.scores[found.pool]["usd"]

    assert cost([*rows, (hours, usd)]) <= cost(rows) + 1e-9


@settings(max_examples=60)
@given(st.floats(0.05, 0.98), st.floats(0.05, 0.98), st.floats(1.01, 3), st.floats(0.2, 30))
def test_more_confidence_takes_more_time_and_a_later_deadline_more_probability(one, two, spread, hours):
    places = [pool("p", 4)]
    low, high = sorted((one, two))
    board = board_of(
        places,
        [
            candidate(n, [option(places[0], 3, spread=spread)], confidence=c, deadline=d * HOUR)
            for n, c, d in (("a", low, hours), ("b", high, hours * 1.1))
        ],
    )
    view = view_of(board, places)
    within, chance = run_quantile(view)[:, 0], in_time(view, np.arange(2))[:, 0]
    assert within[0] <= within[1]
    assert chance[0] <= chance[1] + 1e-9
    assert (within[0] <= hours * HOUR) == (chance[0] >= low) or chance[0] == pytest.approx(low, abs=1e-6)


def gains(view):
    can = np.isfinite(view.seconds) & (view.chips <= view.total)
    rate = np.where(can, 1 / view.seconds, 0.0)
    best = rate.max(axis=1)
    return rate, best, best > 0


def equal_split(view):
    can = np.isfinite(view.seconds) & (view.chips <= view.total)
    split = np.where(can, (view.weight / view.weight.sum())[:, None] * view.total / np.maximum(view.chips, 1), 0.0)
    return split / np.maximum(split.sum(axis=1), 1.0)[:, None]


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 14), st.integers(1, 4))
def test_max_min_fair_is_the_optimum_of_its_program_and_beats_an_equal_split(seed, jobs, pools):
    places, board, free = random_board(np.random.default_rng(seed), jobs, pools)
    view = view_of(board, places, 60.0, free)
    rate, normal, able = gains(view)
    x = max_min_shares(view)
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-6).all()
    assert ((view.chips * x).sum(axis=0) <= view.total + 1e-6 * view.total).all()
    if not able.any():
        return

    def least(shares):
        return ((rate * shares).sum(axis=1)[able] / normal[able] / view.weight[able]).min()

    n, p = int(able.sum()), len(places)
    a = (rate / np.where(normal > 0, normal, 1)[:, None] / view.weight[:, None])[able]
    rows = np.zeros((2 * n + p, n * p + 1))
    for j in range(n):
        rows[j, j * p : (j + 1) * p] = 1
        rows[n + p + j, j * p : (j + 1) * p] = -a[j]
        rows[n + p + j, -1] = 1
        for q in range(p):
            rows[n + q, j * p + q] = view.chips[able][j, q] / view.total[q]
    found = linprog(
        np.r_[np.zeros(n * p), -1],
        rows,
        np.r_[np.ones(n + p), np.zeros(n)],
        bounds=[(0, 0 if v == 0 else None) for v in a.ravel()] + [(0, None)],
        method="highs",
    )
    assert least(x) == pytest.approx(-found.fun, rel=1e-6)
    assert least(x) >= least(equal_split(view)) * (1 - 1e-6)


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 8), st.integers(1, 3))
def test_no_job_fares_worse_by_finish_time_fair_shares_than_the_worst_of_an_equal_split(seed, jobs, pools):
    places, board, free = random_board(np.random.default_rng(seed), jobs, pools)
    view = view_of(board, places, 60.0, free)
    rate, _, able = gains(view)
    if not able.any():
        return
    split = equal_split(view)
    past = np.where(rate > 0, view.served * rate, 0.0).sum(axis=1)
    age = view.now - view.arrival

    def worst(shares):
        got = (rate * shares).sum(axis=1)[able]
        alone = ((1 + past)[able]) / (rate * split).sum(axis=1)[able]
        return ((age[able] + 1 / np.maximum(got, 1e-30)) / alone).max()

    x = finish_time_shares(view)
    assert (x.sum(axis=1) <= 1 + 1e-6).all() and ((view.chips * x).sum(axis=0) <= view.total * (1 + 1e-6)).all()
    assert worst(x) <= worst(split) * (1 + 1e-3)


@settings(max_examples=25)
@given(SEEDS)
def test_shares_do_not_depend_on_units_and_solving_again_gives_the_same(seed):
    places, board, free = random_board(np.random.default_rng(seed), 8, 3)
    view = view_of(board, places, 60.0, free)
    again = replace(view, seconds=view.seconds * 60)
    rate, normal, able = gains(view)
    got = [
        np.sort((rate * max_min_shares(v)).sum(axis=1)[able] / normal[able] / view.weight[able])[:1]
        for v in (view, again, view)
    ]
    assert got[0] == pytest.approx(got[1], rel=1e-5) and (got[0] == got[2]).all()


def replay(policy, places, arrivals, patience):
    """Replay arrivals (job, at) exactly as estimated; when each starts first."""
    board, now, begun, ends, where = JobTable(places), 0.0, {}, {}, {}
    coming = sorted(arrivals, key=lambda a: a.arrival)
    room = {p.name: p.count for p in places}
    total = dict(room)
    while coming or ends or len(board):
        times = [coming[0].arrival] if coming else []
        times += [min(ends.values())] if ends else []
        if not times:
            raise AssertionError("jobs wait and nothing runs")
        now = max(now, min(times))
        for job in [j for j, end in ends.items() if end <= now]:
            del ends[job]
            room[where[job]] += board.option(job, where[job]).chips
            board.remove(job)
        while coming and coming[0].arrival <= now:
            board.add(coming.pop(0))
        view = board.state(now, room, total)
        for d in allocate(view, policy(view), board.option, patience=patience, explain=()):
            if d.kind == "stop":
                board.stopped(d.job, now)
                room[d.pool] += board.option(d.job, d.pool).chips
                del ends[d.job]
            elif d.kind == "start":
                begun.setdefault(d.job, now)
                where[d.job] = d.pool
                board.started(d.job, d.pool, now)
                room[d.pool] -= board.option(d.job, d.pool).chips
                left = view.seconds[view.jobs.index(d.job), view.pools.index(d.pool)]
                ends[d.job] = now + left
    return begun


@settings(max_examples=25)
@given(SEEDS, st.sampled_from(RANKING))
def test_a_large_job_starts_within_a_bound_however_many_small_ones_come(seed, name):
    rng = np.random.default_rng(seed)
    places = [pool("p", 4, 1.0), pool("q", 4, 1.3)]
    small = [
        candidate(
            f"s{k}",
            [option(p, float(rng.uniform(0.2, 1)), int(rng.integers(1, 4)), spread=1.0) for p in places],
            300.0 * k,
        )
        for k in range(120)
    ]
    large = candidate("large", [option(p, 30, 4, spread=1.0) for p in places], 1.0)
    patience = 2 * HOUR
    begun = replay(POLICIES[name], places, [large, *small], patience)
    assert set(begun) == {"large", *(s.id for s in small)}
    # by then it is first: at most the jobs that have waited as long, and one run, are in front
    ahead = [s for s in small if s.arrival <= large.arrival]
    assert begun["large"] <= large.arrival + patience + (len(ahead) + 1) * HOUR + 1
