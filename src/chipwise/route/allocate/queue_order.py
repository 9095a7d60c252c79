"""Queue order: the policy's own, with aging: jobs that have waited too long come first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached, jit_helper, lent
from chipwise.route.cluster_state import ClusterState, Flags, Floats, Ints, PolicyDecision

OVERHEAD = 0.05  # of the time a job has run, that stopping it for a fair share may waste
LEASE_S = 360.0  # that a job keeps chips given to it as a fair share: a round of Gavel's (OSDI 2020, section 5)
SMALL = 256  # keys up to which numpy's own stable sort is as quick
DIGIT_BITS, DIGITS = 11, 6  # of the 64 bits of a number: 2,048 counts fit the first cache
ALL_BITS, FIRST_BIT = np.uint64(2**64 - 1), np.uint64(2**63)
PATIENCE = 86_400.0  # s that a job of priority 1 waits before it goes first: a day, our choice; whole days are noticed


def overdue(state: ClusterState, patience: float = PATIENCE) -> tuple[Flags, Floats]:
    """Jobs that have waited for longer than `patience` over their priority, and since when; time served is no wait."""
    due = state.arrival + patience / np.maximum(state.weight, 1e-9)
    aged = due <= state.now
    if aged.any():
        due[aged] += state.served[aged].sum(axis=1) if state.had is None else state.had[aged]
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
        lent(score),
        lent(order),
        lent(state.seconds),
        lent(state.usd),
        lent(state.budget),
        lent(state.chips),
        lent(state.total),
        lent(state.last_failed),
        lent(state.current_pool),
        jobs,
        pools,
        key,
    )
    order_of_pairs = in_order(key[overdue_count:count]) + overdue_count
    if overdue_count:
        overdue_first = np.empty(overdue_count, dtype=np.int64)
        begins = np.flatnonzero(np.concatenate([[True], jobs[1:overdue_count] != jobs[: overdue_count - 1]]))
        by_due = np.argsort(due[jobs[begins]], kind="stable")
        _by_job(by_due, np.append(begins, overdue_count), key, overdue_first)
        order_of_pairs = np.concatenate([overdue_first, order_of_pairs])
    return jobs[order_of_pairs], pools[order_of_pairs], int(overdue_count)


def in_order(key: Floats) -> Ints:
    """Indices in the order of their keys, equal ones as they stand: a radix sort, stable by its nature.

    On machines whose numpy sorts numbers one by one, thousands of keys take a third of the time.

    >>> in_order(np.array([2.0, -1.0, 0.0, 2.0, -0.0, np.inf, -np.inf])).tolist()
    [6, 1, 2, 4, 0, 3, 5]
    """
    if len(key) < SMALL:
        return np.argsort(key, kind="stable")
    bits = (key + 0.0).view(np.uint64)  # no -0, which equals 0
    # as whole numbers in the same order: those below 0 with all bits turned, the others with the first
    bits ^= np.where(bits >> np.uint64(63), ALL_BITS, FIRST_BIT)
    order, spare = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    _radix_sort(bits, order, spare, np.zeros((DIGITS, 1 << DIGIT_BITS), dtype=np.int64))
    return order


@jit_cached
def _radix_sort(bits: Any, order: Any, spare: Any, counts: Any) -> None:
    """Sort by digits of 11 bits, the last first; digits that all have in common are passed over."""
    n, mask = bits.shape[0], np.uint64((1 << DIGIT_BITS) - 1)
    for k in range(n):
        order[k] = k
        for digit in range(DIGITS):
            counts[digit, (bits[k] >> np.uint64(DIGIT_BITS * digit)) & mask] += 1
    for digit in range(DIGITS):
        shift = np.uint64(DIGIT_BITS * digit)
        if counts[digit, (bits[0] >> shift) & mask] == n:
            continue
        begin = 0
        for value in range(counts.shape[1]):
            many = counts[digit, value]
            counts[digit, value] = begin
            begin += many
        for k in range(n):
            value = (bits[order[k]] >> shift) & mask
            spare[counts[digit, value]] = order[k]
            counts[digit, value] += 1
        for k in range(n):
            order[k] = spare[k]


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


@jit_cached
def _by_job(by_due: Any, begins: Any, key: Any, order: Any) -> None:
    """Pairs job by job, those of each by their keys, equal ones as they stand (an insertion sort: they are few)."""
    count = 0
    for k in range(by_due.shape[0]):
        first = count
        for pair in range(begins[by_due[k]], begins[by_due[k] + 1]):
            place = count
            while place > first and key[order[place - 1]] > key[pair]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = pair
            count += 1


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
