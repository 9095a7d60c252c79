"""The cheapest pool that meets a deadline with a stated probability; without a deadline, delay has a price."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from chipwise.errors import InputError
from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.cluster_state import ClusterState, Floats, Ints, PolicyDecision
from chipwise.route.job_table import JobTable, Moment
from chipwise.route.policies.ranking import TIE
from chipwise.route.policies.risk import in_time, run_quantile
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
    due = np.flatnonzero(np.isfinite(state.deadline))
    order = state.arrival + SOFT / state.weight
    wait = np.where(np.isfinite(state.deadline), 0.0, delay_usd_per_hour(state) / 3600.0 * state.weight)
    score = state.usd + wait[:, None] * _until_end(state)
    decide = partial(_decide, state, score, order, wait)
    if not len(due):
        return decide(None, {})
    if len(due) == len(state.jobs):
        latest, start = state.deadline[:, None] - run_quantile(state), state.start
        last = latest
    else:
        latest, start = np.full(state.seconds.shape, np.inf), state.start[due]
        last = latest[due] = state.deadline[due, None] - run_quantile(state, due)
    order[due] = most(last)
    lost = due[~(np.maximum(start, state.now) <= last).any(axis=1)]
    if not len(lost):
        return decide(latest, {})
    notes = _likeliest(state, lost, score, order, wait)
    latest[lost] = np.inf
    return decide(latest, notes, lost)


def delay_usd_per_hour(state: ClusterState) -> float:
    """What an hour until the end of a job without a deadline counts, at priority 1."""
    delay = float(state.weights.get("delay", DELAY))
    if not (np.isfinite(delay) and delay >= 0):
        raise InputError("weights.delay", delay, "US dollars an hour, at least 0")
    return delay


def _until_end(state: ClusterState) -> Floats:
    """Seconds until a job would end in each pool; of a pool that is never free, of the run alone."""
    seconds = np.where(np.isfinite(state.seconds), state.seconds, 0.0)  # where it can't run its dollars are no score
    return np.asarray(seconds + np.where(np.isfinite(state.start), np.maximum(state.start - state.now, 0.0), 0.0))


def _likeliest(state: ClusterState, lost: Ints, score: Floats, order: Floats, wait: Floats) -> dict[str, str]:
    """Jobs that no pool lets meet their deadline go where that is likeliest, behind those that can meet theirs."""
    chance = in_time(state, lost)
    late = np.maximum(state.start[lost], state.now) + state.seconds[lost] - state.deadline[lost, None]
    can = np.isfinite(state.seconds[lost])
    # where there is no chance left, the least late
    score[lost] = np.where(can, 1 - chance + np.where(chance > 0, 0.0, 1e-6 * np.maximum(late, 0.0)), np.inf)
    shortest = state.seconds[lost].min(axis=1)
    wait[lost] = 1e-6 + np.where(np.isfinite(shortest), 1 / np.maximum(shortest, 1.0), 0.0)
    order[lost] = state.now + SOFT + np.where(np.isfinite(shortest), shortest, 0.0) / state.weight[lost]
    return Chances(state, lost, chance)


class Chances(dict[str, str]):
    """The reasons of jobs that no pool lets meet their deadline; worded only when read, since few are."""

    def __init__(self, state: ClusterState, lost: Ints, chance: Floats) -> None:
        super().__init__()
        self._state, self._chance = state, chance
        self._row = {state.jobs[j]: (k, j) for k, j in enumerate(lost.tolist())}

    def get(self, job: str, default: Any = None) -> Any:
        """What the reason of a job adds."""
        if job not in self._row:
            return default
        k, j = self._row[job]
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
