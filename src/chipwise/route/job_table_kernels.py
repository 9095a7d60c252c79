"""Compiled loops of the job table: predicted starts, what is left of each run, how far running jobs have come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached

AT_ONCE = 2048  # rows: with 50 pools, 0.8 MB an array
NOTHING_LEFT = 1e-12  # share of a run that is done: more than nothing, since 0 * inf is no number
LEFT = 0.01  # of a run that is still to come when it has outlasted its estimate: it ends soon, nobody knows when


@jit_cached
def fill_starts(
    table: Any, now: float, free: Any, total: Any, predicted: Any, pools_of_jobs: Any, ends: Any, held: Any
) -> None:
    """Starts by pool and chips: as the backend predicts, else when enough running jobs, soonest first, have ended.

    Chips of unknown jobs are taken to be free when the last of ours is.
    """
    pools, width = table.shape
    for p in range(pools):
        last = now if np.isnan(predicted[p]) else max(predicted[p], now)
        next_chips = min(max(free[p], -1), width - 1) + 1  # the next number of chips whose start is not known yet
        table[p, :next_chips] = now
        if np.isnan(predicted[p]):
            chips = free[p]
            for k in range(pools_of_jobs.shape[0]):
                if pools_of_jobs[k] == p:
                    last = ends[k]
                    chips += held[k]
                    while next_chips < width and next_chips <= chips:
                        table[p, next_chips] = last
                        next_chips += 1
        table[p, next_chips:] = last
        table[p, min(max(total[p], -1), width - 1) + 1 :] = np.inf


@jit_cached
def look_up_starts(table: Any, chips: Any, start: Any) -> None:
    """When each job could start in each pool."""
    for j in range(chips.shape[0]):
        for p in range(chips.shape[1]):
            start[j, p] = table[p, chips[j, p]]


@jit_cached
def look_up_starts_in(where: Any, chips: Any, table: Any, now: float, start: Any) -> None:
    """When each job could start in the pool named for its row; now where none is."""
    for j in range(where.shape[0]):
        start[j] = table[where[j], chips[j, where[j]]] if where[j] >= 0 else now


@jit_cached
def scale_to_remaining(
    rows: Any,
    done: Any,
    all_seconds: Any,
    all_high: Any,
    usd_hour: Any,
    usd_once: Any,
    seconds: Any,
    high: Any,
    usd: Any,
) -> None:
    """What is still to come of some rows' runs."""
    for k in range(rows.shape[0]):
        j = rows[k]
        left = max(1.0 - done[j], NOTHING_LEFT)
        pools = range(seconds.shape[1])
        for p in pools:  # one after the other: several at once are not vectorised
            seconds[j, p] = all_seconds[j, p] * left
        for p in pools:
            high[j, p] = all_high[j, p] * left
        for p in pools:
            usd[j, p] = usd_hour[j, p] * seconds[j, p] / 3600.0 + usd_once[j, p]


@jit_cached
def advance_running(
    rows: Any,
    now: float,
    current_pool: Any,
    base: Any,
    progress_time: Any,
    since: Any,
    every: Any,
    restart: Any,
    warming: Any,
    all_seconds: Any,
    before: Any,
    done: Any,
    served: Any,
    had: Any,
    restart_cost_s: Any,
) -> None:
    """How far some running jobs have come by now, what they have had, and what stopping them would repeat."""
    for k in range(rows.shape[0]):
        j = rows[k]
        p = current_pool[j]
        ran = max(now - since[j], 0.0)
        worked = max(ran - warming[j], 0.0)  # checkpoints count from when it works
        advance = (now - max(progress_time[j], since[j] + warming[j])) / max(all_seconds[j, p], 1e-9)
        done[j] = min(base[j] + max(advance, 0.0), max(base[j], 1.0 - LEFT))
        served[j, p] = before[j, p] + ran
        had[j] = 0.0
        for q in range(served.shape[1]):
            had[j] += served[j, q]
        if every[j] == np.inf:
            repeated = ran
        else:
            repeated = worked % every[j] if every[j] > 0 else 0.0
        restart_cost_s[j] = repeated + restart[j]


def in_parts(rows: Any) -> Iterator[Any]:
    """Rows, so many at a time that what is made of them stays in the processor's caches."""
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE]


def least_needs(chips: Any, seconds: Any, usd: Any) -> tuple[Any, Any, Any]:
    """Chips, chip-hours and dollars that each job [J] takes at the least, over the pools [J, P] where it can run.

    One that can't run anywhere needs nothing: it waits for that, not for a quota.
    """
    possible = (chips > 0) & np.isfinite(seconds)
    hours = chips * np.where(possible, seconds, 0.0) / 3600
    least = [np.where(possible, value, np.inf).min(axis=1, initial=np.inf) for value in (chips, hours, usd)]
    chips, hours, usd = (np.where(np.isfinite(value), value, 0.0) for value in least)
    return chips, hours, usd
