"""What the work costs by each pricing model, rent against buy, and what moves the bill: sections from statements."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.cost.columns import ASSUMPTIONS, COMMITMENTS, RIVALS, share
from chipwise.cost.statement import OWNED, PARTS, PRICING_MODELS, SPOT, CostOption, Rival, Source, Statement
from chipwise.present.blocks import Table
from chipwise.present.columns import table
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
    "migration": "migration",
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
            "rented chips alone: this adds storage, network egress, energy, staff, the migration and what "
            "interruptions cost."
        )
    ]
    if pick.options:
        parts += [_breakdown(pick), _bill(pick), _per(pick)]
    if pick.missing:
        parts.append(Points("Pricing models without a bill", tuple(f"{m.pricing}: {m.reason}" for m in pick.missing)))
    if len(statements) > 1:
        parts.append(_side_by_side(statements))
    return Section("cost", "What it costs", tuple(parts))


def cost_tile(s: Statement) -> Tile | None:
    """The cheapest option of the pick."""
    best = s.cheapest
    if best is None:
        return None
    return Tile(
        f"Cheapest option: {best.pricing}",
        format_money(best.total),
        f"{format_money(best.usd.p10)} to {format_money(best.usd.p90)}",
        f"{_whose(best.source)}; all costs of {FOR[s.basis]}, p10–p90",
    )


def _whose(source: Source) -> str:
    """Whose chips: a cloud and region, or the servers of one's own."""
    return f"{source.cloud} {source.region}" if source.cloud else f"{source.instance} at {source.region}"


def other_options(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The cheapest option of all chips and pricing models, and that of the pick, in words."""
    bills = [(t.total, s, t) for s in statements for t in s.options]
    if not bills:
        return ()
    _, s, t = min(bills, key=lambda each: each[0])
    said = [
        f"With every cost counted, the cheapest of {len(bills)} options is {s.accelerators}, {t.pricing}: {_ranged(t)}."
    ]
    if s is not statements[0] and statements[0].cheapest is not None:
        mine = statements[0].cheapest
        said.append(f"The cheapest of {statements[0].accelerators} is {mine.pricing}: {_ranged(mine)}.")
    if t.pricing == SPOT:
        said.append("Spot may be taken away at any time and may not be there at all.")
    return tuple(said)


def _ranged(t: CostOption) -> str:
    return f"{format_money(t.total)} ({format_money(t.usd.p10)} to {format_money(t.usd.p90)})"


def _breakdown(s: Statement) -> Figure:
    used = [part for part in PARTS if any(getattr(t.split, part) for t in s.options)]
    terms = {PAYS[part]: [getattr(t.split, part) for t in s.options] for part in used}
    words = "; ".join(
        f"{t.pricing} {format_money(t.total)}, of which "
        + ", ".join(f"{PAYS[part]} {dollars(getattr(t.split, part))}" for part in used if getattr(t.split, part))
        for t in s.options
    )
    best = s.cheapest
    return charts.stacks(
        charts.Labels(
            "fig-breakdown",
            f"What {FOR[s.basis]} on {s.accelerators} costs by each pricing model and by what it pays for",
            words,
        ),
        [t.pricing for t in s.options],
        terms,
        f"US dollars for {FOR[s.basis]}",
        strong=next(i for i, t in enumerate(s.options) if t is best),
    )


def _bill(s: Statement) -> Table:
    used = [part for part in PARTS if any(getattr(t.split, part) for t in s.options)]
    headers = ("pricing", "whose", "$/chip-h", *(PAYS[part] for part in used), "total", "p10 to p90", "time")
    rows = []
    for t in s.options:
        stale = "*" if t.source.stale else ""
        rows.append(
            (
                t.pricing,
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
    if any(t.source.stale for t in s.options):
        notes.append("* marks prices older than 90 days.")
    if s.by(OWNED):
        notes.append("On-premises, chips means servers, space and upkeep.")
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"pricing", "whose"}),
        strong=frozenset(i for i, t in enumerate(s.options) if t is best),
        title=f"The bill for {FOR[s.basis]} on {s.accelerators}",
        notes=tuple(notes),
    )


def _per(s: Statement) -> Table:
    units = list(dict.fromkeys(unit for t in s.options for unit, _ in t.per))
    rows = []
    for t in s.options:
        by = dict(t.per)
        waste = "–"
        if t.expected is not None and t.interruptions_per_hour:
            waste = number(t.expected.interruptions)
        rows.append(
            (
                t.pricing,
                *(format_money(by[u]) if u in by else "–" for u in units),
                f"{t.chip_hours:,.0f}",
                f"{t.kwh / 1e3:,.1f}",
                f"{t.kg_co2 / 1e3:,.1f}",
                waste,
            )
        )
    headers = ("pricing", *(f"$ per {u}" for u in units), "chip-hours", "MWh", "t CO2", "interruptions")
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"pricing"}),
        title="The same per unit of work, with its energy and carbon",
        notes=("Energy is at the meter of the building; carbon is that of the grid where the chips stand.",),
    )


def _side_by_side(statements: Sequence[Statement]) -> Table:
    models = [k for k in PRICING_MODELS if any(s.by(k) for s in statements)]
    rows, migrated = [], any(s.migration.weeks for s in statements)
    for s in statements:
        bills = [s.by(k) for k in models]
        best = s.cheapest
        rows.append(
            (
                str(s.accelerators),
                *("–" if t is None else _total(t) for t in bills),
                "–" if best is None else best.pricing,
                *([f"{s.migration.weeks:.1f}"] if migrated else []),
            )
        )
    headers = ("chips", *models, "cheapest", *(["migration, weeks"] if migrated else []))
    return Table(
        headers,
        tuple(rows),
        left=frozenset({"chips", "cheapest"}),
        strong=frozenset({0}),
        title=f"Total for {FOR[statements[0].basis]} by chip and pricing model",
        notes=("Totals at the median, every cost counted. The pick is highlighted.",),
    )


def _total(t: CostOption) -> str:
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
        why = next((m.reason for m in s.missing if m.pricing == OWNED), "no purchase was considered")
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
            f"{r.pricing}: {r.source.cloud} {r.source.region}".strip(),
            (xs[0], xs[-1]),
            (r.source.usd_per_chip_hour, r.source.usd_per_chip_hour),
        )
        for r in rivals
    ]
    marks = [
        (r.utilization, r.source.usd_per_chip_hour, percent(r.utilization))
        for r in rivals
        if xs[0] <= r.utilization <= 1.0
    ]
    top = 1.15 * max([r.source.usd_per_chip_hour for r in rivals] + [2.5 * curve[-1][1]])
    words = "; ".join(f"{percent(share)} used: ${usd:.2f}" for share, usd in curve)
    return charts.curves(
        charts.Labels(
            "fig-break-even",
            "US dollars for a used chip-hour over the share of hours used: owned against rented; dots "
            "mark where owning becomes the cheaper",
            f"Owned {s.accelerators.chip.id}: {words}. " + _in_words(rivals),
        ),
        lines,
        "share of hours used",
        "US dollars a used chip-hour",
        lambda x: percent(x),
        lambda y: f"${y:.3g}",
        marks,
        top,
    )


def _leading(rivals: Sequence[Rival]) -> list[Rival]:
    """The cheapest of each pricing model, then the cheapest others."""
    ranked = sorted(rivals, key=lambda r: r.source.usd_per_chip_hour)
    first = [next(r for r in ranked if r.pricing == kind) for kind in dict.fromkeys(r.pricing for r in ranked)]
    return (first + [r for r in ranked if r not in first])[:MOST_RIVALS]


def _in_words(rivals: Sequence[Rival]) -> str:
    return "; ".join(
        f"{r.pricing} at {r.source} ${r.source.usd_per_chip_hour:.2f}, break-even at {share(r.utilization)}"
        for r in rivals
    )


def _rivals(rivals: Sequence[Rival]) -> Table:
    rows = sorted(rivals, key=lambda r: (r.utilization, str(r.source)))
    return table(RIVALS, rows, title="Share of hours used from which owning is cheaper")


def _commitments(s: Statement) -> Table:
    title = "Share of hours used from which a commitment is cheaper than paying by the hour"
    return table(COMMITMENTS, s.commitments, title=title)


def tornado_part(s: Statement) -> Figure | None:
    """What moves the bill by the cheapest option the most."""
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
        charts.Labels(
            "fig-tornado",
            f"What moves the total of {FOR[s.basis]} on {s.accelerators}, {best.pricing}: each input from its "
            f"10th to its 90th percentile, the others at their median ({format_money(best.total)})",
            words,
        ),
        best.total,
        rows,
        f"US dollars for {FOR[s.basis]}",
    )


def assumption_parts(s: Statement) -> tuple[Part, ...]:
    """Every number assumed behind the bills, with its range, source and date."""
    notes = ("Ranges are 90 % intervals, as assumed or sourced.",)
    parts: list[Part] = [table(ASSUMPTIONS, s.used, title="Assumptions behind the bills", notes=notes)]
    said = (*s.notes, *(f"migration: {reason}" for reason in s.migration.reasons))
    if said:
        parts.insert(0, Points("Said of the bills", said))
    return tuple(parts)


def _plain(name: str) -> str:
    return name.replace("_", " ")
