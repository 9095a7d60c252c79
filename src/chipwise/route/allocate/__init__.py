"""Allocation: EASY backfill with aging, preemption and gang scheduling, the same for every policy.

Priority queue: jobs are taken in the policy's order; aging puts those that have waited longer than `patience` over
their priority first. A job gets all its chips at once in the pool with its lowest score, or waits for it: scores count
the wait where the policy says what a second of it costs, so a more expensive pool with free capacity wins exactly when
that pays. Pools whose scores are near enough to equal (the policy's `tie`) go to the earliest end, and one that is free
before one to wait for. EASY backfill: the first job that waits for a pool has a reservation there, and later jobs pass
it only if that does not delay it. Preemption and migration: restartable jobs behind may be stopped or moved where the
policy allows it and the gain is more than the work repeated; others are never touched.

EASY backfill: D. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; A. Mu'alem, D. Feitelson, TPDS 12(6), 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from chipwise.io.jit import lent
from chipwise.route.allocate import reasons
from chipwise.route.allocate.allocation import by_jobs, by_pairs, settle
from chipwise.route.allocate.allocation_state import AllocationState
from chipwise.route.allocate.queue_order import PATIENCE, overdue, pairs, sequence, trimmed
from chipwise.route.allocate.queue_window import DEPTH, QueueWindow, queue_window, windowed
from chipwise.route.cluster_state import ClusterState, Decision, Flags, Ints, PolicyDecision
from chipwise.route.option import Option

__all__ = ["DEPTH", "PATIENCE", "QueueWindow", "allocate", "allocate_state", "queue_window", "windowed"]

Lookup = Callable[[str, str], Option]
# arrays of the state that a pass reads as they are
READ = (
    *("budget", "chips", "current_pool", "high", "last_failed", "restart_cost_s", "restartable", "seconds", "since"),
    *("start", "total", "usd", "variant_order", "weight"),
)


def allocate(
    state: ClusterState,
    decision: PolicyDecision,
    options: Lookup | None = None,
    *,
    patience: float = PATIENCE,
    explain: Collection[str] | None = None,
    depth: int | None = None,
    heads: bool = False,
) -> list[Decision]:
    """What is to be done now: stops first, then starts, then waits, each with its reason.

    A start may need chips that stops of the same list give back. A job that moves has a stop and a start. Running jobs
    that go on are not mentioned. `options` finds the option of a job in a pool, for its variant. `explain`: the jobs
    whose waiting is to be explained; all by default, which takes most of the time when thousands wait.
    `depth`: how many pending jobs are considered, with those of `explain`, first in order first; all by default. The
    queue that a job sees ahead of it is then no longer than that. `heads`: the first job that waits for each pool is
    explained too, before the others.

    No starvation: of two jobs that have waited for longer than `patience` over their priority (aging), the one that
    was due first is taken first, whatever the policy and `depth`, and the first that waits for a pool has a
    reservation there. So a job starts at the latest when those that were due before it, and what ran then, have run
    one after the other: in `patience` / priority + (those + 2) times the longest run. Jobs that fit nowhere wait for
    ever.
    """
    if not state.jobs:
        return []
    allocation = allocate_state(state, decision, patience, depth if explain is not None else None, explain or ())
    return _decisions(
        state, decision, allocation, options, explain, _heads(state, decision, allocation, patience) if heads else []
    )


def _heads(state: ClusterState, decision: PolicyDecision, allocation: AllocationState, patience: float) -> list[int]:
    """The first job, in queue order, that waits for each pool: those with a reservation."""
    aged, due = overdue(state, patience)
    if decision.order.ndim == 1:
        jobs = sequence(state, decision, aged, due)
        pools = allocation.target[jobs]
    else:
        jobs, pools, _ = pairs(state, decision, aged, due)
    waiting_here = (pools >= 0) & (allocation.target[jobs] == pools) & (allocation.pos[jobs] < 0)
    _, heads = np.unique(pools[waiting_here], return_index=True)
    jobs_at_head: list[int] = jobs[waiting_here][np.sort(heads)].tolist()
    return jobs_at_head


def allocate_state(
    state: ClusterState,
    decision: PolicyDecision,
    patience: float = PATIENCE,
    depth: int | None = None,
    explain: Collection[str] = (),
) -> AllocationState:
    """Which job has which pool after one scheduling pass (`pos`; -1: none), without the words."""
    aged, due = overdue(state, patience)
    allocation = _allocation_state(state, decision, aged)
    running = np.flatnonzero(state.current_pool >= 0)
    ends = state.now + state.seconds[running, state.current_pool[running]]
    soonest = np.argsort(ends, kind="stable")
    if decision.order.ndim == 1:
        queue = sequence(state, decision, aged, due)
        if depth is not None and depth < len(queue):
            queue = trimmed(state, queue, depth, explain)
        settle(allocation, running[soonest], ends[soonest], queue, state.current_pool[queue])
        by_jobs(allocation, queue, np.zeros(len(state.pools), dtype=bool))
    else:
        jobs, pools, first = pairs(state, decision, aged, due)
        settle(allocation, running[soonest], ends[soonest], jobs, pools)
        by_pairs(allocation, jobs, pools, first)
    return allocation


def _allocation_state(state: ClusterState, decision: PolicyDecision, aged: Flags) -> AllocationState:
    """Everything a scheduling pass reads, and arrays for what it writes."""
    n, pools = state.seconds.shape
    running = int(np.count_nonzero(state.current_pool >= 0))
    most = int(min(state.total.max(initial=0), n)) + running + 1  # a job has a chip at least
    widest = int(state.total.max(initial=0)) + 1
    latest = np.empty((0, 0)) if decision.latest is None else np.ascontiguousarray(decision.latest, dtype=float)
    wait, tie = (
        np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=float), (n,)))
        for value in (decision.wait, decision.tie)
    )

    def integers(*shape: int, fill: int = 0) -> Ints:
        return np.full(shape, fill, dtype=np.int64)

    return AllocationState(
        now=float(state.now),
        preempts=decision.preempts,
        moves=decision.moves,
        score=lent(np.ascontiguousarray(decision.score, dtype=float)),
        wait=lent(wait),
        tie=lent(tie),
        latest=lent(latest),
        aged=lent(aged),
        free_at_first=lent(state.free),
        free=state.free.copy(),
        pos=integers(n, fill=-1),
        target=integers(n, fill=-1),
        predicted=np.full(n, np.nan),
        preemptor=integers(n, fill=-1),
        considered=np.zeros(n, dtype=bool),
        ends=np.empty((pools, most)),
        held=np.empty((pools, most), dtype=np.int64),
        who=np.empty((pools, most), dtype=np.int64),
        size=integers(pools),
        queue=np.zeros(pools),
        preemptible=integers(pools),
        behind=np.empty((pools, running + 1), dtype=np.int64),
        behind_count=integers(pools),
        holder=integers(pools, fill=-1),
        shadow=np.zeros(pools),
        spare=integers(pools),
        memo=np.empty((pools, widest)),
        memo_valid=np.zeros((pools, widest), dtype=bool),
        when=np.empty(pools),
        weighed=np.empty(pools),
        touched=np.zeros(pools, dtype=bool),
        **{name: lent(getattr(state, name)) for name in READ},
    )


def _decisions(
    state: ClusterState,
    decision: PolicyDecision,
    allocation: AllocationState,
    options: Lookup | None,
    explain: Collection[str] | None,
    heads: Sequence[int],
) -> list[Decision]:
    changed: list[int] = np.flatnonzero(allocation.pos != allocation.current_pool).tolist()
    waiting = list(dict.fromkeys([*heads, *_to_explain(state, allocation, explain)]))
    figures = reasons.compared(state, decision, [*changed, *waiting])
    by_pool = {j: of.by_pool(state.pools) for j, of in figures.items()}  # of a job that moves, for its stop and start
    pos, current, free = (a.tolist() for a in (allocation.pos[changed], state.current_pool[changed], allocation.free))
    moves = list(zip(changed, current, pos, strict=True))

    def decided(j: int, kind: str, p: int, reason: str) -> Decision:
        job, pool = state.jobs[j], state.pools[p] if p >= 0 else ""
        variant = options(job, pool).variant if options and kind == "start" else ""
        return Decision(job, kind, pool, variant, reason, by_pool[j])

    decisions = []
    for j, here, p in moves:
        if here >= 0 and p >= 0:
            decisions.append(decided(j, "stop", here, reasons.moves(state, decision, j, p, figures[j])))
        elif here >= 0:
            stopper = int(allocation.preemptor[j])
            decisions.append(decided(j, "stop", here, reasons.stops(state, decision, j, stopper)))
    for j, _, p in moves:
        if p >= 0:
            decisions.append(decided(j, "start", p, reasons.starts(state, decision, j, p, free, figures[j])))
    for j in waiting:
        p = int(allocation.target[j])
        place = reasons.Place(float(allocation.predicted[j]), bool(allocation.aged[j]))
        decisions.append(decided(j, "wait", p, reasons.waits(state, decision, j, p, free, figures[j], place)))
    return decisions


def _to_explain(state: ClusterState, allocation: AllocationState, explain: Collection[str] | None) -> list[int]:
    """The jobs whose waiting is to be explained."""
    if explain is not None and not explain:
        return []
    pending = (allocation.pos < 0) & (allocation.current_pool < 0)
    if explain is None:
        rows: list[int] = np.flatnonzero(pending).tolist()
        return rows
    names = set(explain)
    if len(names) == 1 and state.jobs[-1] in names:  # a new job stands last
        last = len(state.jobs) - 1
        return [last] if pending[last] else []
    return [j for j, job in enumerate(state.jobs) if job in names and pending[j]]
