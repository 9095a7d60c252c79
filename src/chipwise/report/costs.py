"""What the work costs on each kind of terms, rent against buy, and what moves the bill: sections from statements."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.cost.statement import KINDS, OWNED, PARTS, SPOT, Rival, Source, Statement, TermCost
from chipwise.present.blocks import Cell, Link, Table
from chipwise.present.numbers import dollars, number, percent
from chipwise.report import charts
from chipwise.report.parts import Figure, Part, Points, Prose, Section, Tile
from chipwise.units import HOUR, format_money, format_seconds

PAYS = {
    "compute": "chips",
    "storage": "storage",
    "egress": "network egress",
    "energy": "energy",
    "staff": "staff",
    "port": "port",
}
FOR = {"run": "the run", "job": "the job", "month": "a month"}
MOST_RIVALS = 5  # lines of the break-even chart: the cheapest of each kind first
MOST_SWINGS = 10
SEEN = 0.001  # of the total: a smaller swing can't be seen
SHARES = tuple(percent / 100 for percent in range(10, 101, 2))  # of hours used, along the break-even chart


def cost_section(statements: Sequence[Statement]) -> Section:
    """Bills side by side; the first statement is that of the pick."""
    pick = statements[0]
    parts: list[Part] = [
        Prose(
            f"All that {FOR[pick.basis]} costs on {pick.accelerators}, at the median of every input; ranges go from "
            f"the 10th to the 90th percentile of {pick.draws:,} draws (seed {pick.seed}). The comparison above counts "
            "rented chips alone: this adds storage, network egress, energy, staff, the port and what "
            "interruptions cost."
        )
    ]
    if pick.terms:
        parts += [_breakdown(pick), _bill(pick), _per(pick)]
    if pick.missing:
        parts.append(Points("Terms without a bill", tuple(f"{m.kind}: {m.reason}" for m in pick.missing)))
    if len(statements) > 1:
        parts.append(_side_by_side(statements))
    return Section("cost", "What it costs", tuple(parts))


def cost_tile(s: Statement) -> Tile | None:
    """The cheapest terms of the pick."""
    best = s.cheapest
    if best is None:
        return None
    return Tile(
        f"Cheapest terms: {best.kind}",
        format_money(best.total),
        f"{format_money(best.usd.p10)} to {format_money(best.usd.p90)}",
        f"{_whose(best.source)}; all costs of {FOR[s.basis]}, 10th to 90th percentile",
    )


def _whose(source: Source) -> str:
    """Whose chips: a cloud and region, or the servers of one's own."""
    return f"{source.cloud} {source.region}" if source.cloud else f"{source.instance} at {source.region}"


def other_terms(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The least bill of all chips and terms, and that of the pick, in words."""
    bills = [(t.total, s, t) for s in statements for t in s.terms]
    if not bills:
        return ()
    _, s, t = min(bills, key=lambda each: each[0])
    said = [f"With every cost counted, the least of {len(bills)} bills is {s.accelerators}, {t.kind}: {_ranged(t)}."]
    if s is not statements[0] and statements[0].cheapest is not None:
        mine = statements[0].cheapest
        said.append(f"The least of {statements[0].accelerators} is {mine.kind}: {_ranged(mine)}.")
    if t.kind == SPOT:
        said.append("Spot may be taken away at any time and may not be there at all.")
    return tuple(said)


def _ranged(t: TermCost) -> str:
    return f"{format_money(t.total)} ({format_money(t.usd.p10)} to {format_money(t.usd.p90)})"


def _breakdown(s: Statement) -> Figure:
    used = [part for part in PARTS if any(getattr(t.split, part) for t in s.terms)]
    terms = {PAYS[part]: [getattr(t.split, part) for t in s.terms] for part in used}
    words = "; ".join(
        f"{t.kind} {format_money(t.total)}, of which "
        + ", ".join(f"{PAYS[part]} {dollars(getattr(t.split, part))}" for part in used if getattr(t.split, part))
        for t in s.terms
    )
    best = s.cheapest
    return charts.stacks(
        "fig-breakdown",
        f"What {FOR[s.basis]} on {s.accelerators} costs on each kind of terms, by what it pays for",
        words,
        [t.kind for t in s.terms],
        terms,
        f"US dollars for {FOR[s.basis]}",
        strong=next(i for i, t in enumerate(s.terms) if t is best),
    )


def _bill(s: Statement) -> Table:
    used = [part for part in PARTS if any(getattr(t.split, part) for t in s.terms)]
    headers = ("terms", "whose", "$/chip-h", *(PAYS[part] for part in used), "total", "p10 to p90", "time")
    rows = []
    for t in s.terms:
        stale = "*" if t.source.stale else ""
        rows.append(
            (
                t.kind,
                _whose(t.source),
                f"${t.source.usd_per_chip_hour:.2f}{stale}",
                *(dollars(getattr(t.split, part)) for part in used),
                format_money(t.total),
                f"{format_money(t.usd.p10)} to {format_money(t.usd.p90)}",
                format_seconds(t.hours * HOUR),
            )
        )
    best = s.cheapest
    notes = ["The cheapest is highlighted."]
    if any(t.source.stale for t in s.terms):
        notes.append("* marks prices older than 90 days.")
    if s.on(OWNED):
        notes.append("On-premises, chips means servers, space and upkeep.")
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"terms", "whose"}),
        strong=frozenset(i for i, t in enumerate(s.terms) if t is best),
        title=f"The bill for {FOR[s.basis]} on {s.accelerators}",
        notes=tuple(notes),
    )


def _per(s: Statement) -> Table:
    units = list(dict.fromkeys(unit for t in s.terms for unit, _ in t.per))
    rows = []
    for t in s.terms:
        by = dict(t.per)
        waste = "–"
        if t.expected is not None and t.interruptions_h:
            waste = number(t.expected.interruptions)
        rows.append(
            (
                t.kind,
                *(format_money(by[u]) if u in by else "–" for u in units),
                f"{t.chip_hours:,.0f}",
                f"{t.kwh / 1e3:,.1f}",
                f"{t.kg_co2 / 1e3:,.1f}",
                waste,
            )
        )
    headers = ("terms", *(f"$ per {u}" for u in units), "chip-hours", "MWh", "t CO2", "interruptions")
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"terms"}),
        title="The same per unit of work, with its energy and carbon",
        notes=("Energy is at the meter of the building; carbon is that of the grid where the chips stand.",),
    )


def _side_by_side(statements: Sequence[Statement]) -> Table:
    kinds = [k for k in KINDS if any(s.on(k) for s in statements)]
    rows, ported = [], any(s.port.weeks for s in statements)
    for s in statements:
        bills = [s.on(k) for k in kinds]
        best = s.cheapest
        rows.append(
            (
                str(s.accelerators),
                *("–" if t is None else _total(t) for t in bills),
                "–" if best is None else best.kind,
                *([f"{s.port.weeks:.1f}"] if ported else []),
            )
        )
    headers = ("chips", *kinds, "cheapest", *(["port, weeks"] if ported else []))
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"chips", "cheapest"}),
        strong=frozenset({0}),
        title=f"Total for {FOR[statements[0].basis]} by chip and terms",
        notes=("Totals at the median, every cost counted. The pick is highlighted.",),
    )


def _total(t: TermCost) -> str:
    return format_money(t.total) + ("*" if t.source.stale else "")


def break_even_section(s: Statement) -> Section:
    """Owning against renting over the share of hours used, and commitments against paying by the hour."""
    parts: list[Part] = []
    if s.purchase is not None:
        own = s.purchase.owned
        parts.append(
            Prose(
                f"{own.servers:,} servers of {own.server.chips} {own.chip.id} bought for "
                f"{format_money(own.capex_usd * own.servers)} and written off over {own.years:g} years cost the same "
                "used or not, so a used chip-hour is cheaper the more hours are used."
            )
        )
        parts += [_ownership(s), _rivals(s.purchase.rivals)]
    else:
        why = next((m.reason for m in s.missing if m.kind == OWNED), "no purchase was considered")
        parts.append(Prose(f"{why}.", "No break-even of owning."))
    if s.commitments:
        parts.append(_commitments(s))
    return Section("break-even", "Rent or buy", tuple(parts))


def _ownership(s: Statement) -> Figure:
    assert s.purchase is not None
    bought, rivals = s.purchase, _leading(s.purchase.rivals)
    curve, xs = bought.curve, SHARES
    lines = [
        charts.Curve(
            f"owned {s.accelerators.chip.id}",
            xs,
            tuple(bought.owned.usd_per_chip_hour(x, bought.chip_w) for x in xs),
            True,
        )
    ]
    lines += [
        charts.Curve(
            f"{r.kind}: {r.source.cloud} {r.source.region}".strip(),
            (xs[0], xs[-1]),
            (r.source.usd_per_chip_hour, r.source.usd_per_chip_hour),
        )
        for r in rivals
    ]
    marks = [
        (r.utilisation, r.source.usd_per_chip_hour, percent(r.utilisation))
        for r in rivals
        if xs[0] <= r.utilisation <= 1.0
    ]
    top = 1.15 * max([r.source.usd_per_chip_hour for r in rivals] + [2.5 * curve[-1][1]])
    words = "; ".join(f"{percent(share)} used: ${usd:.2f}" for share, usd in curve)
    return charts.curves(
        "fig-break-even",
        "US dollars for a used chip-hour over the share of hours used: owned against rented; dots "
        "mark where owning becomes the cheaper",
        f"Owned {s.accelerators.chip.id}: {words}. " + _in_words(rivals),
        lines,
        "share of hours used",
        "US dollars a used chip-hour",
        lambda x: percent(x),
        lambda y: f"${y:.3g}",
        marks,
        top,
    )


def _leading(rivals: Sequence[Rival]) -> list[Rival]:
    """The cheapest of each kind of terms, then the cheapest others."""
    ranked = sorted(rivals, key=lambda r: r.source.usd_per_chip_hour)
    first = [next(r for r in ranked if r.kind == kind) for kind in dict.fromkeys(r.kind for r in ranked)]
    return (first + [r for r in ranked if r not in first])[:MOST_RIVALS]


def _in_words(rivals: Sequence[Rival]) -> str:
    return "; ".join(
        f"{r.kind} at {r.source} ${r.source.usd_per_chip_hour:.2f}, break-even at {_share(r.utilisation)}"
        for r in rivals
    )


def _share(utilisation: float) -> str:
    return percent(utilisation) if utilisation <= 1.0 else "never"


def _rivals(rivals: Sequence[Rival]) -> Table:
    rows = tuple(
        (
            r.kind,
            str(r.source),
            f"${r.source.usd_per_chip_hour:.2f}{'*' if r.source.stale else ''}",
            r.source.date,
            _share(r.utilisation),
        )
        for r in sorted(rivals, key=lambda r: (r.utilisation, str(r.source)))
    )
    headers = ("terms", "whose", "$/chip-h", "dated", "break-even")
    return Table(
        headers,
        rows,
        left=frozenset({"terms", "whose", "dated"}),
        title="Share of hours used from which owning is cheaper",
    )


def _commitments(s: Statement) -> Table:
    rows = tuple(
        (
            f"{b.commitment.years} year{'s' if b.commitment.years > 1 else ''}",
            b.commitment.cloud,
            b.commitment.region or "–",
            f"${b.commitment.usd_per_chip_hour:.2f}{'*' if b.stale else ''}",
            f"${b.ondemand_usd_per_chip_hour:.2f}",
            b.against,
            _share(b.utilisation),
        )
        for b in s.commitments
    )
    return Table(
        ("term", "cloud", "region", "$/chip-h", "on demand", "of", "break-even"),
        rows,
        left=frozenset({"term", "cloud", "region", "of"}),
        title="Share of hours used from which a commitment is cheaper than paying by the hour",
    )


def tornado_part(s: Statement) -> Figure | None:
    """What moves the bill on the cheapest terms the most."""
    best = s.cheapest
    if best is None or not best.tornado:
        return None
    ranked = [w for w in sorted(best.tornado, key=lambda w: -w.swing) if w.swing > SEEN * best.total][:MOST_SWINGS]
    rows = [
        charts.Swing(_plain(w.name), w.usd_low, w.usd_high, charts.amount(w.usd_low), charts.amount(w.usd_high))
        for w in ranked
    ]
    if not rows:
        return None
    words = "; ".join(
        f"{_plain(w.name)} from {number(w.low)} to {number(w.high)}: {format_money(w.usd_low)} to "
        f"{format_money(w.usd_high)}"
        for w in ranked
    )
    return charts.tornado(
        "fig-tornado",
        f"What moves the total of {FOR[s.basis]} on {s.accelerators}, {best.kind}: each input from its "
        f"10th to its 90th percentile, the others at their median ({format_money(best.total)})",
        words,
        best.total,
        rows,
        f"US dollars for {FOR[s.basis]}",
    )


def assumption_parts(s: Statement) -> tuple[Part, ...]:
    """Every number assumed behind the bills, with its range, source and date."""
    rows: list[tuple[Cell, ...]] = []
    for a in s.used:
        ends = "given" if a.low == a.high else f"{_value(a.low)} to {_value(a.high)}"
        rows.append((_plain(a.name), _value(a.value), ends, a.unit, Link(a.source, a.source), a.date, a.note or "–"))
    words = frozenset({"assumption", "unit", "source", "dated", "note"})
    headers = ("assumption", "value", "range", "unit", "source", "dated", "note")
    parts: list[Part] = [
        Table(
            headers,
            tuple(rows),
            left=words,
            title="Assumptions behind the bills",
            notes=("Ranges hold the true value nine times in ten, as assumed or sourced.",),
        )
    ]
    said = (*s.notes, *(f"port: {reason}" for reason in s.port.reasons))
    if said:
        parts.insert(0, Points("Said of the bills", said))
    return tuple(parts)


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _value(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
