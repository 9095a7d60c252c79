"""Queue order: the policy's own, with aging: jobs that have waited too long come first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached, jit_helper
from chipwise.route.cluster_state import ClusterState, Flags, Floats, Ints, PolicyDecision

OVERHEAD = 0.05  # of the time a job has run, that stopping it for a fair share may waste
LEASE_S = 360.0  # that a job keeps chips given to it as a fair share: a round of Gavel's (OSDI 2020, section 5)
RUNS = 100  # of equal keys, above which sorting all again is quicker than sorting each run
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
    queue = np.argsort(decision.order)
    sorted_order = decision.order[queue]
    if not (sorted_order[1:] > sorted_order[:-1]).all():  # several times as long, for the sake of those alike
        queue = by_id(np.lexsort((state.arrival, decision.order)), state.jobs, decision.order, state.arrival)
    if not aged.any():
        return queue
    overdue_first = np.flatnonzero(aged)
    overdue_first = overdue_first[np.lexsort((state.arrival[overdue_first], due[overdue_first]))]
    return np.concatenate([by_id(overdue_first, state.jobs, due, state.arrival), queue[~aged[queue]]])


def by_id(queue: Ints, jobs: Sequence[str], *keys: Floats) -> Ints:
    """A queue sorted by these keys, ties by id: numbers by value."""
    alike = np.ones(max(len(queue) - 1, 0), dtype=bool)
    for key in keys:
        sorted_key = key[queue]
        alike &= sorted_key[1:] == sorted_key[:-1]
    begins, ends = _edges(alike)
    if not begins:
        return queue
    ordered, lengths = queue.tolist(), [*map(len, jobs)]
    for begin, end in zip(begins, ends, strict=True):
        ordered[begin:end] = sorted(sorted(ordered[begin:end], key=jobs.__getitem__), key=lengths.__getitem__)
    return np.array(ordered, dtype=np.int64)


def by_arrival(state: ClusterState) -> Ints:
    """Jobs in the order in which they came, then by id."""
    return by_id(np.argsort(state.arrival, kind="stable"), state.jobs, state.arrival)


def trimmed(state: ClusterState, queue: Ints, depth: int, explain: Collection[str]) -> Ints:
    """The first `depth` pending jobs, with those that run and those to explain."""
    pending = state.current_pool[queue] < 0
    keep = ~pending | (np.cumsum(pending) <= depth)
    names = set(explain)
    if names:
        keep |= np.array([state.jobs[j] in names for j in queue.tolist()], dtype=bool)
    return queue[keep]


def pairs(state: ClusterState, decision: PolicyDecision, aged: Flags, due: Floats) -> tuple[Ints, Ints, int]:
    """Pairs of job and pool in queue order, and how many of them are of overdue jobs (aging).

    Those alike go by arrival, then by id. Pairs that can't change anything are left out: other pools of a running job
    that may not be moved.
    """
    ranked = by_arrival(state)
    score, order = np.ascontiguousarray(decision.score, dtype=float), np.ascontiguousarray(decision.order, dtype=float)
    jobs, pools = (np.empty(score.size, dtype=np.int64) for _ in range(2))
    key = np.empty(score.size)
    overdue_count, count = _collect(
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
        state.current_pool,
        jobs,
        pools,
        key,
    )
    order_of_pairs = in_order(key[overdue_count:count]) + overdue_count
    if overdue_count:
        due_of_pair = due[jobs[:overdue_count]]
        rank_of_job = np.cumsum(np.concatenate([[0], jobs[1:overdue_count] != jobs[: overdue_count - 1]]))
        order_of_pairs = np.concatenate([np.lexsort((key[:overdue_count], rank_of_job, due_of_pair)), order_of_pairs])
    return jobs[order_of_pairs], pools[order_of_pairs], int(overdue_count)


def in_order(key: Floats) -> Ints:
    """Indices in the order of their keys, equal ones as they stand (a stable sort)."""
    order = np.argsort(key)  # several times as fast as the stable one, and the same where no two are alike
    begins, ends = _runs(key, order)
    if len(begins) > RUNS:
        return np.argsort(key, kind="stable")
    for begin, end in zip(begins, ends, strict=True):
        order[begin:end].sort()
    return order


def _runs(key: Floats, order: Ints) -> tuple[list[int], list[int]]:
    """Where in a sorted order runs of equal keys begin and end."""
    values = key[order]
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
    current_pool: Any,
    jobs: Any,
    pools: Any,
    key: Any,
) -> Any:
    """Pairs to be allocated with what sorts them, those of overdue jobs first; how many those are, and all.

    Not those that a job can't run in or afford, or failed in last while it has another; where it runs it may go on.
    """
    count = overdue_count = 0
    for overdue in (True, False):
        for k in range(ranked.shape[0]):
            j = ranked[k]
            if aged[j] != overdue:
                continue
            current = current_pool[j]
            stays = current >= 0 and not movable[j]
            for p in range(score.shape[1]):
                if p != current:
                    if stays or not _open(j, p, score, seconds, usd, budget, chips, total):
                        continue
                    if last_failed[j, p] and _has_other(
                        j, current, score, seconds, usd, budget, chips, total, last_failed
                    ):
                        continue
                if not overdue and not -np.inf < order[j, p] < np.inf:
                    continue
                jobs[count], pools[count] = j, p
                key[count] = min(score[j, p], 1e300) if overdue else order[j, p]
                count += 1
        if overdue:
            overdue_count = count
    return overdue_count, count


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
