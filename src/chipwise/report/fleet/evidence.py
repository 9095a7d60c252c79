"""How fast work is taken to be on every chip of a fleet plan, how sure that is, and every price used."""

from __future__ import annotations

from chipwise.fleet.plan import FleetAnswer
from chipwise.fleet.request import DemandRequest
from chipwise.fleet.tables import PLACED, REFUSED, supplies
from chipwise.knowledge import Knowledge
from chipwise.present.columns import table
from chipwise.report.evidence import INTERVALS, coverage, meanings, stale_notes
from chipwise.report.parts import Part, Points, Prose, Section


def evidence_section(knowledge: Knowledge, request: DemandRequest | None) -> Section:
    """How fast the work is taken to be on every chip, and how sure that is."""
    if request is None or not request.placed:
        return Section("evidence", "Evidence and error bars", ())
    placed = list(request.placed.values())
    kinds = [
        kind for kind, some in (("training", request.problem.runs), ("inference", request.problem.services)) if some
    ]
    dates = {"training": knowledge.calibration.training.date, "inference": knowledge.calibration.serving.date}
    return Section(
        "evidence",
        "Evidence and error bars",
        (
            Prose(INTERVALS),
            *(part for kind in kinds for part in coverage(kind, dates[kind])),
            table(PLACED, placed, title="What each workload takes on each chip"),
            meanings(p.estimate for p in placed),
        ),
    )


def assumptions_section(answer: FleetAnswer, request: DemandRequest | None) -> Section:
    """What the plan takes for granted, what is left out, and every price used."""
    parts: list[Part] = [Points("Assumed in this plan", answer.assumptions)] if answer.assumptions else []
    if answer.refused:
        parts.append(table(REFUSED, list(dict.fromkeys(answer.refused)), title="Left out"))
    if request is not None:
        names = [s.id for s in request.problem.supplies]
        notes = stale_notes(request.origins[name].stale for name in names)
        parts.append(table(supplies(request), names, title="Prices used", notes=notes))
    return Section("assumptions", "Assumptions and sources", tuple(parts))
