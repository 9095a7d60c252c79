"""The report of a training run: the pick on one page, then the comparison and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.compare import TrainingComparison, TrainingRow
from chipwise.compare.view import ranked
from chipwise.cost.statement import Statement
from chipwise.present.numbers import energy, interval, percent, plural, time_interval
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
from chipwise.report.parts import EVIDENCE, Figure, Part, Points, Report, Section, Tile
from chipwise.units import format_count, format_money, format_seconds
from chipwise.workload import metrics_that_matter

WHAT = {
    "cost": ("Cost of the run on demand", "US dollars on demand for the whole run"),
    "time": ("Time to train", "{} to train"),
    "energy": ("Energy of the run", "kWh of the chips for the whole run"),
}


def training_report(
    c: TrainingComparison, calibration: str, made: date, statements: Sequence[Statement] = ()
) -> Report:
    """The report of a comparison on a training run, by the calibration of that date.

    `statements` are the bills of the leading rows, that of the pick first.
    """
    sections = [_comparison(c)]
    if statements:
        sections += [cost_section(statements), break_even_section(statements[0])]
    weighed = [
        Weighed(str(r.accelerators), r.ondemand.usd, r.prediction.duration, r is c.pick) for r in c.rows if r.ondemand
    ]
    sections += [
        front_section(weighed, "", "to train"),
        flip_section(c.flips, c.words.flip, statements),
        _evidence(c, calibration),
        _assumptions(c, statements),
    ]
    tiles = _tiles(c.pick, statements) if c.pick else []
    first = decision(c, c.pick.prediction.step if c.pick else None, tiles, statements, _bars(c))
    return Report(c.workload.name, about(c), made, first, tuple(sections))


def about(c: TrainingComparison) -> str:
    """The run in a line."""
    t = c.workload.train
    run = (
        f"{format_count(t.samples)} images"
        if t.samples_unit == "images"
        else f"{format_count(t.tokens)} tokens in sequences of {t.sequence:,}"
    )
    return (
        f"Training of {c.workload.model.name}: {run}, global batch {t.global_batch:,}, {t.precision}; "
        f"{plural(len(c.rows), 'kind')} of chips compared by {c.terms.objective}"
    )


def _tiles(row: TrainingRow, statements: Sequence[Statement]) -> list[Tile]:
    p, acc = row.prediction, row.accelerators
    cheapest = cost_tile(statements[0]) if statements else None
    cost = (
        Tile(
            "Cost on demand",
            format_money(row.ondemand.usd.value),
            interval(row.ondemand.usd, format_money),
            str(row.ondemand.price),
        )
        if row.ondemand
        else Tile("Cost on demand", "no public price")
    )
    return [
        cost,
        *([cheapest] if cheapest else []),
        Tile(
            "Time to train",
            format_seconds(p.duration.value),
            time_interval(p.duration),
            f"{format_seconds(p.step.value)} a step, MFU {percent(p.mfu)}",
        ),
        Tile("Chips", f"{acc.count:,} × {acc.chip.id}", acc.chip.name, f"{p.layout}; {p.stack.name}"),
        *(
            []
            if cheapest
            else [Tile("Energy", energy(p.kwh.value), interval(p.kwh, energy), f"{p.watts:,.0f} W a chip")]
        ),
        Tile("Evidence", p.step.evidence, "", EVIDENCE.get(p.step.evidence, "")),
    ]


def _bars(c: TrainingComparison) -> Figure:
    by = c.terms.objective
    rows = [Ranked(str(r.accelerators), e, r is c.pick) for r in c.rows if (e := r.by(by)) is not None]
    if not rows:
        by = "time"
        rows = [Ranked(str(r.accelerators), r.prediction.duration, False) for r in c.rows]
    return ranked_bars(rows, by, *WHAT[by])


def _comparison(c: TrainingComparison) -> Section:
    table = ranked(
        c,
        numbered=False,
        title=f"All chips that can run it, ranked by {c.terms.objective}",
        notes=(
            "The pick is highlighted. * marks prices older than 90 days. A layout says how the work is split: dp "
            "replicas, tp tensor, pp pipeline, zero or fsdp sharding of state, mbs the micro-batch.",
        ),
    )
    parts: list[Part] = [Points("What decides this workload", tuple(metrics_that_matter(c.workload))), table]
    if c.refused:
        parts.append(refused_table(c.refused))
    return Section("comparison", "Comparison", tuple(parts))


def _evidence(c: TrainingComparison, calibration: str) -> Section:
    chips = tuple(dict.fromkeys(r.accelerators.chip.id for r in c.rows))
    families = tuple(dict.fromkeys(r.accelerators.chip.family for r in c.rows))
    rows = [(str(r.accelerators), r.prediction.step) for r in c.rows]
    return evidence_section("training", calibration, families, chips, rows)


def _assumptions(c: TrainingComparison, statements: Sequence[Statement]) -> Section:
    prices = [(str(r.accelerators), q.price) for r in c.rows for q in (r.ondemand, r.spot) if q]
    return assumptions_section(prices, c.assumptions, [p for s in statements[:1] for p in assumption_parts(s)])
