"""Supplies, the capacity they give, limits and exclusives as columns and rows of the program."""

from __future__ import annotations

from collections import defaultdict

from chipwise.fleet.columns import CONSTANT, EPS, Model, Take, Work, slack
from chipwise.fleet.model_work import most_replicas
from chipwise.fleet.problem import COMMITTED, Limit, Problem, Supply


def _most(model: Model, pool: str) -> list[tuple[int, ...]]:
    """The most units of a pool that work can use at once, by period and block."""
    p = model.problem
    runs = [
        sum(
            max((o.takes for o in run.options if o.pool == pool), default=0)
            for run in p.runs
            if run.first <= t <= run.last
        )
        for t in range(len(p.periods))
    ]
    return [
        tuple(
            runs[t]
            + sum(
                most_replicas(s, dict(s.carries)[pool], t, b) * s.units(pool)
                for s in p.services
                if pool in dict(s.carries)
            )
            for b in range(len(p.blocks))
        )
        for t in range(len(p.periods))
    ]


def add_supplies(model: Model) -> None:
    """Units by the hour, commitments and purchases, and what exists, with what each costs."""
    most = {pool.id: _most(model, pool.id) for pool in model.problem.pools}
    for supply in model.problem.supplies:
        if supply.pricing == "existing":
            _existing(model, supply)
        elif supply.hourly:
            _hourly(model, supply, most[supply.pool])
        else:
            _started(model, supply, max(max(row) for row in most[supply.pool]))


def _hourly(model: Model, supply: Supply, most: list[tuple[int, ...]]) -> None:
    p = model.problem
    kind = "spot" if supply.pricing == "spot" else "on demand"
    for t, period in enumerate(p.periods):
        for b, block in enumerate(p.blocks):
            if t < supply.lead or not _answering(model, supply.pool, t, b):
                continue
            column = model.program.column(most[t][b], integer=True)
            hours = period.hours * block.share
            model.hired[supply.id, t, b] = column
            model.pay(column, supply.usd_per_unit_hour * hours, t, kind, supply.id)
            model.works.append(Work(column, supply.pool, t, hours, 0.0))
            model.takes.append(Take(column, 1.0, supply.id, t, b))


def _answering(model: Model, pool: str, t: int, b: int) -> list[tuple[int, str, int, int]]:
    return [key for w in range(len(model.problem.services)) if (key := (w, pool, t, b)) in model.x]


def _started(model: Model, supply: Supply, most: int) -> None:
    """Commitments and purchases: begun in a period, held from `lead` periods later on."""
    p, program = model.problem, model.program
    count = len(p.periods)
    at = p.pool(supply.pool)
    for t in range(supply.lead, count):
        column = model.held[supply.id, t] = program.column(most * count)  # terms may overlap
        model.takes.append(Take(column, 1.0, supply.id, t, None))
        hours = p.periods[t].hours
        model.pay(column, supply.usd_per_unit_hour * hours, t, "commitments", supply.id)
        model.pay(column, supply.usd_period, t, "space, upkeep, staff, interest", supply.id)
        model.pay(column, at.energy_usd(False) * hours, t, "energy", supply.id)
        model.works.append(Work(column, supply.pool, t, hours, 0.0))
    for t in range(count - supply.lead):
        column = model.begun[supply.id, t] = program.column(most, integer=True)
        begin = t + supply.lead
        kept = supply.ends(begin, count) - begin
        model.pay(column, supply.capex, t, "capex", supply.id)
        model.pay(column, -supply.worth(kept), None, "value left", supply.id)
        if supply.pricing in COMMITTED and not p.prorate:
            rest = (supply.term - kept) * p.overrun_hours * supply.usd_per_unit_hour
            model.pay(column, rest, None, "commitments", supply.id)
    for t in range(supply.lead, count):
        starts = [
            (model.begun[supply.id, s], 1.0)
            for s in range(t - supply.lead + 1)
            if supply.ends(s + supply.lead, count) > t
        ]
        program.row([*starts, (model.held[supply.id, t], -1.0)], low=0.0, high=0.0)


def _existing(model: Model, supply: Supply) -> None:
    p = model.problem
    at = p.pool(supply.pool)
    for t, period in enumerate(p.periods):
        units = supply.existing[t]
        if supply.idle_usd:
            model.pay(CONSTANT, supply.idle_usd[t], t, "existing", supply.id)
        if units:
            model.pay(CONSTANT, supply.usd_per_unit_hour * period.hours * units, t, "existing", supply.id)
            model.pay(CONSTANT, supply.usd_period * units, t, "existing", supply.id)
            model.pay(CONSTANT, at.energy_usd(False) * period.hours * units, t, "energy", supply.id)
            model.takes.append(Take(CONSTANT, units, supply.id, t, None))
            model.works.append(Work(CONSTANT, supply.pool, t, units * period.hours, 0.0))


def add_capacity(model: Model) -> None:
    """In every block a pool has the units that lie on it; runs on held units count against those alone."""
    p, program = model.problem, model.program
    for pool in p.pools:
        supplies = [s for s in p.supplies if s.pool == pool.id]
        for t in range(len(p.periods)):
            there = sum(s.existing[t] for s in supplies if s.pricing == "existing")
            held = [(model.held[s.id, t], -1.0) for s in supplies if (s.id, t) in model.held]
            running = _on_held(model, pool.id, t)
            if running:
                program.row(running + held, high=there)
            for b in range(len(p.blocks)):
                answering = [
                    (model.x[key], float(p.services[key[0]].units(pool.id))) for key in _answering(model, pool.id, t, b)
                ]
                hired = [(model.hired[s.id, t, b], -1.0) for s in supplies if (s.id, t, b) in model.hired]
                if answering:
                    program.row(answering + running + held + hired, high=there)


def _on_held(model: Model, pool: str, t: int) -> list[tuple[int, float]]:
    """Held units that runs take in a period; runs of one queue take those of the largest among them."""
    p, terms = model.problem, []
    queues: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for r, run in enumerate(p.runs):
        if not run.first <= t <= run.last:
            continue
        for o, option in enumerate(run.options):
            if option.pool != pool or option.supply or (r, o, t) not in model.active:
                continue
            if run.queue:
                queues[run.queue].append((model.active[r, o, t], option.takes))
            else:
                terms.append((model.active[r, o, t], float(option.takes)))
    for several in queues.values():
        largest = model.program.column(max(units for _, units in several))
        for column, units in several:
            model.program.row([(column, float(units)), (largest, -1.0)], high=0.0)
        terms.append((largest, 1.0))
    return terms


def add_limits(model: Model) -> None:
    """Every limit, in each of its periods or over all of them."""
    takes: dict[int, list[Take]] = defaultdict(list)
    for take in model.takes:
        takes[take.period].append(take)
    for which, limit in enumerate(model.limits):
        periods = limit.periods or tuple(range(len(model.problem.periods)))
        if limit.total:
            terms = [term for t in periods for term in _counts(model, limit, t)]
            _cap(model, which, None, terms)
            continue
        for t in periods:
            if limit.kind in ("usd", "kg"):
                _cap(model, which, t, _counts(model, limit, t))
            else:
                _cap_at_once(model, which, t, takes[t])


def _cap_at_once(model: Model, which: int, t: int, takes: list[Take]) -> None:
    """A limit on units at once, in every block."""
    limit, seen = model.limits[which], set()
    counted = [
        (take, take.units * _weight(model, limit, take.supply))
        for take in takes
        if not limit.supplies or take.supply in limit.supplies
    ]
    turns = _in_turns(model, [(take, value) for take, value in counted if take.queue])
    for b in range(len(model.problem.blocks)):
        terms = turns + [(take.column, value) for take, value in counted if not take.queue and take.block in (None, b)]
        key = tuple(sorted(terms))
        if key not in seen:  # held units alone are the same in all blocks
            seen.add(key)
            _cap(model, which, t, terms)


def _in_turns(model: Model, counted: list[tuple[Take, float]]) -> list[tuple[int, float]]:
    """What runs of queues take by the hour: of each queue the largest that is active in the period."""
    terms: list[tuple[int, float]] = []
    queues: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for take, value in counted:
        if value:
            queues[take.queue].append((take.column, value))
    for several in queues.values():
        if len(several) == 1:
            terms += several
            continue
        largest = model.program.column(max(value for _, value in several))
        for column, value in several:
            model.program.row([(column, value), (largest, -1.0)], high=0.0)
        terms.append((largest, 1.0))
    return terms


def _weight(model: Model, limit: Limit, name: str) -> float:
    supply = model.problem.supply(name)
    if limit.kind == "kw":
        return model.problem.pool(supply.pool).watts_busy / 1000
    if limit.kind == "chips":
        return float(model.problem.pool(supply.pool).chips)
    return supply.rack_units if limit.kind == "rack_units" else 1.0


def _counts(model: Model, limit: Limit, t: int) -> list[tuple[int, float]]:
    """Dollars paid or CO2 of a period by column."""
    p = model.problem
    if limit.kind == "usd":
        return [(pay.column, pay.usd) for pay in model.pays if pay.period == t and _within(p, limit, pay.supply)]
    terms = []
    for work in model.works:
        if work.period == t and _within(p, limit, work.pool):
            pool = p.pool(work.pool)
            extra = pool.carbon_kg(True) - pool.carbon_kg(False)
            terms.append((work.column, work.paid * pool.carbon_kg(False) + work.used * extra))
    return terms


def _within(problem: Problem, limit: Limit, name: str) -> bool:
    """Whether a supply counts in a limit; of a pool's energy, whether all its supplies do."""
    if not limit.supplies or name in limit.supplies:
        return True
    of_pool = [s.id for s in problem.supplies if s.pool == name]
    return bool(of_pool) and all(s in limit.supplies for s in of_pool)


def _cap(model: Model, which: int, period: int | None, terms: list[tuple[int, float]]) -> None:
    limit = model.limits[which]
    fixed = sum(value for column, value in terms if column == CONSTANT)
    free = [(column, value) for column, value in terms if column != CONSTANT and value]
    if not free and fixed <= limit.amount + EPS:
        return
    uppers = model.program.upper
    most = sum(value * uppers[column] for column, value in free if value > 0) + fixed - limit.amount
    loose = [(column, -value) for column, value in slack(model, limit.name, most)]
    row = model.program.row(free + loose, high=limit.amount - fixed)
    model.limit_rows[row] = (which, period)


def add_exclusives(model: Model) -> None:
    """Sides of which one may be used: a switch for each, under which its columns lie."""
    p, program = model.problem, model.program
    for exclusive in p.exclusives:
        switches = []
        for side in exclusive.sides:
            switch = program.column(1, integer=True)
            switches.append((switch, 1.0))
            columns = [c for (s, _), c in model.begun.items() if s in side]
            columns += [c for (s, _, _), c in model.hired.items() if s in side]
            columns += [c for (r, o, _), (c, _) in model.part.items() if p.runs[r].options[o].supply in side]
            for column in dict.fromkeys(columns):
                program.row([(column, 1.0), (switch, -program.upper[column])], high=0.0)
            if any(s.pricing == "existing" and s.id in side and any(s.existing) for s in p.supplies):
                program.row([(switch, 1.0)], low=1.0)
        loose = [(c, -v) for c, v in slack(model, exclusive.name, float(len(switches)))]
        program.row(switches + loose, high=1.0)
