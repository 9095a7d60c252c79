"""What runs where in a fleet plan, and the networks and storage that it needs there."""

from __future__ import annotations

from chipwise.fleet.plan import FleetAnswer, FleetPlan
from chipwise.fleet.tables import runs
from chipwise.present.blocks import Table
from chipwise.present.columns import table
from chipwise.report.parts import Part, Points, Section
from chipwise.units import format_bytes, format_rate


def where_section(plan: FleetPlan) -> Section:
    """Which workload runs where."""
    parts: list[Part] = []
    if plan.serving:
        most: dict[tuple[str, str], list[int]] = {}
        for s in plan.serving:
            if s.units:
                most.setdefault((s.service, s.pool), []).append(s.units)
        rows = tuple(
            (service, plan.problem.pool(pool).chip, pool, _between(min(units), max(units)))
            for (service, pool), units in sorted(most.items())
        )
        parts.append(
            Table(
                ("service", "chip", "pool", "units"),
                rows,
                left=frozenset({"service", "chip", "pool"}),
                title="Services: units at work over the plan",
            )
        )
    if plan.running:
        ordered = sorted(plan.running, key=lambda r: (r.run, r.period))
        parts.append(table(runs(plan.problem), ordered, title="Training runs"))
    return Section("where", "What runs where", tuple(parts))


def _between(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def advice_section(answer: FleetAnswer) -> Section:
    """Interconnect and storage of what runs where."""
    rows = tuple(
        (
            a.workload,
            a.pool,
            f"{a.accelerators}, {a.split}",
            format_rate(a.network.needed * 8, "b/s"),
            format_rate(a.network.has * 8, "b/s") + ("" if a.network.network != "usual" else " (usual)"),
            "yes" if a.network.enough else "NO",
            format_bytes(a.storage.checkpoint) if a.storage.checkpoint else "–",
        )
        for a in answer.advice
        if a.network.crosses
    )
    parts: list[Part] = []
    if rows:
        words = frozenset({"workload", "on", "chips and split", "enough"})
        parts.append(
            Table(
                ("workload", "on", "chips and split", "a node needs", "it has", "enough", "checkpoint"),
                rows,
                left=words,
                title="Networks that the work needs between nodes, and what is there",
                notes=("Usual: the network of the offer is not known, that of most such nodes is assumed.",),
            )
        )
    parts += [Points(f"{a.workload} on {a.pool}", a.words) for a in answer.advice]
    return Section("interconnect", "Interconnect and storage", tuple(parts))
