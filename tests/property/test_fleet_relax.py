"""The fewest constraints that give way, against all sets of constraints tried one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from fleet_instances import random_problem

from chipwise.fleet.columns import constraint_names
from chipwise.fleet.model import without
from chipwise.fleet.planner import plan
from chipwise.fleet.problem import Problem
from chipwise.fleet.relax import DEMANDS, relax

INSTANCES = 80


def relieved(problem: Problem, names: Iterable[str]) -> Problem:
    """The problem without these constraints; a load or a deadline goes with its work."""
    gone = set(names)
    return replace(
        without(problem, gone),
        runs=tuple(r for r in problem.runs if f"deadline of {r.name}" not in gone),
        services=tuple(s for s in problem.services if f"load of {s.name}" not in gone),
    )


def weight(names: Iterable[str]) -> tuple[int, int]:
    """Demands that give way count before limits."""
    wanted = [name.startswith(DEMANDS) for name in names]
    return sum(wanted), len(wanted) - sum(wanted)


def infeasible() -> list[int]:
    found: list[int] = []
    seed = 0
    while len(found) < INSTANCES:
        if plan(random_problem(seed), gap=1.0, threads=1) is None:
            found.append(seed)
        seed += 1
    return found


def test_no_smaller_set_of_constraints_would_do() -> None:
    for seed in infeasible():
        problem = random_problem(seed)
        names = constraint_names(problem)
        sets = sorted((some for n in range(len(names) + 1) for some in combinations(names, n)), key=weight)
        least = next(some for some in sets if plan(relieved(problem, some), gap=1.0, threads=1) is not None)
        found = relax(problem, threads=1)
        assert all(r.proved for r in found), seed
        said = [r.name for r in found]
        assert weight(said) == weight(least), (seed, said, least)
        assert plan(relieved(problem, said), gap=1.0, threads=1) is not None, (seed, said)
