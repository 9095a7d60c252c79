"""The compiled path of four policies at the boundaries of rounds: no arrays or objects made for Python.

`scheduler` says what happens at a boundary. Here it is the same, one compiled call a boundary, with the policies' own
compiled rules and, for those that allocate job by job, the compiled pass of `route.allocate`. Where a job is overdue
(aging), `allocate` itself is called. Results are equal to the last bit, which the tests hold it to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.gavel.scheduler import RoundScheduler
from benchmarks.gavel.simulator import RoundSimulator

from chipwise.io.jit import jit_cached_alloc
from chipwise.route.allocate import allocate_state
from chipwise.route.allocate.allocation import by_jobs
from chipwise.route.allocate.allocation_state import AllocationState
from chipwise.route.allocate.queue_order import PATIENCE
from chipwise.route.cluster_state import Policy, PolicyDecision
from chipwise.route.policies import fair_share_kernels
from chipwise.route.policies.throughput_per_dollar import planned, put_first, scored

COMPILED = ("fastest", "max-throughput-per-dollar", "max-min-fair", "finish-time-fair")


class CompiledRoundScheduler(RoundScheduler):
    """A policy of `COMPILED` that schedules a round-based simulation."""

    def __init__(self, simulator: RoundSimulator, name: str, policy: Policy, reallocate_s: float = 0.0) -> None:
        super().__init__(simulator, policy, reallocate_s)
        shape, work = simulator.rate.shape, simulator.work
        self._name, self._fair = name, name.endswith("-fair")
        self._shares_of, self._before_of = np.zeros(shape), np.zeros(shape)
        self._score_of, self._order_of = np.zeros(shape), np.zeros(shape)
        self._work = (
            simulator.left,
            simulator.rate,
            work.chips,
            work.count,
            work.usd_per_chip_hour,
            work.weight,
            work.arrival,
            simulator.served,
        )

    @property
    def _shares(self) -> bool:
        return self._fair

    def _allocate(self) -> None:
        simulator = self.simulator
        self.jobs = simulator.open
        self.decisions += 1
        self._last = simulator.now
        if self._fair:
            self._before_of[self.jobs] = simulator.served[self.jobs]
        self._call(True)

    def _forget(self, stay: np.ndarray) -> None:
        self.jobs = self.jobs[stay]

    def _reapply(self) -> None:
        self._call(False)

    def _call(self, again: bool) -> None:
        now, jobs = self.simulator.now, self.jobs
        self.pools = np.empty(len(jobs), dtype=np.int64)
        if self._name == "fastest":
            _fastest(now, jobs, again, *self._work, self._score_of, self._order_of, self.pools)
            return
        if self._name == "max-throughput-per-dollar":
            plain = _throughput_per_dollar(now, jobs, again, *self._work, self._score_of, self._order_of, self.pools)
        else:
            finish = self._name == "finish-time-fair"
            gap, plain = _fair(
                now,
                self._last,
                jobs,
                again,
                finish,
                *self._work,
                self._before_of,
                self._shares_of,
                self._score_of,
                self._order_of,
                self.pools,
            )
            if gap > fair_share_kernels.NOTHING:  # the policy has another solver
                self._shares_of[jobs] = self.policy(self._state()).shares
                _, plain = _fair(
                    now,
                    self._last,
                    jobs,
                    False,
                    finish,
                    *self._work,
                    self._before_of,
                    self._shares_of,
                    self._score_of,
                    self._order_of,
                    self.pools,
                )
        if not plain:
            decision = PolicyDecision(self._score_of[jobs], self._order_of[jobs], "", preempts=True, moves=True)
            self.pools = allocate_state(self._state(), decision).pos


@jit_cached_alloc
def _see(jobs: Any, left: Any, rate: Any, chips: Any) -> Any:
    """Seconds to go and chips, as `ClusterState` has them."""
    n, pools = jobs.shape[0], rate.shape[1]
    seconds, held = np.full((n, pools), np.inf), np.zeros((n, pools), np.int64)
    for i in range(n):
        j = jobs[i]
        for p in range(pools):
            if rate[j, p] > 0:
                seconds[i, p] = left[j] / rate[j, p]
                held[i, p] = chips[j]
    return seconds, held


@jit_cached_alloc
def _overdue(now: float, jobs: Any, arrival: Any, weight: Any, served: Any) -> Any:
    """As `queue_order.overdue`, and how many there are."""
    n = jobs.shape[0]
    aged, due, many = np.zeros(n, np.bool_), np.empty(n), 0
    for i in range(n):
        j = jobs[i]
        due[i] = arrival[j] + PATIENCE / max(weight[j], 1e-9)
        if due[i] <= now:
            due[i] += served[j].sum()
            aged[i] = due[i] <= now
            many += aged[i]
    return aged, due, many


@jit_cached_alloc
def _plain(seconds: Any, order: Any, held: Any, count: Any, pos: Any) -> None:
    """Capacity by job and pool as `allocation.by_pairs` gives it when all are allocated again and no job is overdue."""
    n, pools = order.shape
    free, some = count.copy(), count.sum()
    for i in range(n):
        pos[i] = -1
    for k in np.argsort(order.ravel(), kind="mergesort"):
        i, p = k // pools, k % pools
        if order[i, p] == np.inf or some == 0:
            return
        if pos[i] < 0 and held[i, p] <= free[p]:
            pos[i] = p
            free[p] -= held[i, p]
            some -= held[i, p]


@jit_cached_alloc
def rank(
    turns: Any, seconds: Any, usd: Any, chips: Any, weight: Any, fixed: Any, room: Any, score: Any, order: Any
) -> None:
    """Scores, and the order in which pairs of job and pool are allocated: those of the plan first."""
    pairs, key, most = scored(turns, seconds, usd, chips, weight, fixed, room, score)
    plan = planned(turns, pairs[np.argsort(key, kind="mergesort")], seconds, score, chips, room.copy())
    put_first(plan, most, score, order)


@jit_cached_alloc
def _throughput_per_dollar(
    now: float,
    jobs: Any,
    again: bool,
    left: Any,
    rate: Any,
    chips: Any,
    count: Any,
    price: Any,
    weight: Any,
    arrival: Any,
    served: Any,
    score_of: Any,
    order_of: Any,
    pos: Any,
) -> bool:
    n, pools = jobs.shape[0], rate.shape[1]
    seconds, held = _see(jobs, left, rate, chips)
    score, order = np.empty((n, pools)), np.empty((n, pools))
    if again:
        usd, heavy = np.empty((n, pools)), np.empty(n)
        for i in range(n):
            heavy[i] = weight[jobs[i]]
            for p in range(pools):
                usd[i, p] = seconds[i, p] * (chips[jobs[i]] * price[p]) / 3600.0
        rank(np.arange(n), seconds, usd, held, heavy, np.full(n, -1), count, score, order)
    for i in range(n):
        for p in range(pools):
            if again:
                score_of[jobs[i], p], order_of[jobs[i], p] = score[i, p], order[i, p]
            else:
                order[i, p] = order_of[jobs[i], p]
    if _overdue(now, jobs, arrival, weight, served)[2]:
        return False
    _plain(seconds, order, held, count, pos)
    return True


@jit_cached_alloc
def _fair(
    now: float,
    last: float,
    jobs: Any,
    again: bool,
    finish: bool,
    left: Any,
    rate: Any,
    chips: Any,
    count: Any,
    price: Any,
    weight: Any,
    arrival: Any,
    served: Any,
    before: Any,
    shares_of: Any,
    score_of: Any,
    order_of: Any,
    pos: Any,
) -> Any:
    n, pools = jobs.shape[0], rate.shape[1]
    seconds, held = _see(jobs, left, rate, chips)
    shares, had, order = np.empty((n, pools)), np.empty((n, pools)), np.empty((n, pools))
    gap = 0.0
    if again:
        part, heavy, age = np.empty((n, pools)), np.empty(n), np.empty(n)
        for i in range(n):
            j = jobs[i]
            heavy[i], age[i] = weight[j], max(now - arrival[j], 0.0)
            for p in range(pools):
                part[i, p] = 1.0 / max(seconds[i, p], 1e-9) if seconds[i, p] < np.inf else 0.0
                had[i, p] = served[j, p]
        if finish:
            shares, gap = fair_share_kernels.finish_time(
                part, age, fair_share_kernels.alone(part, had, heavy, held, count), held, count
            )
        else:
            shares, gap = fair_share_kernels.max_min(part, heavy, held, count)
    for i in range(n):
        j = jobs[i]
        for p in range(pools):
            if again:
                shares_of[j, p] = shares[i, p]
            else:
                shares[i, p] = shares_of[j, p]
            had[i, p] = served[j, p] - before[j, p]
    fair_share_kernels.behind(now, np.full(n, last), had, shares, seconds, order)
    for i in range(n):
        for p in range(pools):
            score_of[jobs[i], p], order_of[jobs[i], p] = seconds[i, p], order[i, p]
    if _overdue(now, jobs, arrival, weight, served)[2]:
        return gap, False
    _plain(seconds, order, held, count, pos)
    return gap, True


@jit_cached_alloc
def _fastest(
    now: float,
    jobs: Any,
    again: bool,
    left: Any,
    rate: Any,
    chips: Any,
    count: Any,
    price: Any,
    weight: Any,
    arrival: Any,
    served: Any,
    score_of: Any,
    order_of: Any,
    pos: Any,
) -> None:
    n, pools = jobs.shape[0], rate.shape[1]
    seconds, held = _see(jobs, left, rate, chips)
    score, order, heavy = np.empty((n, pools)), np.empty(n), np.empty(n)
    for i in range(n):
        j = jobs[i]
        heavy[i] = weight[j]
        if again:
            order_of[j, 0] = np.inf
            for p in range(pools):
                score_of[j, p] = seconds[i, p]
                if held[i, p] > 0:
                    order_of[j, 0] = min(order_of[j, 0], seconds[i, p] * held[i, p])
            order_of[j, 0] /= weight[j]
        order[i] = order_of[j, 0]
        for p in range(pools):
            score[i, p] = score_of[j, p]
    aged, due, many = _overdue(now, jobs, arrival, weight, served)
    turns = np.argsort(order, kind="mergesort")
    if many:
        first = np.flatnonzero(aged)
        first = first[np.argsort(due[first], kind="mergesort")]
        turns = np.concatenate((first, turns[~aged[turns]]))
    wide, most = max(count.max(), held.max()) + 1, min(count.max(), n) + 1
    pos[:] = -1
    f = AllocationState(
        now,
        True,
        True,
        score,
        np.zeros((n, pools)),
        np.full(n, np.inf),
        np.zeros((n, pools), np.bool_),
        np.full((n, pools), now),
        seconds,
        seconds,
        held,
        np.zeros((n, pools), np.int64),
        np.ones(n),
        np.zeros(n),
        np.empty((0, 0)),
        heavy,
        np.ones(n, np.bool_),
        np.zeros(n),
        np.full(n, np.nan),
        aged,
        np.full(n, -1),
        count,
        count,
        count.copy(),
        pos,
        np.full(n, -1),
        np.zeros(n),
        np.full(n, -1),
        np.zeros(n, np.bool_),
        np.empty((pools, most)),
        np.zeros((pools, most), np.int64),
        np.zeros((pools, most), np.int64),
        np.zeros(pools, np.int64),
        np.zeros(pools),
        np.zeros(pools, np.int64),
        np.zeros((pools, 1), np.int64),
        np.zeros(pools, np.int64),
        np.full(pools, -1),
        np.zeros(pools),
        np.zeros(pools, np.int64),
        np.empty((pools, wide)),
        np.zeros((pools, wide), np.bool_),
        np.empty(pools),
        np.empty(pools),
        np.zeros(pools, np.bool_),
    )
    by_jobs(f, turns, np.zeros(pools, np.bool_))
