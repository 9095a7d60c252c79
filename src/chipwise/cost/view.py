"""Bills as every face shows them: their record, their rows, and their text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from chipwise.catalog.currencies import USD
from chipwise.catalog.economics import Assumption, Site
from chipwise.compare import columns as compared
from chipwise.compare.terms import DEFAULT_CHIPS
from chipwise.compare.training.row import TrainingRow
from chipwise.compare.view import refusals
from chipwise.cost.columns import (
    ASSUMPTIONS,
    COMMITMENTS,
    COURSE,
    EVIDENCE,
    INTERRUPTIONS,
    OPTION,
    RIVALS,
    SPLIT,
    STATEMENT,
    TORNADO,
    CostRow,
    of_bill,
    per_unit,
    spread,
)
from chipwise.cost.statement import PRICING_MODELS, Purchase, Source, Statement
from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, flat, padded, table
from chipwise.present.columns import record as row_record
from chipwise.prices import STALE_DAYS
from chipwise.units import format_money
from chipwise.workload.model import Workload

if TYPE_CHECKING:
    from chipwise.cost.costs import Costs

SWINGS = 8  # inputs shown, the largest swing first
PER = {"run": "a run", "job": "a job", "month": "a month"}


def rows(s: Statement) -> list[CostRow]:
    """Every pricing model of a set of chips, with its bill or why there is none."""
    every = [CostRow(s, option) for option in s.options] + [CostRow(s, missing) for missing in s.missing]
    return sorted(every, key=lambda row: PRICING_MODELS.index(row.bill.pricing))


def record(c: Costs) -> dict[str, Any]:
    """The bills as JSON has them."""
    known, site = c.assumptions.knowledge, c.assumptions.site
    return {
        "workload": c.workload,
        "kind": "train" if isinstance(c.workload, Workload) else "serve",
        "date": known.today.isoformat(),
        "years": c.assumptions.years,
        "site": {
            "name": site.id,
            "usd_per_kwh": site.usd_kwh.value if site.usd_kwh else None,
            "pue": site.pue.value,
            "grams_co2_per_kwh": site.g_kwh.value,
            "currency": site.currency,
            "per_kwh": site.local.value if site.local else None,
            "sources": [
                {"figure": name, **asdict(cited)}
                for name, cited in (("per_kwh", site.local), ("pue", site.pue), ("grams_co2_per_kwh", site.g_kwh))
                if cited
            ],
        },
        "draws": c.assumptions.draws,
        "seed": known.seed,
        "prices": known.prices.origin,
        "statements": [_statement(s) for s in c.statements],
        "refused": [row_record(compared.REFUSED, refused) for refused in c.refused],
    }


def _statement(s: Statement) -> dict[str, Any]:
    if isinstance(s.answer, TrainingRow):
        answer = row_record(compared.TRAINING, s.answer)
    else:
        answer = row_record(compared.SERVING, s.answer)
    return {
        "accelerators": s.accelerators,
        "basis": s.basis,
        "evidence": s.evidence,
        "because": s.because,
        "cheapest": s.cheapest.pricing if s.cheapest else None,
        "options": [row_record(OPTION, CostRow(s, option)) for option in s.options],
        "missing": s.missing,
        "commitments": s.commitments,
        "purchase": s.purchase,
        "migration": s.migration,
        "answer": answer,
        "assumed": s.used,
        "notes": s.notes,
    }


def flat_rows(c: Costs) -> list[dict[str, Any]]:
    """Flat rows, one a pricing model, for CSV and pandas; the refused follow, with the reason."""
    columns = [*STATEMENT, *OPTION, EVIDENCE]
    out = [{**flat(columns, row), "missing": None} for s in c.statements for row in rows(s) if row.option]
    for row in (row for s in c.statements for row in rows(s) if row.option is None):
        given = {name: value for name, value in flat(columns, row).items() if value is not None}
        out.append({**given, "missing": _reason(row)})
    for r in c.refused:
        why = f"{r.reason}; {r.unlock}" if r.unlock else r.reason
        out.append({"accelerators": r.name, "accelerators_chip": r.chip.id, "missing": why})
    return padded(out)


def _reason(row: CostRow) -> str:
    return getattr(row.bill, "reason", "")


def blocks(c: Costs) -> list[Block]:
    """The bills for people."""
    used = {a.name: a for s in c.statements for a in s.used}
    notes = dict.fromkeys(note for s in c.statements for note in s.notes)
    return [
        Text(head(c)),
        side_by_side(c),
        Text(""),
        Text(cheapest(c)),
        *(block for s in c.statements for block in _details(s)),
        *section("Refused", refusals(c.refused)),
        Text("Assumptions", True),
        *([assumed(used)] if used else []),
        Text(""),
        *(Text(f"  {note}") for note in (*notes, *stale(c))),
    ]


def head(c: Costs) -> str:
    """What is billed, and by whose prices."""
    assumed = any(s.answer.accelerators.assumed for s in c.statements)
    counts = f" on {DEFAULT_CHIPS} chips of a kind: no count was named" if assumed else ""
    return f"{c.workload.name}: cost of {PER[c.basis]}{counts}; prices: {c.assumptions.knowledge.prices.origin}"


def assumed(used: dict[str, Assumption], **options: Any) -> Table:
    """Assumptions by name, with their ranges and sources."""
    return table(ASSUMPTIONS, sorted(used.values(), key=lambda a: a.name), **options)


def side_by_side(c: Costs) -> Table:
    """Every set of chips by every pricing model, the cheapest standing out."""
    every = [row for s in c.statements for row in rows(s)]
    units = dict.fromkeys(unit for s in c.statements for o in s.options for unit, _ in o.per if unit != c.basis)
    at = next(i for i, column in enumerate(OPTION) if column.key == "usd_range") + 1
    columns: list[Column[CostRow]] = [
        STATEMENT[0],
        *OPTION[:at],
        *(of_bill(per_unit(unit)) for unit in units),
        *OPTION[at:],
        EVIDENCE,
    ]
    totals = [row.total for row in every]
    best = frozenset({totals.index(min(totals))}) if any(row.option for row in every) else frozenset()
    return table(columns, every, c.basis, strong=best)


def cheapest(c: Costs) -> str:
    """The cheapest option of all, in a sentence."""
    every = [(o.total, s, o) for s in c.statements for o in s.options]
    if not every:
        return "No pricing model has a public price: nothing is invented."
    _, s, o = min(every, key=lambda row: row[0])
    return (
        f"Cheapest of {len(every)} options: {s.accelerators} {o.pricing} at {format_money(o.total)} "
        f"(p10–p90 {spread(o.usd)}), from {o.source}."
    )


def _details(s: Statement) -> list[Block]:
    name, best = str(s.accelerators), s.cheapest
    out: list[Block] = []
    if s.options:
        out.append(table(SPLIT, s.options, title=f"What {name} is paid for"))
        if s.basis == "run":
            course = [o for o in s.options if o.expected is not None]
            out.append(table(COURSE, course, title=f"Checkpoints, failures and interruptions on {name}"))
        else:
            out.append(table(INTERRUPTIONS, s.options, title=f"Failures and interruptions on {name}"))
    if s.commitments:
        out.append(table(COMMITMENTS, s.commitments, title=f"Commitments for {name}: the use from which they pay"))
    if s.purchase is not None:
        out += _purchase(s.purchase, name)
    out += _migration(s, name)
    if best is not None and best.tornado:
        out.append(table(TORNADO, best.tornado[:SWINGS], title=f"What matters most to {name} {best.pricing}"))
    return out


def _migration(s: Statement, name: str) -> list[Block]:
    m = s.migration
    shared = f", {format_money(m.usd_run)} for each {s.basis} of {m.runs:g}" if m.weeks else ""
    weeks = f"{m.weeks:g} engineer-week{'s' * (m.weeks != 1)}"
    return section(f"Migration to {name}: {weeks} ({m.weeks_low:g} to {m.weeks_high:g}){shared}", m.reasons)


def _purchase(p: Purchase, name: str) -> list[Block]:
    o = p.owned
    curve = Table(
        [f"{used:.0%}" for used, _ in p.curve],
        [[f"{usd:.2f}" for _, usd in p.curve]],
        title="A used chip-hour in US dollars by the share of hours used",
    )
    lines = [
        f"servers: {o.servers:,} x {o.server.id} in {o.racks:,} racks, {o.server.chips} chips, {o.server.rack_units} "
        f"rack units and up to {o.server.max_w / 1e3:g} kW each",
        f"price of one in place: {format_money(o.capex_usd)}, {format_money(o.residual_usd)} of it left after "
        f"{o.years:g} years",
        f"a month of one: {format_money(o.payment_usd_month)} payment, {format_money(o.maintenance_usd_month)} upkeep, "
        f"{format_money(o.colocation_usd_month)} space, {format_money(o.staff_usd_month)} staff",
        f"electricity of one: {o.server_w(p.chip_w) / 1e3:.1f} kW x PUE {o.site.pue.value:g} x {o.usd_kwh:.4g} USD/kWh"
        f"{_local(o.site)} = "
        f"{format_money(o.energy_usd_per_hour(p.chip_w))} an hour; idle {format_money(o.idle_usd_per_hour)}",
    ]
    rivals = table(RIVALS, p.rivals, title="Against the cheapest of every cloud")
    return [*section(f"On-premises {name}", lines), curve, *([rivals] if p.rivals else [])]


def _local(site: Site) -> str:
    """The price of electricity in the currency of the place; nothing of US dollars."""
    return f" ({site.local.value:g} {site.currency})" if site.local and site.currency != USD else ""


def stale(c: Costs) -> list[str]:
    """How many prices are old, if any."""
    old = [source.date for s in c.statements for source in _sources(s) if source.stale]
    return [f"* marks stale prices, older than {STALE_DAYS} days: {len(old)}, the oldest of {min(old)}"] if old else []


def _sources(s: Statement) -> list[Source]:
    return [o.source for o in s.options] + ([r.source for r in s.purchase.rivals] if s.purchase else [])
