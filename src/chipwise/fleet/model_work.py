"""Services and training runs as columns and rows of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import ceil, inf

from chipwise.fleet.columns import EPS, Model, Take, Work, slack
from chipwise.fleet.problem import Option, Problem, Run, Service

FAINT = 1e-3  # share of a replica below which a load could pass for none within the solver's tolerance


def most_replicas(service: Service, carries: float, period: int, block: int) -> int:
    """The most replicas in one pool that a service has use for."""
    need = service.need(period, block)
    lost = service.spare_units * max((each for _, each in service.carries), default=0.0)
    return max(service.spare_units + 1, ceil((need + lost) / carries - EPS)) if need > 0 else 0


def add_services(model: Model) -> None:
    """Replicas that answer for every service."""
    p = model.problem
    for w, service in enumerate(p.services):
        largest = _largest(model, service)
        for t, period in enumerate(p.periods):
            for b, block in enumerate(p.blocks):
                if service.need(t, b) > 0:
                    _cover(model, w, service, t, b, period.hours * block.share, largest)


def _largest(model: Model, service: Service) -> list[tuple[int, float]]:
    """A switch for each size of replica: that of the largest in use, over the whole plan, is on."""
    sizes = sorted({carries for _, carries in service.carries})
    if not service.spare_units or not sizes:
        return []
    switches = [(model.program.column(1, integer=True), size) for size in sizes]
    model.program.row([(column, 1.0) for column, _ in switches], low=1.0, high=1.0)
    return switches


def _cover(
    model: Model, w: int, service: Service, t: int, b: int, hours: float, largest: list[tuple[int, float]]
) -> None:
    """The replicas of a service in one block: enough for the load, also with the spare ones gone.

    What would be lost with them is counted at the largest replica that the service uses.
    """
    program, need = model.program, service.need(t, b)
    terms: list[tuple[int, float]] = []
    for pool, carries in service.carries:
        column = program.column(most_replicas(service, carries, t, b), integer=True)
        model.x[w, pool, t, b] = column
        at, units = model.problem.pool(pool), service.units(pool)
        model.pay(column, (at.energy_usd(True) - at.energy_usd(False)) * hours * units, t, "energy", pool)
        model.works.append(Work(column, pool, t, 0.0, hours * units))
        terms.append((column, carries))
        above = [(switch, -program.upper[column]) for switch, size in largest if size >= carries]
        if len(above) < len(largest):
            program.row([(column, 1.0), *above], high=0.0)
    lost = service.spare_units * max((size for _, size in terms), default=0.0)
    loose = slack(model, f"load of {service.name}", need + lost)
    spare = [(switch, -service.spare_units * size) for switch, size in largest]
    program.row([*terms, *loose, *spare], low=need)
    if terms and not loose and need < FAINT * min(size for _, size in terms):
        program.row([(column, 1.0) for column, _ in terms], low=service.spare_units + 1.0)
    if terms and not loose:
        model.covers.append((terms, need + service.spare_units * min(size for _, size in terms)))


def add_runs(model: Model) -> None:
    """Every run in one place, or moved between several; runs of a queue one at a time."""
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
            _use(model, run, option, t, y, option.hours / spans[t])
            continue
        short = slack(model, f"deadline of {run.name}", option.hours)
        done = []
        for t, hours in spans.items():
            g = _part(model, r, o, t)
            program.row([(g, 1.0), (y, -1.0)], high=0.0)
            if (r, o, t) in model.active:
                program.row([(model.active[r, o, t], 1.0), (y, -1.0)], high=0.0)
            done.append((g, hours))
        program.row([*done, *short, (y, -option.hours)], low=0.0, high=inf if short else 0.0)
        actives = [(model.active[r, o, t], 1.0) for t in spans if (r, o, t) in model.active]
        if actives and not short:
            program.row([*actives, (y, -float(fewest_periods(spans.values(), option.hours)))], low=0.0)
    if not choices:
        choices = slack(model, f"deadline of {run.name}", 1.0)
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
            g = _part(model, r, o, t)
            here.append((g, 1.0))
            shares.append((g, p.periods[t].hours / option.hours))
        program.row(here, high=1.0)
    program.row(shares + slack(model, f"deadline of {run.name}", 1.0), low=1.0, high=1.0)


def _part(model: Model, r: int, o: int, t: int) -> int:
    """The part of a period in which an option runs, and where units at once count, whether it does at all."""
    run = model.problem.runs[r]
    option = run.options[o]
    g = model.program.column(1)
    model.part[r, o, t] = (g, 1.0)
    a = None
    if not option.supply or _counted(model, option.supply):
        a = model.program.column(1, integer=True)
        model.active[r, o, t] = a
        model.program.row([(g, 1.0), (a, -1.0)], high=0.0)
    _use(model, run, option, t, a, 1.0, g)
    return g


def _counted(model: Model, supply: str) -> bool:
    """Whether some limit counts the units at once of a supply."""
    return any(
        limit.kind in ("units", "chips", "kw") and (not limit.supplies or supply in limit.supplies)
        for limit in model.limits
    )


def _use(
    model: Model, run: Run, option: Option, t: int, active: int | None, part: float, column: int | None = None
) -> None:
    """What an option takes and costs in a period: `column` (else `active`) times `part` of the period's hours."""
    column = active if column is None else column
    assert column is not None
    hours = model.problem.periods[t].hours * part
    pool = model.problem.pool(option.pool)
    if option.supply:
        supply = model.problem.supply(option.supply)
        kind = "spot" if supply.pricing == "spot" else "on demand"
        model.pay(column, supply.usd_per_unit_hour * option.takes * hours * option.paid, t, kind, supply.id)
        billed = hours * option.paid
        model.works.append(Work(column, pool.id, t, option.takes * billed, option.units * billed))
        if active is not None:
            model.takes.append(Take(active, option.takes, supply.id, t, None, run.queue))
        return
    extra = pool.energy_usd(True) - pool.energy_usd(False)
    model.pay(column, extra * option.units * hours, t, "energy", pool.id)
    model.works.append(Work(column, pool.id, t, 0.0, option.units * hours))
