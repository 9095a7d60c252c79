"""Plans of HiGHS against plans found by trying everything."""

from __future__ import annotations

from math import inf, isclose

import pytest
from fleet_enumeration import Enumeration
from fleet_instances import random_problem

from chipwise.fleet.planner import plan

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
