"""The planning problem as a mixed-integer program.

Columns: `x` units of a pool that answer for a service, `hired` units by the hour that answer, `begun` commitments and
purchases per period, `held` units that these leave in each period, `chosen` option of a run, `active` whether an
option runs in a period, `part` the part of that period in which it does.

There are no big constants: the integer columns are bounded by what a period can need at most, the covering rows of
services are joined by their roundings (`_roundings`), and runs have the fewest periods they need as a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, inf

from chipwise.fleet.problem import COMMITTED, Limit, Option, Problem, Run, Service, Supply
from chipwise.fleet.program import Program

EPS = 1e-9
CONSTANT = -1  # the column of what is paid anyway


@dataclass(frozen=True, slots=True)
class Pay:
    """Dollars per unit of a column: in which period (None: after the plan), what for, and for which supply or pool."""

    column: int
    usd: float
    period: int | None
    kind: str
    supply: str


@dataclass(frozen=True, slots=True)
class Take:
    """Units at once per unit of a column; `block` None: in all of them."""

    column: int
    units: float
    supply: str
    period: int
    block: int | None


@dataclass(frozen=True, slots=True)
class Work:
    """Unit-hours per unit of a column in a pool: paid for, and at work."""

    column: int
    pool: str
    period: int
    paid: float
    used: float


@dataclass(slots=True)
class Model:
    """A problem built as a program, with the columns by what they mean."""

    problem: Problem
    limits: tuple[Limit, ...]
    program: Program = field(default_factory=Program)
    x: dict[tuple[int, str, int, int], int] = field(default_factory=dict)
    hired: dict[tuple[str, int, int], int] = field(default_factory=dict)
    begun: dict[tuple[str, int], int] = field(default_factory=dict)
    held: dict[tuple[str, int], int] = field(default_factory=dict)
    chosen: dict[tuple[int, int], int] = field(default_factory=dict)
    active: dict[tuple[int, int, int], int] = field(default_factory=dict)
    part: dict[tuple[int, int, int], tuple[int, float]] = field(default_factory=dict)
    pays: list[Pay] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    limit_rows: dict[int, tuple[int, int | None]] = field(default_factory=dict)  # row -> limit, period
    broken: dict[str, tuple[int, list[tuple[int, float]]]] = field(default_factory=dict)  # relaxed: switch, slacks

    def pay(self, column: int, usd: float, period: int | None, kind: str, supply: str) -> None:
        """A cost of a column; of nothing where it is 0."""
        if usd:
            self.pays.append(Pay(column, usd, period, kind, supply))
            if column != CONSTANT:
                self.program.cost[column] += usd

    @property
    def constant(self) -> float:
        """Dollars that are paid whatever is decided."""
        return sum(p.usd for p in self.pays if p.column == CONSTANT)


def all_limits(problem: Problem) -> tuple[Limit, ...]:
    """The limits of a problem and those of its supplies, which have the name ``quota of SUPPLY``."""
    own = (Limit(f"quota of {s.id}", "units", s.limit, (s.id,)) for s in problem.supplies
           if s.limit is not None and s.terms != "existing")
    return (*problem.limits, *own)


def build(problem: Problem, elastic: bool = False) -> Model:
    """The program of a problem. An `elastic` one may break every named constraint, each by a switch and slacks."""
    model = Model(problem, all_limits(problem))
    if elastic:
        for name in constraint_names(problem):
            model.broken[name] = (model.program.column(1, integer=True), [])
    _services(model)
    _runs(model)
    _supplies(model)
    _capacity(model)
    _limits(model)
    _exclusives(model)
    return model


def constraint_names(problem: Problem) -> list[str]:
    """Every constraint that could give way: limits, exclusives, loads of services and deadlines of runs."""
    return [*dict.fromkeys(limit.name for limit in all_limits(problem)), *(e.name for e in problem.exclusives),
            *(f"load of {s.name}" for s in problem.services), *(f"deadline of {r.name}" for r in problem.runs)]


def _slack(model: Model, name: str, most: float) -> list[tuple[int, float]]:
    """A column by which a constraint may be broken up to `most`; none in a program that is not elastic."""
    if name not in model.broken or most <= 0:
        return []
    switch, slacks = model.broken[name]
    column = model.program.column(most)
    model.program.row([(column, 1.0), (switch, -most)], high=0.0)
    slacks.append((column, 1 / most))
    return [(column, 1.0)]


# services


def most_units(service: Service, carries: float, period: int, block: int) -> int:
    """The most units of one pool that a service has use for."""
    need = service.need(period, block)
    return ceil(need / carries - EPS) + service.spare_units if need > 0 else 0


def _services(model: Model) -> None:
    p = model.problem
    for w, service in enumerate(p.services):
        for t, period in enumerate(p.periods):
            for b, block in enumerate(p.blocks):
                if service.need(t, b) > 0:
                    _cover(model, w, service, t, b, period.hours * block.share)


def _cover(model: Model, w: int, service: Service, t: int, b: int, hours: float) -> None:
    """The units of a service in one block: enough for the load, also with the spare units gone."""
    program, need = model.program, service.need(t, b)
    terms: list[tuple[int, float]] = []
    for pool, carries in service.carries:
        column = program.column(most_units(service, carries, t, b), integer=True)
        model.x[w, pool, t, b] = column
        at = model.problem.pool(pool)
        model.pay(column, (at.energy_usd(True) - at.energy_usd(False)) * hours, t, "energy", pool)
        model.works.append(Work(column, pool, t, 0.0, hours))
        terms.append((column, carries))
    slack = _slack(model, f"load of {service.name}", need)
    if not service.spare_units:
        program.row(terms + slack, low=need)
        if not slack:
            _roundings(program, terms, need)
        return
    for column, carries in terms:  # what would be lost is counted at the largest unit in use
        used = program.column(1, integer=True)
        program.row([(column, 1.0), (used, -program.upper[column])], high=0.0)
        program.row([*terms, *slack, (used, -service.spare_units * carries)], low=need)
    if not terms:
        program.row(slack, low=need)


def _roundings(program: Program, terms: list[tuple[int, float]], need: float) -> None:
    """Rows that whole units satisfy and fractions don't: the covering row divided and rounded up."""
    seen = set()
    for size in sorted({carries for _, carries in terms}):
        rounded = tuple(ceil(carries / size - EPS) for _, carries in terms)
        least = ceil(need / size - EPS)
        if (rounded, least) not in seen:
            seen.add((rounded, least))
            program.row([(c, float(r)) for (c, _), r in zip(terms, rounded, strict=True)], low=least)


# training runs


def _runs(model: Model) -> None:
    p = model.problem
    queues: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
    for r, run in enumerate(p.runs):
        if run.split:
            _split(model, r, run)
        else:
            _whole(model, r, run)
        if run.queue:
            for (which, _, t), (column, factor) in model.part.items():
                if which == r:
                    queues[run.queue, t].append((column, factor))
    for terms in queues.values():
        model.program.row(terms, high=1.0)


def window(problem: Problem, run: Run, option: Option) -> range:
    """The periods in which an option of a run may run."""
    lead = problem.supply(option.supply).lead if option.supply else 0
    return range(max(run.first, lead), run.last + 1)


def fewest_periods(hours: Iterable[float], needed: float) -> int:
    """The fewest periods of a window that hold so many hours.

    >>> fewest_periods([744, 672, 744], 800)
    2
    """
    count, left = 0, needed
    for each in sorted(hours, reverse=True):
        if left <= EPS:
            break
        left -= each
        count += 1
    return count


def _whole(model: Model, r: int, run: Run) -> None:
    """A run that stays where it begins."""
    p, program, loose = model.problem, model.program, bool(model.broken)
    choices: list[tuple[int, float]] = []
    for o, option in enumerate(run.options):
        spans = {t: p.periods[t].hours for t in window(p, run, option)}
        if option.hours > sum(spans.values()) + EPS and not loose:
            continue
        y = program.column(1, integer=True)
        model.chosen[r, o] = y
        choices.append((y, 1.0))
        if len(spans) == 1 and not loose:
            t = run.last
            model.active[r, o, t], model.part[r, o, t] = y, (y, option.hours / spans[t])
            _use(model, option, t, y, option.hours / spans[t])
            continue
        short = _slack(model, f"deadline of {run.name}", option.hours)
        done = []
        for t, hours in spans.items():
            g = _part(model, r, o, option, t)
            program.row([(g, 1.0), (y, -1.0)], high=0.0)
            if (r, o, t) in model.active:
                program.row([(model.active[r, o, t], 1.0), (y, -1.0)], high=0.0)
            done.append((g, hours))
        program.row([*done, *short, (y, -option.hours)], low=0.0, high=inf if short else 0.0)
        actives = [(model.active[r, o, t], 1.0) for t in spans if (r, o, t) in model.active]
        if actives and not short:
            program.row([*actives, (y, -float(fewest_periods(spans.values(), option.hours)))], low=0.0)
    if not choices:
        choices = _slack(model, f"deadline of {run.name}", 1.0)
    program.row(choices, low=1.0, high=1.0)


def _split(model: Model, r: int, run: Run) -> None:
    """A run that may move: its shares of the whole add up, and it is in one place at a time."""
    p, program = model.problem, model.program
    shares: list[tuple[int, float]] = []
    for t in range(run.first, run.last + 1):
        here = []
        for o, option in enumerate(run.options):
            if t not in window(p, run, option):
                continue
            g = _part(model, r, o, option, t)
            here.append((g, 1.0))
            shares.append((g, p.periods[t].hours / option.hours))
        program.row(here, high=1.0)
    program.row(shares + _slack(model, f"deadline of {run.name}", 1.0), low=1.0, high=1.0)


def _part(model: Model, r: int, o: int, option: Option, t: int) -> int:
    """The part of a period in which an option runs, and where units at once count, whether it does at all."""
    g = model.program.column(1)
    model.part[r, o, t] = (g, 1.0)
    a = None
    if not option.supply or _counted(model, option.supply):
        a = model.program.column(1, integer=True)
        model.active[r, o, t] = a
        model.program.row([(g, 1.0), (a, -1.0)], high=0.0)
    _use(model, option, t, a, 1.0, g)
    return g


def _counted(model: Model, supply: str) -> bool:
    """Whether some limit counts the units at once of a supply."""
    return any(limit.kind in ("units", "kw") and (not limit.supplies or supply in limit.supplies)
               for limit in model.limits)


def _use(model: Model, option: Option, t: int, active: int | None, part: float, column: int | None = None) -> None:
    """What an option takes and costs in a period: `column` (else `active`) times `part` of the period's hours."""
    column = active if column is None else column
    assert column is not None
    hours = model.problem.periods[t].hours * part
    pool = model.problem.pool(option.pool)
    if option.supply:
        supply = model.problem.supply(option.supply)
        kind = "spot" if supply.terms == "spot" else "on demand"
        model.pay(column, supply.usd_h * option.takes * hours, t, kind, supply.id)
        model.works.append(Work(column, pool.id, t, option.takes * hours, option.units * hours))
        if active is not None:
            model.takes.append(Take(active, option.takes, supply.id, t, None))
        return
    extra = pool.energy_usd(True) - pool.energy_usd(False)
    model.pay(column, extra * option.units * hours, t, "energy", pool.id)
    model.works.append(Work(column, pool.id, t, 0.0, option.units * hours))


# supplies


def _most(model: Model, pool: str) -> list[tuple[int, ...]]:
    """The most units of a pool that work can use at once, by period and block."""
    p = model.problem
    runs = [sum(max((o.takes for o in run.options if o.pool == pool), default=0)
                for run in p.runs if run.first <= t <= run.last) for t in range(len(p.periods))]
    return [tuple(runs[t] + sum(most_units(s, dict(s.carries)[pool], t, b) for s in p.services
                                if pool in dict(s.carries)) for b in range(len(p.blocks)))
            for t in range(len(p.periods))]


def _supplies(model: Model) -> None:
    most = {pool.id: _most(model, pool.id) for pool in model.problem.pools}
    for supply in model.problem.supplies:
        if supply.terms == "existing":
            _existing(model, supply)
        elif supply.hourly:
            _hourly(model, supply, most[supply.pool])
        else:
            _started(model, supply, max(max(row) for row in most[supply.pool]))


def _hourly(model: Model, supply: Supply, most: list[tuple[int, ...]]) -> None:
    p = model.problem
    kind = "spot" if supply.terms == "spot" else "on demand"
    for t, period in enumerate(p.periods):
        for b, block in enumerate(p.blocks):
            if t < supply.lead or not _answering(model, supply.pool, t, b):
                continue
            column = model.program.column(most[t][b], integer=True)
            hours = period.hours * block.share
            model.hired[supply.id, t, b] = column
            model.pay(column, supply.usd_h * hours, t, kind, supply.id)
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
        column = model.held[supply.id, t] = program.column(most)
        model.takes.append(Take(column, 1.0, supply.id, t, None))
        hours = p.periods[t].hours
        model.pay(column, supply.usd_h * hours, t, "commitments", supply.id)
        model.pay(column, supply.usd_period, t, "space, upkeep and staff", supply.id)
        model.pay(column, at.energy_usd(False) * hours, t, "energy", supply.id)
        model.works.append(Work(column, supply.pool, t, hours, 0.0))
    for t in range(count - supply.lead):
        column = model.begun[supply.id, t] = program.column(most, integer=True)
        begin = t + supply.lead
        kept = supply.ends(begin, count) - begin
        model.pay(column, supply.capex, t, "capex", supply.id)
        model.pay(column, -supply.worth(kept), None, "value left", supply.id)
        if supply.terms in COMMITTED and not p.prorate:
            rest = (supply.term - kept) * p.overrun_hours * supply.usd_h
            model.pay(column, rest, None, "commitments", supply.id)
    for t in range(supply.lead, count):
        starts = [(model.begun[supply.id, s], 1.0) for s in range(t - supply.lead + 1)
                  if supply.ends(s + supply.lead, count) > t]
        program.row([*starts, (model.held[supply.id, t], -1.0)], low=0.0, high=0.0)


def _existing(model: Model, supply: Supply) -> None:
    p = model.problem
    at = p.pool(supply.pool)
    for t, period in enumerate(p.periods):
        units = supply.existing[t]
        if units:
            model.pay(CONSTANT, supply.usd_h * period.hours * units, t, "existing", supply.id)
            model.pay(CONSTANT, supply.usd_period * units, t, "existing", supply.id)
            model.pay(CONSTANT, at.energy_usd(False) * period.hours * units, t, "energy", supply.id)
            model.takes.append(Take(CONSTANT, units, supply.id, t, None))
            model.works.append(Work(CONSTANT, supply.pool, t, units * period.hours, 0.0))


# what holds across work and supplies


def _capacity(model: Model) -> None:
    """In every block a pool has the units that lie on it; runs on held units count against those alone."""
    p, program = model.problem, model.program
    for pool in p.pools:
        supplies = [s for s in p.supplies if s.pool == pool.id]
        for t in range(len(p.periods)):
            there = sum(s.existing[t] for s in supplies if s.terms == "existing")
            held = [(model.held[s.id, t], -1.0) for s in supplies if (s.id, t) in model.held]
            running = _on_held(model, pool.id, t)
            if running:
                program.row(running + held, high=there)
            for b in range(len(p.blocks)):
                answering = [(model.x[key], 1.0) for key in _answering(model, pool.id, t, b)]
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


def _limits(model: Model) -> None:
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
    for b in range(len(model.problem.blocks)):
        terms = [(take.column, take.units * _weight(model, limit, take.supply)) for take in takes
                 if take.block in (None, b) and (not limit.supplies or take.supply in limit.supplies)]
        key = tuple(sorted(terms))
        if key not in seen:  # held units alone are the same in all blocks
            seen.add(key)
            _cap(model, which, t, terms)


def _weight(model: Model, limit: Limit, name: str) -> float:
    supply = model.problem.supply(name)
    if limit.kind == "kw":
        return model.problem.pool(supply.pool).watts_busy / 1000
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
    slack = [(column, -value) for column, value in _slack(model, limit.name, most)]
    row = model.program.row(free + slack, high=limit.amount - fixed)
    model.limit_rows[row] = (which, period)


def _exclusives(model: Model) -> None:
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
            if any(s.terms == "existing" and s.id in side and any(s.existing) for s in p.supplies):
                program.row([(switch, 1.0)], low=1.0)
        slack = [(c, -v) for c, v in _slack(model, exclusive.name, float(len(switches)))]
        program.row(switches + slack, high=1.0)


def without(problem: Problem, names: Iterable[str]) -> Problem:
    """The problem without limits and exclusives of these names."""
    gone = set(names)
    return replace(
        problem, limits=tuple(x for x in problem.limits if x.name not in gone),
        exclusives=tuple(e for e in problem.exclusives if e.name not in gone),
        supplies=tuple(replace(s, limit=None) if f"quota of {s.id}" in gone else s for s in problem.supplies))
