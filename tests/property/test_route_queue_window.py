"""The front of a queue against the whole of it; turns of those alike; and that nobody starves, whatever the depth."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from route_views import HOUR, board_of, candidate, option, pool, random_board

from chipwise.io.jit import lent
from chipwise.route.allocate import allocate, queue_window
from chipwise.route.allocate.queue_order import in_order
from chipwise.route.job_table import JobTable
from chipwise.route.policies import POLICIES
from chipwise.route.policies.throughput_per_dollar import planned

SEEDS = st.integers(0, 10**6)
BY_ROW = ["fastest", "cheapest", "cheapest-within-deadline", "least-energy", "balanced"]


def told(decisions):
    return [(d.job, d.kind, d.pool, d.reason) for d in decisions]


@settings(max_examples=120)
@given(SEEDS, st.sampled_from(BY_ROW), st.integers(1, 120), st.integers(1, 6), st.integers(0, 40))
def test_the_front_decides_as_the_whole_queue_does_at_that_depth(seed, name, jobs, pools, depth):
    rng = np.random.default_rng(seed)
    places, board, free = random_board(rng, jobs, pools, deadlines=True)
    policy, total = POLICIES[name], {p.name: p.count for p in places}
    for now in (60.0, 5 * HOUR, 30 * HOUR):  # what is kept from one moment must hold at the next
        asked = [f"j{k}" for k in rng.integers(0, jobs, 2) if f"j{k}" in board]
        at = board.moment(now, free, total)
        view = queue_window(board, policy, at, depth=depth, explain=asked)
        whole = board.state(now, free, total)
        assert len(view.jobs) <= len(whole.jobs)
        fast = allocate(view, policy(view), board.option, explain=asked)
        slow = allocate(whole, policy(whole), board.option, explain=asked, depth=depth)
        assert sorted(told(fast)) == sorted(told(slow))
        gone = f"j{rng.integers(0, jobs)}"
        if gone in board and board.state(now, free, total).current_pool[list(whole.jobs).index(gone)] < 0:
            board.remove(gone)


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(sorted(POLICIES)), st.integers(1, 40), st.integers(1, 5))
def test_a_depth_of_all_is_the_whole_queue_under_every_policy(seed, name, jobs, pools):
    places, board, free = random_board(np.random.default_rng(seed), jobs, pools, deadlines=True)
    policy, total = POLICIES[name], {p.name: p.count for p in places}
    view = queue_window(board, policy, board.moment(60.0, free, total), depth=jobs)
    whole = board.state(60.0, free, total)
    assert told(allocate(view, policy(view), board.option)) == told(allocate(whole, policy(whole), board.option))


@settings(max_examples=80)
@given(SEEDS, st.integers(1, 40), st.integers(1, 6))
def test_a_plan_takes_pairs_by_score_as_a_sort_of_all_would(seed, jobs, pools):
    rng = np.random.default_rng(seed)
    seconds = rng.choice([1.0, 2.0, 5.0], (jobs, pools))
    score = rng.choice([1.0, 2.0, 3.0, 4.0, np.inf], (jobs, pools))
    chips, left = rng.integers(1, 5, (jobs, pools)), rng.integers(0, 12, pools)
    fixed = np.where(rng.random(jobs) < 0.2, 0, -1)
    turns = rng.permutation(jobs)  # those alike go by their place in it
    pairs = np.array(
        [j * pools + p for j in turns for p in range(pools) if fixed[j] < 0 and score[j, p] < np.inf], dtype=np.int64
    )
    plan = planned(turns, pairs[in_order(score.ravel()[pairs])], lent(seconds), score, lent(chips), left.copy())
    assert plan[turns].tolist() == by_sorting(seconds[turns], score[turns], chips[turns], fixed[turns], left)


def by_sorting(seconds, score, chips, fixed, left):
    """The same plan from its description: every pair in order of score, then moves into chips that are left over."""
    room, plan = left.copy(), [-1] * len(score)
    pairs = sorted((score[j, p], j, p) for j, p in np.ndindex(*score.shape) if score[j, p] < np.inf and fixed[j] < 0)
    for _, j, p in pairs:
        if plan[j] < 0 and chips[j, p] <= room[p]:
            plan[j], room[p] = p, room[p] - chips[j, p]
    while True:
        moves = [
            (seconds[j, plan[j]] * score[j, plan[j]] / (seconds[j, q] * score[j, q]), -j, -q)
            for _, j, q in pairs
            if plan[j] >= 0 and q != plan[j] and chips[j, q] <= room[q]
        ]
        gain, j, q = max(moves, default=(0.0, 0, 0))
        if gain <= 1 + 1e-9:
            return plan
        room[plan[-j]] += chips[-j, plan[-j]]
        room[-q] -= chips[-j, -q]
        plan[-j] = -q


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(sorted(POLICIES)), st.integers(2, 30), st.sampled_from([None, 1, 5]))
def test_jobs_alike_go_by_arrival_then_by_number_however_the_board_holds_them(seed, name, jobs, depth):
    rng = np.random.default_rng(seed)
    only = pool("only", 4)
    arrival = {str(k): float(k // 3) for k in range(jobs)}
    board = board_of([only], [candidate(str(k), [option(only, 1, 2)], arrival[str(k)]) for k in rng.permutation(jobs)])
    view = queue_window(board, POLICIES[name], board.moment(100.0, {"only": 4}, {"only": 4}), depth=depth)
    started = [d.job for d in allocate(view, POLICIES[name](view), board.option, explain=()) if d.kind == "start"]
    assert sorted(started, key=int) == [str(k) for k in range(jobs)][:2][: len(started)] and started
    assert depth == 1 or len(started) == min(2, jobs)


def replay(policy, places, arrivals, patience, depth):
    """Replay arrivals exactly as estimated; when each starts for the first time, and when each ends."""
    board, now, begun, ended, ends, where = JobTable(places), 0.0, {}, {}, {}, {}
    coming = sorted(arrivals, key=lambda a: a.arrival)
    total = {p.name: p.count for p in places}
    room = dict(total)
    while coming or ends or len(board):
        times = [coming[0].arrival] if coming else []
        times += [min(ends.values())] if ends else []
        assert times, "jobs wait and nothing runs"
        now = max(now, min(times))
        for job in [j for j, end in ends.items() if end <= now]:
            ended[job] = ends.pop(job)
            room[where[job]] += board.option(job, where[job]).chips
            board.remove(job)
        while coming and coming[0].arrival <= now:
            board.add(coming.pop(0))
        if not len(board):
            continue
        view = queue_window(board, policy, board.moment(now, room, total), depth=depth, patience=patience)
        row, seconds = {job: j for j, job in enumerate(view.jobs)}, view.seconds
        for d in allocate(view, policy(view), board.option, patience=patience, explain=(), depth=depth):
            if d.kind == "stop":
                board.stopped(d.job, now)
                room[d.pool] += board.option(d.job, d.pool).chips
                del ends[d.job]
            elif d.kind == "start":
                begun.setdefault(d.job, now)
                where[d.job] = d.pool
                board.started(d.job, d.pool, now)
                room[d.pool] -= board.option(d.job, d.pool).chips
                ends[d.job] = now + seconds[row[d.job], view.pools.index(d.pool)]
    return begun, ended


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=6)
@given(SEEDS, st.integers(1, 3), st.integers(20, 60), st.sampled_from([None, 1, 4]))
def test_nobody_waits_longer_than_the_bound_whatever_the_policy_and_the_depth(name, seed, pools, jobs, depth):
    rng = np.random.default_rng(seed)
    places = [pool(f"p{k}", 4, float(rng.uniform(0.5, 2))) for k in range(pools)]
    longest, patience = 3.0, 2 * HOUR
    stream = [
        candidate(
            f"s{k}",
            [option(p, float(rng.uniform(0.2, longest)), chips, spread=1.0) for p in places],
            float(rng.uniform(0, 300.0) + 300.0 * k),
            weight=float(rng.choice([1, 1, 2])),
            restartable=bool(rng.random() < 0.3),
            every=600.0,
        )
        for k, chips in enumerate(rng.choice([1, 1, 2, 4], jobs))
    ]
    begun, ended = replay(POLICIES[name], places, stream, patience, depth)
    assert set(begun) == set(ended) == {s.id for s in stream}
    due = {s.id: s.arrival + patience / s.weight for s in stream}
    for job in stream:
        # once it is due, at most those due before it and what runs are in front, one after the other
        ahead = [s for s in stream if s.id != job.id and due[s.id] <= due[job.id] and begun[job.id] > s.arrival]
        assert begun[job.id] <= due[job.id] + (len(ahead) + 2) * longest * HOUR + 1
