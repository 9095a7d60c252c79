"""A policy asked at the boundaries of rounds: the state of the cluster that it sees there, and its allocation.

The allocation is computed again at a boundary if jobs have come or gone since the last time and `reallocate_s` has
passed. Until then it stays in force for the jobs it knew: shares say who is behind, scores who gets the capacity that
others left. A job that has arrived since can't run before the allocation includes it.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
from benchmarks.gavel.simulator import ROUND_S, RoundSimulator

from chipwise.route.allocate import allocate_state
from chipwise.route.cluster_state import ClusterState, Floats, Ints, Policy, PolicyDecision


class RoundScheduler:
    """A policy that schedules a round-based simulation."""

    def __init__(self, simulator: RoundSimulator, policy: Policy, reallocate_s: float = 0.0) -> None:
        self.simulator, self.policy, self.reallocate_s = simulator, policy, reallocate_s
        self.decisions = 0
        self.jobs: Ints = np.empty(0, dtype=np.int64)  # that the allocation in force knows and are not done
        self.pools: Ints = np.empty(0, dtype=np.int64)  # where they run; -1: nowhere
        self._decision: PolicyDecision | None = None
        self._last = -inf
        self._before: Floats = np.empty((0, 0))  # seconds served when the allocation came into force
        self._all_free = (
            True  # running jobs may be stopped and moved, which costs nothing here: all are allocated again
        )

    def choose(self, changed: bool) -> bool:
        """Set who runs until the next boundary, and whether the next one needs no asking unless something changes."""
        if changed and self.simulator.now - self._last >= self.reallocate_s:
            self._allocate()
            return not self._shares
        gone = self.simulator.left[self.jobs] <= 0
        if gone.any():
            self._forget(~gone)
        elif not self._shares:
            return True
        if len(self.jobs):
            self._reapply()
        return not self._shares

    def hurry(self) -> None:
        """Nothing runs and no job arrives: the next change is seen at once."""
        self._last = -inf

    @property
    def due(self) -> float:
        """When the allocation may be computed again."""
        return self._last + self.reallocate_s

    @property
    def _shares(self) -> bool:
        return self._decision is not None and self._decision.shares is not None

    def _allocate(self) -> None:
        simulator = self.simulator
        at = dict(zip(self.jobs.tolist(), self.pools.tolist(), strict=True))
        self.jobs = simulator.open
        self.pools = np.array([at.get(j, -1) for j in self.jobs.tolist()], dtype=np.int64)
        self._last, self._before = simulator.now, simulator.served[self.jobs]
        self.decisions += 1
        state = self._state()
        self._decision = self.policy(replace(state, shares_since=simulator.now, shared=np.zeros(state.seconds.shape)))
        self._all_free = self._decision.preempts and self._decision.moves
        self._apply(state)

    def _forget(self, stay: np.ndarray) -> None:
        """Jobs are done: take them out of the allocation."""
        self.jobs, self.pools, self._before = self.jobs[stay], self.pools[stay], self._before[stay]
        old = self._decision
        assert old is not None
        rows = {
            name: getattr(old, name)[stay]
            for name in ("score", "order", "shares", "latest")
            if getattr(old, name) is not None
        }
        values = {"wait": old.wait, "tie": old.tie}  # of each job, or one for all
        rows |= {name: value[stay] for name, value in values.items() if isinstance(value, np.ndarray)}
        self._decision = replace(old, **rows)

    def _reapply(self) -> None:
        """Allocate by the decision in force: by its shares and what every job has had of them, or by its scores."""
        assert self._decision is not None
        state = self._state()
        if self._shares:
            self._decision = self.policy(
                replace(
                    state,
                    shares=self._decision.shares,
                    shares_since=self._last,
                    shared=self.simulator.served[self.jobs] - self._before,
                )
            )
        self._apply(state)

    def _apply(self, state: ClusterState) -> None:
        assert self._decision is not None
        self.pools = allocate_state(state, self._decision).pos

    def _state(self) -> ClusterState:
        simulator, work, jobs = self.simulator, self.simulator.work, self.jobs
        n, count = len(jobs), len(work.pools)
        rate = simulator.rate[jobs]
        runs = rate > 0
        seconds = np.full((n, count), inf)
        np.divide(simulator.left[jobs][:, None], rate, out=seconds, where=runs)
        chips = work.chips[jobs][:, None]
        at = np.full(n, -1) if self._all_free else self.pools
        free = work.count - np.bincount(at[at >= 0], chips[at >= 0, 0], minlength=count).astype(np.int64)
        held = np.where(runs, chips, 0)
        # whoever runs has had a round, and more of a lease is not to be had here: stopping costs nothing
        return ClusterState(
            now=simulator.now,
            jobs=tuple(work.jobs[j] for j in jobs.tolist()),
            pools=work.pools,
            arrival=work.arrival[jobs],
            weight=work.weight[jobs],
            deadline=work.arrival[jobs] + work.slo[jobs],
            confidence=np.full(n, 0.9),
            budget=np.full(n, inf),
            restartable=np.ones(n, dtype=bool),
            restart_cost_s=np.zeros(n),
            current_pool=at,
            since=np.where(at >= 0, simulator.now - 2 * ROUND_S, nan),
            seconds=seconds,
            low=seconds,
            high=seconds,
            usd=seconds * (chips * work.usd_per_chip_hour) / 3600.0,
            joules=np.zeros((n, count)),
            chips=held,
            variant_order=np.zeros((n, count), dtype=np.int64),
            last_failed=np.zeros((n, count), dtype=bool),
            start=_starts(simulator.now, seconds, held, at, free),
            served=simulator.served[jobs],
            free=free,
            total=work.count,
            pool_facts={"usd_per_chip_hour": work.usd_per_chip_hour, "interruptions": np.zeros(count)},
        )


def _starts(now: float, seconds: Floats, chips: Ints, at: Ints, free: Ints) -> Floats:
    """When so many chips of a pool are free, with no queue: now, or when enough of those who run have ended."""
    start = np.full(seconds.shape, now)
    for p in np.flatnonzero((chips > free).any(axis=0)).tolist():
        mine = np.flatnonzero(at == p)
        if len(mine):
            mine = mine[np.argsort(seconds[mine, p], kind="stable")]
            capacity = free[p] + np.concatenate([[0], np.cumsum(chips[mine, p])])
            when = np.concatenate([[0.0], seconds[mine, p]])
            start[:, p] += when[np.minimum(np.searchsorted(capacity, chips[:, p]), len(when) - 1)]
    return start
