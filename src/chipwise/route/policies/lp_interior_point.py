"""Primal-dual interior-point method (Mehrotra) for the linear program of fair shares: jobs by pools, few pools.

The router and the simulator solve it at every scheduling pass of `max-min-fair` and `finish-time-fair`; HiGHS
(`lp_highs`) takes over where there are many pools, or where this one does not converge.

The program, with x the share of time that job j has in pool p:

    maximize  first * t + sum gain[j, p] x[j, p]
    such that sum_p x[j, p] <= 1                        a job is in one pool at a time
              sum_p speed[j, p] x[j, p] >= level[j] t   everybody reaches the common level t
              sum_j chips[j, p] x[j, p] <= capacity[p]  a pool has so many chips
              x, t >= 0

Only t and the pools' rows join the jobs, so a step factors one matrix of pools by pools for each job and one for all.
Predictor and corrector: S. Mehrotra, SIAM J. Optim. 2, 1992. Of several optima the middle comes out, the same one
for the same input: there is no basis to begin from, and none is needed.

No fastmath: equal input gives equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached_alloc, jit_helper

STEPS = 80  # far more than it takes (10 to 25): a stop for broken input
GAP = 1e-7  # relative, of the objective and of every row
SHORT = 0.995  # of the way to the boundary


@jit_helper
def _cholesky(m: Any, j: int) -> None:
    """The lower factor of one of several matrices, in place, its diagonal inverted; what lies above is left."""
    for p in range(m.shape[1]):
        for q in range(p):
            v = m[j, p, q]
            for k in range(q):
                v -= m[j, p, k] * m[j, q, k]
            m[j, p, q] = v * m[j, q, q]
        v = m[j, p, p]
        for k in range(p):
            v -= m[j, p, k] * m[j, p, k]
        m[j, p, p] = 1.0 / np.sqrt(max(v, 1e-300))


@jit_helper
def _through(m: Any, j: int, v: Any, offset: int) -> None:
    """Solve with that factor, in place, for the right-hand side that begins at an index of v."""
    n = m.shape[1]
    for p in range(n):
        w = v[offset + p]
        for k in range(p):
            w -= m[j, p, k] * v[offset + k]
        v[offset + p] = w * m[j, p, p]
    for p in range(n - 1, -1, -1):
        w = v[offset + p]
        for k in range(p + 1, n):
            w -= m[j, k, p] * v[offset + k]
        v[offset + p] = w * m[j, p, p]


@jit_helper
def _factor(
    speed: Any,
    level: Any,
    chips: Any,
    own: Any,
    pull: Any,
    rho: Any,
    joint: Any,
    border: Any,
    work: Any,
    column: Any,
    inverse: Any,
    ratio: Any,
) -> float:
    """Factors of the jobs' matrices and the pools', and what joins them to t, whose own coefficient is returned."""
    jobs, pools = speed.shape
    n = jobs * pools
    for p in range(pools):
        border[p] = 0.0
        for q in range(pools):
            joint[0, p, q] = 0.0
        joint[0, p, p] = 1.0 / ratio[n + 2 * jobs + p]
    total = ratio[n + 2 * jobs + pools]
    for j in range(jobs):
        once, twice = ratio[n + j], ratio[n + jobs + j]
        offset = j * pools
        for p in range(pools):
            for q in range(p + 1):
                own[j, p, q] = once
            own[j, p, p] += ratio[offset + p]
            for q in range(p + 1):
                work[0, p, q] = own[j, p, q]
                own[j, p, q] += twice * speed[j, p] * speed[j, q]
            pull[offset + p] = speed[j, p]
        _cholesky(work, 0)
        _through(work, 0, pull, offset)
        length = 0.0
        for p in range(pools):
            length += speed[j, p] * pull[offset + p]
        rho[j] = 1.0 / (1.0 / twice + length)
        for p in range(pools):
            pull[offset + p] *= rho[j]
            border[p] += level[j] * chips[j, p] * pull[offset + p]
        total += level[j] * level[j] * rho[j]
        _cholesky(own, j)
        for q in range(pools):
            for p in range(pools):
                column[p] = 0.0
            column[q] = 1.0
            _through(own, j, column, 0)
            for p in range(q, pools):
                inverse[j, p, q] = inverse[j, q, p] = column[p]
                joint[0, p, q] += chips[j, p] * chips[j, q] * column[p]
    _cholesky(joint, 0)
    return float(total)


@jit_helper
def _direction(
    ratio: Any,
    q: Any,
    ra: Any,
    rb: Any,
    rc: Any,
    speed: Any,
    level: Any,
    chips: Any,
    inverse: Any,
    pull: Any,
    rho: Any,
    joint: Any,
    border: Any,
    total: float,
    step: Any,
    ua: Any,
    ub: Any,
    uc: Any,
    right: Any,
    side: Any,
) -> None:
    """A Newton step of everything, q being (complementarity + value * dual residual) / dual."""
    jobs, pools = speed.shape
    n = jobs * pools
    last = n + 2 * jobs + pools
    for p in range(pools):
        uc[p] = rc[p] + q[n + 2 * jobs + p]
        side[p] = border[p]
    high, low = -ratio[last] * q[last], total
    for j in range(jobs):
        offset = j * pools
        some = ratio[n + j] * (ra[j] + q[n + j])
        miss = rb[j] - q[n + jobs + j]
        for k in range(offset, offset + pools):
            step[k] = some - q[k] * ratio[k]
            high += level[j] * pull[k] * step[k]
        high -= level[j] * rho[j] * miss
        for p in range(pools):
            right[p] = pull[offset + p] * miss
            for k in range(pools):
                right[p] += inverse[j, p, k] * step[offset + k]
        for p in range(pools):
            step[offset + p] = right[p]
            uc[p] -= chips[j, p] * right[p]
    _through(joint, 0, uc, 0)
    _through(joint, 0, side, 0)
    for p in range(pools):
        high += border[p] * uc[p]
        low += border[p] * side[p]
    move = high / low
    for p in range(pools):
        uc[p] -= side[p] * move
        step[n + 2 * jobs + p] = rc[p]
    step[last] = move
    for j in range(jobs):
        offset = j * pools
        spent, gained = ra[j], -level[j] * move - rb[j]
        for p in range(pools):
            step[offset + p] += pull[offset + p] * level[j] * move
            for k in range(pools):
                step[offset + p] += inverse[j, p, k] * chips[j, k] * uc[k]
            spent -= step[offset + p]
            gained += speed[j, p] * step[offset + p]
            step[n + 2 * jobs + p] -= chips[j, p] * step[offset + p]
        step[n + j], step[n + jobs + j] = spent, gained
        ua[j] = ratio[n + j] * (spent + q[n + j])
        ub[j] = -ratio[n + jobs + j] * (gained + q[n + jobs + j])


@jit_cached_alloc
def solve(speed: Any, gain: Any, level: Any, chips: Any, capacity: Any, first: float) -> Any:
    """Shares, the level, the relative gap that is left and the steps taken.

    `speed` and `gain` 0: the job can't run in that pool, and its share there says nothing.
    """
    jobs, pools = speed.shape
    n = jobs * pools
    last = n + 2 * jobs + pools
    size = last + 1
    v, d, q, rest = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    step, dual, before, dual_before = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    own, pull, rho = np.empty((jobs, pools, pools)), np.empty(n), np.empty(jobs)
    joint, border = np.empty((1, pools, pools)), np.empty(pools)
    work, column = np.empty((1, pools, pools)), np.empty(pools)
    inverse, ratio, over = np.empty((jobs, pools, pools)), np.empty(size), np.empty(size)
    ra, rb, rc, right, side = np.empty(jobs), np.empty(jobs), np.empty(pools), np.empty(pools), np.empty(pools)
    la, lb, lc = np.zeros(jobs), np.zeros(jobs), np.zeros(pools)
    ua, ub, uc = np.zeros(jobs), np.zeros(jobs), np.zeros(pools)
    big = max(1.0, first / max(jobs, 1))
    for j in range(jobs):
        for p in range(pools):
            big = max(big, gain[j, p])
    v[:] = 0.5
    v[:n] = 0.5 / pools
    d[:] = big
    for p in range(pools):
        v[n + 2 * jobs + p] = max(0.5 * capacity[p], 0.1)
    best, steps, t, shares = np.inf, 0, 0.0, np.zeros(n)
    while steps < STEPS:
        value, off, mu = -first * v[last], 0.0, 0.0
        rest[last] = -first - d[last]
        for p in range(pools):
            rc[p] = capacity[p] - v[n + 2 * jobs + p]
            rest[n + 2 * jobs + p] = -lc[p] - d[n + 2 * jobs + p]
        for j in range(jobs):
            ra[j], rb[j] = 1.0 - v[n + j], v[n + jobs + j] + level[j] * v[last]
            rest[n + j], rest[n + jobs + j] = -la[j] - d[n + j], lb[j] - d[n + jobs + j]
            rest[last] += level[j] * lb[j]
            for p in range(pools):
                k = j * pools + p
                ra[j] -= v[k]
                rb[j] -= speed[j, p] * v[k]
                rc[p] -= chips[j, p] * v[k]
                value -= gain[j, p] * v[k]
                rest[k] = -gain[j, p] - la[j] - speed[j, p] * lb[j] - chips[j, p] * lc[p] - d[k]
            off = max(off, abs(ra[j]), abs(rb[j]))
        for p in range(pools):
            off = max(off, abs(rc[p]) / (1.0 + capacity[p]))
        for k in range(size):
            mu += v[k] * d[k]
        gap = max(mu / (1.0 + abs(value)), off)
        if gap < best:  # keep the best: the last steps of a degenerate program may spoil it
            best, t = gap, v[last]
            for k in range(n):
                shares[k] = v[k]
        if not GAP <= gap < np.inf:
            break
        steps, mu = steps + 1, mu / size
        for k in range(size):
            over[k], ratio[k] = 1.0 / d[k], d[k] / v[k]
        total = _factor(speed, level, chips, own, pull, rho, joint, border, work, column, inverse, ratio)
        centre = 0.0
        most, dual_most = 1.0, 1.0
        for phase in range(2):
            for k in range(size):
                product = v[k] * d[k] - centre * mu
                if phase == 1:
                    product += before[k] * dual_before[k]
                q[k] = (product + v[k] * rest[k]) * over[k]
            _direction(
                ratio,
                q,
                ra,
                rb,
                rc,
                speed,
                level,
                chips,
                inverse,
                pull,
                rho,
                joint,
                border,
                total,
                step,
                ua,
                ub,
                uc,
                right,
                side,
            )
            most, dual_most = 1.0, 1.0
            for k in range(size):
                dual[k] = rest[k] - (step[k] + q[k]) * ratio[k]
                if step[k] < 0:
                    most = min(most, -v[k] / step[k])
                if dual[k] < 0:
                    dual_most = min(dual_most, -d[k] / dual[k])
            if phase == 0:
                after = 0.0
                for k in range(size):
                    before[k], dual_before[k] = step[k], dual[k]
                    after += (v[k] + most * step[k]) * (d[k] + dual_most * dual[k])
                centre = (after / size / mu) ** 3
        most, dual_most = min(1.0, SHORT * most), min(1.0, SHORT * dual_most)
        for k in range(size):
            v[k] += most * step[k]
            d[k] += dual_most * dual[k]
        for j in range(jobs):
            la[j] += dual_most * ua[j]
            lb[j] += dual_most * ub[j]
        for p in range(pools):
            lc[p] += dual_most * uc[p]
    return shares.reshape(jobs, pools), t, best, steps
