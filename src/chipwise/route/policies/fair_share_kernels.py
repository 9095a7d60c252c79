"""Shares of time among few pools, compiled, and who is furthest behind them; `sharing` says what they mean.

`rate` is the part of a job's remaining work that a pool does in a second; 0: it can't run there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached_alloc
from chipwise.route.policies.lp_interior_point import solve

FIRST = 1e3  # how much more the level of all counts than the sum of speeds: shares are good to a millionth then
NOTHING = 1e-6  # a share below this is dust; so is the relative gap of the solver
CLOSE = 1e-4  # to which the least of the largest ratios of finish times is found; estimates are never that good
GRAIN = (
    360.0  # s of the future that count as owed already: about the time between two scheduling passes (Gavel's round)
)
LAST = 1e12  # an order behind everybody with a share
TRIES = 60  # of the search for a ratio: far more than it takes (3 to 8)


@jit_cached_alloc
def max_min(rate: Any, weight: Any, chips: Any, total: Any) -> Any:
    """Shares that make the least speed over priority the greatest, then the sum of speeds; and the gap left."""
    jobs, pools = rate.shape
    gain, speed = np.empty((jobs, pools)), np.empty((jobs, pools))
    for j in range(jobs):
        top = rate[j].max()
        for p in range(pools):
            gain[j, p] = rate[j, p] / top
            speed[j, p] = gain[j, p] / weight[j]
    shares, _, gap, _ = solve(
        speed, gain, np.ones(jobs), chips.astype(np.float64), total.astype(np.float64), FIRST * jobs
    )
    return clean(shares, rate), gap


@jit_cached_alloc
def alone(rate: Any, served: Any, weight: Any, chips: Any, total: Any) -> Any:
    """Seconds of the whole job, past and to come, if every pool were split alike over the jobs, by priority."""
    jobs, pools = rate.shape
    seconds_alone = np.empty(jobs)
    heavy = weight.sum()
    for j in range(jobs):
        split, full, past = 0.0, 0.0, 0.0
        for p in range(pools):
            if rate[j, p] > 0:
                part = weight[j] / heavy * total[p] / chips[j, p]
                full += part
                split += rate[j, p] * part
                past += served[j, p] * rate[j, p]  # work done, in units of what is left
        seconds_alone[j] = (1.0 + past) / (split / max(full, 1.0))
    return seconds_alone


@jit_cached_alloc
def demand(ratio: float, age: Any, alone: Any, top: Any) -> Any:
    """Rate, over its best, that each job needs for a ratio of finish times."""
    return 1.0 / np.maximum(ratio * alone - age, 1e-9) / top


@jit_cached_alloc
def finish_time(rate: Any, age: Any, alone: Any, chips: Any, total: Any) -> Any:
    """Shares that make the largest (age + time to go) / alone the smallest, then the sum of speeds; and the gap left.

    The level that all can reach of what a ratio demands is 1 at the smallest ratio, and grows with it. It is found by
    false position on logarithms, where that is nearly straight; the end that stays is pulled in (Illinois).
    """
    jobs, pools = rate.shape
    speed, top, none = np.empty((jobs, pools)), np.empty(jobs), np.zeros((jobs, pools))
    low = 0.0
    for j in range(jobs):
        top[j] = rate[j].max()
        for p in range(pools):
            speed[j, p] = rate[j, p] / top[j]
        low = max(low, (age[j] + 1.0 / top[j]) / alone[j])  # the worst off, alone in the cluster
    chips_held, capacity = chips.astype(np.float64), total.astype(np.float64)
    ratio, high, under, above, bracketed = low, np.inf, 0.0, 0.0, False
    for _ in range(TRIES):
        need = demand(ratio, age, alone, top)
        most = need.max()
        _, t, _, _ = solve(speed, none, need / most, chips_held, capacity, 1.0 * jobs)
        level = np.log(t / most)
        if abs(level) <= CLOSE or (level > 0 and ratio == low):
            break
        if level < 0:
            low, under = ratio, level
            above /= 2 if bracketed else 1
        else:
            high, above = ratio, level
            under /= 2 if bracketed else 1
        bracketed = high < np.inf
        if bracketed and high <= low * (1.0 + CLOSE):
            ratio = high
            break
        ratio = np.exp((np.log(low) * above - np.log(high) * under) / (above - under)) if bracketed else 2.0 * low
    need = demand(ratio, age, alone, top)
    shares, _, gap, _ = solve(speed, speed, need / need.max(), chips_held, capacity, FIRST * jobs)
    return clean(shares, rate), gap


@jit_cached_alloc
def clean(shares: Any, rate: Any) -> Any:
    """Shares without dust, and without those in pools where a job can't run."""
    return np.where((shares > NOTHING) & (rate > 0), shares, 0.0)


@jit_cached_alloc
def behind(now: float, since: Any, had: Any, shares: Any, seconds: Any, order: Any) -> None:
    """Order of pairs of job and pool: by the seconds in its best pool that a job is owed, the next few included.

    Owed is what its shares came to since they are in force, less what it has had. Pools in which a job has no share
    come last, the fastest for it first.
    """
    jobs, pools = shares.shape
    for j in range(jobs):
        best = seconds[j].min()
        owed = 0.0
        for p in range(pools):
            if seconds[j, p] < np.inf:
                owed += (shares[j, p] * max(now - since[j], 0.0) - had[j, p]) * (best / seconds[j, p])
        for p in range(pools):
            if seconds[j, p] == np.inf:
                order[j, p] = np.inf
            elif shares[j, p] > 0:
                order[j, p] = -GRAIN * shares[j, p] - owed
            else:
                order[j, p] = LAST - best / seconds[j, p]
