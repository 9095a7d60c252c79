"""Everything that is said of a demand: the plan, the plans of one family, what limits it, what would change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chipwise.errors import Refusal
from chipwise.fleet.mip import solve
from chipwise.fleet.model import build
from chipwise.fleet.plan import Alternative, FleetAnswer, FleetPlan, Sensitivity, Shadow
from chipwise.fleet.planner import GAP, TIME_LIMIT_S, plan
from chipwise.fleet.problem import Limit, Problem
from chipwise.fleet.relax import UNITS, amount_of, relax
from chipwise.units import format_money

Say = Callable[[str], None]
CHANGES = (  # name, factor on demand, factor on prices
    ("demand +20 %", 1.2, 1.0),
    ("demand -20 %", 0.8, 1.0),
    ("prices +20 %", 1.0, 1.2),
    ("prices -20 %", 1.0, 0.8),
)
LIMITS_TRIED = 2
FINE = 5e-4  # gap of the plans that a saving is the difference of, if so many nodes of the search reach it
NODES = 3_000
NOTICED = 0.02  # change in a share of the chip-hours that is said


def answer(
    problem: Problem,
    gap: float = GAP,
    time_limit: float = TIME_LIMIT_S,
    sensitivity: bool = True,
    say: Say | None = None,
    threads: int = 2,
) -> FleetAnswer:
    """The plan of a problem with everything around it; where there is none, what has to give way."""
    tell = say or (lambda _: None)
    tell("the mixed plan")
    mixed = _planned(problem, gap, time_limit, threads)
    if mixed is None:
        tell("what makes it infeasible")
        return FleetAnswer(None, relax=relax(problem, time_limit, threads))
    single, best = _alternatives(problem, mixed, gap, time_limit, threads, tell)
    best, shadows = _shadows(best, time_limit / 2, threads, tell)
    changes = _sensitivity(best, gap, time_limit, threads, tell) if sensitivity else ()
    return FleetAnswer(best, (*single, Alternative("best mix", best)), shadows, changes)


def _planned(
    problem: Problem,
    gap: float,
    time_limit: float,
    threads: int,
    start: FleetPlan | None = None,
    nodes: int | None = None,
) -> FleetPlan | None:
    try:
        return plan(problem, gap, time_limit, threads, start, nodes)
    except TimeoutError:
        raise Refusal(f"no plan was found within {time_limit:g} s", "a longer time limit may do") from None


def _alternatives(
    problem: Problem, mixed: FleetPlan, gap: float, time_limit: float, threads: int, tell: Say
) -> tuple[tuple[Alternative, ...], FleetPlan]:
    """The plans of GPUs alone and of TPUs alone, and the best mix, which is at least as good as either."""
    best, single = mixed, []
    for name, family in (("GPU only", "gpu"), ("TPU only", "tpu")):
        tell(f"the plan with {name.replace(' only', 's only')}")
        narrowed = problem.only((family,))
        try:
            found = _planned(narrowed, gap, time_limit, threads)
        except Refusal as refusal:
            single.append(Alternative(name, None, str(refusal)))
            continue
        if found is None:
            single.append(Alternative(name, None, _why_not(narrowed, family.upper(), time_limit, threads)))
            continue
        single.append(Alternative(name, found))
        if found.usd < best.usd:  # within the gap of both
            best = replace(found, problem=problem, bound=min(mixed.bound, found.usd), timed_out=mixed.timed_out)
    return tuple(single), best


def _why_not(problem: Problem, family: str, time_limit: float, threads: int) -> str:
    homeless = [r.name for r in problem.runs if not r.options] + [s.name for s in problem.services if not s.carries]
    if homeless:
        return f"no {family} that can be had carries {', '.join(homeless)}"
    return _gives_way(problem, time_limit, threads)


def _gives_way(problem: Problem, time_limit: float, threads: int) -> str:
    try:
        return "; ".join(r.words for r in relax(problem, time_limit, threads))
    except Refusal as refusal:
        return str(refusal)


# limits


def _shadows(best: FleetPlan, time_limit: float, threads: int, tell: Say) -> tuple[FleetPlan, tuple[Shadow, ...]]:
    """What loosening each of the limits that bind most would save, solved again for the whole plan and one period.

    Differences need finer plans; one that was found without running into the time is the plan from then on.
    """
    ranked = binding(best.problem, threads)
    if not ranked:
        return best, ()
    tell("what the limits cost")
    base = _finer(best, time_limit, threads)
    out: list[Shadow] = []
    for limit, periods in ranked[:LIMITS_TRIED]:
        tell(f"what {limit.name} costs")
        one, start = None, base
        if not limit.total:
            one, start = _saving(base, base, limit, periods[0], time_limit, threads)
        if limit.total or len(periods) > 1:  # what one period saves, all of them do
            out.append(_saving(base, start, limit, None, time_limit, threads)[0])
        out += [one] if one else []
    return best if base.timed_out else base, tuple(out)


def _finer(best: FleetPlan, time_limit: float, threads: int) -> FleetPlan:
    """The plan or a better one, with a better bound."""
    try:
        found = _planned(best.problem, FINE, time_limit, threads, best, NODES)
    except Refusal:  # nothing finer in time: the plan stands as it is, with its own gap
        return best
    if found is None or found.usd > best.usd:
        return best
    return replace(found, bound=max(best.bound, found.bound))


def binding(problem: Problem, threads: int = 2) -> list[tuple[Limit, list[int]]]:
    """Limits that bind where units may be fractions, the dearest first, each with its periods, dearest first."""
    model = build(problem)
    relaxed = [column for column, whole in enumerate(model.program.integer) if whole]
    solved = solve(model.program, 0.0, 60.0, threads, relaxed=relaxed)
    if not solved.found:
        return []
    worth: dict[int, dict[int, float]] = {}
    for row, (which, period) in model.limit_rows.items():
        value = -float(solved.duals[row]) * step_of(problem, model.limits[which])
        if value > 1.0:
            of = worth.setdefault(which, {})
            key = -1 if period is None else period
            of[key] = of.get(key, 0.0) + value
    ranked = sorted(worth, key=lambda which: -sum(worth[which].values()))
    return [(model.limits[which], sorted(worth[which], key=lambda t: -worth[which][t])) for which in ranked]


def step_of(problem: Problem, limit: Limit) -> float:
    """How much more of a limit is tried: one unit's worth, or a hundredth of money and CO2."""
    supplies = [s for s in problem.supplies if not limit.supplies or s.id in limit.supplies]
    pools = [problem.pool(s.pool) for s in supplies]
    if limit.kind == "chips":
        return float(max(p.chips for p in pools))
    if limit.kind == "kw":
        return max(p.watts_busy for p in pools) / 1000
    if limit.kind == "rack_units":
        return max(s.rack_units for s in supplies)
    return 1.0 if limit.kind == "units" else limit.amount / 100


def _saving(
    base: FleetPlan, start: FleetPlan, limit: Limit, period: int | None, time_limit: float, threads: int
) -> tuple[Shadow, FleetPlan]:
    """What more of a limit saves against the base, and the plan with it; `start` is a plan that this allows."""
    problem, step = base.problem, step_of(base.problem, limit)
    when = "" if limit.total else " in every period" if period is None else f" in {problem.periods[period].name}"
    unit = UNITS[limit.kind]
    more = f"{amount_of(limit.kind, step)} more of {limit.name}{when}"
    try:
        found = _planned(loosened(problem, limit, step, period), FINE, time_limit, threads, start, NODES)
    except Refusal:
        words = f"what {more} would save was not found within {time_limit:g} s"
        return Shadow(limit.name, period, step, unit, 0.0, False, words), start
    if found is None or found.usd > start.usd:
        found = replace(start, bound=found.bound if found else start.bound)
    saves = max(0.0, base.usd - found.usd)
    least, most = max(0.0, base.bound - found.usd), max(saves, base.usd - found.bound)
    if saves < 1.0:
        words = f"{more} would save nothing"
        words += f" that was found, and at most {format_money(most)}" if most > 1 else ""
        return Shadow(limit.name, period, step, unit, 0.0, False, words), found
    words = f"{more} would save {format_money(saves)}"
    if most - least > 0.02 * saves:
        words += f" (proved: between {format_money(least)} and {format_money(most)})"
    return Shadow(limit.name, period, step, unit, saves, least > 0, words), found


def loosened(problem: Problem, limit: Limit, step: float, period: int | None) -> Problem:
    """The problem with more of one limit, in all its periods or in one."""
    if limit.name.startswith("quota of ") and limit not in problem.limits:  # a supply's own
        (name,) = limit.supplies
        rest = tuple(replace(s, limit=None) if s.id == name else s for s in problem.supplies)
        problem = replace(problem, supplies=rest, limits=(*problem.limits, limit))
    others = tuple(x for x in problem.limits if x != limit)
    wider = replace(limit, amount=limit.amount + step)
    if period is None or limit.total:
        return replace(problem, limits=(*others, wider))
    every = limit.periods or tuple(range(len(problem.periods)))
    parts = (replace(wider, periods=(period,)), replace(limit, periods=tuple(t for t in every if t != period)))
    return replace(problem, limits=(*others, *(x for x in parts if x.periods)))


# sensitivity


def _sensitivity(best: FleetPlan, gap: float, time_limit: float, threads: int, tell: Say) -> tuple[Sensitivity, ...]:
    out = []
    for name, demand, price in CHANGES:
        tell(name)
        out.append(again(name, best, best.problem.scaled(demand, price), gap, time_limit, threads))
    return tuple(out)


def again(name: str, best: FleetPlan, changed: Problem, gap: float, time_limit: float, threads: int = 2) -> Sensitivity:
    """The plan of a changed problem beside the best one of what was asked."""
    try:
        found = _planned(changed, gap, time_limit, threads)
    except Refusal as refusal:
        return Sensitivity(name, None, str(refusal), "")
    if found is None:
        return Sensitivity(name, None, f"infeasible: {_gives_way(changed, time_limit, threads)}", "")
    return Sensitivity(name, found, "", changes(best, found))


def changes(before: FleetPlan, after: FleetPlan) -> str:
    """What changes in the mix of supplies by their shares of the chip-hours paid for, in words."""
    one, other = shares(before), shares(after)
    moved = sorted(((other.get(s, 0.0) - one.get(s, 0.0), s) for s in {*one, *other}), key=lambda x: (-abs(x[0]), x[1]))
    said = [
        f"{supply} {one.get(supply, 0.0):.0%} -> {other.get(supply, 0.0):.0%}"
        for by, supply in moved[:3]
        if abs(by) >= NOTICED
    ]
    return ", ".join(said) if said else "the mix stays as it is"


def shares(plan: FleetPlan) -> dict[str, float]:
    """Each supply's share of the chip-hours paid for."""
    chips = {s.id: plan.problem.pool(s.pool).chips for s in plan.problem.supplies}
    hours: dict[str, float] = {}
    for h in plan.holdings:
        hours[h.supply] = hours.get(h.supply, 0.0) + h.unit_hours * chips[h.supply]
    total = sum(hours.values())
    return {s: x / total for s, x in hours.items()} if total else {}
