"""A demand file answered: sized, planned, and everything said that the plan rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.economics import Economics
from chipwise.catalog.taught import Taught
from chipwise.fleet.advice import advise
from chipwise.fleet.answers import answer
from chipwise.fleet.demand import Demand
from chipwise.fleet.options import Asked, ask
from chipwise.fleet.plan import FleetAnswer
from chipwise.fleet.planner import GAP, TIME_LIMIT_S
from chipwise.prices import PriceBook


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a plan is made: the gap to prove, seconds for each solve, whether to plan by the bad end, what to try."""

    gap: float = GAP
    time_limit: float = TIME_LIMIT_S
    cautious: bool = False
    sensitivity: bool = True


def plan_demand(demand: Demand, book: PriceBook, know: Economics, calibration: Calibration, taught: Taught,
                wanted: Wanted | None = None, today: date | None = None,
                say: Callable[[str], None] | None = None) -> tuple[Asked, FleetAnswer]:
    """The problem of a demand and the answer to it; `say` is told what is being worked on."""
    how = wanted or Wanted()
    tell = say or (lambda _: None)
    asked = ask(demand, book, know, calibration, taught, how.cautious, today,
                lambda i, n, name: tell(f"sizing {i + 1}/{n}: {name}"))
    found = answer(asked.problem, how.gap, how.time_limit, how.sensitivity, tell)
    advice = advise(asked, found.plan, calibration, know) if found.plan else ()
    return asked, replace(found, refused=asked.refused, advice=advice,
                          assumptions=(*asked.assumptions, *_prices(asked, found)))


def _prices(asked: Asked, found: FleetAnswer) -> list[str]:
    """The prices that the plan uses, each with its date; old ones are marked."""
    if found.plan is None:
        return []
    out = []
    for name in found.plan.used():
        o = asked.origins[name]
        if o.date:
            price = f"${o.usd_chip_h:.2f} a chip-hour, " if o.usd_chip_h else ""
            out.append(f"{name}: {price}{o.date}{', stale' if o.stale else ''} ({o.source})")
    return out
