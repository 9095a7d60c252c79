"""Gavel's own way from allocations to rounds, and some of its policies, in our round simulator: a check of its rules."""

from __future__ import annotations

import random
from collections.abc import Callable

import highspy
import numpy as np
from benchmarks.gavel.simulator import ROUND_S, RoundSimulator

from chipwise.route.cluster_state import Floats, Ints
from chipwise.route.simulate.gavel_trace import GavelTrace

FIRST_S = 180.0  # service that every job is taken to have had
Allocation = Callable[[RoundSimulator, Ints], Floats]


def reference(
    work: GavelTrace, allocate: Allocation, *, fifo: bool = False, shuffled: bool = False, reallocate_s: float = 1920.0
) -> RoundSimulator:
    """A whole run under an allocation of Gavel's. `fifo`: jobs without a share don't fill room that is left."""
    simulator, shuffler = RoundSimulator(work), random.Random(5)
    n, pools = work.rate.shape
    shares, known = np.zeros((n, pools)), np.zeros(n, dtype=bool)
    service, deficit, of_pool = np.full((n, pools), FIRST_S), np.zeros((n, pools)), np.zeros(pools)
    last, changed = 0.0, False
    while True:
        changed |= simulator.admit()
        if not len(simulator.open):
            if simulator.next_arrival == np.inf:
                return simulator
            simulator.now = simulator.next_arrival
            continue
        jobs = simulator.open
        if changed and (simulator.now - last >= reallocate_s or last == 0):
            deficit[jobs] += shares[jobs] * (simulator.now - last) - (service[jobs] - FIRST_S)
            service[jobs], of_pool[:] = FIRST_S, FIRST_S * len(jobs)
            shares[:], known[:] = 0.0, False
            shares[jobs], known[jobs] = allocate(simulator, jobs), True
            last, changed = simulator.now, False
        order = list(range(pools))
        if shuffled:
            shuffler.shuffle(order)
        at: dict[int, int] = {}
        for p in order:
            _fill(simulator, jobs.tolist(), p, shares, known, service, deficit, of_pool, at, fifo)
        running = [j for j in at if known[j]]
        rounds = simulator.rounds
        for j in running:  # as Gavel adds it up: a last bit decides who goes first among equals
            rate = simulator.rate[j, at[j]]
            took = min(np.floor(rate * ROUND_S), simulator.left[j]) / rate
            service[j, at[j]] += took
            of_pool[at[j]] += took
        changed |= simulator.run(
            np.array(running, dtype=np.int64), np.array([at[j] for j in running], dtype=np.int64), simulator.now
        )
        if simulator.rounds == rounds and simulator.next_arrival < np.inf:
            simulator.now = simulator.next_arrival
        elif simulator.rounds == rounds or (simulator.next_arrival == np.inf and not len(simulator.open)):
            last = 0.0


def _fill(
    simulator: RoundSimulator,
    jobs: list[int],
    p: int,
    shares: Floats,
    known: Floats,
    service: Floats,
    deficit: Floats,
    of_pool: Floats,
    at: dict[int, int],
    fifo: bool,
) -> None:
    def priority(j: int) -> float:
        if not known[j] or shares[j, p] == 0 or simulator.rate[j, p] == 0:
            return 0.0
        return shares[j, p] * 1e9 if of_pool[p] == 0 else shares[j, p] / (service[j, p] / of_pool[p])

    room = simulator.work.count[p]
    for j in sorted(jobs, key=lambda j: (priority(j), deficit[j, p], shares[j, p]), reverse=True):
        if j in at or simulator.rate[j, p] <= 0 or simulator.work.chips[j] > room or (fifo and priority(j) == 0):
            continue
        at[j] = p
        room -= simulator.work.chips[j]


def fifo_perf(simulator: RoundSimulator, jobs: Ints) -> Floats:
    """Whole jobs in order of arrival, each to the fastest pool with room; the first that fits nowhere ends it."""
    work, left = simulator.work, simulator.work.count.copy()
    shares = np.zeros((len(jobs), len(work.pools)))
    for i, j in enumerate(jobs.tolist()):
        fits = [p for p in np.argsort(work.pools) if left[p] >= work.chips[j]]
        if not fits:
            break
        fits = [p for p in fits if simulator.rate[j, p] > 0]
        if fits:
            best = max(fits, key=lambda p, j=j: simulator.rate[j, p])
            shares[i, best] = 1.0
            left[best] -= work.chips[j]
    return shares


def isolated(simulator: RoundSimulator, jobs: Ints) -> Floats:
    """An equal part of every pool."""
    shares = simulator.work.count / (len(jobs) * simulator.work.chips[jobs][:, None])
    return shares / np.maximum(shares.sum(axis=1), 1.0)[:, None]


def max_min_fairness_perf(simulator: RoundSimulator, jobs: Ints) -> Floats:
    """The largest least share of normalised throughput, times chips; of several optima the middle, as Gavel's solver."""
    rate, chips, count = simulator.rate[jobs], simulator.work.chips[jobs][:, None], simulator.work.count
    return _program(rate * chips / (rate @ count / count.sum())[:, None], np.zeros(rate.shape), 1.0, simulator, jobs)


def max_sum_throughput(by_cost: bool) -> Allocation:
    """The most steps in all, raw or over the price."""

    def allocate(simulator: RoundSimulator, jobs: Ints) -> Floats:
        rate = simulator.rate[jobs]
        return _program(rate * 0, rate / simulator.work.usd_per_chip_hour if by_cost else rate, 0.0, simulator, jobs)

    return allocate


def _program(speed: Floats, gain: Floats, level: float, simulator: RoundSimulator, jobs: Ints) -> Floats:
    n, pools = speed.shape
    inf, lp = highspy.kHighsInf, highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n * pools + 1, 2 * n + pools
    lp.col_cost_ = np.append(-gain.ravel(), -level)
    lp.col_lower_, lp.col_upper_ = np.zeros(n * pools + 1), np.append(np.where(simulator.rate[jobs] > 0, inf, 0.0), inf)
    lp.row_lower_ = np.concatenate([np.full(n + pools, -inf), np.zeros(n)])
    lp.row_upper_ = np.concatenate([np.ones(n), simulator.work.count.astype(float), np.full(n, inf)])
    cells = np.arange(n * pools).reshape(n, pools)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate(
        [np.arange(n) * pools, n * pools + np.arange(pools) * n, 2 * n * pools + np.arange(n + 1) * (pools + 1)]
    )
    lp.a_matrix_.index_ = np.concatenate([cells.ravel(), cells.T.ravel(), np.c_[cells, np.full(n, n * pools)].ravel()])
    lp.a_matrix_.value_ = np.concatenate(
        [
            np.ones(n * pools),
            np.tile(simulator.work.chips[jobs].astype(float), pools),
            np.c_[speed, np.full(n, -1.0)].ravel(),
        ]
    )
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("solver", "ipm"), ("run_crossover", "off"), ("threads", 1)):
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    found = np.array(solver.getSolution().col_value)[:-1].reshape(n, pools)
    return np.where(found > 1e-7, found, 0.0)
