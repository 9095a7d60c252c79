"""The report of a model that is served: the pick on one page, then the comparison and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.compare import ServingComparison, ServingRow
from chipwise.compare.serving.row import slo_latencies
from chipwise.compare.view import ranked
from chipwise.cost.statement import Statement
from chipwise.predict.estimate import Estimate
from chipwise.present.numbers import interval, percent, plural, time_interval
from chipwise.report.compared import (
    Ranked,
    Weighed,
    decision,
    flip_section,
    front_section,
    ranked_bars,
    refused_table,
)
from chipwise.report.costs import assumption_parts, break_even_section, cost_section, cost_tile
from chipwise.report.evidence import assumptions_section, evidence_section
from chipwise.report.parts import Figure, Part, Points, Report, Section, Tile
from chipwise.units import format_count, format_money, format_seconds
from chipwise.workload.serve_criteria import what_decides_serving


def service_report(c: ServingComparison, made: date, statements: Sequence[Statement] = ()) -> Report:
    """The report of a comparison on a model that is served; `statements` as for a training run."""
    sections = [_comparison(c)]
    if statements:
        sections += [cost_section(statements), break_even_section(statements[0])]
    weighed = [Weighed(str(r.accelerators), r.ondemand.usd, r.seconds, r is c.pick) for r in c.rows if r.ondemand]
    what = "to finish the job" if c.comparer.demand.kind == "job" else "of a whole answer, median"
    sections += [
        front_section(weighed, " an hour", what),
        flip_section(c.flips, c.words.flip, statements),
        _evidence(c),
        _assumptions(c, statements),
    ]
    tiles = _tiles(c.pick, statements) if c.pick else []
    first = decision(c, c.pick.load if c.pick else None, tiles, statements, _bars(c))
    return Report(c.workload.name, about(c), made, first, tuple(sections))


def about(c: ServingComparison) -> str:
    """What is served, in a line."""
    s, demand = c.workload.serve, c.comparer.demand
    work = str(demand)
    if demand.kind == "job":
        work = f"{format_count(s.requests)} requests" if s.requests else "an offline job"
        work += f" within {format_seconds(s.deadline_s)}" if s.deadline_s else " without a deadline"
    lengths = f", {s.input.mean:,.0f} tokens in and {s.output.mean:,.0f} out on average" if c.rows[0].writes else ""
    slo = f"; SLO: {', '.join(map(str, s.slo))}" if s.slo else "; no SLO"
    return (
        f"Serving of {c.workload.model.name}: {work}{lengths}, {s.precision}{slo}; "
        f"{plural(len(c.rows), 'kind')} of chips compared by {c.terms.objective}"
    )


def _tiles(r: ServingRow, statements: Sequence[Statement]) -> list[Tile]:
    million = r.per_million(r.ondemand)
    tiles = [Tile("Cost on demand", "no public price")]
    if r.ondemand:
        usd = r.ondemand.usd
        tiles = [
            Tile(
                "Cost on demand",
                f"{format_money(usd.value)} an hour",
                interval(usd, format_money),
                str(r.ondemand.price),
            )
        ]
    tiles += [tile for s in statements[:1] if (tile := cost_tile(s))]
    if million is not None:
        tiles.append(Tile(f"Cost of a million {r.unit}", format_money(million.value), interval(million, format_money)))
    tiles.append(
        Tile(
            "Chips",
            f"{r.accelerators.count:,} × {r.accelerators.chip.id}",
            r.accelerators.chip.name,
            f"{r.fleet.replicas:,} replicas of {r.split}; {r.served.service.target.stack.name}",
        )
    )
    tiles += [Tile(name, format_seconds(e.value), time_interval(e)) for name, e in slo_latencies(r)[:2]]
    if r.headroom is not None:
        tiles.append(
            Tile("Headroom above the demand", percent(r.headroom.value), _headroom(r.headroom), f"until {r.limit}")
        )
    return [*tiles, Tile("Evidence", r.evidence, "", r.load.because)]


def _headroom(e: Estimate) -> str:
    return f"{e.low * 100:+.0f} to {e.high * 100:+.0f} %".replace("-", "−")


def _bars(c: ServingComparison) -> Figure:
    by, job, unit = c.terms.objective, c.comparer.demand.kind == "job", c.rows[0].unit
    rows = [Ranked(str(r.accelerators), e, r is c.pick) for r in c.rows if (e := r.by(by)) is not None]
    if not rows:
        by = "time"
        rows = [Ranked(str(r.accelerators), r.seconds, False) for r in c.rows]
    axis = {
        "cost": f"US dollars a million {unit}, on demand" if job else "US dollars an hour, on demand",
        "time": "{} for the job" if job else "{} a request, median",
        "energy": f"joules of one of the {unit}",
    }[by]
    what = {"cost": "Cost on demand", "time": "Time", "energy": "Energy"}[by]
    return ranked_bars(rows, by, what, axis)


def _comparison(c: ServingComparison) -> Section:
    table = ranked(
        c,
        numbered=False,
        title=f"All chips that carry it, ranked by {c.terms.objective}",
        notes=(
            "The pick is highlighted. * marks prices older than 90 days. Headroom is what the replicas carry beyond "
            "the demand.",
        ),
    )
    parts: list[Part] = [Points("What decides this workload", tuple(what_decides_serving(c.workload))), table]
    if c.refused:
        parts.append(refused_table(c.refused))
    return Section("comparison", "Comparison", tuple(parts))


def _evidence(c: ServingComparison) -> Section:
    chips = tuple(dict.fromkeys(r.accelerators.chip.id for r in c.rows))
    families = tuple(dict.fromkeys(r.accelerators.chip.family for r in c.rows))
    return evidence_section(
        "inference",
        c.comparer.knowledge.calibration.serving.date,
        families,
        chips,
        [(str(r.accelerators), r.load) for r in c.rows],
    )


def _assumptions(c: ServingComparison, statements: Sequence[Statement]) -> Section:
    prices = [(str(r.accelerators), q.price) for r in c.rows for q in (r.ondemand, r.spot) if q]
    return assumptions_section(prices, c.assumptions, [p for s in statements[:1] for p in assumption_parts(s)])
