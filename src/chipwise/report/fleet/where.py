"""What runs where in a fleet plan, and the networks and storage that it needs there."""

from __future__ import annotations

from chipwise.fleet.advice import Advice
from chipwise.fleet.plan import FleetAnswer, FleetPlan
from chipwise.fleet.tables import runs
from chipwise.present.blocks import Table
from chipwise.present.columns import Column, table
from chipwise.report.parts import Part, Points, Section
from chipwise.units import format_bytes, format_rate


def where_section(plan: FleetPlan) -> Section:
    """Which workload runs where."""
    parts: list[Part] = []
    if plan.serving:
        parts.append(_services(plan))
    if plan.running:
        ordered = sorted(plan.running, key=lambda r: (r.run, r.period))
        parts.append(table(runs(plan.problem), ordered, title="Training runs"))
    return Section("where", "What runs where", tuple(parts))


def _services(plan: FleetPlan) -> Table:
    units: dict[tuple[str, str], list[int]] = {}
    for s in plan.serving:
        if s.units:
            units.setdefault((s.service, s.pool), []).append(s.units)
    columns: list[Column[tuple[str, str]]] = [  # of a service and a pool
        Column("", None, "service", lambda at: at[0], words=True),
        Column("", None, "chip", lambda at: plan.problem.pool(at[1]).chip, words=True),
        Column("", None, "pool", lambda at: at[1], words=True),
        Column("", None, "units", lambda at: _between(min(units[at]), max(units[at]))),
    ]
    return table(columns, sorted(units), title="Services: units at work over the plan")


def _between(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _network(a: Advice) -> str:
    return format_rate(a.network.has * 8, "b/s") + (" (usual)" if a.network.network == "usual" else "")


NETWORKS: list[Column[Advice]] = [
    Column("", None, "workload", lambda a: a.workload, words=True),
    Column("", None, "on", lambda a: a.pool, words=True),
    Column("", None, "chips and split", lambda a: f"{a.accelerators}, {a.split}", words=True),
    Column("", None, "a node needs", lambda a: format_rate(a.network.needed * 8, "b/s")),
    Column("", None, "it has", _network),
    Column("", None, "enough", lambda a: "yes" if a.network.enough else "NO", words=True),
    Column("", None, "checkpoint", lambda a: format_bytes(a.storage.checkpoint) if a.storage.checkpoint else "–"),
]


def advice_section(answer: FleetAnswer) -> Section:
    """Interconnect and storage of what runs where."""
    parts: list[Part] = []
    crossing = [a for a in answer.advice if a.network.crosses]
    if crossing:
        title = "Networks that the work needs between nodes, and what is there"
        notes = ("Usual: the network of the offer is not known, that of most such nodes is assumed.",)
        parts.append(table(NETWORKS, crossing, title=title, notes=notes))
    parts += [Points(f"{a.workload} on {a.pool}", a.words) for a in answer.advice]
    return Section("interconnect", "Interconnect and storage", tuple(parts))
