"""Fair policies: shares of time by linear program, then whoever is furthest behind its share goes first.

What a pool gives a job is its rate there: the part of the remaining work done in a second. A job's speed in a pool is
that over its best rate, so that unlike jobs can be compared: equal shares slow all down alike, however many chips they
need (Gavel, OSDI 2020, section 4, has an equal share of chips instead, which slows gangs down most).
"""

from __future__ import annotations

import numpy as np

from chipwise.route.policies.interior import Interior
from chipwise.route.policies.program import Sharing
from chipwise.route.policies.ranking import finish_in
from chipwise.route.view import Flags, Floats, Ints, View, Wishes

GRAIN = 360.0  # s of the future that count as owed already: about the time between two looks; Gavel's round
SMALL_POOLS = 8  # up to so many, the interior-point method is quicker than the simplex: its matrices are that wide
LAST = 1e12  # an order behind everybody with a share
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
    """Shares that make the least speed over priority the greatest, and with that the sum of all."""
    rate, shares = _rate(view), np.zeros(view.seconds.shape)
    able = np.flatnonzero((rate > 0).any(axis=1))
    if not len(able):
        return shares
    gains = rate[able] / rate[able].max(axis=1)[:, None]
    if gains.shape[1] <= SMALL_POOLS:
        quick = _interior(view, able, gains / view.weight[able, None])
        quick.most_in_all(gains)
        shares[able] = quick.shares()
        return shares
    group, first, many = _groups(gains, view.chips[able], view.weight[able])
    rows, gains = able[first], gains[first]
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
    speed = rate[rows] / top[:, None]
    if speed.shape[1] <= SMALL_POOLS:
        quick = _interior(view, rows, speed)
        _smallest_ratio(quick, age[rows], alone[rows], top)
        quick.most_in_all(speed)
        shares[able] = quick.shares()
        return shares
    program = Sharing(speed, _takes(view, rows), np.ones(len(rows)))
    worst = _smallest_ratio(program, age[rows], alone[rows], top)
    program.most_in_all(program.most_alike(_demand(worst, age[rows], alone[rows], top)), speed)
    shares[able] = program.shares()
    return shares


def _smallest_ratio(program: Sharing | Interior, age: Floats, alone: Floats, top: Floats) -> float:
    """The smallest ratio that all can have: the program's level is 1 there, and grows with the ratio.

    By false position on logarithms, where the level is nearly straight; the side that stays is pulled in (Illinois).
    """
    def over(ratio: float) -> float:
        return float(np.log(program.most_alike(_demand(ratio, age, alone, top))))

    low = float(((age + 1 / top) / alone).max())  # the worst off, alone in the cluster
    under = over(low)
    if under >= -CLOSE:
        return low
    high, above = 2 * low, over(2 * low)
    while above < 0:
        low, under, high, above = high, above, 2 * high, over(2 * high)
    while high > low * (1 + CLOSE):
        middle = float(np.exp((np.log(low) * above - np.log(high) * under) / (above - under)))
        level = over(middle)
        if abs(level) <= CLOSE:
            return middle
        if level < 0:
            low, under, above = middle, level, above / 2
        else:
            high, above, under = middle, level, under / 2
    return high


def _demand(ratio: float, age: Floats, alone: Floats, top: Floats) -> Floats:
    """Rate, over its best, that each job needs for a ratio."""
    return np.asarray(1 / np.maximum(ratio * alone - age, 1e-9) / top)


def _interior(view: View, rows: Ints, speed: Floats) -> Interior:
    return Interior(speed, view.chips[rows].astype(float), view.total.astype(float))


def _by_shares(view: View, shares: Floats, because: str) -> Wishes:
    """Furthest behind its share first; pools a job has no share in come after all, fastest for it first."""
    with np.errstate(invalid="ignore"):
        speed = view.seconds.min(axis=1, initial=np.inf)[:, None] / view.seconds
    speed = np.where(np.isfinite(view.seconds), speed, 0.0)
    order = np.where(shares > 0, -GRAIN * shares - _owed(view, shares, speed)[:, None], LAST - speed)
    order = np.where(speed > 0, order, np.inf)
    return Wishes(finish_in(view), order, "s", preempts=True, moves=True, because=because, shares=shares)


def _owed(view: View, shares: Floats, speed: Floats) -> Floats:
    """Seconds in its best pool that a job's shares have promised since they came into force and it has not had."""
    if view.shares is None:
        return np.zeros(len(shares))
    if view.shared is None or np.isnan(view.shares_since):  # since it came, as if they had been in force
        since, had = view.arrival[:, None], view.served
    else:
        since, had = np.full((len(shares), 1), view.shares_since), view.shared
    return np.asarray(((shares * np.maximum(view.now - since, 0.0) - had) * speed).sum(axis=1))


def _can(view: View) -> Flags:
    return np.asarray(np.isfinite(view.seconds) & (view.chips > 0) & (view.chips <= view.total))


def _rate(view: View) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(_can(view), 1 / np.maximum(view.seconds, 1e-9), 0.0)


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
