"""The report of a comparison: the pick on one page, then the comparison and what it rests on.

`training` and `service` say what differs between a run and a service, as a `Subject`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.compare import AnyComparison, Flip, TrainingComparison, TrainingRow
from chipwise.compare.columns import FLIPS, REFUSED
from chipwise.compare.comparison import AnyRow
from chipwise.compare.view import criteria, ranked
from chipwise.cost.statement import ONDEMAND, Statement
from chipwise.predict.estimate import Estimate
from chipwise.present.columns import narrowed, renamed, table, without
from chipwise.present.numbers import interval, number, plural, time_unit
from chipwise.prices import STALE_DAYS, Price
from chipwise.report import charts
from chipwise.report.costs import (
    FOR,
    assumption_parts,
    break_even_section,
    cheapest_tile,
    cost_section,
    cost_tile,
    energy_tile,
    standing,
    tornado_part,
)
from chipwise.report.evidence import assumptions_section, evidence_section
from chipwise.report.front import Dot, front
from chipwise.report.parts import EVIDENCE, Decision, Figure, Part, Points, Prose, Report, Section, Tile
from chipwise.report.service import service_subject
from chipwise.report.subject import Subject
from chipwise.report.training import training_subject
from chipwise.units import format_money

PRINTED_COLUMNS = 11  # of the comparison's table that fit on a printed page
MOST_BARS = 10  # rows of the first page's chart: the best


def comparison_report(c: AnyComparison, statements: Sequence[Statement] = ()) -> Report:
    """The report of a comparison; `statements` are the bills of the leading rows, that of the pick first."""
    subject = training_subject(c) if isinstance(c, TrainingComparison) else service_subject(c)
    sections = [_comparison(c, subject)]
    if statements:
        sections += [cost_section(statements), break_even_section(statements[0])]
    sections += [
        _front(c, subject),
        flip_section(c.flips, c.words.flip, statements),
        _evidence(c, subject),
        _assumptions(c, statements),
    ]
    about = f"{subject.about}; {plural(len(c.rows), 'kind')} of chips compared by {c.terms.objective}"
    made = c.comparer.knowledge.today
    return Report(c.workload.name, about, made, _decision(c, subject, statements), tuple(sections))


def _decision(c: AnyComparison, subject: Subject, statements: Sequence[Statement]) -> Decision:
    """The first page."""
    sellers = (c.words.sellers,) if c.words.sellers else ()
    answers = [
        Points("Why", (_why(c),)),
        Points("Who sells it", sellers),
        Points("What would change this", flip_points(c.flips, c.words.flip)),
    ]
    pick, by, figure = c.pick, c.terms.objective, _bars(c, subject)
    if pick is None:
        return Decision("No pick: no public price", c.words.pick, (), tuple(a for a in answers if a.items), figure)
    others = [(str(r.accelerators), r.by(by)) for r in c.rows if r is not pick]
    price = pick.ondemand.price if pick.ondemand else None
    answers += [
        Points("Confidence", how_sure(subject.estimate(pick), price, pick.by(by), others)),
        Points("Its place among all options", standing(statements, by)),
    ]
    acc = pick.accelerators
    headline = f"Pick {acc.count:,} × {acc.chip.name}" + (", rented on demand" if pick.ondemand else "")
    tiles = (*_money(pick, subject, statements), *subject.tiles(pick))
    summary = _summary(c, subject, statements)
    return Decision(headline, summary, tiles, tuple(a for a in answers if a.items), figure)


def _rent(pick: AnyRow, subject: Subject) -> str:
    return f"{format_money(pick.ondemand.usd.value)}{subject.per}" if pick.ondemand else "no public price"


def _money(pick: AnyRow, subject: Subject, statements: Sequence[Statement]) -> list[Tile]:
    """Cost on demand, every cost counted; then the cheaper pricing model of the same chips, else their energy."""
    rent = _rent(pick, subject)
    cost = cost_tile(statements[0], rent) if statements else None
    if cost is None:
        usd = pick.ondemand.usd if pick.ondemand else None
        return [Tile("Rented chips on demand", rent, interval(usd, format_money) if usd else "")]
    more = cheapest_tile(statements[0]) or energy_tile(statements[0])
    return [cost, *([more] if more else [])]


def _summary(c: AnyComparison, subject: Subject, statements: Sequence[Statement]) -> str:
    """What the pick takes and costs, as the first page counts it, with what is to be said of its rank."""
    pick = c.pick
    bill = statements[0].by(ONDEMAND) if statements else None
    if pick is None or bill is None or pick.ondemand is None:
        layout = f" with {pick.prediction.layout}" if isinstance(pick, TrainingRow) else ""
        return c.words.pick.replace(layout, "") if layout else c.words.pick
    price, basis = str(pick.ondemand.price), FOR[statements[0].basis]
    rest = c.words.pick.partition(price)[2].partition(". ")[2]  # behind the sentence with its price
    spent = f"{format_money(bill.total)} for {basis} on demand with every cost counted, of which its chips are rented"
    return f"{pick.accelerators}: {spent} for {_rent(pick, subject)} at {price}. {rest}".strip()


def _why(c: AnyComparison) -> str:
    """Why it is the pick; of costs, that those of rented chips decide."""
    if c.terms.objective == "cost" and c.words.why.startswith("It costs "):
        return f"Renting its chips costs {c.words.why.removeprefix('It costs ')}"
    return c.words.why


def _bars(c: AnyComparison, subject: Subject) -> Figure:
    """Chips by what decides, with intervals."""
    by = c.terms.objective
    rows = [(str(r.accelerators), e, r is c.pick) for r in c.rows if (e := r.by(by)) is not None]
    if not rows:
        by, rows = "time", [(str(r.accelerators), subject.seconds(r), False) for r in c.rows]
    most = max([MOST_BARS, *(i for i, (_, _, pick) in enumerate(rows, 1) if pick)])  # bounded rows may rank above it
    left, rows = len(rows) - most, rows[:most]
    unit, scale = time_unit(max(e.value for _, e, _ in rows)) if by == "time" else ("", 1.0)
    bars = [
        charts.Bar(name, e.value / scale, e.low / scale, e.high / scale, pick, e.evidence == "bounded")
        for name, e, pick in rows
    ]
    show, label = (charts.money, charts.amount) if by == "cost" else (number, number)
    what, axis = subject.bars[by]
    caption = f"{what} by chip, with 90 % intervals"
    if left > 0:
        caption += f"; the best {most}, {left} more in the table"
    if any(b.weak for b in bars):
        caption += "; hatched: on bounded evidence"
    words = "; ".join(f"{b.label} {label(b.value)} ({label(b.low)} to {label(b.high)})" for b in bars)
    named = axis.format(unit)
    return charts.bars(charts.Labels("fig-costs", caption, f"{what}, {named}: {words}"), bars, named, show, label)


def _comparison(c: AnyComparison, subject: Subject) -> Section:
    every = ranked(
        c,
        numbered=False,
        title=f"All chips that can {subject.table}, ranked by {c.terms.objective}",
        notes=(
            "The pick is highlighted; prices are those of rented chips alone. "
            f"* marks prices older than {STALE_DAYS} days. {subject.note}",
        ),
    )
    every = renamed(every, {"on demand": "chips on demand", "spot": "chips on spot"})
    if c.terms.objective != "energy":
        every = without(every, "chip kWh")  # the report counts energy at the meter
    narrow = narrowed(every, PRINTED_COLUMNS)
    parts: list[Part] = [Points("What decides this workload", tuple(criteria(c))), narrow]
    if c.refused:
        parts.append(table(REFUSED, c.refused, title="Refused"))
    return Section("comparison", "Comparison", tuple(parts))


def _front(c: AnyComparison, subject: Subject) -> Section:
    """Cost against time."""
    title = "Cost against time"
    rows = [(row, row.ondemand.usd, subject.seconds(row)) for row in c.rows if row.ondemand]
    if len(rows) < 2:
        prose = Prose("Fewer than two chips have a public price, so there is nothing to weigh.")
        return Section("trade-off", title, (prose,))
    ordered = sorted(seconds.value for _, _, seconds in rows)
    unit, scale = time_unit(ordered[len(ordered) // 2])
    dots = [
        Dot(
            str(row.accelerators),
            seconds.value / scale,
            seconds.low / scale,
            seconds.high / scale,
            usd.value,
            usd.low,
            usd.high,
            row is c.pick,
        )
        for row, usd, seconds in rows
    ]
    words = "; ".join(f"{d.label}: {format_money(d.y)}{subject.per}, {number(d.x)} {unit}" for d in dots)
    labels = charts.Labels(
        "fig-front",
        f"Rented chips on demand{subject.per} against the time {subject.time}, with 90 % intervals; lower left is "
        "better",
        f"Cost against time: {words}",
    )
    figure = front(labels, dots, f"{unit} {subject.time}", f"US dollars{subject.per}", number)
    prose = Prose(
        "Chips on the dashed front are worth considering: every other is beaten by one that is no more expensive and "
        "no slower."
    )
    return Section("trade-off", title, (prose, figure))


def _evidence(c: AnyComparison, subject: Subject) -> Section:
    chips = tuple(dict.fromkeys(r.accelerators.chip.id for r in c.rows))
    families = tuple(dict.fromkeys(r.accelerators.chip.family for r in c.rows))
    rows = [(str(r.accelerators), subject.estimate(r)) for r in c.rows]
    return evidence_section(subject.kind, subject.calibration, families, chips, rows)


def _assumptions(c: AnyComparison, statements: Sequence[Statement]) -> Section:
    prices = [(str(r.accelerators), q.price) for r in c.rows for q in (r.ondemand, r.spot) if q]
    return assumptions_section(prices, c.assumptions, [p for s in statements[:1] for p in assumption_parts(s)])


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
        parts.append(table(FLIPS, flips, title="What would change the decision"))
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
