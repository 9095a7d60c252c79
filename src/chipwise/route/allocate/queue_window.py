"""Queue window: a bounded scheduling depth, found without reading the rows behind it (Slurm's bf_max_job_test).

Most policies judge each job by its own row, so that what they say of some rows is what they say of these among all.
Such a policy has a `QueueWindow`: the number by which it orders pending jobs, kept in the job table while a job does
not change. A scheduling pass then costs the running jobs, the first `depth` pending ones and those asked for, however
many are behind: those behind are not considered, and the queue that a job sees in front of it is no longer than that;
else all is as if the whole queue had been read. `max-throughput-per-dollar` plans for the window alone, by the jobs'
best pools: chips that only jobs further behind could use stay idle until these enter it. Overdue jobs (aging) stand in
front, longest overdue first: every job enters the window in the end.
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

DEPTH = 500  # pending jobs that one scheduling pass considers: as Slurm's backfill does (bf_max_job_test, 22.05)


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """How a policy orders pending jobs.

    `keep` gives for some rows the order, a pool and one more number, none of which may depend on the time or on starts;
    `order` makes the order of all rows of them where these matter after all.
    """

    keep: Keep
    order: Callable[[JobTable, Moment, tuple[Floats, Ints, Floats]], Floats] | None = None


_WINDOWS: dict[Policy, QueueWindow] = {}


def windowed(window: QueueWindow) -> Callable[[Policy], Policy]:
    """Say how a policy orders jobs that wait; it must judge each job by its own row and the running ones'."""

    def noted(policy: Policy) -> Policy:
        _WINDOWS[policy] = window
        return policy

    return noted


def queue_window(
    table: JobTable,
    policy: Policy,
    at: Moment,
    *,
    depth: int | None = DEPTH,
    asked: Collection[str] = (),
    patience: float = PATIENCE,
) -> ClusterState:
    """What a policy is shown for one decision: all, where it has no `QueueWindow` or no more than `depth` wait."""
    window, here = _WINDOWS.get(policy), table.column("at")
    if depth is None or window is None or np.count_nonzero(here < 0) <= depth:
        return table.part(at, None)
    kept = table.kept(at, window.keep)
    order = kept[0] if window.order is None else window.order(table, at, kept)
    waits, key = np.empty(len(table), dtype=np.int64), np.empty(len(table))
    aged, many = _line(
        at.now, patience, here, table.column("arrival"), table.column("weight"), table.column("had"), order, waits, key
    )
    first = _first(table, waits[:aged], key[:aged], depth)
    if len(first) < depth:
        first = np.concatenate([first, _first(table, waits[aged:many], key[aged:many], depth - len(first))])
    shown = here >= 0
    shown[first] = shown[table.rows(list(asked))] = True
    return table.part(at, np.flatnonzero(shown))


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


def _first(table: JobTable, rows: Ints, order: Floats, many: int) -> Ints:
    """The first so many of these rows: by order, then by arrival, then by id."""
    if len(rows) <= many:
        return rows
    last = np.partition(order, many - 1)[many - 1] if many > 0 else -inf
    surely, level = rows[order < last], rows[order == last]
    if len(surely) + len(level) > many:
        arrival = table.column("arrival")[level]
        turns = np.argsort(arrival, kind="stable")
        names = table.ids(level) if (arrival[turns][1:] == arrival[turns][:-1]).any() else []
        level = level[by_id(turns, names, arrival) if names else turns][: many - len(surely)]
    return np.concatenate([surely, level])
