"""From a demand to a planning problem: what each workload takes on each chip that can be had, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from chipwise.catalog.economics import CHIP_IDLE_WATTS, CHIP_WATTS, Economics
from chipwise.fleet.demand import Demand, peak_hours
from chipwise.fleet.dominance import Dominance
from chipwise.fleet.market import Buying, stock
from chipwise.fleet.problem import Block, Exclusive, Limit, Problem, Run, Service, Supply
from chipwise.fleet.service import sized_service
from chipwise.fleet.sizing import Placed, Sizing
from chipwise.fleet.training import training_runs
from chipwise.fleet.units import Origin
from chipwise.knowledge import Knowledge
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import WorkSpec


Progress = Callable[[int, int, str], None]
OF_TIMES = (
    "failure_chip_hour",
    "spot_per_hour",
    "repair_s",
    "restart_s",
    "spot_wait_s",
    "checkpoint_gb_s_node",
    "checkpoint_gb_s_all",
    CHIP_WATTS,
    CHIP_IDLE_WATTS,
)  # assumptions that times of runs and electricity rest on


@dataclass(frozen=True, slots=True)
class DemandRequest:
    """A problem with what it came from."""

    demand: Demand
    problem: Problem
    origins: dict[str, Origin]  # supply -> where its price comes from
    clouds: dict[str, str]  # pool -> cloud; "" on premises
    placed: dict[tuple[str, str, int], Placed]  # work, chip and chips (of a service: of a unit)
    works: dict[str, str]  # run -> its workload; one that is repeated has several runs
    workloads: dict[str, Workload | ServingWorkload]
    refused: tuple[tuple[str, str, str], ...]  # work, chip or offer, reason
    assumptions: tuple[str, ...]


def plan_request(
    demand: Demand, knowledge: Knowledge, cautious: bool = False, progress: Progress | None = None
) -> DemandRequest:
    """The planning problem of a demand. Every chip is sized for every workload; what can't be is listed with why."""
    buying = Buying(demand, knowledge)
    sizing = Sizing(buying, cautious, stock(buying))
    calendar, spec = demand.calendar, demand.spec
    blocks, peaks = day(spec.workloads)
    runs: list[Run] = []
    services: list[Service] = []
    for i, work in enumerate(spec.workloads):
        if progress:
            progress(i, len(spec.workloads), work.name)
        if work.train is not None:
            runs += training_runs(sizing, i, work, work.train)
        else:
            assert work.serve is not None
            services.append(sized_service(sizing, i, work, work.serve, blocks, peaks))
    s = sizing.stock
    used = {p for r in runs for p in (o.pool for o in r.options)} | {p for x in services for p, _ in x.carries}
    used |= {x.pool for x in s.supplies if x.pricing == "existing"}
    supplies = tuple(x for x in s.supplies if x.pool in used)
    problem = Problem(
        calendar.periods,
        blocks,
        tuple(p for p in s.pools.values() if p.id in used),
        supplies,
        tuple(runs),
        tuple(services),
        tuple(s.limits),
        tuple(s.exclusives),
        spec.beyond == "prorated",
        730.5 * calendar.each,
    )
    problem = Dominance(problem).applied()
    problem = replace(
        problem,
        limits=_kept(problem.limits, problem.supplies),
        exclusives=_sides(problem.exclusives, problem.supplies),
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


def _assumptions(sizing: Sizing, problem: Problem) -> tuple[str, ...]:
    """What the problem rests on, in words."""
    b = sizing.buying
    spec, each = b.demand.spec, b.demand.calendar.each
    head = spec.headroom
    said = [
        "times and capacities: "
        + (
            "the bad end of each interval"
            if sizing.cautious
            else "the value of each prediction; a cautious plan takes the bad end of its interval"
        ),
        "a run is whole on its units for every hour it runs, and may pause between periods; runs share units in a "
        "period only in one queue, where they take turns",
        "runs are sized by the fewest chips that meet the deadline by the high end of their interval, and by twice as "
        "many, unless counts are given",
        "times of runs include checkpoints, failures and, on spot, interruptions: see docs/cost.md",
        *_of_file(b.knowledge.economics),
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


def _of_file(know: Economics) -> list[str]:
    """The figures of times that somebody measured or gave, with where they are from."""
    return [
        f"{figure.name} is {figure.value:g} ({figure.low:g} to {figure.high:g}; {figure.source}, {figure.date})"
        for name, figure in sorted(know.table.items())
        if name.partition(".")[0] in OF_TIMES and figure.of_file
    ]
