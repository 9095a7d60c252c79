"""Fair policies: shares of time by linear program, then whoever is furthest behind its share goes first.

What a pool gives a job is its rate there: the part of the remaining work done in a second. A job's speed in a pool is
that over its best rate, so that unlike jobs can be compared: equal shares slow all down alike, however many chips they
need (Gavel, OSDI 2020, section 4, has an equal share of chips instead, which slows gangs down most).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.io.jit import lent
from chipwise.route.cluster_state import ClusterState, Flags, Floats, Ints, PolicyDecision
from chipwise.route.policies import fair_share_kernels
from chipwise.route.policies.lp_highs import Sharing, bases_of
from chipwise.route.policies.ranking import finish_in

SMALL_POOLS = 8  # up to so many, the interior-point method is quicker than the simplex: its matrices are that wide
ALIKE = 9  # digits to which the rows of two jobs agree that are one group of the program


def max_min_fair(state: ClusterState) -> PolicyDecision:
    """An equal share of effective throughput, over priority, as large as can be; what is left goes for the most."""
    shares = state.shares if state.shares is not None else max_min_shares(state)
    return _by_shares(state, shares, "the largest equal share of effective throughput")


def finish_time_fair(state: ClusterState) -> PolicyDecision:
    """The largest ratio of finish time to that of an equal split of the pools, over all jobs, as small as can be."""
    shares = state.shares if state.shares is not None else finish_time_shares(state)
    return _by_shares(state, shares, "the smallest ratio of finish time to that of an equal split")


def max_min_shares(state: ClusterState) -> Floats:
    """Shares that make the least speed over priority the greatest, and with that the sum of all."""
    rate, shares = _rate(state), np.zeros(state.seconds.shape)
    able = np.flatnonzero((rate > 0).any(axis=1))
    if not len(able):
        return shares
    if len(state.pools) <= SMALL_POOLS:
        shares[able], gap = fair_share_kernels.max_min(
            rate[able], state.weight[able], state.chips[able], lent(state.total)
        )
        if gap <= fair_share_kernels.NOTHING:
            return shares
    gains = rate[able] / rate[able].max(axis=1)[:, None]
    names = _names(gains, state.chips[able], state.weight[able])
    group, first, many = _groups(names)
    rows, gains = able[first], gains[first]
    program = Sharing(
        gains / state.weight[rows, None],
        _takes(state, rows),
        many,
        [names[k] for k in first.tolist()],
        bases_of(("max-min-fair", state.pools)),
    )
    level = program.most_alike(np.ones(len(rows)))
    program.most_in_all(level, gains)
    shares[able] = program.shares()[group]
    return shares


def finish_time_shares(state: ClusterState) -> Floats:
    """Shares that make the largest (age + time to go) / (time of an equal split, past and to go) the smallest."""
    rate, shares = _rate(state), np.zeros(state.seconds.shape)
    able = np.flatnonzero((rate > 0).any(axis=1))
    if not len(able):
        return shares
    age = np.maximum(state.now - state.arrival, 0.0)[able]
    alone = fair_share_kernels.alone(rate, *map(lent, (state.served, state.weight, state.chips, state.total)))[able]
    if len(state.pools) <= SMALL_POOLS:
        shares[able], gap = fair_share_kernels.finish_time(rate[able], age, alone, state.chips[able], lent(state.total))
        if gap <= fair_share_kernels.NOTHING:
            return shares
    top = rate[able].max(axis=1)
    speed = rate[able] / top[:, None]
    names = [state.jobs[j].encode(errors="surrogatepass") for j in able.tolist()]
    program = Sharing(
        speed, _takes(state, able), np.ones(len(able)), names, bases_of(("finish-time-fair", state.pools))
    )
    worst = _smallest_ratio(program, age, alone, top)
    program.most_in_all(program.most_alike(fair_share_kernels.demand(worst, age, alone, top)), speed)
    shares[able] = program.shares()
    return shares


def _smallest_ratio(program: Sharing, age: Floats, alone: Floats, top: Floats) -> float:
    """The smallest ratio that all can have: the program's level is 1 there, and grows with the ratio."""
    low = float(((age + 1 / top) / alone).max())  # the worst off, alone in the cluster
    if program.most_alike(fair_share_kernels.demand(low, age, alone, top)) >= 1:
        return low
    high = 2 * low
    while program.most_alike(fair_share_kernels.demand(high, age, alone, top)) < 1:
        low, high = high, 2 * high
    while high > low * (1 + fair_share_kernels.CLOSE):
        middle = (low * high) ** 0.5
        if program.most_alike(fair_share_kernels.demand(middle, age, alone, top)) < 1:
            low = middle
        else:
            high = middle
    return high


def _by_shares(state: ClusterState, shares: Floats, because: str) -> PolicyDecision:
    """Furthest behind its share first; pools a job has no share in come after all, fastest for it first."""
    order = np.empty(shares.shape)
    if state.shared is None:  # as if they had been in force since the job came
        since, had = state.arrival, state.served
    else:
        since, had = np.full(len(shares), state.shares_since), state.shared
    fair_share_kernels.behind(state.now, lent(since), lent(had), lent(shares), lent(state.seconds), order)
    return PolicyDecision(finish_in(state), order, "s", preempts=True, moves=True, because=because, shares=shares)


def _can(state: ClusterState) -> Flags:
    return np.asarray(np.isfinite(state.seconds) & (state.chips > 0) & (state.chips <= state.total))


def _rate(state: ClusterState) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(_can(state), 1 / np.maximum(state.seconds, 1e-9), 0.0)


def _takes(state: ClusterState, rows: Ints) -> Floats:
    return np.asarray(state.chips[rows] / np.maximum(state.total, 1))


def _names(gains: Floats, chips: Ints, weight: Floats) -> list[bytes]:
    """Rows as names: those alike have the same."""
    with np.errstate(divide="ignore"):
        key = np.round(np.concatenate([np.log(gains), np.log(weight)[:, None]], axis=1), ALIKE) + 0.0  # no -0
    return [a.tobytes() + b.tobytes() for a, b in zip(key, chips, strict=True)]


def _groups(names: Sequence[bytes]) -> tuple[Ints, Ints, Floats]:
    """Which group each row is in, the first row of each group, and how many rows it has."""
    group_of: dict[bytes, int] = {}
    first: list[int] = []
    group = np.empty(len(names), dtype=np.int64)
    for j, name in enumerate(names):
        if name not in group_of:
            group_of[name] = len(first)
            first.append(j)
        group[j] = group_of[name]
    return group, np.array(first, dtype=np.int64), np.bincount(group).astype(float)
