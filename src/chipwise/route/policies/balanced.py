"""Cost, time, energy and risk, weighed against each other."""

from __future__ import annotations

import numpy as np

from chipwise.errors import InputError
from chipwise.route.allocate import QueueWindow, windowed
from chipwise.route.cluster_state import ClusterState, Floats, PolicyDecision
from chipwise.route.policies.ranking import by_work, finish_in
from chipwise.route.policies.risk import late_side
from chipwise.route.policies.rows import least, least_work

# cost and time alike; energy and risk break near-ties: our choice, to be set by the team
WEIGHTS = {"cost": 0.4, "time": 0.4, "energy": 0.1, "risk": 0.1}

NOTHING = 1e-9  # USD or joules of a whole run that count as none: a price so small is rounding, and divides to inf


@windowed(QueueWindow(by_work))
def balanced(state: ClusterState) -> PolicyDecision:
    """Cost, time to the end and energy, each over the job's best, and risk (spread of the time), by weights."""
    weights = weights_of(state)
    score = weights["cost"] * _over_best(state.usd)
    if weights["energy"]:
        score += weights["energy"] * _over_best(state.joules)
    if weights["risk"]:
        score += weights["risk"] * late_side(state)
    shortest = least(state.seconds)
    per_second = weights["time"] / np.clip(shortest, 1e-9, 1e300)  # a job that can't run anywhere has no best
    score += per_second[:, None] * finish_in(state)
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


def _over_best(what: Floats) -> Floats:
    """Each pool's number over the job's least; 1 everywhere where that is nothing."""
    best = np.minimum(least(what), 1e300)[:, None]  # a job that can't run anywhere has no best
    if (best > NOTHING).all():
        return np.asarray(what / best)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # free against paid: as twice the cost
        return np.where(best > NOTHING, what / best, np.where(what > NOTHING, 2.0, 1.0))
