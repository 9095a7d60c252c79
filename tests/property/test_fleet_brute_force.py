"""Plans of HiGHS against plans found by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, isclose

import numpy as np
import pytest
from fleet_enumeration import Enumeration
from fleet_instances import random_problem

from chipwise.fleet.dominance import Dominance
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


@pytest.mark.parametrize("seed", range(60))
def test_units_that_others_replace_make_no_plan_cheaper(seed: int) -> None:
    problem = with_smaller_units(larger(seed), seed)
    fewer = Dominance(problem).applied()
    whole, found = (plan(p, gap=0.0, time_limit=60.0, threads=1) for p in (problem, fewer))
    assert (whole is None) == (found is None)
    assert whole is None or found is None or isclose(whole.usd, found.usd, rel_tol=1e-6, abs_tol=1e-3)


def test_units_that_others_replace_are_dropped() -> None:
    columns = [(sum(len(s.carries) for s in p.services), sum(len(r.options) for r in p.runs)) for p in pairs()]
    fewer = sum(a > c or b > d for (a, b), (c, d) in zip(columns[::2], columns[1::2], strict=True))
    assert fewer >= 15


def pairs() -> Iterator[Problem]:
    """Problems, each before and after."""
    for seed in range(60):
        problem = with_smaller_units(larger(seed), seed)
        yield problem
        yield Dominance(problem).applied()


def with_smaller_units(problem: Problem, seed: int) -> Problem:
    """The problem with units of half the size beside each by the hour: of half the price, a little less or more."""
    rng, pools, supplies = np.random.default_rng(seed), list(problem.pools), list(problem.supplies)
    carries = {s.name: list(s.carries) for s in problem.services}
    options = {r.name: list(r.options) for r in problem.runs}
    for supply in problem.supplies:
        if not supply.hourly:
            continue
        old, name = problem.pool(supply.pool), f"half of {supply.pool}"
        if name not in {p.id for p in pools}:
            half = {"watts_idle": old.watts_idle / 2, "watts_busy": old.watts_busy / 2}
            pools.append(replace(old, id=name, chips=max(1, old.chips // 2), **half))
            for s in problem.services:
                carries[s.name] += [(name, load / 2) for pool, load in s.carries if pool == old.id]
        usd = supply.usd_per_unit_hour / 2 * float(rng.choice([0.9, 1.0, 1.1]))
        supplies.append(replace(supply, id=f"half of {supply.id}", pool=name, usd_per_unit_hour=usd, limit=None))
        for r in problem.runs:
            options[r.name] += [
                replace(o, pool=name, supply=f"half of {supply.id}", units=2 * o.units, spare=2 * o.spare)
                for o in r.options
                if o.supply == supply.id
            ]
    return replace(
        problem,
        pools=tuple(pools),
        supplies=tuple(supplies),
        services=tuple(replace(s, carries=tuple(carries[s.name])) for s in problem.services),
        runs=tuple(replace(r, options=tuple(options[r.name])) for r in problem.runs),
    )
