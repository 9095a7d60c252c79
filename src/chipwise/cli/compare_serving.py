"""chipwise compare of a workload that is served: its table, its decision and its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.compare import Candidate, Terms
    from chipwise.compare.serving.comparer import Rent, ServingRow
    from chipwise.compare.serving_comparison import ServingComparison
    from chipwise.predict.estimate import Estimate
    from chipwise.present.blocks import Block, Table
    from chipwise.prices import PriceBook
    from chipwise.workload.serve import ServingWorkload


def show(
    work: ServingWorkload,
    candidates: Sequence[Candidate] | None,
    terms: Terms,
    book: PriceBook,
    output: str,
    out: Path | None,
) -> None:
    """Compare chips on a workload to serve, and print or write the answer."""
    from chipwise.catalog.calibration import in_use
    from chipwise.catalog.taught import taught
    from chipwise.cli import records
    from chipwise.compare.serving_comparison import compare_serving
    from chipwise.present.output import emit, emit_csv, emit_json
    from chipwise.present.progress import progress

    with progress("comparing") as shown:
        found = compare_serving(work, candidates, in_use(), taught(), terms, progress=shown, book=book)
    if output == "json":
        emit_json(records.serving_comparison(found), out)
    elif output == "csv":
        emit_csv(records.serving_rows(found), out)
    else:
        emit(blocks(found), out)


def blocks(c: ServingComparison) -> list[Block]:
    """A comparison for people."""
    from chipwise.cli.words import refusals
    from chipwise.present.blocks import Text
    from chipwise.workload.serve_criteria import what_decides_serving

    out: list[Block] = [Text(_head(c)), _table(c)]
    out += [Text("Decision", True), Text(c.words.pick), Text(c.words.why), Text(c.words.flip)]
    if c.refused:
        out.append(Text("Refused", True))
        out += [Text(f"  {line}") for line in refusals(c.refused)]
    out += [Text("What decides this workload", True), *(Text(f"  {m}") for m in what_decides_serving(c.workload))]
    return [*out, Text("Assumptions", True), *(Text(f"  {a}") for a in c.assumptions)]


def _head(c: ServingComparison) -> str:
    from chipwise.units import format_count, format_seconds

    s, demand = c.workload.serve, c.market.demand
    if demand.kind == "job":
        work = f"{format_count(s.requests)} requests" if s.requests else "an offline job"
        work += f" within {format_seconds(s.deadline_s)}" if s.deadline_s else ", no deadline"
    else:
        work = str(demand)
    lengths = f", {s.input.mean:,.0f} tokens in and {s.output.mean:,.0f} out on average" if _writes(c) else ""
    slo = f", {', '.join(map(str, s.slo))}" if s.slo else ", no SLO"
    return f"{c.workload.name}: {work}{lengths}, {s.precision}{slo}; by {c.terms.objective}"


def _writes(c: ServingComparison) -> bool:
    return c.rows[0].writes


def _table(c: ServingComparison) -> Table:
    from chipwise.compare.serving.comparer import slo_latencies
    from chipwise.present.blocks import Table

    job, unit = c.market.demand.kind == "job", _unit(c)
    latencies = ["time"] if job else list(dict.fromkeys(name for name, _ in slo_latencies(c.rows[0])))
    each = "token" if _writes(c) else unit.removesuffix("s")
    headers = [
        "#",
        "chips",
        "replicas",
        *latencies,
        "alone",
        f"{unit}/s",
        "headroom",
        "$/h",
        f"$/M {unit}",
        "spot $/h",
        f"spot $/M {unit}",
        f"J/{each}",
        "evidence",
    ]
    rows = [[str(i + 1), *_cells(row, job)] for i, row in enumerate(c.rows)]
    picked = frozenset(i for i, row in enumerate(c.rows) if row is c.pick)
    return Table(
        headers,
        rows,
        frozenset({"chips", "replicas", "evidence"}),
        picked,
        under=("replicas",),
        drop=(f"spot $/M {unit}", "spot $/h", f"J/{each}", f"{unit}/s", "alone"),
    )


def _unit(c: ServingComparison) -> str:
    return "tokens" if _writes(c) else c.workload.serve.unit


def _cells(row: ServingRow, job: bool) -> list[str]:
    from chipwise.compare.serving.comparer import slo_latencies
    from chipwise.units import format_seconds

    times = [row.seconds] if job else [e for _, e in slo_latencies(row)]
    room = row.headroom
    return [
        str(row.accelerators),
        f"{row.fleet.replicas:,} x {row.split}",
        *(_spread(e) for e in times),
        format_seconds(row.alone.value),
        _digits(row.unit_rate.value),
        "-" if room is None else f"{room.value * 100:.0f}% ({room.low * 100:+.0f} to {room.high * 100:+.0f})",
        _dollars(row.ondemand, "no public price"),
        _million(row, row.ondemand),
        _dollars(row.spot, "-"),
        _million(row, row.spot),
        f"{row.joules.value:.2g}",
        row.evidence,
    ]


def _spread(e: Estimate) -> str:
    from chipwise.units import format_seconds

    low, high = (e.low / e.value - 1, e.high / e.value - 1) if e.value else (0.0, 0.0)
    return f"{format_seconds(e.value)} {low * 100:+.0f}/{high * 100:+.0f}%"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _dollars(rent: Rent | None, missing: str) -> str:
    from chipwise.units import format_money

    return missing if rent is None else format_money(rent.usd_h.value) + ("*" if rent.price.stale else "")


def _million(row: ServingRow, rent: Rent | None) -> str:
    from chipwise.units import format_money

    usd = row.per_million(rent)
    if usd is None or rent is None:
        return "-"
    return format_money(usd.value) + ("*" if rent.price.stale else "")
