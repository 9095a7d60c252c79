"""Fair policies: shares of time by linear program, then whoever is furthest behind its share goes first.

What a pool gives a job is its rate there: the part of the remaining work done in a second. A job's rate is normalised
by what an equal split of every pool would give it, so that unlike jobs can be compared (Gavel, OSDI 2020, section 4).
"""

from __future__ import annotations

import numpy as np

from chipwise.route.policies.program import Sharing
from chipwise.route.policies.ranking import finish_in
from chipwise.route.view import Flags, Floats, Ints, View, Wishes

GRAIN = 60.0  # s by which service and age are raised, so that the first moments of a job decide nothing
ALIKE = 9  # digits to which the rows of two jobs agree that are one group of the program
CLOSE = 1e-4  # to which the least of the largest ratios of finish times is found; estimates are never that good


def max_min_fair(view: View) -> Wishes:
    """An equal share of effective throughput, over priority, as large as can be; what is left goes for the most."""
    shares = view.shares if view.shares is not None else max_min_shares(view)
    return _by_shares(view, shares, "the largest equal share of effective throughput")


def finish_time_fair(view: View) -> Wishes:
    """The largest ratio of finish time to that of an equal split of the pools, over all jobs, as small as can be."""
    shares = view.shares if view.shares is not None else finish_time_shares(view)
    return _by_shares(view, shares, "the smallest ratio of finish time to that of an equal split")


def equal_split(view: View) -> Floats:
    """Shares of time if every pool were split alike over the jobs, by priority: what each could have by itself."""
    part = view.weight / view.weight.sum() if len(view.weight) else view.weight
    can = _can(view)
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.where(can, part[:, None] * view.total / view.chips, 0.0)
    return np.asarray(split / np.maximum(split.sum(axis=1), 1.0)[:, None])


def max_min_shares(view: View) -> Floats:
    """Shares that make the least normalised rate the greatest, and with that the sum of all."""
    rate, shares = _rate(view), np.zeros(view.seconds.shape)
    able = np.flatnonzero((rate > 0).any(axis=1))
    if not len(able):
        return shares
    normal = _normal(view, rate)
    group, first, many = _groups(rate[able] / normal[able, None], view.chips[able], view.weight[able])
    rows = able[first]
    gains = rate[rows] / normal[rows, None]
    program = Sharing(gains / view.weight[rows, None], _takes(view, rows), many)
    level = program.most_alike(np.ones(len(rows)))
    program.most_in_all(level, gains)
    shares[able] = program.shares()[group]
    return shares


def finish_time_shares(view: View) -> Floats:
    """Shares that make the largest (age + time to go) / (time of an equal split, past and to go) the smallest."""
    rate, shares = _rate(view), np.zeros(view.seconds.shape)
    able = np.flatnonzero((rate > 0).any(axis=1))
    if not len(able):
        return shares
    split = (rate * equal_split(view)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        past = np.where(rate > 0, view.served * rate, 0.0).sum(axis=1)  # work done, in units of what is left
        alone = (1 + past) / split
    age = np.maximum(view.now - view.arrival, 0.0)
    rows, top = able, rate[able].max(axis=1)
    program = Sharing(rate[rows] / top[:, None], _takes(view, rows), np.ones(len(rows)))
    worst = _smallest_ratio(program, age[rows], alone[rows], top)
    program.most_in_all(program.most_alike(_demand(worst, age[rows], alone[rows], top)), rate[rows] / top[:, None])
    shares[able] = program.shares()
    return shares


def _smallest_ratio(program: Sharing, age: Floats, alone: Floats, top: Floats) -> float:
    """The smallest ratio that all can have: the program's level is 1 there, and grows with the ratio."""
    low = float(((age + 1 / top) / alone).max())  # the worst off, alone in the cluster
    if program.most_alike(_demand(low, age, alone, top)) >= 1:
        return low
    high = 2 * low
    while program.most_alike(_demand(high, age, alone, top)) < 1:
        low, high = high, 2 * high
    while high > low * (1 + CLOSE):
        middle = (low * high) ** 0.5
        if program.most_alike(_demand(middle, age, alone, top)) < 1:
            low = middle
        else:
            high = middle
    return high


def _demand(ratio: float, age: Floats, alone: Floats, top: Floats) -> Floats:
    """Rate, over its best, that each job needs for a ratio."""
    return np.asarray(1 / np.maximum(ratio * alone - age, 1e-9) / top)


def _by_shares(view: View, shares: Floats, because: str) -> Wishes:
    """Furthest behind its share first; pools a job has no share in come after all, least work first."""
    can = np.isfinite(view.seconds)
    age = np.maximum(view.now - view.arrival, 0.0)[:, None]
    ahead = (view.served + GRAIN) / (age + GRAIN)
    with np.errstate(invalid="ignore"):
        order = np.where(shares > 0, -shares / ahead, view.seconds * view.chips / view.weight[:, None])
    order = np.where(can, order, np.inf)
    return Wishes(finish_in(view), order, "s", preempts=True, moves=True, because=because, shares=shares)


def _can(view: View) -> Flags:
    return np.asarray(np.isfinite(view.seconds) & (view.chips > 0) & (view.chips <= view.total))


def _rate(view: View) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(_can(view), 1 / np.maximum(view.seconds, 1e-9), 0.0)


def _normal(view: View, rate: Floats) -> Floats:
    """The rate that an equal part of every pool's chips would give."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(rate > 0, rate / view.chips, 0.0)
    return np.asarray((each * (view.total / view.total.sum())).sum(axis=1))


def _takes(view: View, rows: Ints) -> Floats:
    return np.asarray(view.chips[rows] / np.maximum(view.total, 1))


def _groups(gains: Floats, chips: Ints, weight: Floats) -> tuple[Ints, Ints, Floats]:
    """Which group each row is in, the first row of each group, and how many rows it has."""
    with np.errstate(divide="ignore"):
        key = np.round(np.concatenate([np.log(gains), np.log(weight)[:, None]], axis=1), ALIKE)
    seen: dict[bytes, int] = {}
    group = np.empty(len(gains), dtype=np.int64)
    first: list[int] = []
    for j, (a, b) in enumerate(zip(key, chips, strict=True)):
        name = a.tobytes() + b.tobytes()
        if name not in seen:
            seen[name] = len(first)
            first.append(j)
        group[j] = seen[name]
    return group, np.array(first, dtype=np.int64), np.bincount(group).astype(float)
