"""Cost, time, energy and risk, weighed against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.errors import InputError
from chipwise.io.jit import jit_cached, lent
from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.cluster_state import ClusterState, PolicyDecision
from chipwise.route.policies.ranking import by_work
from chipwise.route.policies.risk import late_side
from chipwise.route.policies.rows import least_work

# cost and time alike; energy and risk break near-ties: our choice, to be set by the team
WEIGHTS = {"cost": 0.4, "time": 0.4, "energy": 0.1, "risk": 0.1}

NOTHING = 1e-9  # USD or joules of a whole run that count as none: a price so small is rounding, and divides to inf


@windowed(QueueWindow(by_work))
def balanced(state: ClusterState) -> PolicyDecision:
    """Cost, time to the end and energy, each over the job's best, and risk (spread of the time), by weights."""
    weights = weights_of(state)
    energy, risk = weights["energy"] != 0, weights["risk"] != 0
    score, per_second = np.empty(state.seconds.shape), np.empty(len(state.weight))
    _weighed(
        state.now,
        (weights["cost"], weights["time"], weights["energy"], weights["risk"]),
        lent(state.seconds),
        lent(state.start),
        lent(state.usd),
        lent(state.joules if energy else state.usd),  # what is not weighed is not read
        lent(late_side(state) if risk else state.usd),
        score,
        per_second,
    )
    terms = ", ".join(f"{name} {share:g}" for name, share in weights.items())
    order = least_work(state.seconds, state.chips) / state.weight
    because = f"the least weighted sum of {terms}"
    return PolicyDecision(score, order, "of its best", preempts=True, moves=True, wait=per_second, because=because)


def weights_of(state: ClusterState) -> dict[str, float]:
    """The weights in force."""
    weights = {name: float(state.weights.get(name, default)) for name, default in WEIGHTS.items()}
    for name, value in weights.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"weights.{name}", value, "a number of at least 0")
    if not any(weights.values()):
        raise InputError("weights", weights, "at least one above 0")
    return weights


@jit_cached
def _weighed(
    now: float, weights: Any, seconds: Any, start: Any, usd: Any, joules: Any, late: Any, score: Any, per_second: Any
) -> None:
    """The weighted sums, by job and pool, and what a second until its end adds to each job's."""
    cost, time, energy, risk = weights
    for j in range(seconds.shape[0]):
        shortest = cheapest = thriftiest = 1e300  # a job that can't run anywhere has no best
        for p in range(seconds.shape[1]):
            shortest, cheapest = min(shortest, seconds[j, p]), min(cheapest, usd[j, p])
            if energy != 0:
                thriftiest = min(thriftiest, joules[j, p])
        per_second[j] = time / max(shortest, 1e-9)
        for p in range(seconds.shape[1]):  # over the job's least; free against paid: as twice the cost
            if cheapest > NOTHING:
                score[j, p] = cost * (usd[j, p] / cheapest)
            else:
                score[j, p] = cost * (2.0 if usd[j, p] > NOTHING else 1.0)
            if energy != 0 and thriftiest > NOTHING:
                score[j, p] += energy * (joules[j, p] / thriftiest)
            elif energy != 0:
                score[j, p] += energy * (2.0 if joules[j, p] > NOTHING else 1.0)
            if risk != 0:
                score[j, p] += risk * late[j, p]
            score[j, p] += per_second[j] * (seconds[j, p] + (max(start[j, p], now) - now))
