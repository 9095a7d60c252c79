"""The front of a long queue: the rows of a board that one decision looks at, found without a look at the others.

Most policies judge each job by its own row, so that what they say of some rows is what they say of these among all.
Such a policy has a `QueueWindow`: the number by which it orders jobs that wait, kept on the board while a job does not
change. A decision then costs the jobs that run, the first `depth` of those that wait and those asked for, however many
wait behind: nobody behind has a turn, and the queue that a job sees in front of it is no longer than that; else all is
as if the whole queue had been looked at. `max-throughput-per-dollar` plans for those in front alone, by their best
pools: chips that only jobs further behind could use stay idle until these come to the front. Whoever has waited for
longer than the patience stands in front, longest overdue first: everybody's turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached
from chipwise.route.allocate.queue_order import PATIENCE, by_id
from chipwise.route.cluster_state import ClusterState, Floats, Ints, Policy
from chipwise.route.job_table import JobTable, Keep, Moment

DEPTH = 500  # waiting jobs that have a turn in one decision: as Slurm's backfill tries (bf_max_job_test, 22.05)


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """How a policy orders jobs that wait.

    `keep` gives for some rows the order, a pool and one more number, none of which may depend on the time or on starts;
    `order` makes the order of all rows of them where these matter after all.
    """

    keep: Keep
    order: Callable[[JobTable, Moment, tuple[Floats, Ints, Floats]], Floats] | None = None


_FRONTS: dict[Policy, QueueWindow] = {}


def windowed(front: QueueWindow) -> Callable[[Policy], Policy]:
    """Say how a policy orders jobs that wait; it must judge each job by its own row and the running ones'."""

    def noted(policy: Policy) -> Policy:
        _FRONTS[policy] = front
        return policy

    return noted


def queue_window(
    board: JobTable,
    policy: Policy,
    at: Moment,
    *,
    depth: int | None = DEPTH,
    asked: Collection[str] = (),
    patience: float = PATIENCE,
) -> ClusterState:
    """What a policy is shown for one decision: all, where it has no `QueueWindow` or no more than `depth` wait."""
    front, here = _FRONTS.get(policy), board.column("at")
    if depth is None or front is None or np.count_nonzero(here < 0) <= depth:
        return board.part(at, None)
    kept = board.kept(at, front.keep)
    order = kept[0] if front.order is None else front.order(board, at, kept)
    waits, key = np.empty(len(board), dtype=np.int64), np.empty(len(board))
    aged, many = _line(
        at.now, patience, here, board.column("arrival"), board.column("weight"), board.column("had"), order, waits, key
    )
    first = _first(board, waits[:aged], key[:aged], depth)
    if len(first) < depth:
        first = np.concatenate([first, _first(board, waits[aged:many], key[aged:many], depth - len(first))])
    shown = here >= 0
    shown[first] = shown[board.rows(list(asked))] = True
    return board.part(at, np.flatnonzero(shown))


@jit_cached
def _line(
    now: float, patience: float, at: Any, arrival: Any, weight: Any, had: Any, order: Any, waits: Any, key: Any
) -> Any:
    """The rows that wait, those overdue before the others, and what sorts each; how many are overdue, and all."""
    many = aged = 0
    for overdue in (True, False):
        for j in range(at.shape[0]):
            if at[j] >= 0:
                continue
            due = arrival[j] + patience / max(weight[j], 1e-9) + had[j]
            if (due <= now) == overdue:
                waits[many], key[many] = j, due if overdue else order[j]
                many += 1
        if overdue:
            aged = many
    return aged, many


def _first(board: JobTable, rows: Ints, order: Floats, many: int) -> Ints:
    """The first so many of these rows: by order, then by arrival, then by id."""
    if len(rows) <= many:
        return rows
    last = np.partition(order, many - 1)[many - 1] if many > 0 else -inf
    surely, level = rows[order < last], rows[order == last]
    if len(surely) + len(level) > many:
        arrival = board.column("arrival")[level]
        turns = np.argsort(arrival, kind="stable")
        names = board.ids(level) if (arrival[turns][1:] == arrival[turns][:-1]).any() else []
        level = level[by_id(turns, names, arrival) if names else turns][: many - len(surely)]
    return np.concatenate([surely, level])
