"""The report of a fleet plan: its first page, and its sections in order."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.fleet.plan import Alternative, FleetAnswer, FleetPlan
from chipwise.fleet.request import DemandRequest
from chipwise.knowledge import Knowledge
from chipwise.observe.advice.view import PoolAdvice
from chipwise.present.numbers import percent, plural
from chipwise.report.fleet.capacity import by_period, chips, plan_section
from chipwise.report.fleet.evidence import assumptions_section, evidence_section
from chipwise.report.fleet.money import became, costs_section, limits_section, sensitivity_section
from chipwise.report.fleet.observed import observed_section
from chipwise.report.fleet.where import advice_section, where_section
from chipwise.report.parts import Decision, Points, Report, Tile
from chipwise.units import format_money


def fleet_report(
    title: str,
    answer: FleetAnswer,
    knowledge: Knowledge,
    request: DemandRequest | None = None,
    advice: PoolAdvice | None = None,
) -> Report:
    """The report of what `fleet plan` found for a demand; `request` is what the problem was made from.

    `advice` is on the pools that there are, by what ran.
    """
    if answer.plan is None:
        return _infeasible(title, answer, knowledge, request, advice)
    plan = answer.plan
    periods = plan.problem.periods
    about = (
        f"Fleet plan from {periods[0].name} to {periods[-1].name}: "
        f"{plural(len(plan.problem.services), 'service')} and {plural(len(plan.problem.runs), 'training run')}, "
        f"{plural(len(plan.problem.supplies), 'candidate offer')}"
    )
    sections = [
        plan_section(plan),
        where_section(plan),
        advice_section(answer),
        costs_section(answer, plan),
        limits_section(answer, plan),
        sensitivity_section(answer, plan),
        observed_section(advice),
        evidence_section(knowledge, request),
        assumptions_section(answer, request),
    ]
    return Report(title, about, knowledge.today, _decision(answer, plan), tuple(s for s in sections if s.parts))


def _infeasible(
    title: str,
    answer: FleetAnswer,
    knowledge: Knowledge,
    request: DemandRequest | None,
    advice: PoolAdvice | None,
) -> Report:
    relax = tuple(r.words for r in answer.relax)
    proved = all(r.proved for r in answer.relax)
    which = (
        "The fewest constraints that would have"
        if proved
        else ("The time ran out: fewer may do than these constraints that would have")
    )
    decision = Decision(
        "No plan meets this demand",
        f"The demand and the limits contradict each other. {which} to give way, below.",
        (),
        (Points("What has to give way", relax),),
    )
    sections = (observed_section(advice), evidence_section(knowledge, request), assumptions_section(answer, request))
    return Report(title, "Fleet plan", knowledge.today, decision, tuple(s for s in sections if s.parts))


def _decision(answer: FleetAnswer, plan: FleetPlan) -> Decision:
    used = sorted(plan.used(), key=lambda s: -sum(chips(plan, s)))
    most = "; ".join(f"{s}: up to {max(chips(plan, s)):,.0f} chips" for s in used[:4])
    more = f"; and {len(used) - 4} more" if len(used) > 4 else ""
    mix = sorted(plan.mix().items(), key=lambda pair: -pair[1])
    tiles = [
        Tile(
            "Cost of the plan",
            format_money(plan.usd),
            f"no plan costs less than {format_money(plan.bound)}",
            f"proved by the solver to within {percent(plan.gap, 2)}",
        ),
        Tile(
            "Mix",
            " + ".join(chip for chip, _ in mix[:3]),
            ", ".join(f"{chip} {percent(s)}" for chip, s in mix[:4]),
            "of the chip-hours paid for",
        ),
        Tile("Utilization", percent(plan.utilization()), "", "of the chip-hours paid for are at work"),
        Tile("Power", f"{max(plan.kw(), default=0.0):,.0f} kW", "", "at its most"),
        Tile("Carbon", f"{sum(plan.kg()) / 1e3:,.0f} t CO2", "", "over the plan"),
    ]
    answers = [
        Points("Why this mix", tuple(_against(plan, a) for a in answer.alternatives if a.plan is not plan)),
        Points("What would save most", tuple(s.words for s in answer.shadows if s.saves > 0)[:3]),
        Points(
            "If demand, prices or speeds differ",
            tuple(f"{s.name}: {became(plan, s.plan, s.why)}." for s in answer.sensitivity),
        ),
    ]
    if plan.timed_out:
        answers.append(Points("Caution", ("The solver ran out of time: the gap says how much may be left.",)))
    return Decision(
        f"{_verb(plan)} {_listed([chip for chip, _ in mix])} for {format_money(plan.usd)}",
        f"{most}{more}.",
        tuple(tiles),
        tuple(a for a in answers if a.items),
        by_period(plan),
    )


def _listed(names: Sequence[str]) -> str:
    """Names in words, the first three of them.

    >>> _listed(["v5p"]), _listed(["v5p", "h100"]), _listed(["v5p", "h100", "h200", "l4"])
    ('v5p', 'v5p and h100', 'v5p, h100, h200 and others')
    """
    some = [*names[:3], *(["others"] if len(names) > 3 else [])]
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}" if some else "nothing"


def _verb(plan: FleetPlan) -> str:
    kinds = {plan.problem.supply(s).pricing for s in plan.used()}
    if "owned" not in kinds:
        return "Rent"
    return "Rent and buy" if kinds - {"owned", "existing"} else "Buy"


def _against(plan: FleetPlan, other: Alternative) -> str:
    if other.plan is None:
        return f"{other.name}: no plan meets the demand ({other.why})."
    more = other.plan.usd / plan.usd - 1 if plan.usd else 0.0
    size = f"{percent(abs(more), 1)} {'more' if more >= 0 else 'less'}"
    return f"{other.name} costs {format_money(other.plan.usd)}, {size}."
