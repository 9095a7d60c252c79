"""How fast work is taken to be on every chip of a fleet plan, how sure that is, and every price used."""

from __future__ import annotations

from chipwise.fleet.plan import FleetAnswer
from chipwise.fleet.request import DemandRequest
from chipwise.fleet.sizing import Placed
from chipwise.fleet.tables import REFUSED, supplies
from chipwise.knowledge import Knowledge
from chipwise.present.blocks import Table
from chipwise.present.columns import table
from chipwise.present.numbers import number, spread
from chipwise.prices import STALE_DAYS
from chipwise.report.evidence import INTERVALS, coverage, meanings
from chipwise.report.parts import Part, Points, Prose, Section
from chipwise.units import format_seconds


def evidence_section(knowledge: Knowledge, request: DemandRequest | None) -> Section:
    """How fast the work is taken to be on every chip, and how sure that is."""
    if request is None or not request.placed:
        return Section("evidence", "Evidence and error bars", ())
    placed = list(request.placed.values())
    rows = tuple(
        (p.work, str(p.accelerators), p.layout, *_pace(p), p.estimate.evidence, p.estimate.because or "–")
        for p in placed
    )
    kinds = [
        kind for kind, some in (("training", request.problem.runs), ("inference", request.problem.services)) if some
    ]
    dates = {"training": knowledge.calibration.training.date, "inference": knowledge.calibration.serving.date}
    words = ("work", "chips", "split", "evidence", "because")
    return Section(
        "evidence",
        "Evidence and error bars",
        (
            Prose(INTERVALS),
            *(part for kind in kinds for part in coverage(kind, dates[kind])),
            Table(
                ("work", "chips", "split", "takes or carries", "90 %", "evidence", "because"),
                rows,
                left=frozenset(words),
                title="What each workload takes on each chip",
            ),
            meanings(p.estimate for p in placed),
        ),
    )


def _pace(p: Placed) -> tuple[str, str]:
    """The time of a run, or the load that a replica carries, and its interval."""
    if p.prediction is not None:
        return format_seconds(p.estimate.value), spread(p.estimate)
    return f"{number(p.estimate.value)} requests/s", spread(p.estimate)


def _prices(request: DemandRequest) -> Table:
    names = [s.id for s in request.problem.supplies]
    stale = sum(request.origins[name].stale for name in names)
    notes = (f"Stale prices are more than {STALE_DAYS} days old: {stale} of {len(names)}.",) if stale else ()
    return table(supplies(request), names, title="Prices used", notes=notes)


def assumptions_section(answer: FleetAnswer, request: DemandRequest | None) -> Section:
    """What the plan takes for granted, what is left out, and every price used."""
    parts: list[Part] = [Points("Assumed in this plan", answer.assumptions)] if answer.assumptions else []
    if answer.refused:
        parts.append(table(REFUSED, list(dict.fromkeys(answer.refused)), title="Left out"))
    if request is not None:
        parts.append(_prices(request))
    return Section("assumptions", "Assumptions and sources", tuple(parts))
