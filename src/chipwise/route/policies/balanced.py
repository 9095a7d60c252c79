"""Cost, time, energy and risk, weighed against each other."""

from __future__ import annotations

import numpy as np

from chipwise.errors import InputError
from chipwise.route.policies.ranking import finish_in
from chipwise.route.view import Floats, View, Wishes

# cost and time alike; energy and risk break near-ties: our choice, to be set by the team
WEIGHTS = {"cost": 0.4, "time": 0.4, "energy": 0.1, "risk": 0.1}


def balanced(view: View) -> Wishes:
    """Cost, time to the end, energy and risk, each over the job's best, by weights (cost, time, energy, risk)."""
    by = weights_of(view)
    score = by["cost"] * _over_best(view.usd) + by["energy"] * _over_best(view.joules)
    if by["risk"]:
        score = score + by["risk"] * risk(view)
    shortest = view.seconds.min(axis=1, initial=np.inf)
    second = np.where(np.isfinite(shortest), by["time"] / np.maximum(shortest, 1e-9), 0.0)
    with np.errstate(invalid="ignore"):
        score = np.asarray(score + second[:, None] * finish_in(view))
    score = np.where(np.isnan(score), np.inf, score)
    with np.errstate(invalid="ignore"):
        work = np.fmin.reduce(view.seconds * view.chips, axis=1, initial=np.inf) / view.weight
    said = ", ".join(f"{name} {share:g}" for name, share in by.items())
    return Wishes(score, work, "of its best", preempts=True, moves=True, wait=second,
                  because=f"the least weighted sum of {said}")


def weights_of(view: View) -> dict[str, float]:
    """The weights in force."""
    by = {name: float(view.weights.get(name, default)) for name, default in WEIGHTS.items()}
    for name, value in by.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"weights.{name}", value, "a number of at least 0")
    if not any(by.values()):
        raise InputError("weights", by, "at least one above 0")
    return by


def risk(view: View) -> Floats:
    """How far the high end of the interval lies above the estimate, and interruptions to be expected."""
    with np.errstate(invalid="ignore"):
        beyond = view.high / view.seconds - 1
        if view.interruptions.any():
            beyond = beyond + view.interruptions * view.seconds / 3600
    return np.asarray(beyond)


def _over_best(what: Floats) -> Floats:
    """Each pool's number over the job's least; 1 everywhere where that is nothing."""
    least = what.min(axis=1, initial=np.inf)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        over = what / least
    if (least > 0).all():
        return np.asarray(over)
    return np.where(least > 0, over, np.where(what > 0, 2.0, 1.0))  # free against paid: as good as twice the cost
