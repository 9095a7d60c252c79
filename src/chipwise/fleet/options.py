"""From a demand to a planning problem: what each workload takes on each chip that can be had, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators, Chip, load
from chipwise.compare.decision import Refused
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.replicas import with_interval
from chipwise.compare.terms import Candidate, Terms, at_least, ladder
from chipwise.compare.training.comparer import TrainingComparer, TrainingRow
from chipwise.cost.checkpoint import state, write_seconds
from chipwise.cost.spot import Hazard, expected
from chipwise.errors import InputError, Refusal
from chipwise.fleet.demand import Demand, peak_hours
from chipwise.fleet.market import Buying, Origin, Stock, stock
from chipwise.fleet.problem import Block, Exclusive, Limit, Option, Pool, Problem, Run, Service, Supply
from chipwise.knowledge import Knowledge
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction
from chipwise.serving.capacity import Capacity
from chipwise.units import GIGA, HOUR
from chipwise.workload.load import load_serving, load_workload
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import RateSpec, RunSpec, WorkSpec

Progress = Callable[[int, int, str], None]
MOST_REQUESTS = 1e9  # requests/s that a workload file may ask for (workload.serve_spec)
SLACK = 1.05  # a run must be so much faster than its window for failures and checkpoints to fit in


@dataclass(frozen=True, slots=True)
class Placed:
    """A workload on a chip: the layout and prediction of a run, or the replica of a service and what it carries."""

    work: str
    accelerators: Accelerators
    layout: str
    estimate: Estimate  # seconds of a run; requests a second of a replica
    prediction: Prediction | None = None
    capacity: Capacity | None = None

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.accelerators.chip


@dataclass(frozen=True, slots=True)
class DemandRequest:
    """A problem with what it came from."""

    demand: Demand
    problem: Problem
    origins: dict[str, Origin]  # supply -> where its price comes from
    clouds: dict[str, str]  # pool -> cloud; "" on premises
    placed: dict[tuple[str, str, int], Placed]  # work, chip and chips (0 for services)
    works: dict[str, str]  # run -> its workload; one that is repeated has several runs
    workloads: dict[str, Workload | ServingWorkload]
    refused: tuple[tuple[str, str, str], ...]  # work, chip or offer, reason
    assumptions: tuple[str, ...]


@dataclass(slots=True)
class _Sizing:
    """What workloads are sized with, and what was found."""

    buying: Buying
    cautious: bool
    stock: Stock
    placed: dict[tuple[str, str, int], Placed] = field(default_factory=dict)
    works: dict[str, str] = field(default_factory=dict)
    workloads: dict[str, Workload | ServingWorkload] = field(default_factory=dict)
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def chips(self, work: WorkSpec) -> list[Chip]:
        """Chips that can be had and may be used."""
        there = dict.fromkeys(pool.chip for pool in self.stock.pools.values() if self.stock.of(pool.id))
        return [load().chips[name] for name in there if work.chips is None or name in work.chips]

    def pools(self, chip: Chip) -> list[Pool]:
        """Pools of a chip."""
        return [p for p in self.stock.pools.values() if p.chip == chip.id and self.stock.of(p.id)]

    def estimate(self, e: Estimate, slow: bool) -> float:
        """The value to plan by; the bad end where one plans with caution."""
        return (e.high if slow else e.low) if self.cautious else e.value


def ask(
    demand: Demand, knowledge: Knowledge, cautious: bool = False, progress: Progress | None = None
) -> DemandRequest:
    """The planning problem of a demand. Every chip is sized for every workload; what can't be is listed with why."""
    buying = Buying(demand, knowledge)
    sizing = _Sizing(buying, cautious, stock(buying))
    calendar, spec = demand.calendar, demand.spec
    blocks, peaks = day(spec.workloads)
    runs: list[Run] = []
    services: list[Service] = []
    for i, work in enumerate(spec.workloads):
        if progress:
            progress(i, len(spec.workloads), work.name)
        if work.train is not None:
            runs += _runs(sizing, i, work, work.train)
        else:
            assert work.serve is not None
            services.append(_service(sizing, i, work, work.serve, blocks, peaks))
    s = sizing.stock
    used = {p for r in runs for p in (o.pool for o in r.options)} | {p for x in services for p, _ in x.carries}
    used |= {x.pool for x in s.supplies if x.terms == "existing"}
    supplies = tuple(x for x in s.supplies if x.pool in used)
    problem = Problem(
        calendar.periods,
        blocks,
        tuple(p for p in s.pools.values() if p.id in used),
        supplies,
        tuple(runs),
        tuple(services),
        _kept(s.limits, supplies),
        _sides(s.exclusives, supplies),
        spec.beyond == "prorated",
        730.5 * calendar.each,
    )
    return DemandRequest(
        demand,
        problem,
        s.origins,
        s.clouds,
        sizing.placed,
        sizing.works,
        sizing.workloads,
        tuple(s.refused + sizing.refused),
        _assumptions(sizing, problem),
    )


def _kept(limits: Iterable[Limit], supplies: Sequence[Supply]) -> tuple[Limit, ...]:
    """Limits on supplies that some work can use."""
    names = {s.id for s in supplies}
    out = []
    for limit in limits:
        some = tuple(s for s in limit.supplies if s in names)
        if some or not limit.supplies:
            out.append(replace(limit, supplies=some))
    return tuple(out)


def _sides(exclusives: Iterable[Exclusive], supplies: Sequence[Supply]) -> tuple[Exclusive, ...]:
    names = {s.id for s in supplies}
    out = []
    for e in exclusives:
        sides = [tuple(s for s in side if s in names) for side in e.sides]
        out.append(Exclusive(e.name, tuple(side for side in sides if side)))
    return tuple(e for e in out if len(e.sides) > 1)


# the day


def day(works: Sequence[WorkSpec]) -> tuple[tuple[Block, ...], tuple[frozenset[str], ...]]:
    """The blocks of the day, and which services have their peak in each. Peaks without a place are around noon UTC."""
    spans: dict[str, tuple[float, float]] = {}
    for work in works:
        if work.serve is not None and work.serve.peak_hours is not None:
            hours = peak_hours(work.serve)
            begin = 12 - hours / 2
            if isinstance(work.serve.peak_hours, str):
                begin = float(work.serve.peak_hours.split("-")[0]) % 24
            spans[work.name] = (begin, hours)
    edges = sorted({0.0, 24.0, *(b % 24 for b, _ in spans.values()), *((b + h) % 24 for b, h in spans.values())})
    shares: dict[frozenset[str], float] = {frozenset(): 0.0}
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        peak = frozenset(name for name, (b, h) in spans.items() if (middle - b) % 24 < h)
        shares[peak] = shares.get(peak, 0.0) + (high - low) / 24
    found = [(peak, share) for peak, share in shares.items() if share > 0]
    found.sort(key=lambda pair: (len(pair[0]), sorted(pair[0])))
    names = [
        "base" if not peak else "peak" if len(found) <= 2 else f"peak of {', '.join(sorted(peak))}" for peak, _ in found
    ]
    return (
        tuple(Block(name, share) for name, (_, share) in zip(names, found, strict=True)),
        tuple(peak for peak, _ in found),
    )


# training


def _source(sizing: _Sizing, i: int, work: WorkSpec) -> str:
    """The workload file's path, or its contents as text."""
    if isinstance(work.workload, str):
        return str(sizing.buying.demand.base / work.workload)
    return json.dumps(work.workload)


def _runs(sizing: _Sizing, i: int, work: WorkSpec, train: RunSpec) -> list[Run]:
    """A run of each window of a workload that is trained."""
    try:
        workload = load_workload(_source(sizing, i, work))
    except InputError as e:
        raise _within(i, e) from None
    sizing.workloads[work.name] = workload
    calendar = sizing.buying.demand.calendar
    first = calendar.period(train.start or calendar.first)
    last = calendar.period(train.deadline) if train.deadline else calendar.count - 1
    spans = [(first, last)]
    if train.every:
        step = train.every // calendar.each
        spans = [(t, min(t + step - 1, last)) for t in range(first, last + 1, step)]
    hours = [p.hours for p in calendar.periods]
    window = min(sum(hours[a : b + 1]) for a, b in spans)
    options = tuple(_training(sizing, i, work, train, workload, window))
    names = [work.name] if len(spans) == 1 else [f"{work.name} {calendar.periods[a].name}" for a, _ in spans]
    sizing.works.update(dict.fromkeys(names, work.name))
    return [Run(name, a, b, options, train.split, train.queue or "") for name, (a, b) in zip(names, spans, strict=True)]


def _within(i: int, e: InputError) -> InputError:
    return InputError(f"workloads[{i}].workload {e.field}", e.value, e.accepted)


def _training(
    sizing: _Sizing, i: int, work: WorkSpec, train: RunSpec, workload: Workload, window_h: float
) -> Iterable[Option]:
    out: list[Option] = []
    shut: dict[tuple[str, int], Pool] = {}
    for chip in sizing.chips(work):
        for row in _rows(sizing, work, train, workload, chip, window_h):
            for pool in sizing.pools(chip):
                options = _options(sizing, train, row, pool)
                if quota := sizing.stock.shut(pool.id):
                    shut.setdefault(quota, pool)
                else:
                    out += options
    if not out and shut:
        raise _shut(work.name, shut)
    return [o for o in out if not any(_better(other, o) for other in out)]


def _better(one: Option, other: Option) -> bool:
    """Whether an option takes no more than another of the same place, and less of something."""
    if (one.pool, one.supply) != (other.pool, other.supply):
        return False
    mine, its = ((o.takes, o.units, o.hours, o.hours * o.paid) for o in (one, other))
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))


def _shut(work: str, shut: dict[tuple[str, int], Pool]) -> InputError:
    (where, quota), pool = next(iter(shut.items()))
    only = "the only chip" if len({p.chip for p in shut.values()}) == 1 else "one of the chips without a quota"
    return InputError(where, quota, f"at least {pool.chips} chips, one unit: {pool.chip} is {only} that {work} fits on")


def _rows(
    sizing: _Sizing, work: WorkSpec, train: RunSpec, workload: Workload, chip: Chip, window_h: float
) -> list[TrainingRow]:
    """The counts named, or the fewest chips that meet the deadline and twice as many."""
    each = window_h * HOUR / train.runs / SLACK
    terms = Terms() if train.chips else Terms(deadline_s=each)
    fixed = TrainingComparer.of(workload, Terms(), sizing.buying.knowledge)
    place = replace(fixed, terms=terms)
    counts: list[Accelerators | None] = [at_least(chip, n) for n in train.chips] if train.chips else [None]
    rows: list[TrainingRow] = []
    while counts:
        got = place.evaluate(Candidate(chip, counts.pop(0)))
        if isinstance(got, Refused):
            if not rows or train.chips:
                sizing.refused.append((work.name, str(got.accelerators or chip.id), _why(got.reason, got.unlock)))
            continue
        host = at_least(chip, chip.fabric.host_chips)
        if not train.chips and not rows and got.accelerators.count < host.count:
            counts.append(host)  # whole hosts are paid for
            place = fixed
            continue
        rows.append(got)
        larger = [a for a in ladder(chip) if a.count > got.accelerators.count]
        if not train.chips and len(rows) == 1 and larger:
            counts.append(larger[0])
            place = fixed
    return rows


def _why(reason: str, unlock: str) -> str:
    return f"{reason}; {unlock}" if unlock else reason


def _options(sizing: _Sizing, train: RunSpec, row: TrainingRow, pool: Pool) -> list[Option]:
    """A row in a pool: on held units, and on each supply by the hour."""
    name = row.prediction.workload.name
    units = ceil(row.accelerators.count / pool.chips)
    spare = ceil(units * sizing.buying.demand.spec.headroom.training)
    out: list[Option] = []
    supplies = sizing.stock.of(pool.id)
    held = any(not s.hourly for s in supplies)
    for supply in ([""] if held else []) + [s.id for s in supplies if s.hourly]:
        spot = any(s.id == supply and s.terms == "spot" for s in supplies)
        wall, billed = _expected(sizing, row, pool, units, spot)
        if wall == inf:
            sizing.refused.append((name, supply, "interrupted so often that it never ends"))
            continue
        out.append(Option(pool.id, supply, units, wall * train.runs / HOUR, spare, billed / wall))
    work = next(w for w, known in sizing.workloads.items() if known is row.prediction.workload)
    sizing.placed[work, pool.chip, units * pool.chips] = Placed(
        work, row.accelerators, str(row.prediction.layout), row.prediction.duration, row.prediction
    )
    return out


def _expected(sizing: _Sizing, row: TrainingRow, pool: Pool, units: int, spot: bool) -> tuple[float, float]:
    """Seconds of a run with checkpoints, failures and interruptions: from beginning to end, and those billed."""
    know, cloud = sizing.buying.knowledge.economics, sizing.stock.clouds[pool.id] or "owned"
    chip, chips = row.accelerators.chip, row.accelerators.count
    rate = know.value("failure_chip_hour", cloud) * chips
    if spot:
        rate += know.value("spot_per_hour", cloud) * (row.accelerators.slices if row.accelerators.shape else units)
    hosts = max(1, ceil(chips / chip.fabric.host_chips))
    write = write_seconds(
        state(row.prediction.workload).total,
        hosts,
        know.value("checkpoint_gb_s_node", cloud) * GIGA,
        know.value("checkpoint_gb_s_all", cloud) * GIGA,
    )
    restart = know.value("restart_s", cloud) + (0.0 if spot else know.value("repair_s"))
    hazard = Hazard(HOUR / rate if rate > 0 else inf, write, restart, know.value("spot_wait_s") if spot else 0.0)
    found = expected(sizing.estimate(row.prediction.duration, True), hazard)
    return found.wall_s, found.billed_s


# serving


def _service(
    sizing: _Sizing,
    i: int,
    work: WorkSpec,
    serve: RateSpec,
    blocks: tuple[Block, ...],
    peaks: tuple[frozenset[str], ...],
) -> Service:
    rates = monthly(sizing.buying.demand, serve)
    if max(rates) > MOST_REQUESTS:
        raise InputError(f"workloads[{i}].serve.rate", max(rates), f"at most {MOST_REQUESTS:g} requests/s in any month")
    try:
        workload = load_serving(_source(sizing, i, work), {"arrival.rate": max(rates) or 1.0})
    except InputError as e:
        raise _within(i, e) from None
    sizing.workloads[work.name] = workload
    comparer = ServingComparer.of(workload, Terms(), sizing.buying.knowledge)
    carries: list[tuple[str, float]] = []
    spans: list[tuple[str, int]] = []
    shut: dict[tuple[str, int], Pool] = {}
    for chip in sizing.chips(work):
        try:
            comparer.target(chip)
            found = [c for c in comparer.replicas(chip) if c.load.value > 0]
        except Refusal as refusal:
            sizing.refused.append((work.name, chip.id, str(refusal)))
            continue
        known: dict[int, tuple[float, int]] = {}
        for pool in sizing.pools(chip):
            if pool.id.endswith(" spot") and not serve.spot:
                continue
            if pool.chips not in known:
                known[pool.chips] = _replica(sizing, comparer, work.name, found, pool)
            load_each, span = known[pool.chips]
            if load_each <= 0:
                continue
            if quota := sizing.stock.shut(pool.id):
                shut.setdefault(quota, pool)
                continue
            carries.append((pool.id, load_each))
            if span > 1:
                spans.append((pool.id, span))
    if not carries and shut:
        raise _shut(work.name, shut)
    head = sizing.buying.demand.spec.headroom
    loads = _loads(sizing.buying.demand, serve, work.name, rates, blocks, peaks)
    return Service(work.name, loads, tuple(carries), head.serving, head.serving_replicas, tuple(spans))


def _replica(
    sizing: _Sizing, comparer: ServingComparer, work: str, found: Sequence[Capacity], pool: Pool
) -> tuple[float, int]:
    """Requests a second that a unit carries with its best split, or a replica over several units, and how many."""

    def per_unit(c: Capacity) -> float:
        each = c.service.replica.split.chips
        return c.load.value * (pool.chips // each) if each <= pool.chips else c.load.value / ceil(each / pool.chips)

    best = max(found, key=per_unit)
    exact = with_interval(best, comparer.requests(best.service.target))
    each = best.service.replica.split.chips
    chip = best.service.target.chip
    sizing.placed[work, pool.chip, 0] = Placed(
        work, at_least(chip, each), str(best.service.replica.split), exact.load, None, exact
    )
    value = sizing.estimate(exact.load, False)
    if value <= 0:
        sizing.refused.append((work, pool.chip, "by the low end of its range a replica carries nothing"))
    return (value * (pool.chips // each), 1) if each <= pool.chips else (value, ceil(each / pool.chips))


def monthly(demand: Demand, serve: RateSpec) -> list[float]:
    """Requests a second in every month of the plan; 0 before it starts."""
    calendar = demand.calendar
    begin = calendar.index(serve.start) if serve.start else 0
    if serve.rates is not None:
        return [serve.rates[calendar.month(m)] if m >= begin else 0.0 for m in range(calendar.months)]
    assert serve.rate is not None
    growth = 1 + (serve.growth_month or 0.0)
    if serve.growth_year is not None:
        growth = (1 + serve.growth_year) ** (1 / 12)
    return [serve.rate * growth ** (m - begin) if m >= begin else 0.0 for m in range(calendar.months)]


def _loads(
    demand: Demand,
    serve: RateSpec,
    name: str,
    rates: Sequence[float],
    blocks: tuple[Block, ...],
    peaks: tuple[frozenset[str], ...],
) -> tuple[tuple[float, ...], ...]:
    """Load by period (the largest of its months) and block."""
    hours, each = peak_hours(serve), demand.calendar.each
    base = (24 - serve.peak * hours) / (24 - hours) if hours < 24 else 1.0
    out = []
    for t in range(demand.calendar.count):
        mean = max(rates[t * each : (t + 1) * each])
        out.append(tuple(mean * (serve.peak if name in peak else base) for peak in peaks))
    return tuple(out)


def _assumptions(sizing: _Sizing, problem: Problem) -> tuple[str, ...]:
    """What the problem rests on, in words."""
    b = sizing.buying
    spec, each = b.demand.spec, b.demand.calendar.each
    head = spec.headroom
    said = [
        "times and capacities: "
        + (
            "the bad end of each interval (--cautious)"
            if sizing.cautious
            else "the value of each prediction; --cautious plans by the bad end of its interval"
        ),
        "a run is whole on its units for every hour it runs, and may pause between periods; runs share units in a "
        "period only in one queue, where they take turns",
        "runs are sized by the fewest chips that meet the deadline by the high end of their interval, and by twice as "
        "many, unless counts are given",
        "times of runs include checkpoints, failures and, on spot, interruptions: see docs/cost.md",
        f"services carry {head.serving:.0%} more than the demand"
        + (f" and lose {head.serving_replicas} replica(s) at the peak" if head.serving_replicas else "")
        + (f"; {head.training:.0%} of a run's units stand by" if head.training else ""),
        "commitments that outlast the plan are "
        + (
            "counted for the plan's periods alone (beyond: prorated)"
            if problem.prorate
            else "counted in full (beyond: full)"
        ),
        "nothing is discounted for time; prices stay as they are over the plan",
        "budgets count what is paid within the plan: not what commitments ask for later, nor what servers are left "
        "worth",
    ]
    if each > 1:
        said.append("in a quarter a service has the load of its largest month")
    if any(
        w.serve and w.serve.peak_hours is not None and not isinstance(w.serve.peak_hours, str) for w in spec.workloads
    ):
        said.append("peaks without hours of the day are all around noon UTC: they coincide")
    if any(s.limit is None for s in problem.supplies if s.hourly or s.started):
        said.append("without a quota as many chips as wanted can be had")
    return (*said, *sizing.stock.said, f"prices: {b.knowledge.prices.origin}")
