"""From what a policy wishes to decisions: gangs, room, ageing, backfill, preemption and moves, alike for all policies.

Jobs have their turns in the policy's order; whoever has waited longer than `patience` over its priority comes first. A
job takes all its chips in the pool with its least score, or waits for it: scores count the wait where the policy says
what a second of it costs, so a dearer pool with room wins exactly when that pays. The first that waits for a pool has a
reservation there, and later ones pass it only if that does not delay it. Restartable jobs behind may be stopped, or may
move, where the policy allows it and the gain is more than the work repeated; others are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from chipwise.route.allocate import reasons
from chipwise.route.allocate.allocation import AllocationState, by_jobs, by_pairs, settle
from chipwise.route.allocate.queue_order import PATIENCE, overdue, pairs, sequence, trimmed
from chipwise.route.allocate.queue_window import DEPTH, QueueWindow, queue_window, windowed
from chipwise.route.cluster_state import ClusterState, Decision, Flags, Ints, PolicyDecision
from chipwise.route.option import Option

__all__ = ["DEPTH", "PATIENCE", "QueueWindow", "allocate", "allocate_state", "queue_window", "windowed"]

Lookup = Callable[[str, str], Option]


def allocate(
    view: ClusterState,
    wishes: PolicyDecision,
    options: Lookup | None = None,
    *,
    patience: float = PATIENCE,
    waits: Collection[str] | None = None,
    depth: int | None = None,
    heads: bool = False,
) -> list[Decision]:
    """What is to be done now: stops first, then starts, then waits, each with its reason.

    A start may need chips that stops of the same list give back. A job that moves has a stop and a start. Running jobs
    that go on are not mentioned. `options` finds the option of a job in a pool, for its variant. `waits`: the jobs
    whose waiting is to be explained; all by default, which takes most of the time when thousands wait.
    `depth`: how many waiting jobs have a turn, with those of `waits`, first in order first; all by default. The queue
    that a job sees in front of it is then no longer than that. `heads`: the first job that waits for each pool is
    explained too, before the others.

    Nobody starves: of two jobs that have waited for longer than `patience` over their priority, the one that was due
    first has its turn first, whatever the policy and `depth`, and the first that waits for a pool has its start there
    kept. So a job starts at the latest when those that were due before it, and what ran then, have run one after the
    other: in `patience` / priority + (those + 2) times the longest run. Jobs that fit nowhere wait for ever.
    """
    if not view.jobs:
        return []
    field = allocate_state(view, wishes, patience, depth if waits is not None else None, waits or ())
    return _decisions(view, wishes, field, options, waits, _heads(view, wishes, field, patience) if heads else [])


def _heads(view: ClusterState, wishes: PolicyDecision, field: AllocationState, patience: float) -> list[int]:
    """The first job, in order of turns, that waits for each pool."""
    aged, due = overdue(view, patience)
    if wishes.order.ndim == 1:
        jobs = sequence(view, wishes, aged, due)
        pools = field.target[jobs]
    else:
        jobs, pools, _ = pairs(view, wishes, aged, due)
    waits = (pools >= 0) & (field.target[jobs] == pools) & (field.pos[jobs] < 0)
    _, first = np.unique(pools[waits], return_index=True)
    chosen: list[int] = jobs[waits][np.sort(first)].tolist()
    return chosen


def allocate_state(
    view: ClusterState,
    wishes: PolicyDecision,
    patience: float = PATIENCE,
    depth: int | None = None,
    asked: Collection[str] = (),
) -> AllocationState:
    """Who is where after all have had their turns (`pos`; -1: nowhere), without the words."""
    aged, due = overdue(view, patience)
    field = _field(view, wishes, aged)
    running = np.flatnonzero(view.at >= 0)
    ends = view.now + view.seconds[running, view.at[running]]
    soonest = np.argsort(ends, kind="stable")
    if wishes.order.ndim == 1:
        turns = sequence(view, wishes, aged, due)
        if depth is not None and depth < len(turns):
            turns = trimmed(view, turns, depth, asked)
        settle(field, running[soonest], ends[soonest], turns, view.at[turns])
        by_jobs(field, turns, np.zeros(len(view.pools), dtype=bool))
    else:
        jobs, pools, first = pairs(view, wishes, aged, due)
        settle(field, running[soonest], ends[soonest], jobs, pools)
        by_pairs(field, jobs, pools, first)
    return field


def _field(view: ClusterState, wishes: PolicyDecision, aged: Flags) -> AllocationState:
    """Everything a pass reads, and room for what it writes."""
    n, pools = view.seconds.shape
    running = int(np.count_nonzero(view.at >= 0))
    most = int(min(view.total.max(initial=0), n)) + running + 1  # a job has a chip at least
    widest = int(view.total.max(initial=0)) + 1
    latest = np.empty((0, 0)) if wishes.latest is None else np.ascontiguousarray(wishes.latest, dtype=float)
    wait = np.ascontiguousarray(np.broadcast_to(np.asarray(wishes.wait, dtype=float), (n,)))

    def whole(*shape: int, fill: int = 0) -> Ints:
        return np.full(shape, fill, dtype=np.int64)

    return AllocationState(
        now=float(view.now),
        preempts=wishes.preempts,
        moves=wishes.moves,
        score=np.ascontiguousarray(wishes.score, dtype=float),
        usd=view.usd,
        budget=view.budget,
        last_failed=view.last_failed,
        start=view.start,
        seconds=view.seconds,
        high=view.high,
        chips=view.chips,
        variant_order=view.variant_order,
        wait=wait,
        latest=latest,
        weight=view.weight,
        restartable=view.restartable,
        restart_cost_s=view.restart_cost_s,
        since=view.since,
        aged=aged,
        at=view.at,
        total=view.total,
        room=view.free,
        free=view.free.copy(),
        pos=whole(n, fill=-1),
        target=whole(n, fill=-1),
        predicted=np.full(n, np.nan),
        stopper=whole(n, fill=-1),
        turn=np.zeros(n, dtype=bool),
        ends=np.empty((pools, most)),
        held=np.empty((pools, most), dtype=np.int64),
        who=np.empty((pools, most), dtype=np.int64),
        many=whole(pools),
        queue=np.zeros(pools),
        soft=whole(pools),
        behind=np.empty((pools, running + 1), dtype=np.int64),
        behinds=whole(pools),
        holder=whole(pools, fill=-1),
        shadow=np.zeros(pools),
        spare=whole(pools),
        memo=np.empty((pools, widest)),
        known=np.zeros((pools, widest), dtype=bool),
        touched=np.zeros(pools, dtype=bool),
    )


def _decisions(
    view: ClusterState,
    wishes: PolicyDecision,
    field: AllocationState,
    options: Lookup | None,
    asked: Collection[str] | None,
    heads: Sequence[int],
) -> list[Decision]:
    def decision(j: int, kind: str, p: int, reason: str) -> Decision:
        job, pool = view.jobs[j], view.pools[p] if p >= 0 else ""
        variant = options(job, pool).variant if options and kind == "start" else ""
        return Decision(job, kind, pool, variant, reason, reasons.compared(view, wishes, j))

    changed: list[int] = np.flatnonzero(field.pos != field.at).tolist()
    found = []
    for j in changed:
        p, here = int(field.pos[j]), int(view.at[j])
        if here >= 0:
            why = reasons.moves(view, wishes, j, p) if p >= 0 else reasons.stops(view, wishes, j, int(field.stopper[j]))
            found.append(decision(j, "stop", here, why))
    for j in changed:
        p = int(field.pos[j])
        if p >= 0:
            found.append(decision(j, "start", p, reasons.starts(view, wishes, j, p)))
    for j in dict.fromkeys([*heads, *_waiting(view, field, asked)]):
        p = int(field.target[j])
        found.append(
            decision(j, "wait", p, reasons.waits(view, wishes, j, p, float(field.predicted[j]), bool(field.aged[j])))
        )
    return found


def _waiting(view: ClusterState, field: AllocationState, asked: Collection[str] | None) -> list[int]:
    """The jobs whose waiting is to be explained."""
    if asked is None:
        chosen: list[int] = np.flatnonzero((field.pos < 0) & (field.at < 0)).tolist()
        return chosen
    if not asked:
        return []
    names = set(asked)
    if len(names) == 1 and view.jobs[-1] in names:  # a new job stands last
        last = len(view.jobs) - 1
        return [last] if field.pos[last] < 0 and field.at[last] < 0 else []
    return [j for j, job in enumerate(view.jobs) if job in names and field.pos[j] < 0 and field.at[j] < 0]
