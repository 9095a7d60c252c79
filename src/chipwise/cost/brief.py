"""Bills in fifteen lines: what each set of chips costs by each pricing model, the cheapest, and what moves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.cost.case import TOKENS_OUT, TOKENS_PROCESSED
from chipwise.cost.columns import BILL, EVIDENCE, INPUTS, OPTION, STATEMENT, CostRow, of_bill, short
from chipwise.cost.statement import PARTS, PRICING_MODELS, CostOption, Statement
from chipwise.cost.view import cheapest, head, rows, stale
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.columns import Column, chosen, table
from chipwise.present.safe import safe
from chipwise.units import format_money

if TYPE_CHECKING:
    from chipwise.cost.costs import Costs

CHIPS = 5  # sets of chips in the table, the cheapest: with all else 15 lines
SWINGS = 3  # inputs that move the total most


def blocks(c: Costs) -> list[Block]:
    """The bills for people, in brief."""
    ranked = sorted(c.statements, key=lambda s: s.cheapest.total if s.cheapest else float("inf"))
    shown = [s for s in c.statements if s in ranked[:CHIPS]]
    left = len(c.statements) - len(shown)
    out: list[Block] = [Text(head(c)), _one(shown[0]) if len(c.statements) == 1 else _matrix(shown)]
    if left:
        out.append(Text(f"{left} more expensive ones: --full"))
    out += [Text(cheapest(c)), *map(Text, _cheapest_details(c)), *map(Text, stale(c))]
    out += map(Text, _of_files(c))
    if c.refused:
        out.append(Text(f"Refused: {', '.join(r.name for r in c.refused)}."))
    return [*out, Text("Per unit of work, checkpoints, break-even, migration and every assumption: --full")]


def _of_files(c: Costs) -> list[str]:
    """The figures of a file of one's own that stand in place of assumptions, with where they are from."""
    figures = {a.name: a for s in c.statements for a in s.used if a.of_file}
    by_source: dict[tuple[str, str], list[str]] = {}
    for name, a in sorted(figures.items()):
        by_source.setdefault((a.source, a.date), []).append(f"{name} {short(a.value)}")
    return [
        f"In place of assumptions: {', '.join(names)} ({safe(source)}; of {day})."
        for (source, day), names in by_source.items()
    ]


def _one(s: Statement) -> Table:
    """One set of chips: a row for each pricing model."""
    bill = [of_bill(column) for column in chosen(BILL, "p10 to p90", "time", "$/chip-h")]
    usd = next(column for column in OPTION if column.key == "usd")
    every = rows(s)
    best = frozenset(i for i, row in enumerate(every) if row.option is not None and row.option is s.cheapest)
    source: Column[CostRow] = Column("", None, "from", _from, words=True)
    columns: list[Column[CostRow]] = [STATEMENT[0], OPTION[0], usd, *bill, source, EVIDENCE]
    return table(columns, every, s.basis, strong=best)


def _from(row: CostRow) -> str:
    """Who sells it, or why nobody does; those left out --full names."""
    words, _, left_out = str(OPTION[-1].cell(row)).partition(" (left out: ")
    return "none that counts: --full says why" if left_out else words


def _matrix(statements: list[Statement]) -> Table:
    """Several sets of chips: a row for each, a column for each pricing model."""
    columns: list[Column[Statement]] = [Column("", None, "chips", lambda s: str(s.accelerators), words=True)]
    columns += [_total(pricing) for pricing in PRICING_MODELS if any(s.by(pricing) for s in statements)]
    columns.append(Column("", None, "cheapest", lambda s: s.cheapest.pricing if s.cheapest else "-", words=True))
    columns.append(Column("", None, "evidence", lambda s: s.evidence, words=True))
    totals = [s.cheapest.total if s.cheapest else float("inf") for s in statements]
    return table(columns, statements, strong=frozenset({totals.index(min(totals))}))


def _total(pricing: str) -> Column[Statement]:
    def show(s: Statement) -> str:
        option = s.by(pricing)
        return "-" if option is None else format_money(option.total) + ("*" if option.source.stale else "")

    return Column("", None, pricing, show)


def _cheapest_details(c: Costs) -> list[str]:
    """What the cheapest option pays for, and what moves it most."""
    option = c.cheapest
    if option is None:
        return []
    lines = [f"It pays {_paid(option)}; {option.kwh:,.0f} kWh at the meter of the building."]
    per = dict(option.per)
    if TOKENS_OUT in per:
        lines.append(
            f"A million tokens cost {format_money(per[TOKENS_PROCESSED])} over prompts and answers,"
            f" {format_money(per[TOKENS_OUT])} over answers alone."
        )
    swings = sorted(option.tornado, key=lambda w: -w.swing)[:SWINGS]
    moved = ", ".join(
        f"{INPUTS.get(w.name, w.name.replace('_', ' '))} ({format_money(w.swing)})" for w in swings if w.swing
    )
    return [*lines, f"What moves it most, from p10 to p90: {moved}."] if moved else lines


def _paid(option: CostOption) -> str:
    paid = [(name, getattr(option.split, name)) for name in PARTS]
    return ", ".join(f"{format_money(usd)} for {name}" for name, usd in sorted(paid, key=lambda p: -p[1]) if usd)
