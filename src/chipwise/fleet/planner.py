"""A problem solved: the program built, handed to the solver, and its columns read back as a plan."""

from __future__ import annotations

from collections import defaultdict
from time import monotonic

from chipwise.fleet.columns import CONSTANT, Model
from chipwise.fleet.mip import Floats, Solved, solve
from chipwise.fleet.model import build
from chipwise.fleet.plan import Cost, FleetPlan, Holding, Running, Serving, Usage
from chipwise.fleet.problem import Problem
from chipwise.fleet.tighten import first_guess, tighten

GAP = 0.01
TIME_LIMIT_S = 60.0
TINY = 1e-6


def plan(
    problem: Problem,
    gap: float = GAP,
    time_limit: float = TIME_LIMIT_S,
    threads: int = 2,
    start: FleetPlan | None = None,
    nodes: int | None = None,
) -> FleetPlan | None:
    """The cheapest plan within `gap`, None where there is none.

    A plan of the same shape of problem may be given as `start`. The gap is that of what can be decided: what exists
    already is paid in any case.
    """
    begun = monotonic()
    model = build(problem)
    tighten(model, threads)
    guess = start_values(model, start) or first_guess(model, gap, time_limit / 2, threads)
    left = time_limit - (monotonic() - begun)
    solved = solve(model.program, gap, left, threads, guess, nodes=nodes)
    if not solved.found:
        if solved.status != "infeasible":
            raise TimeoutError
        return None
    return read(model, solved, monotonic() - begun)


def read(model: Model, solved: Solved, seconds: float) -> FleetPlan:
    """The plan that a solution stands for."""
    values = solved.values.copy()
    for column, whole in enumerate(model.program.integer):
        if whole:
            values[column] = round(values[column])
    costs = _costs(model, values)
    return FleetPlan(
        problem=model.problem,
        usd=sum(c.usd for c in costs),
        bound=_bound(model, solved) + model.constant,
        seconds=seconds,
        timed_out=solved.status == "time",
        holdings=_holdings(model, values, costs),
        serving=_serving(model, values),
        running=_running(model, values),
        costs=costs,
        usage=_usage(model, values),
        peak_kw=_kw(model, values),
    )


def _bound(model: Model, solved: Solved) -> float:
    """What the solver proved; where the time ran out before it proved anything, what the bounds of the columns do."""
    columns = zip(model.program.cost, model.program.upper, strict=True)
    return max(solved.bound, sum(cost * upper for cost, upper in columns if cost < 0))


def start_values(model: Model, start: FleetPlan | None) -> dict[int, float]:
    """The columns of a model that a plan's decisions set; the solver completes what is left open."""
    values: dict[int, float] = {}
    if start is None:
        return values
    begun = {(held.supply, held.period): held.started for held in start.holdings}
    for place, column in model.begun.items():
        values[column] = begun.get(place, 0)
    index = {s.name: w for w, s in enumerate(model.problem.services)}
    services = model.problem.services
    units = {
        (w, s.pool, s.period, s.block): s.units // services[w].units(s.pool)
        for s in start.serving
        if (w := index.get(s.service, -1)) >= 0
    }
    for key, column in model.x.items():
        values[column] = units.get(key, 0)
    return values


def _costs(model: Model, values: Floats) -> tuple[Cost, ...]:
    sums: dict[tuple[int | None, str, str], float] = defaultdict(float)
    for pay in model.pays:
        amount = pay.usd * (1.0 if pay.column == CONSTANT else float(values[pay.column]))
        if amount:
            sums[pay.period, pay.kind, pay.supply] += amount
    order = sorted(sums.items(), key=lambda item: (item[0][0] is None, item[0][0] or 0, item[0][1], item[0][2]))
    return tuple(Cost(period, kind, supply, usd) for (period, kind, supply), usd in order if abs(usd) > TINY)


def _holdings(model: Model, values: Floats, costs: tuple[Cost, ...]) -> tuple[Holding, ...]:
    p = model.problem
    paid: dict[tuple[str, int | None], float] = defaultdict(float)
    for cost in costs:
        paid[cost.supply, cost.period] += cost.usd
    out = []
    for supply in p.supplies:
        for t, period in enumerate(p.periods):
            started = _value(values, model.begun.get((supply.id, t)))
            if supply.hourly:
                units, hours = _hourly(model, values, supply.id, t)
            elif supply.pricing == "existing":
                units, hours = supply.existing[t], supply.existing[t] * period.hours
            else:
                units = _value(values, model.held.get((supply.id, t)))
                hours = units * period.hours
            if units or started or paid[supply.id, t]:
                out.append(Holding(supply.id, t, units, started, hours, paid[supply.id, t]))
    return tuple(out)


def _hourly(model: Model, values: Floats, supply: str, t: int) -> tuple[int, float]:
    """The most units at once of a supply by the hour, and the unit-hours."""
    p = model.problem
    hired = [_value(values, model.hired.get((supply, t, b))) for b in range(len(p.blocks))]
    hours = sum(u * p.periods[t].hours * block.share for u, block in zip(hired, p.blocks, strict=True))
    runs: dict[str, float] = defaultdict(float)
    for (r, o, at), (column, factor) in model.part.items():
        option = p.runs[r].options[o]
        part = float(values[column]) * factor
        if at == t and option.supply == supply and part > TINY:
            _add(runs, p.runs[r].queue, option.takes)
            hours += option.takes * option.paid * part * p.periods[t].hours
    return max(hired) + round(sum(runs.values())), hours


def _add(most: dict[str, float], queue: str, amount: float) -> None:
    """One more that runs at the same time; those of a queue take turns, so of them the largest counts."""
    most[queue] = max(most[queue], amount) if queue else most[queue] + amount


def _kw(model: Model, values: Floats) -> tuple[float, ...]:
    """Power in the block of each period in which it is highest."""
    p = model.problem
    watts = {s.id: p.pool(s.pool).watts_busy for s in p.supplies}
    out = []
    for t in range(len(p.periods)):
        steady = sum(
            (s.existing[t] if s.existing else _value(values, model.held.get((s.id, t)))) * watts[s.id]
            for s in p.supplies
            if not s.hourly
        )
        runs: dict[str, float] = defaultdict(float)
        for (r, o, at), (column, factor) in model.part.items():
            option = p.runs[r].options[o]
            if at == t and option.supply and float(values[column]) * factor > TINY:
                _add(runs, p.runs[r].queue, option.takes * watts[option.supply])
        hired = max(
            sum(_value(values, model.hired.get((s, t, b))) * w for s, w in watts.items()) for b in range(len(p.blocks))
        )
        out.append((steady + sum(runs.values()) + hired) / 1000)
    return tuple(out)


def _serving(model: Model, values: Floats) -> tuple[Serving, ...]:
    services = model.problem.services
    return tuple(
        Serving(services[w].name, t, b, pool, replicas * services[w].units(pool))
        for (w, pool, t, b), column in sorted(model.x.items())
        if (replicas := _value(values, column))
    )


def _running(model: Model, values: Floats) -> tuple[Running, ...]:
    p = model.problem
    return tuple(
        Running(p.runs[r].name, t, p.runs[r].options[o], float(values[column]) * factor * p.periods[t].hours)
        for (r, o, t), (column, factor) in sorted(model.part.items())
        if values[column] > TINY
    )


def _usage(model: Model, values: Floats) -> tuple[Usage, ...]:
    p = model.problem
    paid: dict[tuple[str, int], float] = defaultdict(float)
    used: dict[tuple[str, int], float] = defaultdict(float)
    for work in model.works:
        amount = 1.0 if work.column == CONSTANT else float(values[work.column])
        paid[work.pool, work.period] += work.paid * amount
        used[work.pool, work.period] += work.used * amount
    held: dict[tuple[str, int], int] = defaultdict(int)
    most: dict[tuple[str, int], int] = defaultdict(int)
    for supply in p.supplies:
        for t in range(len(p.periods)):
            units = (
                _hourly(model, values, supply.id, t)[0]
                if supply.hourly
                else (
                    supply.existing[t]
                    if supply.pricing == "existing"
                    else _value(values, model.held.get((supply.id, t)))
                )
            )
            most[supply.pool, t] += units
            if not supply.hourly:
                held[supply.pool, t] += units
    out = []
    for pool in p.pools:
        for t, period in enumerate(p.periods):
            key = (pool.id, t)
            if not most[key] and not paid[key]:
                continue
            kg = paid[key] * pool.carbon_kg(False) + used[key] * (pool.carbon_kg(True) - pool.carbon_kg(False))
            rented = max(0.0, paid[key] / period.hours - held[key])
            out.append(
                Usage(pool.id, t, held[key], rented, used[key], paid[key], most[key] * pool.watts_busy / 1000, kg)
            )
    return tuple(out)


def _value(values: Floats, column: int | None) -> int:
    return 0 if column is None else round(float(values[column]))
