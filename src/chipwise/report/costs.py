"""What the work costs by each pricing model, rent against buy, and what moves the bill: sections from statements."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.cost.columns import ASSUMPTIONS, BILL, COMMITMENTS, PRICING, RIVALS, TOTAL, part, per_unit, share
from chipwise.cost.statement import ONDEMAND, OWNED, PARTS, PRICING_MODELS, SPOT, CostOption, Rival, Source, Statement
from chipwise.present.blocks import Table
from chipwise.present.columns import Column, chosen, table
from chipwise.present.numbers import dollars, energy, number, percent, plural
from chipwise.report import charts
from chipwise.report.parts import Figure, Part, Points, Prose, Section, Tile
from chipwise.units import format_money

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
            f"the 10th to the 90th percentile of {pick.draws:,} draws (seed {pick.seed}). The comparison ranks by "
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


def cost_tile(s: Statement, rent: str) -> Tile | None:
    """What the pick costs on demand with every cost counted; `rent`: what its chips alone do, for the note."""
    mine = s.by(ONDEMAND)
    if mine is None:
        return None
    note = f"every cost of {FOR[s.basis]}, p10–p90; rented chips alone: {rent}"
    return Tile("Cost on demand", format_money(mine.total), _range(mine), note)


def cheapest_tile(s: Statement) -> Tile | None:
    """The pricing model by which the pick costs less than on demand."""
    best = s.cheapest
    if best is None or best.pricing == ONDEMAND:
        return None
    note = f"{_whose(best.source)}; every cost of {FOR[s.basis]}, p10–p90"
    return Tile(f"The same chips, {best.pricing}", format_money(best.total), _range(best), note)


def energy_tile(s: Statement) -> Tile | None:
    """The energy of the pick at the meter of the building, as every bill counts it."""
    mine = s.by(ONDEMAND) or s.cheapest
    if mine is None:
        return None
    return Tile("Energy at the meter", energy(mine.kwh), "", f"chips, servers and cooling, for {FOR[s.basis]}")


def _range(o: CostOption) -> str:
    return f"{format_money(o.usd.p10)} to {format_money(o.usd.p90)}"


def _whose(source: Source) -> str:
    """Whose chips: a cloud and region, or the servers of one's own."""
    return f"{source.cloud} {source.region}" if source.cloud else f"{source.instance} at {source.region}"


def standing(statements: Sequence[Statement], objective: str = "cost") -> tuple[str, ...]:
    """The place of the pick, on demand, among all bills, and why those that are lower are not the pick."""
    bills = [(s, o) for s in statements for o in s.options]
    mine = statements[0].by(ONDEMAND) if statements else None
    if mine is None:
        return ()
    lower = sorted(((s, o) for s, o in bills if o.total < mine.total), key=lambda bill: bill[1].total)
    billed = f"{len(bills)} options: {plural(len(statements), 'set')} of chips by every pricing model with a price"
    if not lower:
        return (f"With every cost counted it is the cheapest of {billed}.",)
    place = f"With every cost counted it is number {len(lower) + 1} of {billed}."
    if objective != "cost":
        place += f" It was picked by {objective}; these cost less:"
    elif any(o.pricing == ONDEMAND for _, o in lower):
        place += " These cost less:"
    else:
        place += " It leads those rented by the hour without a commitment; these cost less on other terms:"
    points = [place]
    for pricing in PRICING_MODELS:
        amounts = [f"{s.accelerators} {format_money(o.total)}" for s, o in lower if o.pricing == pricing]
        if amounts:
            asked = _terms(pricing, [s for s, o in lower if o.pricing == pricing])
            points.append(f"{pricing}: {', '.join(amounts)}. {asked}")
    return tuple(points)


def _terms(pricing: str, lower: Sequence[Statement]) -> str:
    """What a pricing model asks for its lower price."""
    if pricing == SPOT:
        return "Spot chips may be taken away at any time, and may not be there at all."
    if pricing == OWNED:
        bought = next((s.purchase.owned for s in lower if s.purchase is not None), None)
        spent = f" ({bought.servers:,} of them for {format_money(bought.capex_usd * bought.servers)})" if bought else ""
        return f"Servers are bought{spent} and pay off only where later work uses them as much."
    if pricing == ONDEMAND:
        return "Its chips cost more to rent, which is what the comparison ranks by; the other costs are lower."
    return f"A commitment is paid for {pricing}, used or not."


def _parts(s: Statement) -> list[str]:
    """What some bill pays for."""
    return [name for name in PARTS if any(getattr(o.split, name) for o in s.options)]


def _breakdown(s: Statement) -> Figure:
    used = _parts(s)
    terms = {PAYS[name]: [getattr(o.split, name) for o in s.options] for name in used}
    words = "; ".join(
        f"{o.pricing} {format_money(o.total)}, of which "
        + ", ".join(f"{PAYS[name]} {dollars(getattr(o.split, name))}" for name in used if getattr(o.split, name))
        for o in s.options
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
    best = s.cheapest
    columns = [
        PRICING,
        WHOSE,
        *chosen(BILL, "$/chip-h"),
        *(part(name, PAYS[name]) for name in _parts(s)),
        TOTAL,
        *chosen(BILL, "p10 to p90", "time"),
    ]
    notes = ["The cheapest is highlighted."]
    if any(o.source.stale for o in s.options):
        notes.append("* marks prices older than 90 days.")
    if s.by(OWNED):
        notes.append("On-premises, chips means servers, space and upkeep.")
    return table(
        columns,
        s.options,
        strong=frozenset(i for i, o in enumerate(s.options) if o is best),
        title=f"The bill for {FOR[s.basis]} on {s.accelerators}",
        notes=tuple(notes),
    )


def _interruptions(o: CostOption) -> str:
    return number(o.expected.interruptions) if o.expected is not None and o.interruptions_per_hour else "–"


WHOSE: Column[CostOption] = Column("", None, "provider", lambda o: _whose(o.source), words=True)
AMOUNTS: list[Column[CostOption]] = [
    Column("", None, "chip-hours", lambda o: f"{o.chip_hours:,.0f}"),
    Column("", None, "MWh at the meter", lambda o: f"{o.kwh / 1e3:,.1f}"),
    Column("", None, "t CO2", lambda o: f"{o.kg_co2 / 1e3:,.1f}"),
    Column("", None, "interruptions", _interruptions),
]


def _per(s: Statement) -> Table:
    units = dict.fromkeys(unit for o in s.options for unit, _ in o.per)
    return table(
        [PRICING, *map(per_unit, units), *AMOUNTS],
        s.options,
        title="The same per unit of work, with its energy and carbon",
        notes=(
            "Energy at the meter is that of chips, servers and cooling; carbon is that of the grid where they stand.",
        ),
    )


def _side_by_side(statements: Sequence[Statement]) -> Table:
    columns: list[Column[Statement]] = [Column("", None, "chips", lambda s: str(s.accelerators), words=True)]
    columns += [_total(pricing) for pricing in PRICING_MODELS if any(s.by(pricing) for s in statements)]
    columns.append(Column("", None, "cheapest", lambda s: s.cheapest.pricing if s.cheapest else "–", words=True))
    if any(s.migration.weeks for s in statements):
        columns.append(Column("", None, "migration, weeks", lambda s: f"{s.migration.weeks:.1f}"))
    return table(
        columns,
        statements,
        strong=frozenset({0}),
        title=f"Total for {FOR[statements[0].basis]} by chip and pricing model",
        notes=("Totals at the median, every cost counted. The pick is highlighted.",),
    )


def _total(pricing: str) -> Column[Statement]:
    def show(s: Statement) -> str:
        option = s.by(pricing)
        return "–" if option is None else format_money(option.total) + ("*" if option.source.stale else "")

    return Column("", None, pricing, show)


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
