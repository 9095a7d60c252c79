"""Queue order: the policy's own, with aging: jobs that have waited too long come first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached, jit_helper
from chipwise.route.cluster_state import ClusterState, Flags, Floats, Ints, PolicyDecision

OVERHEAD = 0.05  # of the time a job has run, that stopping it for a fair share may waste
LEASE_S = 360.0  # that a job keeps chips given to it as a fair share: a round of Gavel's (OSDI 2020, section 5)
RUNS = 100  # of places alike, above which sorting all again is quicker than sorting each
PATIENCE = 86_400.0  # s that a job of priority 1 waits before it goes first: a day, our choice; whole days are noticed


def overdue(state: ClusterState, patience: float = PATIENCE) -> tuple[Flags, Floats]:
    """Jobs that have waited for longer than `patience` over their priority, and since when; time served is no wait."""
    due = state.arrival + patience / np.maximum(state.weight, 1e-9)
    aged = due <= state.now
    if aged.any():
        due[aged] += state.served[aged].sum(axis=1)
        aged = due <= state.now
    return aged, due


def sequence(state: ClusterState, decision: PolicyDecision, aged: Flags, due: Floats) -> Ints:
    """Jobs in queue order: those that are overdue (aging) by when they were due, then as the policy says.

    Those alike go by arrival, then by id.
    """
    turns = np.argsort(decision.order)
    sorted_order = decision.order[turns]
    if not (sorted_order[1:] > sorted_order[:-1]).all():  # several times as long, for the sake of those alike
        turns = by_id(np.lexsort((state.arrival, decision.order)), state.jobs, decision.order, state.arrival)
    if not aged.any():
        return turns
    first = np.flatnonzero(aged)
    first = first[np.lexsort((state.arrival[first], due[first]))]
    return np.concatenate([by_id(first, state.jobs, due, state.arrival), turns[~aged[turns]]])


def by_id(turns: Ints, jobs: Sequence[str], *keys: Floats) -> Ints:
    """Turns, sorted by these keys, with those that are alike in all of them by id: numbers by value."""
    alike = np.ones(max(len(turns) - 1, 0), dtype=bool)
    for key in keys:
        sorted_key = key[turns]
        alike &= sorted_key[1:] == sorted_key[:-1]
    begins, ends = _edges(alike)
    if not begins:
        return turns
    found, lengths = turns.tolist(), [*map(len, jobs)]
    for begin, end in zip(begins, ends, strict=True):
        found[begin:end] = sorted(sorted(found[begin:end], key=jobs.__getitem__), key=lengths.__getitem__)
    return np.array(found, dtype=np.int64)


def by_arrival(state: ClusterState) -> Ints:
    """Jobs in the order in which they came, then by id."""
    return by_id(np.argsort(state.arrival, kind="stable"), state.jobs, state.arrival)


def trimmed(state: ClusterState, turns: Ints, depth: int, asked: Collection[str]) -> Ints:
    """The first so many of the jobs that wait, with those that run and those asked for."""
    waits = state.at[turns] < 0
    keep = ~waits | (np.cumsum(waits) <= depth)
    names = set(asked)
    if names:
        keep |= np.array([state.jobs[j] in names for j in turns.tolist()], dtype=bool)
    return turns[keep]


def pairs(state: ClusterState, decision: PolicyDecision, aged: Flags, due: Floats) -> tuple[Ints, Ints, int]:
    """Jobs and pools in the order of their turns, and how many of them are of jobs that have waited too long.

    Those alike go by arrival, then by id. Pairs that can't change anything are left out: other pools of a running job
    that may not be moved.
    """
    ranked = by_arrival(state)
    score, order = np.ascontiguousarray(decision.score, dtype=float), np.ascontiguousarray(decision.order, dtype=float)
    jobs, pools = (np.empty(score.size, dtype=np.int64) for _ in range(2))
    key = np.empty(score.size)
    old, many = _collect(
        ranked,
        aged,
        _movable(state, decision),
        score,
        order,
        state.seconds,
        state.usd,
        state.budget,
        state.chips,
        state.total,
        state.last_failed,
        state.at,
        jobs,
        pools,
        key,
    )
    by = in_order(key[old:many]) + old
    if old:
        due_of = due[jobs[:old]]
        place = np.cumsum(np.concatenate([[0], jobs[1:old] != jobs[: old - 1]]))
        by = np.concatenate([np.lexsort((key[:old], place, due_of)), by])
    return jobs[by], pools[by], int(old)


def in_order(key: Floats) -> Ints:
    """Places in the order of their keys, those alike as they stand."""
    found = np.argsort(key)  # several times as fast as the stable one, and the same where no two are alike
    begins, ends = _runs(key, found)
    if len(begins) > RUNS:
        return np.argsort(key, kind="stable")
    for begin, end in zip(begins, ends, strict=True):
        found[begin:end].sort()
    return found


def _runs(key: Floats, turns: Ints) -> tuple[list[int], list[int]]:
    """Where in a sorted order places alike begin and end."""
    values = key[turns]
    return _edges(values[1:] == values[:-1])


def _edges(alike: Flags) -> tuple[list[int], list[int]]:
    if not alike.any():
        return [], []
    edges = np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8))
    return np.flatnonzero(edges > 0).tolist(), (np.flatnonzero(edges < 0) + 1).tolist()


@jit_cached
def _collect(
    ranked: Any,
    aged: Any,
    movable: Any,
    score: Any,
    order: Any,
    seconds: Any,
    usd: Any,
    budget: Any,
    chips: Any,
    total: Any,
    last_failed: Any,
    at: Any,
    jobs: Any,
    pools: Any,
    key: Any,
) -> Any:
    """Pairs to be allocated with what sorts them, those of overdue jobs first; how many those are, and all.

    Not those that a job can't run in or afford, or failed in last while it has another; where it runs it may go on.
    """
    many = old = 0
    for first in (True, False):
        for k in range(ranked.shape[0]):
            j = ranked[k]
            if aged[j] != first:
                continue
            here = at[j]
            stays = here >= 0 and not movable[j]
            for p in range(score.shape[1]):
                if p != here:
                    if stays or not _open(j, p, score, seconds, usd, budget, chips, total):
                        continue
                    if last_failed[j, p] and _has_other(
                        j, here, score, seconds, usd, budget, chips, total, last_failed
                    ):
                        continue
                if not first and not -np.inf < order[j, p] < np.inf:
                    continue
                jobs[many], pools[many] = j, p
                key[many] = min(score[j, p], 1e300) if first else order[j, p]
                many += 1
        if first:
            old = many
    return old, many


@jit_helper
def _open(j: int, p: int, score: Any, seconds: Any, usd: Any, budget: Any, chips: Any, total: Any) -> bool:
    """Whether a job may go to a pool."""
    return bool(
        -np.inf < score[j, p] < np.inf and seconds[j, p] < np.inf and usd[j, p] <= budget[j] and chips[j, p] <= total[p]
    )


@jit_helper
def _has_other(
    j: int, here: int, score: Any, seconds: Any, usd: Any, budget: Any, chips: Any, total: Any, last_failed: Any
) -> bool:
    """Whether there is a pool that a job did not fail in last."""
    for p in range(score.shape[1]):
        if not last_failed[j, p] and (p == here or _open(j, p, score, seconds, usd, budget, chips, total)):
            return True
    return False


def _movable(state: ClusterState, decision: PolicyDecision) -> Flags:
    """Running jobs that may change pools for the sake of a share: what they repeat is little beside what they ran."""
    if not decision.moves:
        return np.zeros(len(state.jobs), dtype=bool)
    ran = state.now - state.since
    return np.asarray(state.restartable & (ran >= LEASE_S) & (state.restart_cost_s <= OVERHEAD * ran))
