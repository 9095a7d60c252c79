"""Whose turn it is: the order a policy wishes, but whoever has waited too long comes first."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from chipwise.route.view import Flags, Floats, Ints, View, Wishes

PATIENCE = 86_400.0  # s that a job of priority 1 waits before it goes first: a day, our choice; whole days are noticed


def overdue(view: View, patience: float = PATIENCE) -> tuple[Flags, Floats]:
    """Jobs that have waited for longer than `patience` over their priority, and since when; time served is no wait."""
    due = view.arrival + patience / np.maximum(view.weight, 1e-9)
    aged = due <= view.now
    if aged.any():
        due[aged] += view.served[aged].sum(axis=1)
        aged = due <= view.now
    return aged, due


def sequence(view: View, wishes: Wishes, aged: Flags, due: Floats) -> Ints:
    """Jobs in the order of their turns: those that have waited too long by when that was, then as the policy says."""
    turns = np.argsort(wishes.order, kind="stable")
    if not aged.any():
        return turns
    first = np.flatnonzero(aged)
    return np.concatenate([first[np.lexsort((view.arrival[first], due[first]))], turns[~aged[turns]]])


def trimmed(view: View, turns: Ints, depth: int, asked: Collection[str]) -> Ints:
    """The first so many of the jobs that wait, with those that run and those asked for."""
    waits = view.at[turns] < 0
    keep = ~waits | (np.cumsum(waits) <= depth)
    for job in asked:
        keep |= turns == view.jobs.index(job)
    return turns[keep]


def pairs(view: View, wishes: Wishes, aged: Flags, due: Floats) -> tuple[Ints, Ints, int]:
    """Jobs and pools in the order of their turns, and how many of them are of jobs that have waited too long."""
    score = allowed(view, wishes)
    can = np.isfinite(score) & np.isfinite(wishes.order)
    jobs, pools = np.nonzero(can & ~aged[:, None])
    by = np.lexsort((view.arrival[jobs], wishes.order[jobs, pools]))
    jobs, pools = jobs[by], pools[by]
    old, where = np.nonzero(np.isfinite(score) & aged[:, None])
    by = np.lexsort((score[old, where], view.arrival[old], due[old]))
    return np.concatenate([old[by], jobs]), np.concatenate([where[by], pools]), len(old)


def allowed(view: View, wishes: Wishes) -> Floats:
    """The scores, without pools that a job can't run in or afford, or that it failed in last while it has another."""
    score = np.array(wishes.score, dtype=float)
    score[np.isinf(view.seconds) | (view.usd > view.budget[:, None]) | (view.chips > view.total)] = np.inf
    if view.barred.any():
        other = np.isfinite(score) & ~view.barred
        score[view.barred & other.any(axis=1)[:, None]] = np.inf
    running = np.flatnonzero(view.at >= 0)
    score[running, view.at[running]] = np.minimum(score[running, view.at[running]], 1e300)  # it may go on where it is
    return score
