"""The cheapest pool that meets a deadline with a stated probability; without a deadline, delay has a price."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.errors import InputError
from chipwise.io.jit import jit_cached, lent
from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.cluster_state import ClusterState, Floats, Ints, PolicyDecision
from chipwise.route.job_table import JobTable
from chipwise.route.job_table_part import Moment
from chipwise.route.policies.ranking import TIE
from chipwise.route.policies.risk import in_time, run_quantile, within_factor
from chipwise.route.policies.rows import least, most

# USD that an hour until the end of a job without a deadline counts, times its priority. An engineer's week costs 6,000
# USD (engineer_week_usd of the economics, 2026-11-15), 36 USD for each of its 168 hours; whoever submits a job is held
# up by it in about a seventh of those, and works on something else or sleeps in the rest: our choice
DELAY = 5.0
WEIGHTS = {"delay": DELAY}
SOFT = 86_400.0  # s after arrival, over its priority, that a job without a deadline is in line for: a day, our choice


def _last_starts(state: ClusterState) -> tuple[Floats, Ints, Floats]:
    """The last start that meets a deadline, where that is, and what orders a job once it can't be met."""
    shortest = least(state.seconds)
    behind = np.where(np.isfinite(shortest), shortest, 0.0) / state.weight
    due = np.isfinite(state.deadline)
    last = np.where(due, state.deadline, 0.0)[:, None] - run_quantile(state)
    return (
        np.where(due, most(last), state.arrival + SOFT / state.weight),
        np.where(due, last.argmax(axis=1), -1),
        behind,
    )


def _queue_order(table: JobTable, moment: Moment, sort_keys: tuple[Floats, Ints, Floats]) -> Floats:
    """The order of all that wait. Most meet their deadline where they have most time for it: the others are checked."""
    order, where, behind = sort_keys
    start = np.maximum(table.starts_in(moment, where), moment.now)
    late = (where >= 0) & (start > order) & (table.column("current_pool") < 0)
    if not late.any():
        return order
    lost = late & (order < moment.now)
    unsure = np.flatnonzero(late & ~lost)
    state = table.part(moment, unsure)
    last = state.deadline[:, None] - run_quantile(state)
    lost[unsure] = ~(np.maximum(state.start, state.now) <= last).any(axis=1)
    return np.where(lost, moment.now + SOFT + behind, order)


@windowed(QueueWindow(_last_starts, _queue_order))
def cheapest_within_deadline(state: ClusterState) -> PolicyDecision:
    """Fewest dollars that meet the deadline with the job's confidence; without one, an hour's delay has a price."""
    count = len(state.deadline)
    factor = within_factor(state)
    score, latest = np.empty(state.seconds.shape), np.empty(state.seconds.shape)
    order, wait, lost = np.empty(count), np.empty(count), np.zeros(count, dtype=bool)
    due = _judged(
        state.now,
        delay_usd_per_hour(state) / 3600.0,
        lent(state.deadline),
        lent(state.arrival),
        lent(state.weight),
        lent(state.seconds),
        lent(state.start),
        lent(state.usd),
        lent(factor),
        score,
        latest,
        order,
        wait,
        lost,
    )
    if not due:
        return _decide(state, score, order, wait, None, {})
    rows = np.flatnonzero(lost)
    if not len(rows):
        return _decide(state, score, order, wait, latest, {})
    notes = _likeliest(state, rows, score, order, wait)
    latest[rows] = np.inf
    return _decide(state, score, order, wait, latest, notes, rows)


@jit_cached
def _judged(
    now: float,
    delay: float,
    deadline: Any,
    arrival: Any,
    weight: Any,
    seconds: Any,
    start: Any,
    usd: Any,
    factor: Any,
    score: Any,
    latest: Any,
    order: Any,
    wait: Any,
    lost: Any,
) -> int:
    """Scores, last starts, the order and the price of waiting; which jobs can't meet their deadline; how many have one.

    Until its end a job without a deadline pays for its run and the wait; for a pool that is never free, for the run
    alone; where it can't run its dollars are no score.
    """
    due = 0
    for j in range(seconds.shape[0]):
        if np.isfinite(deadline[j]):
            due += 1
            wait[j], last, lost[j] = 0.0, -np.inf, True
            for p in range(seconds.shape[1]):
                score[j, p] = usd[j, p]
                latest[j, p] = deadline[j] - seconds[j, p] * factor[j, p]
                last = max(last, latest[j, p])
                if max(start[j, p], now) <= latest[j, p]:
                    lost[j] = False
            order[j] = last
        else:
            wait[j] = delay * weight[j]
            order[j] = arrival[j] + SOFT / weight[j]
            for p in range(seconds.shape[1]):
                until = seconds[j, p] if seconds[j, p] < np.inf else 0.0
                if start[j, p] < np.inf:
                    until += max(start[j, p] - now, 0.0)
                score[j, p] = usd[j, p] + wait[j] * until
                latest[j, p] = np.inf
    return due


def delay_usd_per_hour(state: ClusterState) -> float:
    """What an hour until the end of a job without a deadline counts, at priority 1."""
    delay = float(state.weights.get("delay", DELAY))
    if not (np.isfinite(delay) and delay >= 0):
        raise InputError("weights.delay", delay, "US dollars an hour, at least 0")
    return delay


def _likeliest(state: ClusterState, lost: Ints, score: Floats, order: Floats, wait: Floats) -> dict[str, str]:
    """Jobs that no pool lets meet their deadline go where that is likeliest, behind those that can meet theirs."""
    chance = in_time(state, lost)
    seconds = state.seconds[lost]
    late = np.maximum(state.start[lost], state.now) + seconds - state.deadline[lost, None]
    can = np.isfinite(seconds)
    # where there is no chance left, the least late
    score[lost] = np.where(can, 1 - chance + np.where(chance > 0, 0.0, 1e-6 * np.maximum(late, 0.0)), np.inf)
    shortest = least(seconds)
    wait[lost] = 1e-6 + np.where(np.isfinite(shortest), 1 / np.maximum(shortest, 1.0), 0.0)
    order[lost] = state.now + SOFT + np.where(np.isfinite(shortest), shortest, 0.0) / state.weight[lost]
    return Chances(state, lost, chance)


class Chances(dict[str, str]):
    """The reasons of jobs that no pool lets meet their deadline; worded only when read, since few are."""

    def __init__(self, state: ClusterState, lost: Ints, chance: Floats) -> None:
        super().__init__()
        self._state, self._lost, self._chance = state, lost, chance
        self._rows: dict[str, tuple[int, int]] = {}

    def get(self, job: str, default: Any = None) -> Any:
        """What the reason of a job adds."""
        if not self._rows:
            self._rows = {self._state.jobs[j]: (k, j) for k, j in enumerate(self._lost.tolist())}
        if job not in self._rows:
            return default
        k, j = self._rows[job]
        state, p = self._state, int(self._chance[k].argmax())
        if not np.isfinite(state.seconds[j]).any():
            return default
        return (
            f"no pool meets its deadline with {state.confidence[j]:.0%}; the likeliest, {state.pools[p]}, does with "
            f"{self._chance[k, p]:.0%} (scores are the risk of missing it)"
        )


def _decide(
    state: ClusterState,
    score: Floats,
    order: Floats,
    wait: Floats,
    latest: Floats | None,
    notes: dict[str, str],
    lost: Ints | None = None,
) -> PolicyDecision:
    # Nobody is stopped: slack shrinks while a job waits and grows while it runs, so jobs would take turns at stopping
    # each other, and what they repeat costs more and misses more than it saves (benchmarks/loop.py tries both).
    tie = np.full(len(state.jobs), TIE)
    if lost is not None:
        tie[lost] = 0.0  # scores are risks there
    delay = delay_usd_per_hour(state)
    return PolicyDecision(
        score,
        order,
        "USD",
        wait=wait,
        latest=latest,
        tie=tie,
        notes=notes,
        because="the fewest dollars that meet the deadline with the job's confidence; without one, an hour's delay has "
        "a price",
        wait_note=f"an hour until its end counts {delay:g} USD times its priority" if delay else "",
    )
