"""A demand file answered: sized, planned, and everything said that the plan rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from chipwise.catalog import Accelerators
from chipwise.catalog.economics import Economics
from chipwise.errors import InputError
from chipwise.fleet import view
from chipwise.fleet.advice import Advice, advise_serving, advise_training
from chipwise.fleet.answers import again, answer
from chipwise.fleet.demand import Demand
from chipwise.fleet.focus import focus_bill
from chipwise.fleet.plan import FleetAnswer, FleetPlan, Sensitivity
from chipwise.fleet.planner import GAP, TIME_LIMIT_S
from chipwise.fleet.problem import Option
from chipwise.fleet.request import DemandRequest, plan_request
from chipwise.knowledge import Knowledge
from chipwise.present.result import Result
from chipwise.units import DAY, format_seconds

MOST_GAP = 0.5  # of a plan's cost; a larger one proves nothing
BAD_END = "bad end of all intervals"  # the plan by the longest times and smallest capacities, as with --cautious


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a plan is made: the gap to prove, seconds for each solve, whether to plan by the bad end, what to try."""

    gap: float = GAP
    time_limit: float = TIME_LIMIT_S
    cautious: bool = False
    sensitivity: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.gap <= MOST_GAP:
            raise InputError("gap", self.gap, f"a share from 0 to {MOST_GAP:g}, such as 0.01")
        if not 1 <= self.time_limit <= DAY:
            shown = format_seconds(self.time_limit)
            raise InputError("time_limit", shown, "a second to a day, such as 60s or 5min")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlannedFleet(Result):
    """A plan for a demand, or what has to give way where there is none, with everything it rests on."""

    VERB: ClassVar[str] = "fleet plan"
    request: DemandRequest
    answer: FleetAnswer
    options: PlanOptions
    knowledge: Knowledge

    @property
    def plan(self) -> FleetPlan | None:
        """The cheapest plan found; None where no plan meets the demand."""
        return self.answer.plan

    @property
    def name(self) -> str:
        """The demand's name."""
        return self.request.demand.name

    record = view.record
    blocks = view.blocks
    flat_rows = view.flat_rows
    focus_rows = focus_bill

    def plot(self, target: str | Path) -> None:
        """Draw chips and dollars over time into a file, .svg or .png."""
        from chipwise.fleet.plot import draw

        if self.plan is None:
            words = "; ".join(r.words for r in self.answer.relax)
            raise InputError("plot", str(target), f"a demand that some plan meets: {words}")
        draw(self.plan, self.name, Path(target))


def plan_demand(
    demand: Demand,
    knowledge: Knowledge,
    options: PlanOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> PlannedFleet:
    """Plan a demand: size every workload, solve the mixed-integer program, and vary it; `progress` hears each step."""
    how = options or PlanOptions()
    tell = progress or (lambda _: None)
    request = plan_request(demand, knowledge, how.cautious, lambda i, n, name: tell(f"sizing {i + 1}/{n}: {name}"))
    found = answer(request.problem, how.gap, how.time_limit, how.sensitivity, tell)
    if found.plan is not None and how.sensitivity and not how.cautious:
        tell(BAD_END)
        try:
            worse = plan_request(demand, knowledge, True).problem
            by_bad_end = again(BAD_END, found.plan, worse, how.gap, how.time_limit)
        except InputError as e:  # what carries a service at all may have a quota of nothing
            by_bad_end = Sensitivity(BAD_END, None, str(e), "")
        found = replace(found, sensitivity=(*found.sensitivity, by_bad_end))
    advice = advise(request, found.plan, knowledge) if found.plan else ()
    assumptions = (*request.assumptions, *_prices(request, found))
    complete = replace(found, refused=request.refused, advice=advice, assumptions=assumptions)
    return PlannedFleet(request, complete, how, knowledge)


def _prices(request: DemandRequest, found: FleetAnswer) -> list[str]:
    """The prices that the plan uses, each with its date; old ones are marked."""
    if found.plan is None:
        return []
    out = []
    for name in found.plan.used():
        o = request.origins[name]
        if o.date:
            price = f"${o.usd_per_chip_hour:.2f} a chip-hour, " if o.usd_per_chip_hour else ""
            fresh = f"; the cheapest that is not: {o.fresh}" if o.fresh else ""
            out.append(f"{name}: {price}{o.date}{', stale' if o.stale else ''} ({o.source}){fresh}")
    return out


def advise(request: DemandRequest, plan: FleetPlan, knowledge: Knowledge) -> tuple[Advice, ...]:
    """Advice for every workload of a plan on every kind of chips that it runs on there."""
    problem, found = plan.problem, {}
    for running in plan.running:
        pool, work = problem.pool(running.option.pool), request.works[running.run]
        placed = request.placed.get((work, pool.chip, running.option.units * pool.chips))
        if placed is not None and placed.prediction is not None:
            key = (work, running.option.supply or pool.id, str(placed.accelerators))
            if key not in found:
                found[key] = advise_training(
                    placed.prediction,
                    knowledge.calibration,
                    knowledge.economics,
                    _instance(request, pool.id),
                    _taken(request, running.option, placed.accelerators, knowledge.economics),
                )
    for serving in plan.serving:
        pool = problem.pool(serving.pool)
        placed = request.placed.get((serving.service, pool.chip, pool.chips))
        if placed is not None and placed.capacity is not None:
            key = (serving.service, pool.id, str(placed.accelerators))
            if key not in found:
                found[key] = advise_serving(placed.capacity.service, placed.estimate.value, _instance(request, pool.id))
    return tuple(replace(one, workload=key[0], pool=key[1]) for key, one in found.items())


def _taken(request: DemandRequest, option: Option, acc: Accelerators, know: Economics) -> float:
    """How often an hour spot takes units of a run away; a TPU slice goes as a whole."""
    if not option.supply or request.problem.supply(option.supply).pricing != "spot":
        return 0.0
    return know.value("spot_per_hour", request.origins[option.supply].cloud) * (
        acc.slices if acc.shape else option.units
    )


def _instance(request: DemandRequest, pool: str) -> str:
    """The instance of a pool's offers, where they have one."""
    names = (request.origins[s.id].instance for s in request.problem.supplies if s.pool == pool)
    return next((name for name in names if name), "")
