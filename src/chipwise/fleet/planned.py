"""A demand file answered: sized, planned, and everything said that the plan rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from chipwise.catalog import Accelerators
from chipwise.catalog.economics import Economics
from chipwise.errors import InputError
from chipwise.fleet.advice import Advice, advise_serving, advise_training
from chipwise.fleet.answers import again, answer
from chipwise.fleet.demand import Demand
from chipwise.fleet.options import DemandRequest, ask
from chipwise.fleet.plan import FleetAnswer, FleetPlan, Sensitivity
from chipwise.fleet.planner import GAP, TIME_LIMIT_S
from chipwise.fleet.problem import Option
from chipwise.knowledge import Knowledge

BAD_END = "bad end of all intervals"  # the plan by the longest times and smallest capacities, as with --cautious


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a plan is made: the gap to prove, seconds for each solve, whether to plan by the bad end, what to try."""

    gap: float = GAP
    time_limit: float = TIME_LIMIT_S
    cautious: bool = False
    sensitivity: bool = True


def plan_demand(
    demand: Demand, knowledge: Knowledge, wanted: Wanted | None = None, say: Callable[[str], None] | None = None
) -> tuple[DemandRequest, FleetAnswer]:
    """The problem of a demand and the answer to it; `say` is told what is being worked on."""
    how = wanted or Wanted()
    tell = say or (lambda _: None)
    asked = ask(demand, knowledge, how.cautious, lambda i, n, name: tell(f"sizing {i + 1}/{n}: {name}"))
    found = answer(asked.problem, how.gap, how.time_limit, how.sensitivity, tell)
    if found.plan is not None and how.sensitivity and not how.cautious:
        tell(BAD_END)
        try:
            worse = ask(demand, knowledge, True).problem
            by_bad_end = again(BAD_END, found.plan, worse, how.gap, how.time_limit)
        except InputError as e:  # what carries a service at all may have a quota of nothing
            by_bad_end = Sensitivity(BAD_END, None, str(e), "")
        found = replace(found, sensitivity=(*found.sensitivity, by_bad_end))
    advice = advise(asked, found.plan, knowledge) if found.plan else ()
    return asked, replace(
        found, refused=asked.refused, advice=advice, assumptions=(*asked.assumptions, *_prices(asked, found))
    )


def _prices(asked: DemandRequest, found: FleetAnswer) -> list[str]:
    """The prices that the plan uses, each with its date; old ones are marked."""
    if found.plan is None:
        return []
    out = []
    for name in found.plan.used():
        o = asked.origins[name]
        if o.date:
            price = f"${o.usd_per_chip_hour:.2f} a chip-hour, " if o.usd_per_chip_hour else ""
            out.append(f"{name}: {price}{o.date}{', stale' if o.stale else ''} ({o.source})")
    return out


def advise(asked: DemandRequest, plan: FleetPlan, knowledge: Knowledge) -> tuple[Advice, ...]:
    """Advice for every workload of a plan on every kind of chips that it runs on there."""
    problem, found = plan.problem, {}
    for running in plan.running:
        pool, work = problem.pool(running.option.pool), asked.works[running.run]
        placed = asked.placed.get((work, pool.chip, running.option.units * pool.chips))
        if placed is not None and placed.prediction is not None:
            key = (work, running.option.supply or pool.id, str(placed.accelerators))
            if key not in found:
                found[key] = advise_training(
                    placed.prediction,
                    knowledge.calibration,
                    knowledge.economics,
                    _instance(asked, pool.id),
                    _taken(asked, running.option, placed.accelerators, knowledge.economics),
                )
    for serving in plan.serving:
        pool = problem.pool(serving.pool)
        placed = asked.placed.get((serving.service, pool.chip, 0))
        if placed is not None and placed.capacity is not None:
            key = (serving.service, pool.id, str(placed.accelerators))
            if key not in found:
                found[key] = advise_serving(placed.capacity.service, placed.estimate.value, _instance(asked, pool.id))
    return tuple(replace(one, workload=key[0], pool=key[1]) for key, one in found.items())


def _taken(asked: DemandRequest, option: Option, acc: Accelerators, know: Economics) -> float:
    """How often an hour spot takes units of a run away; a TPU slice goes as a whole."""
    if not option.supply or asked.problem.supply(option.supply).terms != "spot":
        return 0.0
    return know.value("spot_per_hour", asked.origins[option.supply].cloud) * (acc.slices if acc.shape else option.units)


def _instance(asked: DemandRequest, pool: str) -> str:
    """The instance of a pool's offers, where they have one."""
    names = (asked.origins[s.id].instance for s in asked.problem.supplies if s.pool == pool)
    return next((name for name in names if name), "")
