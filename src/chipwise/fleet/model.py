"""The planning problem as a mixed-integer program.

Columns: `x` replicas in a pool that answer for a service, `hired` units by the hour that answer, `begun` commitments
and purchases per period, `held` units that these leave in each period, `chosen` option of a run, `active` whether an
option runs in a period, `part` the part of that period in which it does.

There are no big constants: the integer columns are bounded by what a period can need at most, runs have the fewest
periods they need as a row, and `tighten` adds the roundings of the rows that cover a service's load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chipwise.fleet.columns import Model, all_limits, constraint_names
from chipwise.fleet.model_supply import add_capacity, add_exclusives, add_limits, add_supplies
from chipwise.fleet.model_work import add_runs, add_services
from chipwise.fleet.problem import Problem


def build(problem: Problem, elastic: bool = False) -> Model:
    """The program of a problem. An `elastic` one may break every named constraint, each by a switch and slacks."""
    model = Model(problem, all_limits(problem))
    if elastic:
        for name in constraint_names(problem):
            model.broken[name] = (model.program.column(1, integer=True), [])
    add_services(model)
    add_runs(model)
    add_supplies(model)
    add_capacity(model)
    add_limits(model)
    add_exclusives(model)
    return model


def without(problem: Problem, names: Iterable[str]) -> Problem:
    """The problem without limits and exclusives of these names."""
    gone = set(names)
    return replace(
        problem,
        limits=tuple(x for x in problem.limits if x.name not in gone),
        exclusives=tuple(e for e in problem.exclusives if e.name not in gone),
        supplies=tuple(replace(s, limit=None) if f"quota of {s.id}" in gone else s for s in problem.supplies),
    )
