"""From what a policy wishes to decisions: gangs, room, ageing, backfill, preemption and moves, alike for all policies.

Jobs have their turns in the policy's order; whoever has waited longer than `patience` over its priority comes first. A
job takes all its chips in the pool with its least score, or waits for it: scores count the wait where the policy says
what a second of it costs, so a dearer pool with room wins exactly when that pays. The first that waits for a pool has a
reservation there, and later ones pass it only if that does not delay it. Restartable jobs behind may be stopped, or may
move, where the policy allows it and the gain is more than the work repeated; others are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from chipwise.route.option import Option
from chipwise.route.place import reasons
from chipwise.route.place.grants import Field, by_jobs, by_pairs, wanted
from chipwise.route.place.turns import PATIENCE, overdue, pairs, sequence
from chipwise.route.view import Decision, Flags, Floats, Ints, View, Wishes

__all__ = ["PATIENCE", "grant", "place"]

Lookup = Callable[[str, str], Option]


def place(view: View, wishes: Wishes, options: Lookup | None = None, *, patience: float = PATIENCE,
          waits: Collection[str] | None = None) -> list[Decision]:
    """What is to be done now: stops first, then starts, then waits, each with its reason.

    A start may need chips that stops of the same list give back. A job that moves has a stop and a start. Running jobs
    that go on are not mentioned. `options` finds the option of a job in a pool, for its variant. `waits`: the jobs
    whose waiting is to be explained; all by default, which takes most of the time when thousands wait.
    """
    if not view.jobs:
        return []
    field = grant(view, wishes, patience)
    return _decisions(view, wishes, field.score, field, options, waits)


def grant(view: View, wishes: Wishes, patience: float = PATIENCE) -> Field:
    """Who is where after all have had their turns (`pos`; -1: nowhere), without the words."""
    score = np.empty(view.seconds.shape)
    wanted(np.ascontiguousarray(wishes.score, dtype=float), view.seconds, view.usd, view.budget, view.barred, view.at,
           score)
    aged, due = overdue(view, patience)
    field = _field(view, wishes, score, aged)
    if wishes.order.ndim == 1:
        turns = sequence(view, wishes, aged, due)
        _line_up(field, turns, field.at[turns])
        by_jobs(field, turns, np.zeros(len(view.pools), dtype=bool))
    else:
        jobs, pools, first = pairs(view, score, wishes, aged, due)
        _line_up(field, jobs, pools)
        by_pairs(field, jobs, pools, first)
    return field


def _field(view: View, wishes: Wishes, score: Floats, aged: Flags) -> Field:
    """Everything a pass reads, and room for what it writes."""
    n, pools = score.shape
    running = np.flatnonzero(view.at >= 0)
    soft_chips = np.bincount(view.at[running], view.chips[running, view.at[running]], minlength=pools).astype(np.int64)
    most = int(min((view.free + soft_chips).max(initial=0), n) + len(running)) + 1
    widest = int(max(view.chips.max(initial=0), view.total.max(initial=0))) + 1
    latest = np.empty((0, 0)) if wishes.latest is None else np.ascontiguousarray(wishes.latest, dtype=float)
    wait = np.ascontiguousarray(np.broadcast_to(np.asarray(wishes.wait, dtype=float), (n,)))

    def none(*shape: int) -> Ints:
        return np.full(shape, -1, dtype=np.int64)

    def nothing(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    field = Field(
        now=float(view.now), preempts=wishes.preempts, moves=wishes.moves, score=score, start=view.start,
        seconds=view.seconds, high=view.high, chips=view.chips, rank=view.rank, wait=wait, latest=latest,
        weight=view.weight, restartable=view.restartable, again=view.again, since=view.since, aged=aged, at=view.at,
        total=view.total, room=view.free, free=view.free.copy(), pos=none(n), target=none(n),
        predicted=np.full(n, np.nan), stopper=none(n), turn=np.zeros(n, dtype=bool), ends=np.empty((pools, most)),
        held=nothing(pools, most), who=nothing(pools, most), many=nothing(pools), queue=np.zeros(pools),
        soft=nothing(pools), behind=nothing(pools, len(running) + 1), behinds=nothing(pools), holder=none(pools),
        shadow=np.zeros(pools), spare=nothing(pools), memo=np.empty((pools, widest)),
        known=np.zeros((pools, widest), dtype=bool))
    _fill(field, running)
    return field


def _fill(field: Field, running: Ints) -> None:
    """Put running jobs where they are."""
    where = field.at[running]
    ends = field.now + field.seconds[running, where]
    for k in np.argsort(ends, kind="stable"):
        j, p = running[k], where[k]
        i = field.many[p]
        field.ends[p, i], field.held[p, i], field.who[p, i] = ends[k], field.chips[j, p], j
        field.many[p] += 1
        field.pos[j] = p


def _line_up(field: Field, jobs: Ints, pools: Ints) -> None:
    """List the running jobs that may be stopped, by pool, last in order first."""
    if not field.preempts:
        return
    mine = (field.at[jobs] == pools) & (pools >= 0) & field.restartable[jobs]
    for j in jobs[mine][::-1]:
        p = field.at[j]
        field.behind[p, field.behinds[p]] = j
        field.behinds[p] += 1
        field.soft[p] += field.chips[j, p]


def _decisions(view: View, wishes: Wishes, score: Floats, field: Field, options: Lookup | None,
               asked: Collection[str] | None) -> list[Decision]:
    def decision(j: int, kind: str, p: int, reason: str) -> Decision:
        job, pool = view.jobs[j], view.pools[p] if p >= 0 else ""
        variant = options(job, pool).variant if options and kind == "start" else ""
        return Decision(job, kind, pool, variant, reason, reasons.compared(view, score, j))

    changed: list[int] = np.flatnonzero(field.pos != field.at).tolist()
    found = []
    for j in changed:
        p, here = int(field.pos[j]), int(view.at[j])
        if here >= 0:
            why = (reasons.moves(view, wishes, score, j, p) if p >= 0
                   else reasons.stops(view, wishes, j, int(field.stopper[j])))
            found.append(decision(j, "stop", here, why))
    for j in changed:
        p = int(field.pos[j])
        if p >= 0:
            found.append(decision(j, "start", p, reasons.starts(view, wishes, score, j, p)))
    for j in _waiting(view, field, asked):
        p = int(field.target[j])
        found.append(decision(j, "wait", p, reasons.waits(view, wishes, score, j, p, float(field.predicted[j]),
                                                          bool(field.aged[j]))))
    return found


def _waiting(view: View, field: Field, asked: Collection[str] | None) -> list[int]:
    """The jobs whose waiting is to be explained."""
    if asked is None:
        chosen: list[int] = np.flatnonzero((field.pos < 0) & (field.at < 0)).tolist()
        return chosen
    if not asked:
        return []
    names = set(asked)
    return [j for j, job in enumerate(view.jobs) if job in names and field.pos[j] < 0 and field.at[j] < 0]
