"""Services of a demand: what a unit of each pool carries, and the load of every period and block of the day."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.replicas import ReplicaLoad
from chipwise.compare.terms import Terms, at_least
from chipwise.errors import InputError, Refusal
from chipwise.fleet.demand import Demand, peak_hours
from chipwise.fleet.problem import Block, Pool, Service
from chipwise.fleet.sizing import Placed, Sizing, shut_out, source, within
from chipwise.workload.load import load_serving

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import RateSpec, WorkSpec


MOST_REQUESTS = 1e9  # requests/s that a workload file may ask for (workload.serve_spec)


def sized_service(
    sizing: Sizing,
    i: int,
    work: WorkSpec,
    serve: RateSpec,
    blocks: tuple[Block, ...],
    peaks: tuple[frozenset[str], ...],
) -> Service:
    """A service: the load over the plan, and what a unit of every pool carries of it."""
    rates = monthly(sizing.buying.demand, serve)
    if max(rates) > MOST_REQUESTS:
        raise InputError(f"workloads[{i}].serve.rate", max(rates), f"at most {MOST_REQUESTS:g} requests/s in any month")
    try:
        workload = load_serving(source(sizing, i, work), {"arrival.rate": max(rates) or 1.0})
    except InputError as e:
        raise within(i, e) from None
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
        known: dict[tuple[int, bool], tuple[float, int]] = {}
        for pool in sizing.pools(chip):
            if pool.id.endswith(" spot") and not serve.spot:
                continue
            size = pool.chips, sizing.stock.joined[pool.id]
            if size not in known:
                known[size] = _replica(sizing, comparer, work.name, found, pool)
            load_each, span = known[size]
            if load_each <= 0:
                continue
            if quota := sizing.stock.shut(pool.id):
                shut.setdefault(quota, pool)
                continue
            carries.append((pool.id, load_each))
            if span > 1:
                spans.append((pool.id, span))
    if not carries and shut:
        raise shut_out(work.name, shut)
    head = sizing.buying.demand.spec.headroom
    loads = _loads(sizing.buying.demand, serve, work.name, rates, blocks, peaks)
    return Service(work.name, loads, tuple(carries), head.serving, head.serving_replicas, tuple(spans))


def _replica(
    sizing: Sizing, comparer: ServingComparer, work: str, found: Sequence[ReplicaLoad], pool: Pool
) -> tuple[float, int]:
    """Requests a second that a unit carries with its best split, or a replica over several units, and how many."""

    together = sizing.stock.joined[pool.id]

    def per_unit(c: ReplicaLoad, load: float) -> float:
        each = c.service.replica.split.chips
        return load * (pool.chips // each) if each <= pool.chips else load / ceil(each / pool.chips)

    fitting = [c for c in found if together or c.service.replica.split.chips <= pool.chips]
    best = comparer.best_of(fitting, per_unit)
    if best is None:
        return 0.0, 1
    exact = comparer.confirmed(best)
    each = best.service.replica.split.chips
    chip = best.service.target.chip
    sizing.placed[work, pool.chip, pool.chips] = Placed(
        work, at_least(chip, each), str(best.service.replica.split), exact.load, None, exact
    )
    value = sizing.estimate(exact.load, False)
    if value <= 0:
        sizing.refused.append((work, pool.chip, "by the low end of its range a replica sustains nothing"))
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
