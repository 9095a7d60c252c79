"""Shares of time by an interior-point method made for their linear program: jobs by pools, few pools.

The program, with x the share of time that job j has in pool p:

    maximise  first * t + sum gain[j, p] x[j, p]
    such that sum_p x[j, p] <= 1                        a job is in one pool at a time
              sum_p speed[j, p] x[j, p] >= level[j] t   everybody reaches the common level t
              sum_j chips[j, p] x[j, p] <= room[p]      a pool has so many chips
              x, t >= 0

Only t and the pools' rows join the jobs, so a step factors one matrix of pools by pools for each job and one for all.
Predictor and corrector after Mehrotra (SIAM J. Optim. 2, 1992). Of several optima the middle comes out, the same one
for the same input: there is no basis to begin from, and none is needed.

No fastmath: equal input gives equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from chipwise.route.view import Floats

STEPS = 80  # far more than it takes (10 to 25): a stop for broken input
GAP = 1e-7  # relative, of the objective and of every row
SHORT = 0.995  # of the way to the boundary


@njit(cache=True, error_model="numpy")
def _cholesky(m: Any) -> None:
    """The lower factor of a matrix, in place; what lies above the diagonal is left."""
    for p in range(m.shape[0]):
        for q in range(p + 1):
            v = m[p, q]
            for k in range(q):
                v -= m[p, k] * m[q, k]
            m[p, q] = np.sqrt(max(v, 1e-300)) if p == q else v / m[q, q]


@njit(cache=True, error_model="numpy")
def _through(m: Any, v: Any) -> None:
    """Solve with that factor, in place."""
    n = v.shape[0]
    for p in range(n):
        for k in range(p):
            v[p] -= m[p, k] * v[k]
        v[p] /= m[p, p]
    for p in range(n - 1, -1, -1):
        for k in range(p + 1, n):
            v[p] -= m[k, p] * v[k]
        v[p] /= m[p, p]


@njit(cache=True, error_model="numpy")
def _factor(v: Any, d: Any, speed: Any, level: Any, chips: Any, own: Any, pull: Any, rho: Any, pools_own: Any,
            border: Any, work: Any) -> float:
    """Factors of the jobs' matrices and the pools', and what joins them to t, whose own coefficient is returned."""
    jobs, pools = speed.shape
    n = jobs * pools
    pools_own[:, :] = 0.0
    border[:] = 0.0
    for p in range(pools):
        pools_own[p, p] = v[n + 2 * jobs + p] / d[n + 2 * jobs + p]
    total = d[n + 2 * jobs + pools] / v[n + 2 * jobs + pools]
    for j in range(jobs):
        once, twice = d[n + j] / v[n + j], d[n + jobs + j] / v[n + jobs + j]
        m, b = own[j], pull[j]
        for p in range(pools):
            for q in range(p + 1):
                m[p, q] = once
            m[p, p] += d[j * pools + p] / v[j * pools + p]
            b[p] = speed[j, p]
        work[:, :] = m
        _cholesky(work)
        _through(work, b)
        q1 = 0.0
        for p in range(pools):
            q1 += speed[j, p] * b[p]
        rho[j] = 1.0 / (1.0 / twice + q1)
        for p in range(pools):
            b[p] *= rho[j]
            border[p] += level[j] * chips[j, p] * b[p]
            for q in range(p + 1):
                m[p, q] += twice * speed[j, p] * speed[j, q]
        total += level[j] * level[j] * rho[j]
        _cholesky(m)
        for q in range(pools):  # add C H^-1 C, column by column
            column = work[0]
            column[:] = 0.0
            column[q] = chips[j, q]
            _through(m, column)
            for p in range(q, pools):
                pools_own[p, q] += chips[j, p] * column[p]
    _cholesky(pools_own)
    return total


@njit(cache=True, error_model="numpy")
def _direction(v: Any, d: Any, q: Any, ra: Any, rb: Any, rc: Any, speed: Any, level: Any, chips: Any, own: Any,
               pull: Any, rho: Any, pools_own: Any, border: Any, total: float, step: Any, ua: Any, ub: Any, uc: Any,
               right: Any, side: Any) -> None:
    """A Newton step of everything, q being (complementarity + value * dual residual) / dual."""
    jobs, pools = speed.shape
    n = jobs * pools
    last = n + 2 * jobs + pools
    for p in range(pools):
        right[p] = rc[p] + q[n + 2 * jobs + p]
        side[p] = border[p]
    of_t = -d[last] / v[last] * q[last]
    for j in range(jobs):
        once = d[n + j] / v[n + j]
        miss = rb[j] - q[n + jobs + j]
        f = step[j * pools:(j + 1) * pools]
        for p in range(pools):
            f[p] = once * (ra[j] + q[n + j]) - q[j * pools + p] * d[j * pools + p] / v[j * pools + p]
            of_t += level[j] * pull[j, p] * f[p]
        of_t -= level[j] * rho[j] * miss
        _through(own[j], f)
        for p in range(pools):
            f[p] += pull[j, p] * miss
            right[p] -= chips[j, p] * f[p]
    for p in range(pools):
        uc[p] = right[p]
    _through(pools_own, uc)
    _through(pools_own, side)
    high, low = of_t, total
    for p in range(pools):
        high += border[p] * uc[p]
        low += border[p] * side[p]
    move = high / low
    for p in range(pools):
        uc[p] -= side[p] * move
        step[n + 2 * jobs + p] = rc[p]
    step[last] = move
    for j in range(jobs):
        for p in range(pools):
            right[p] = chips[j, p] * uc[p]
        _through(own[j], right)
        step[n + j], step[n + jobs + j] = ra[j], -level[j] * move - rb[j]
        for p in range(pools):
            k = j * pools + p
            step[k] += right[p] + pull[j, p] * level[j] * move
            step[n + j] -= step[k]
            step[n + jobs + j] += speed[j, p] * step[k]
            step[n + 2 * jobs + p] -= chips[j, p] * step[k]
        ua[j] = d[n + j] / v[n + j] * (step[n + j] + q[n + j])
        ub[j] = -d[n + jobs + j] / v[n + jobs + j] * (step[n + jobs + j] + q[n + jobs + j])


@njit(cache=True, error_model="numpy")
def solve(speed: Any, gain: Any, level: Any, chips: Any, room: Any, first: float) -> Any:
    """Shares, the level, the relative gap that is left and the steps taken.

    `speed` and `gain` 0: the job can't run in that pool, and its share there says nothing.
    """
    jobs, pools = speed.shape
    n = jobs * pools
    last = n + 2 * jobs + pools
    size = last + 1
    v, d, q, rest = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    step, dual, before, dual_before = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    own, pull, rho = np.empty((jobs, pools, pools)), np.empty((jobs, pools)), np.empty(jobs)
    pools_own, border, work = np.empty((pools, pools)), np.empty(pools), np.empty((pools, pools))
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
        v[n + 2 * jobs + p] = max(0.5 * room[p], 0.1)
    gap, steps = np.inf, 0
    while steps < STEPS:
        value, off, mu = -first * v[last], 0.0, 0.0
        rest[last] = -first - d[last]
        for p in range(pools):
            rc[p] = room[p] - v[n + 2 * jobs + p]
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
            off = max(off, abs(rc[p]) / (1.0 + room[p]))
        for k in range(size):
            mu += v[k] * d[k]
        gap = mu / (1.0 + abs(value))
        if gap < GAP and off < GAP:
            break
        steps, mu = steps + 1, mu / size
        total = _factor(v, d, speed, level, chips, own, pull, rho, pools_own, border, work)
        centre = 0.0
        most, dual_most = 1.0, 1.0
        for phase in range(2):
            for k in range(size):
                product = v[k] * d[k] - centre * mu
                if phase == 1:
                    product += before[k] * dual_before[k]
                q[k] = (product + v[k] * rest[k]) / d[k]
            _direction(v, d, q, ra, rb, rc, speed, level, chips, own, pull, rho, pools_own, border, total, step, ua,
                       ub, uc, right, side)
            most, dual_most = 1.0, 1.0
            for k in range(size):
                dual[k] = -(step[k] + q[k]) * d[k] / v[k] + rest[k]
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
    return v[:n].copy().reshape(jobs, pools), v[last], gap, steps


def shares(speed: Floats, gain: Floats, level: Floats, chips: Floats, room: Floats, first: float) -> Floats:
    """Shares of time."""
    return np.asarray(solve(speed, gain, level, chips, room, first)[0])
