"""Whose turn it is: the order a policy wishes, but whoever has waited too long comes first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from chipwise.route.view import Flags, Floats, Ints, View, Wishes

OVERHEAD = 0.05  # of the time a job has run, that stopping it for a fair share may waste
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
    """Jobs in the order of their turns: those that have waited too long by when that was, then as the policy says.

    Those alike go by arrival, then by id.
    """
    turns = by_id(np.lexsort((view.arrival, wishes.order)), view.jobs, wishes.order, view.arrival)
    if not aged.any():
        return turns
    first = np.flatnonzero(aged)
    first = first[np.lexsort((view.arrival[first], due[first]))]
    return np.concatenate([by_id(first, view.jobs, due, view.arrival), turns[~aged[turns]]])


def by_id(turns: Ints, jobs: Sequence[str], *keys: Floats) -> Ints:
    """Turns, sorted by these keys, with those that are alike in all of them by id: numbers by value."""
    alike = np.ones(max(len(turns) - 1, 0), dtype=bool)
    for key in keys:
        sorted_key = key[turns]
        alike &= sorted_key[1:] == sorted_key[:-1]
    if not alike.any():
        return turns
    found = turns.tolist()
    edges = np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8))
    for begin, end in zip(np.flatnonzero(edges > 0).tolist(), np.flatnonzero(edges < 0).tolist(), strict=True):
        found[begin:end + 1] = sorted(found[begin:end + 1], key=lambda j: (len(jobs[j]), jobs[j]))
    return np.array(found, dtype=np.int64)


def trimmed(view: View, turns: Ints, depth: int, asked: Collection[str]) -> Ints:
    """The first so many of the jobs that wait, with those that run and those asked for."""
    waits = view.at[turns] < 0
    keep = ~waits | (np.cumsum(waits) <= depth)
    names = set(asked)
    if names:
        keep |= np.array([view.jobs[j] in names for j in turns.tolist()], dtype=bool)
    return turns[keep]


def pairs(view: View, wishes: Wishes, aged: Flags, due: Floats) -> tuple[Ints, Ints, int]:
    """Jobs and pools in the order of their turns, and how many of them are of jobs that have waited too long.

    Those alike go by arrival, then by id. Pairs that can't change anything are left out: other pools of a running job
    that may not be moved.
    """
    score = allowed(view, wishes)
    can = np.isfinite(score)
    stays = np.flatnonzero((view.at >= 0) & ~_movable(view, wishes))
    here = view.at[stays]
    kept = can[stays, here]
    can[stays] = False
    can[stays, here] = kept
    ranked = by_id(np.argsort(view.arrival, kind="stable"), view.jobs, view.arrival)
    young, old = ranked[~aged[ranked]], ranked[aged[ranked]]
    jobs, pools = np.nonzero(can[young] & np.isfinite(wishes.order[young]))
    jobs = young[jobs]
    by = np.argsort(wishes.order[jobs, pools], kind="stable")
    jobs, pools = jobs[by], pools[by]
    if not len(old):
        return jobs, pools, 0
    place, where = np.nonzero(can[old])
    by = np.lexsort((score[old[place], where], place, due[old[place]]))
    return np.concatenate([old[place[by]], jobs]), np.concatenate([where[by], pools]), len(place)


def _movable(view: View, wishes: Wishes) -> Flags:
    """Running jobs that may change pools for the sake of a share: what they repeat is little beside what they ran."""
    if not wishes.moves:
        return np.zeros(len(view.jobs), dtype=bool)
    return np.asarray(view.restartable & (view.again <= OVERHEAD * (view.now - view.since)))


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
