"""What reports of both kinds of comparison share: bars, the front, what flips the decision, how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.compare import AnyComparison, Flip, Refused
from chipwise.cost.statement import Statement
from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Table
from chipwise.present.numbers import number, time_unit
from chipwise.prices import STALE_DAYS, Price
from chipwise.report import charts
from chipwise.report.costs import other_terms, tornado_part
from chipwise.report.parts import EVIDENCE, Decision, Figure, Part, Points, Prose, Section, Tile
from chipwise.units import format_money

MOST_BARS = 14  # rows of a chart: the best


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chip by what decides."""

    name: str
    by: Estimate
    pick: bool


@dataclass(frozen=True, slots=True)
class Weighed:
    """A chip by its cost and its time."""

    name: str
    usd: Estimate
    seconds: Estimate
    pick: bool


def ranked_bars(rows: Sequence[Ranked], by: str, what: str, axis: str) -> Figure:
    """Chips by what decides, with intervals; `axis` has the unit of times where braces stand."""
    left, rows = len(rows) - MOST_BARS, rows[:MOST_BARS]
    unit, scale = time_unit(max(r.by.value for r in rows)) if by == "time" else ("", 1.0)
    bars = [
        charts.Bar(r.name, r.by.value / scale, r.by.low / scale, r.by.high / scale, r.pick, r.by.evidence == "bounded")
        for r in rows
    ]
    show, label = (charts.money, charts.amount) if by == "cost" else (number, number)
    caption = f"{what} by chip, with 90 % intervals"
    if left > 0:
        caption += f"; the best {MOST_BARS}, {left} more in the table"
    if any(b.weak for b in bars):
        caption += "; hatched: on bounded evidence"
    words = "; ".join(f"{b.label} {label(b.value)} ({label(b.low)} to {label(b.high)})" for b in bars)
    named = axis.format(unit)
    return charts.bars("fig-costs", caption, f"{what}, {named}: {words}", bars, named, show, label)


def front_section(rows: Sequence[Weighed], per: str, what: str) -> Section:
    """Cost against time: `per` says what the dollars are for, `what` which time it is."""
    if len(rows) < 2:
        return Section(
            "trade-off",
            "Cost against time",
            (Prose("Fewer than two chips have a public price, so there is nothing to weigh."),),
        )
    ordered = sorted(r.seconds.value for r in rows)
    unit, scale = time_unit(ordered[len(ordered) // 2])
    dots = [
        charts.Dot(
            r.name,
            r.seconds.value / scale,
            r.seconds.low / scale,
            r.seconds.high / scale,
            r.usd.value,
            r.usd.low,
            r.usd.high,
            r.pick,
        )
        for r in rows
    ]
    words = "; ".join(f"{d.label}: {format_money(d.y)}{per}, {number(d.x)} {unit}" for d in dots)
    figure = charts.front(
        "fig-front",
        f"Cost on demand{per} against the time {what}, with 90 % intervals; lower left is better",
        f"Cost against time: {words}",
        dots,
        f"{unit} {what}",
        f"US dollars{per}",
        number,
    )
    return Section(
        "trade-off",
        "Cost against time",
        (
            Prose(
                "Chips on the dashed front are worth considering: every other is beaten by one that is no dearer and "
                "no slower."
            ),
            figure,
        ),
    )


def decision(
    c: AnyComparison,
    sure: Estimate | None,
    tiles: Sequence[Tile],
    statements: Sequence[Statement],
    figure: Figure,
) -> Decision:
    """The first page of a comparison; `sure` is the estimate that the pick rests on."""
    answers = [Points("Why", (c.words.why,)), Points("What would flip it", flip_points(c.flips, c.words.flip))]
    pick, by = c.pick, c.terms.objective
    if pick is None or sure is None:
        return Decision("No pick: no public price", c.words.pick, (), tuple(answers), figure)
    others = [(str(r.accelerators), r.by(by)) for r in c.rows if r is not pick]
    price = pick.ondemand.price if pick.ondemand else None
    answers += [
        Points("How sure is it", how_sure(sure, price, pick.by(by), others)),
        Points("On other terms", other_terms(statements)),
    ]
    acc = pick.accelerators
    headline = f"Pick {acc.count:,} × {acc.chip.name}" + (", rented on demand" if pick.ondemand else "")
    return Decision(headline, c.words.pick, tuple(tiles), tuple(a for a in answers if a.items), figure)


def flip_points(flips: Sequence[Flip], otherwise: str) -> tuple[str, ...]:
    """The smallest change of each kind that flips the decision."""
    kinds = dict.fromkeys(f.kind for f in flips)
    return tuple(next(f.words for f in flips if f.kind == kind) + "." for kind in kinds) or (otherwise,)


def flip_section(flips: Sequence[Flip], otherwise: str, statements: Sequence[Statement]) -> Section:
    """Every change that was found to flip the decision, and what moves the bill of the pick."""
    parts: list[Part] = [
        Prose(
            "The smallest changes found that make another chip the pick, smallest first. A price "
            "that falls by half counts as large a change as a demand or a batch that doubles."
        )
    ]
    if flips:
        headers = ("change of", "new pick", "in words")
        parts.append(
            Table(
                headers,
                tuple((f.kind, f.winner, f.words) for f in flips),
                left=frozenset(headers),
                title="What would flip the decision",
            )
        )
    else:
        parts.append(Prose(otherwise))
    parts += [figure for s in statements[:1] if (figure := tornado_part(s))]
    return Section("sensitivity", "Sensitivity", tuple(parts))


def how_sure(
    of: Estimate, price: Price | None, mine: Estimate | None, others: Sequence[tuple[str, Estimate | None]]
) -> tuple[str, ...]:
    """The evidence of the pick, the age of its price, and whose intervals reach it."""
    said = [f"Times are {of.evidence}: {of.because or EVIDENCE.get(of.evidence, '')}."]
    if price is not None and price.stale:
        said.append(f"Its price is of {price.offer.date}, more than {STALE_DAYS} days old: ask for a quote.")
    near = [name for name, by in others if mine and by and by.low <= mine.high]
    if not near:
        return (*said, "No other chip's interval reaches it.")
    more = " and others" if len(near) > 4 else ""
    return (*said, f"The intervals of {', '.join(near[:4])}{more} overlap with it.")


def refused_table(refused: Sequence[Refused]) -> Table:
    """Chips that can't do the work on these terms, and why."""
    headers = ("chips", "why not", "what would unlock it")
    rows = tuple((str(r.accelerators or r.chip.id), r.reason, r.unlock or "–") for r in refused)
    return Table(headers, rows, left=frozenset(headers), title="Refused")
