"""Most work for a dollar: jobs done per second, for each dollar that they still cost.

Of a job with T seconds and C dollars to go in a pool, 1 / T is what that pool finishes in a second and 1 / (T C) what a
dollar buys of it. While chips are short the pairs of job and pool with the least T C go first. Chips that are then left
over delay nobody, so there the job's own time counts twice: it moves to an idle pool where T T C is less. Nobody ever
pays more than twice what its cheapest pool costs: what it would gain there is at most all of its time, and that costs
more than all of its dollars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached_alloc, jit_inline, lent
from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.allocate.queue_order import by_arrival, in_order
from chipwise.route.cluster_state import ClusterState, Floats, Ints, PolicyDecision
from chipwise.route.policies.rows import least

FREE = 1e-12  # USD a second that a pool without a price counts as, so that the faster of two free ones is better
DEAREST = 2.0  # times the least cost: where the time saved can no longer be worth the dollars; see above


def _best(state: ClusterState) -> tuple[Floats, Ints, Floats]:
    """The least score of each job: the order in which they are planned."""
    usd = np.where(np.isfinite(state.seconds), state.usd, np.inf)
    wanted = usd <= DEAREST * least(usd)[:, None]
    with np.errstate(invalid="ignore"):
        score = np.where(wanted & np.isfinite(usd), state.seconds * (state.usd + FREE * state.seconds), np.inf)
    nothing = np.zeros(len(state.jobs))
    return least(score) / state.weight, np.full(len(nothing), -1), nothing


@windowed(QueueWindow(_best))
def max_throughput_per_dollar(state: ClusterState) -> PolicyDecision:
    """Most jobs done per second and dollar, at no more than twice the least cost; idle chips speed jobs up."""
    preemptible = state.restartable & (state.current_pool >= 0)
    capacity = state.free + np.bincount(
        state.current_pool[preemptible],
        state.chips[preemptible, state.current_pool[preemptible]],
        minlength=len(state.pools),
    ).astype(np.int64)
    fixed = np.where(state.restartable, -1, state.current_pool)
    by_age = by_arrival(state)  # of those alike
    score, order = np.empty(state.seconds.shape), np.empty(state.seconds.shape)
    seconds, usd, chips = lent(state.seconds), lent(state.usd), lent(state.chips)
    pairs, key, most = scored(by_age, seconds, usd, chips, lent(state.weight), fixed, capacity, score)
    plan = planned(by_age, pairs[in_order(key)], seconds, score, chips, capacity)
    put_first(plan, most, score, order)
    return PolicyDecision(
        score,
        order,
        "USD s",
        preempts=True,
        moves=True,
        because="the most jobs done per second and dollar, at no more than twice the least cost",
    )


@jit_cached_alloc
def scored(by_age: Any, seconds: Any, usd: Any, chips: Any, weight: Any, fixed: Any, capacity: Any, score: Any) -> Any:
    """Scores; the pairs of job and pool that may be planned, by arrival, their scores, and the most of all scores.

    `fixed`: where those are that can't be stopped; `by_age`: the order among equals.
    """
    jobs, pools = seconds.shape
    pairs, key, count, most = np.empty(jobs * pools, dtype=np.int64), np.empty(jobs * pools), 0, 0.0
    for k in range(jobs):
        j, least = by_age[k], np.inf
        for p in range(pools):
            if seconds[j, p] < np.inf and usd[j, p] < least:
                least = usd[j, p]
        for p in range(pools):
            score[j, p] = np.inf
            if seconds[j, p] < np.inf and usd[j, p] <= DEAREST * least:
                score[j, p] = seconds[j, p] * (usd[j, p] + FREE * seconds[j, p]) / weight[j]
                most = max(most, score[j, p])
                if fixed[j] < 0 and score[j, p] < np.inf and chips[j, p] <= capacity[p]:
                    pairs[count], key[count] = j * pools + p, score[j, p]
                    count += 1
    return pairs[:count], key[:count], most


@jit_cached_alloc
def planned(by_age: Any, pairs: Any, seconds: Any, score: Any, chips: Any, left: Any) -> Any:
    """The pool that each job gets; -1: none. `pairs`: of job and pool, as one number, in order of their scores."""
    jobs, pools = score.shape
    plan = np.full(jobs, -1, dtype=np.int64)
    for pair in pairs:
        j, p = pair // pools, pair % pools
        if plan[j] < 0 and chips[j, p] <= left[p]:
            plan[j] = p
            left[p] -= chips[j, p]
    _speed_up(by_age, seconds, score, chips, left, plan)
    return plan


@jit_cached_alloc
def put_first(plan: Any, most: float, score: Any, order: Any) -> None:
    """Pairs in order of their scores, those of the plan before all others."""
    for j in range(len(plan)):
        for p in range(score.shape[1]):
            order[j, p] = score[j, p]
        if plan[j] >= 0:
            order[j, plan[j]] -= most + 1.0


@jit_inline
def _gain(j: int, q: int, seconds: Any, score: Any, chips: Any, left: Any, plan: Any) -> float:
    """How many times less T T C is for a job in another pool that has its chips idle; 0 where it can't go there."""
    p = plan[j]
    if q == p or left[q] <= 0 or chips[j, q] > left[q] or score[j, q] == np.inf:
        return 0.0
    return float(seconds[j, p] * score[j, p] / (seconds[j, q] * score[j, q]))


@jit_cached_alloc
def _speed_up(by_age: Any, seconds: Any, score: Any, chips: Any, left: Any, plan: Any) -> None:
    """Move jobs of a plan to idle chips, the greatest gain first, for as long as there is one.

    What each job would gain most from is kept: a move changes two pools alone.
    """
    jobs, pools = score.shape
    gain, goal = np.zeros(jobs), np.full(jobs, -1, dtype=np.int64)
    fresh = plan >= 0
    while True:
        most, who = 1.0 + 1e-9, -1
        for k in range(jobs):
            j = by_age[k]
            if fresh[j]:
                fresh[j], gain[j], goal[j] = False, 0.0, -1
                for q in range(pools):
                    better = _gain(j, q, seconds, score, chips, left, plan)
                    if better > gain[j]:
                        gain[j], goal[j] = better, q
            if gain[j] > most:
                most, who = gain[j], j
        if who < 0:
            return
        to, back = goal[who], plan[who]
        left[back] += chips[who, back]
        left[to] -= chips[who, to]
        plan[who] = to
        fresh[who] = True
        for j in range(jobs):
            if plan[j] < 0 or fresh[j]:
                continue
            if goal[j] == to:
                fresh[j] = chips[j, to] > left[to]
            better = _gain(j, back, seconds, score, chips, left, plan)
            if better > gain[j] or (better == gain[j] and better > 0 and back < goal[j]):
                gain[j], goal[j] = better, back
