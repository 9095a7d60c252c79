"""Boards and views for the tests of routing: jobs are given as rows of hours by pool."""

from __future__ import annotations

from math import inf

import numpy as np

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import ClusterState
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.option import Option
from chipwise.route.pool import Pool

HOUR = 3600.0


def pool(name: str, count: int = 8, usd: float = 1.0, **more) -> Pool:
    return Pool(name, "local", name, "gpu", count, usd_per_chip_hour=usd, **more)


def option(
    at: Pool,
    hours: float,
    chips: int = 1,
    variant: str = "gpu",
    spread: float = 1.25,
    watts: float = 500.0,
    once: float = 0.0,
) -> Option:
    seconds = Estimate(hours * HOUR, hours * HOUR / spread, hours * HOUR * spread, "modelled")
    return Option(at.name, variant, chips, "", seconds, at.usd_per_chip_hour * chips, watts * chips, usd_once=once)


def candidate(name: str, options, arrival: float = 0.0, **more) -> Candidate:
    return Candidate(name, arrival, tuple(options), **more)


def board_of(pools, candidates) -> JobTable:
    board = JobTable(pools)
    for each in candidates:
        board.add(each)
    return board


def view_of(board: JobTable, pools, now: float = 0.0, free=None, **more) -> ClusterState:
    total = {p.name: p.count for p in pools}
    return board.state(now, total if free is None else free, total, **more)


def random_board(rng: np.random.Generator, jobs: int, pools: int, deadlines: bool = False):
    """Pools, a board with some jobs running, and the chips that are free."""
    places = [
        pool(f"p{k}", int(rng.integers(1, 17)), float(rng.uniform(0.1, 4)), interruptions=float(rng.choice([0, 0.1])))
        for k in range(pools)
    ]
    board = JobTable(places)
    free = {p.name: p.count for p in places}
    for j in range(jobs):
        options = [
            option(
                p, float(np.exp(rng.normal(0, 1))), int(rng.choice([1, 2, 4, 8])), watts=float(rng.uniform(100, 900))
            )
            for p in places
            if rng.random() < 0.8
        ]
        board.add(
            candidate(
                f"j{j}",
                options,
                float(rng.uniform(-2 * 86_400, 0)),
                weight=float(rng.choice([0.5, 1, 3])),
                deadline=float(rng.uniform(0, 20 * HOUR)) if deadlines and rng.random() < 0.7 else inf,
                budget=float(rng.choice([inf, inf, 3.0])),
                restartable=bool(rng.random() < 0.5),
                every=600.0,
                restart=float(rng.choice([0, 120])),
            )
        )
        fitting = [o for o in options if o.chips <= free[o.pool]]
        if fitting and rng.random() < 0.4:
            chosen = fitting[0]
            free[chosen.pool] -= chosen.chips
            board.started(f"j{j}", chosen.pool, float(rng.uniform(-3600, 0)))
    return places, board, free
