"""Queue window: a bounded scheduling depth, found without reading the rows behind it (Slurm's bf_max_job_test).

Most policies judge each job by its own row, so that what they say of some rows is what they say of these among all.
Such a policy has a `QueueWindow`: the number by which it orders pending jobs, kept in the job table while a job does
not change. A scheduling pass then costs the running jobs, the first `depth` pending ones and those to explain, however
many are behind: those behind are not considered, and the queue that a job sees ahead of it is no longer than that;
else all is as if the whole queue had been read. `max-throughput-per-dollar` plans for the window alone, by the jobs'
best pools: chips that only jobs further behind could use stay idle until these enter it. Overdue jobs (aging) come
first, longest overdue first: every job enters the window in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached
from chipwise.route.allocate.queue_order import PATIENCE, by_id
from chipwise.route.cluster_state import ClusterState, Flags, Floats, Ints, Policy
from chipwise.route.job_table import JobTable, Keep
from chipwise.route.job_table_part import Moment

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

    def register(policy: Policy) -> Policy:
        _WINDOWS[policy] = window
        return policy

    return register


def is_windowed(policy: Policy) -> bool:
    """Whether a policy is shown a part of a long queue."""
    return policy in _WINDOWS


def queue_window(
    table: JobTable,
    policy: Policy,
    moment: Moment,
    *,
    depth: int | None = DEPTH,
    explain: Collection[str] = (),
    patience: float = PATIENCE,
    held: Flags | None = None,
) -> ClusterState:
    """What a policy is shown for one decision: all, where it has no `QueueWindow` or no more than `depth` wait.

    `held`: rows that can't start whatever is free; they take no place of the window.
    """
    window, current_pool = _WINDOWS.get(policy), table.column("current_pool")
    if depth is None or window is None or np.count_nonzero(current_pool < 0) <= depth:
        return table.part(moment, None)
    sort_keys = table.kept(moment, window.keep)
    order = sort_keys[0] if window.order is None else window.order(table, moment, sort_keys)
    pending, key = np.empty(len(table), dtype=np.int64), np.empty(len(table))
    arrival, weight, had = (table.column(name) for name in ("arrival", "weight", "had"))
    waiting = current_pool if held is None else np.where(held, 0, current_pool)
    aged, rest = _pending_rows(moment.now, patience, waiting, arrival, weight, had, order, pending, key)
    first = _first_rows(table, pending[:aged], key[:aged], depth)
    if len(first) < depth:
        first = np.concatenate([first, _first_rows(table, pending[rest:], key[rest:], depth - len(first))])
    shown = current_pool >= 0
    shown[first] = shown[table.rows(list(explain))] = True
    return table.part(moment, np.flatnonzero(shown))


@jit_cached
def _pending_rows(
    now: float, patience: float, pool: Any, arrival: Any, weight: Any, had: Any, order: Any, pending: Any, key: Any
) -> Any:
    """The rows that wait, and what sorts each: first those overdue, last the others; how many, and from where on."""
    aged, rest = 0, pool.shape[0]
    for j in range(pool.shape[0]):
        if pool[j] >= 0:
            continue
        due = arrival[j] + patience / max(weight[j], 1e-9) + had[j]
        if due <= now:
            pending[aged], key[aged] = j, due
            aged += 1
        else:
            rest -= 1
            pending[rest], key[rest] = j, order[j]
    return aged, rest


def _first_rows(table: JobTable, rows: Ints, order: Floats, count: int) -> Ints:
    """The first so many of these rows: by order, then by arrival, then by id."""
    if len(rows) <= count:
        return rows
    last = np.partition(order, count - 1)[count - 1] if count > 0 else -inf
    ahead, tied = rows[order < last], rows[order == last]
    if len(ahead) + len(tied) > count:
        arrival = table.column("arrival")[tied]
        by_arrival = np.argsort(arrival, kind="stable")
        names = table.ids(tied) if (arrival[by_arrival][1:] == arrival[by_arrival][:-1]).any() else []
        tied = tied[by_id(by_arrival, names, arrival) if names else by_arrival][: count - len(ahead)]
    return np.concatenate([ahead, tied])
