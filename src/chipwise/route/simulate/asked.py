"""A policy asked at the boundaries of rounds: what it sees there, and what it is granted.

The allocation is made anew at a boundary if jobs have come or gone since the last time, and a least time has passed.
Until then it stays in force for the jobs it knew: shares say who is behind, wishes who gets room that others left. A
job that has come since can't run before the allocation includes it.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np

from chipwise.route.allocate import allocate_state
from chipwise.route.cluster_state import ClusterState, Floats, Ints, Policy, PolicyDecision
from chipwise.route.simulate.course import Course
from chipwise.route.simulate.neutral import ROUND_S


class Asked:
    """A policy at work on a course."""

    def __init__(self, course: Course, policy: Policy, recompute_s: float = 0.0) -> None:
        self.course, self.policy, self.recompute_s = course, policy, recompute_s
        self.decisions = 0
        self.jobs: Ints = np.empty(0, dtype=np.int64)  # that the allocation in force knows and are not done
        self.pools: Ints = np.empty(0, dtype=np.int64)  # where they run; -1: nowhere
        self._wishes: PolicyDecision | None = None
        self._last = -inf
        self._before: Floats = np.empty((0, 0))  # seconds served when the allocation came into force
        self._anew = True  # whoever runs may be stopped and moved, which costs nothing here: all are placed anew

    def choose(self, changed: bool) -> bool:
        """Set who runs until the next boundary, and whether the next one needs no asking unless something changes."""
        if changed and self.course.now - self._last >= self.recompute_s:
            self._allocate()
            return not self._shares
        gone = self.course.left[self.jobs] <= 0
        if gone.any():
            self._forget(~gone)
        elif not self._shares:
            return True
        if len(self.jobs):
            self._again()
        return not self._shares

    def hurry(self) -> None:
        """Nothing runs and nobody comes: the next change is seen at once."""
        self._last = -inf

    @property
    def due(self) -> float:
        """When the allocation may be made anew."""
        return self._last + self.recompute_s

    @property
    def _shares(self) -> bool:
        return self._wishes is not None and self._wishes.shares is not None

    def _allocate(self) -> None:
        course = self.course
        at = dict(zip(self.jobs.tolist(), self.pools.tolist(), strict=True))
        self.jobs = course.open
        self.pools = np.array([at.get(j, -1) for j in self.jobs.tolist()], dtype=np.int64)
        self._last, self._before = course.now, course.served[self.jobs]
        self.decisions += 1
        view = self._view()
        self._wishes = self.policy(replace(view, shares_since=course.now, shared=np.zeros(view.seconds.shape)))
        self._anew = self._wishes.preempts and self._wishes.moves
        self._grant(view)

    def _forget(self, stay: np.ndarray) -> None:
        """Jobs are done: take them out of the allocation."""
        self.jobs, self.pools, self._before = self.jobs[stay], self.pools[stay], self._before[stay]
        old = self._wishes
        assert old is not None
        rows = {
            name: getattr(old, name)[stay]
            for name in ("score", "order", "shares", "latest")
            if getattr(old, name) is not None
        }
        wait = old.wait[stay] if isinstance(old.wait, np.ndarray) else old.wait
        self._wishes = replace(old, wait=wait, **rows)

    def _again(self) -> None:
        """Place by the allocation in force: by its shares and what everybody has had of them, or by its wishes."""
        assert self._wishes is not None
        view = self._view()
        if self._shares:
            self._wishes = self.policy(
                replace(
                    view,
                    shares=self._wishes.shares,
                    shares_since=self._last,
                    shared=self.course.served[self.jobs] - self._before,
                )
            )
        self._grant(view)

    def _grant(self, view: ClusterState) -> None:
        assert self._wishes is not None
        self.pools = allocate_state(view, self._wishes).pos

    def _view(self) -> ClusterState:
        course, work, jobs = self.course, self.course.work, self.jobs
        n, count = len(jobs), len(work.pools)
        rate = course.rate[jobs]
        runs = rate > 0
        seconds = np.full((n, count), inf)
        np.divide(course.left[jobs][:, None], rate, out=seconds, where=runs)
        chips = work.chips[jobs][:, None]
        at = np.full(n, -1) if self._anew else self.pools
        free = work.count - np.bincount(at[at >= 0], chips[at >= 0, 0], minlength=count).astype(np.int64)
        held = np.where(runs, chips, 0)
        # whoever runs has had a round, and more of a lease is not to be had here: stopping costs nothing
        return ClusterState(
            now=course.now, jobs=tuple(work.jobs[j] for j in jobs.tolist()), pools=work.pools,
            arrival=work.arrival[jobs], weight=work.weight[jobs], deadline=work.arrival[jobs] + work.slo[jobs],
            confidence=np.full(n, 0.9), budget=np.full(n, inf), restartable=np.ones(n, dtype=bool), again=np.zeros(n),
            at=at, since=np.where(at >= 0, course.now - 2 * ROUND_S, nan), seconds=seconds, low=seconds, high=seconds,
            usd=seconds * (chips * work.usd_chip_hour) / 3600.0, joules=np.zeros((n, count)), chips=held,
            rank=np.zeros((n, count), dtype=np.int64), barred=np.zeros((n, count), dtype=bool),
            start=_starts(course.now, seconds, held, at, free), served=course.served[jobs], free=free,
            total=work.count, usd_chip_hour=work.usd_chip_hour, interruptions=np.zeros(count),
        )  # fmt: skip


def _starts(now: float, seconds: Floats, chips: Ints, at: Ints, free: Ints) -> Floats:
    """When so many chips of a pool are free, nobody in front: now, or when enough of those who run have ended."""
    start = np.full(seconds.shape, now)
    for p in np.flatnonzero((chips > free).any(axis=0)).tolist():
        mine = np.flatnonzero(at == p)
        if len(mine):
            mine = mine[np.argsort(seconds[mine, p], kind="stable")]
            room = free[p] + np.concatenate([[0], np.cumsum(chips[mine, p])])
            when = np.concatenate([[0.0], seconds[mine, p]])
            start[:, p] += when[np.minimum(np.searchsorted(room, chips[:, p]), len(when) - 1)]
    return start
