"""A demand that can't be met: the fewest named constraints that have to give way, and by how much."""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import Refusal
from chipwise.fleet.columns import Model
from chipwise.fleet.mip import SCALE, Floats, solve
from chipwise.fleet.model import build
from chipwise.fleet.plan import Relaxation
from chipwise.fleet.problem import Problem
from chipwise.units import format_money

UNITS = {
    "units": "units",
    "chips": "chips",
    "kw": "kW",
    "rack_units": "rack units",
    "usd": "US dollars",
    "kg": "kg of CO2",
}
DEMANDS = ("load of ", "deadline of ")  # how the names of constraints that are demand begin
TINY = 1e-6
# How near the least amounts the answer is, and the search's limit: on small changes of a large demand a proof to 1e-4
# took all of the time there was, and what was printed hung on the machine's speed
LEAST_GAP, LEAST_NODES = 0.01, 300


def relax(problem: Problem, time_limit: float = 60.0, threads: int = 2) -> tuple[Relaxation, ...]:
    """The smallest set of constraints without which there is a plan; of several the one that gives way least.

    Limits go before demand: a load or a deadline gives way only where no set of limits would do.
    """
    model = build(problem, elastic=True)
    program = model.program
    switches = {name: switch for name, (switch, _) in model.broken.items()}
    program.cost = [0.0] * len(program.cost)
    wanted = {name for name in switches if name.startswith(DEMANDS)}
    heavy = len(switches) - len(wanted) + 1
    for name, switch in switches.items():
        program.cost[switch] = (heavy if name in wanted else 1) / SCALE
    few = solve(program, 0.0, time_limit / 2, threads)
    if few.status == "infeasible":
        raise RuntimeError("a demand without any constraint has no plan")
    if not few.found:
        raise Refusal("what makes the demand infeasible was not found in time", "a longer time limit")
    weigh = [(s, float(heavy if name in wanted else 1)) for name, s in switches.items()]
    program.row(weigh, high=float(round(sum(w * float(few.values[s]) for s, w in weigh))))
    program.cost = [0.0] * len(program.cost)
    for _, slacks in model.broken.values():
        for column, weight in slacks:
            program.cost[column] = weight / SCALE
    begun = dict(enumerate(few.values.tolist()))
    least = solve(program, LEAST_GAP, time_limit / 2, threads, begun, nodes=LEAST_NODES)
    proved = few.status == "optimal"
    return tuple(replace(r, proved=proved) for r in _read(model, (least if least.found else few).values))


def amount_of(kind: str, amount: float) -> str:
    """An amount of a limit for people.

    >>> amount_of("usd", 30_000), amount_of("kw", 13.104), amount_of("chips", 568)
    ('$30,000', '13.1 kW', '568 chips')
    """
    if kind == "usd":
        return format_money(amount)
    shown = f"{amount:,.0f}" if amount >= 1000 or amount == round(amount) else f"{amount:,.3g}"
    return f"{shown} {UNITS[kind]}"


def _rate(amount: float) -> str:
    """Requests a second for people.

    >>> _rate(22000.0), _rate(0.12345)
    ('22,000', '0.1235')
    """
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:.4g}"


def _read(model: Model, values: Floats) -> tuple[Relaxation, ...]:
    out = []
    for name, (_, slacks) in model.broken.items():
        broken = [float(values[column]) for column, _ in slacks if values[column] > TINY]
        if broken:
            out.append(_said(model.problem, model, name, broken))
    return tuple(out)


def _said(problem: Problem, model: Model, name: str, broken: list[float]) -> Relaxation:
    most, many = max(broken), len(broken)
    limit = next((x for x in model.limits if x.name == name), None)
    if limit is not None:
        unit = UNITS[limit.kind]
        where = "" if limit.total or many == 1 else f" at the most, in {many} places"
        words = f"{name}: {amount_of(limit.kind, limit.amount + most)} instead of {amount_of(limit.kind, limit.amount)}"
        return Relaxation(name, most, unit, words + where)
    if any(e.name == name for e in problem.exclusives):
        return Relaxation(name, most, "sides", f"{name}: more than one of the commitments that shut each other out")
    if name.startswith("load of "):
        return Relaxation(name, most, "requests/s", f"{name}: up to {_rate(most)} requests/s fewer, in {many} blocks")
    run = next(r for r in problem.runs if f"deadline of {r.name}" == name)
    if not run.options:
        return Relaxation(name, most, "runs", f"{name}: no chip that can be had runs it")
    if run.split:
        return Relaxation(name, most, "share", f"{name}: {most:.0%} of the run is not done by then")
    if any(most >= o.hours - TINY for o in run.options):
        return Relaxation(name, most, "hours", f"{name}: none of it could be done by then")
    return Relaxation(name, most, "hours", f"{name}: {most:,.0f} hours of it are not done by then")
