"""Smith's rule (1956): pools ranked by one number, and jobs by how little of it they need over their priority.

Least first over priority keeps the weighted sum of completion times low. Long jobs do not
starve: aging in `allocate` puts overdue jobs first.
"""

from __future__ import annotations

import numpy as np

from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.cluster_state import ClusterState, Floats, Ints, PolicyDecision
from chipwise.route.policies.rows import least, least_work

TIE = (
    0.05  # of the least dollars or joules: predictions are no closer than that, so the earliest end decides; our choice
)


def by_work(state: ClusterState) -> tuple[Floats, Ints, Floats]:
    """Chip-seconds over priority: how jobs that wait are ordered by `fastest` and `balanced`."""
    return _alone(least_work(state.seconds, state.chips) / state.weight)


def _by_usd(state: ClusterState) -> tuple[Floats, Ints, Floats]:
    return _alone(_least(state, state.usd))


def _by_joules(state: ClusterState) -> tuple[Floats, Ints, Floats]:
    return _alone(_least(state, state.joules))


def _alone(order: Floats) -> tuple[Floats, Ints, Floats]:
    """An order that neither time nor starts change."""
    return order, np.full(len(order), -1), np.zeros(len(order))


@windowed(QueueWindow(by_work))
def fastest(state: ClusterState) -> PolicyDecision:
    """Earliest predicted end, the wait for free chips included; shortest first, in chip-seconds over priority."""
    order = least_work(state.seconds, state.chips) / state.weight
    return PolicyDecision(
        finish_in(state),
        order,
        "s",
        preempts=True,
        moves=True,
        wait=1.0,
        because="the earliest predicted end, waiting included",
    )


@windowed(QueueWindow(_by_usd))
def cheapest(state: ClusterState) -> PolicyDecision:
    """Least dollars, however long the wait; within 5 % the earliest end. The fewest dollars over priority go first."""
    return PolicyDecision(
        state.usd,
        _least(state, state.usd),
        "USD",
        moves=True,
        tie=TIE,
        because="the fewest dollars, however long the wait; within 5 % the earliest end",
    )


@windowed(QueueWindow(_by_joules))
def least_energy(state: ClusterState) -> PolicyDecision:
    """Least energy, however long the wait; within 5 % the earliest end. The fewest joules over priority go first."""
    return PolicyDecision(
        state.joules,
        _least(state, state.joules),
        "J",
        moves=True,
        tie=TIE,
        because="the least energy, however long the wait; within 5 % the earliest end",
    )


def finish_in(state: ClusterState) -> Floats:
    """Seconds until a job would end in each pool."""
    return np.asarray(state.seconds + (np.maximum(state.start, state.now) - state.now))


def _least(state: ClusterState, what: Floats) -> Floats:
    return np.asarray(least(what) / state.weight)
