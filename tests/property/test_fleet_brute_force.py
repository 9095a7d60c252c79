"""Plans of HiGHS against plans found by trying everything."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isclose

import numpy as np
import pytest
from fleet_enumeration import Enumeration
from fleet_instances import random_problem

from chipwise.fleet.mip import solve
from chipwise.fleet.model import build
from chipwise.fleet.planner import plan, read
from chipwise.fleet.problem import Problem
from chipwise.fleet.tighten import tighten

INSTANCES = 200


@pytest.mark.parametrize("seed", range(INSTANCES))
def test_the_plan_costs_what_the_cheapest_of_all_plans_costs(seed: int) -> None:
    problem = random_problem(seed)
    least = Enumeration(problem).cheapest()
    found = plan(problem, gap=0.0, time_limit=60.0, threads=1)
    if found is None:
        assert least == inf
        return
    assert isclose(found.usd, least, rel_tol=1e-6, abs_tol=1e-3)
    assert found.bound <= found.usd + 1e-3


def test_the_instances_cover_plans_and_refusals() -> None:
    found = [plan(random_problem(seed), gap=0.0, threads=1) for seed in range(60)]
    assert 5 <= sum(p is None for p in found) <= 30
    assert any(p and p.running and p.serving for p in found)


def larger(seed: int) -> Problem:
    """An instance with several times the load, where roundings bite."""
    rng, problem = np.random.default_rng(seed), random_problem(seed)
    grown = tuple(
        replace(
            s,
            load=tuple(tuple(x * float(rng.uniform(2, 9)) for x in row) for row in s.load),
            spare_units=int(rng.integers(0, 3)),
        )
        for s in problem.services
    )
    return replace(
        problem,
        services=grown,
        supplies=tuple(
            s if s.limit is None else replace(s, limit=s.limit * int(rng.integers(1, 8))) for s in problem.supplies
        ),
        limits=tuple(replace(x, amount=x.amount * float(rng.uniform(2, 9))) for x in problem.limits),
    )


def test_roundings_leave_the_cheapest_plan_as_it_is() -> None:
    added = 0
    for seed in range(150):
        problem = larger(seed)
        plain, tight = build(problem), build(problem)
        tighten(tight, 1)
        added += len(tight.program.low) - len(plain.program.low)
        one, other = solve(plain.program, 0.0, 60.0, 1), solve(tight.program, 0.0, 60.0, 1)
        assert one.found == other.found, seed
        if one.found:
            assert isclose(one.objective, other.objective, rel_tol=1e-6, abs_tol=1e-3), seed
            # what is read back is what the solver minimized, with what is paid anyway
            assert isclose(read(plain, one, 0.0).usd, one.objective + plain.constant, rel_tol=1e-6, abs_tol=1e-2), seed
    assert added > 50
