"""The report of a training run: the pick on one page, then the comparison and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.compare import Comparison, Refused, Row
from chipwise.cost.statement import Statement
from chipwise.prices import Quote
from chipwise.report import charts
from chipwise.report.costs import (
    assumption_parts,
    break_even_section,
    cost_section,
    cost_tile,
    other_terms,
    tornado_part,
)
from chipwise.report.evidence import assumptions_section, evidence_section
from chipwise.report.parts import Decision, Figure, Part, Points, Prose, Report, Section, Table, Tile
from chipwise.report.shown import EVIDENCE, ends, kwh, number, percent, spread, time_ends, time_unit
from chipwise.units import format_count, format_money, format_seconds
from chipwise.workload import metrics_that_matter

MOST_BARS = 14  # rows of a chart: the best
WORDS = frozenset({"chips", "layout", "evidence"})


def training_report(c: Comparison, calibration: str, made: date, statements: Sequence[Statement] = ()) -> Report:
    """The report of a comparison on a training run, by the calibration of that date.

    `statements` are the bills of the leading rows, that of the pick first.
    """
    sections = [_comparison(c)]
    if statements:
        sections += [cost_section(statements), break_even_section(statements[0])]
    sections += [_trade(c), _sensitivity(c, statements), _evidence(c, calibration), _assumptions(c, statements)]
    return Report(c.workload.name, about(c), made, _decision(c, statements), tuple(sections))


def about(c: Comparison) -> str:
    """The run in a line."""
    t = c.workload.train
    run = (f"{format_count(t.samples)} images" if t.samples_unit == "images"
           else f"{format_count(t.tokens)} tokens in sequences of {t.sequence:,}")
    return (f"Training of {c.workload.model.name}: {run}, global batch {t.global_batch:,}, {t.precision}; "
            f"{len(c.rows)} kinds of chips compared by {c.terms.objective}")


def _decision(c: Comparison, statements: Sequence[Statement]) -> Decision:
    answers = [Points("Why", (c.words.why,)), Points("What would flip it", _flips(c))]
    if c.pick is None:
        return Decision("No pick: no public price", c.words.pick, (), tuple(answers), _bars(c))
    answers += [Points("How sure is it", _sure(c, c.pick)), Points("On other terms", other_terms(statements))]
    return Decision(_headline(c.pick), c.words.pick, tuple(_tiles(c.pick, statements)),
                    tuple(a for a in answers if a.items), _bars(c))


def _headline(pick: Row) -> str:
    acc = pick.accelerators
    return f"Pick {acc.count:,} × {acc.chip.name}" + (", rented on demand" if pick.ondemand else "")


def _tiles(row: Row, statements: Sequence[Statement]) -> list[Tile]:
    p, acc = row.prediction, row.accelerators
    cheapest = cost_tile(statements[0]) if statements else None
    cost = (Tile("Cost on demand", format_money(row.ondemand.usd.value), ends(row.ondemand.usd, format_money),
                 str(row.ondemand.price)) if row.ondemand else Tile("Cost on demand", "no public price"))
    return [
        cost, *([cheapest] if cheapest else []),
        Tile("Time to train", format_seconds(p.duration.value), time_ends(p.duration),
             f"{format_seconds(p.step.value)} a step, MFU {percent(p.mfu)}"),
        Tile("Chips", f"{acc.count:,} × {acc.chip.id}", acc.chip.name, f"{p.layout}; {p.stack.name}"),
        *([] if cheapest else [Tile("Energy", kwh(p.kwh.value), ends(p.kwh, kwh), f"{p.watts:,.0f} W a chip")]),
        Tile("Evidence", p.step.evidence, "", EVIDENCE.get(p.step.evidence, "")),
    ]


def _flips(c: Comparison) -> tuple[str, ...]:
    kinds = dict.fromkeys(f.kind for f in c.flips)
    said = tuple(next(f.words for f in c.flips if f.kind == kind) + "." for kind in kinds)
    return said or (c.words.flip,)


def _sure(c: Comparison, pick: Row) -> tuple[str, ...]:
    p = pick.prediction
    said = [f"The time is {p.step.evidence}: {p.step.because or EVIDENCE.get(p.step.evidence, '')}."]
    if pick.ondemand and pick.ondemand.price.stale:
        said.append(f"Its price is of {pick.ondemand.price.offer.date}, more than 90 days old: ask for a quote.")
    mine = pick.by(c.terms.objective)
    near = [str(r.accelerators) for r in c.rows
            if r is not pick and mine and (by := r.by(c.terms.objective)) and by.low <= mine.high]
    said.append(f"The intervals of {', '.join(near[:4])}{' and others' if len(near) > 4 else ''} overlap with it."
                if near else "No other chip's interval reaches it.")
    return tuple(said)


def _bars(c: Comparison, name: str = "fig-costs") -> Figure:
    """Rows by what decides, with intervals."""
    by = c.terms.objective
    rows = [(r, e) for r in c.rows if (e := r.by(by)) is not None]
    if not rows:
        by = "time"
        rows = [(r, r.prediction.duration) for r in c.rows]
    left, rows = len(rows) - MOST_BARS, rows[:MOST_BARS]
    unit, scale = time_unit(max(e.value for _, e in rows)) if by == "time" else ("", 1.0)
    given = [charts.Bar(str(r.accelerators), e.value / scale, e.low / scale, e.high / scale, r is c.pick,
                        e.evidence == "bounded") for r, e in rows]
    axis = {"cost": "US dollars on demand for the whole run", "time": f"{unit} to train",
            "energy": "kWh of the chips for the whole run"}[by]
    show, label = (charts.money, charts.amount) if by == "cost" else (number, number)
    what = {"cost": "Cost of the run on demand", "time": "Time to train", "energy": "Energy of the run"}[by]
    caption = f"{what} by chip, with 90 % intervals" + (f"; the best {MOST_BARS}, {left} more in the table" if left > 0
                                                        else "")
    if any(b.weak for b in given):
        caption += "; hatched: on bounded evidence"
    words = "; ".join(f"{b.label} {label(b.value)} ({label(b.low)} to {label(b.high)})" for b in given)
    return charts.bars(name, caption, f"{what}: {words}", given, axis, show, label)


def _comparison(c: Comparison) -> Section:
    rate = "images/s/chip" if c.workload.train.samples_unit == "images" else "tokens/s/chip"
    headers = ("chips", "layout", "step", "90 %", rate, "MFU", "time", "energy", "on demand", "spot", "evidence")
    table = Table(
        f"All chips that can run it, ranked by {c.terms.objective}", headers, tuple(_cells(r) for r in c.rows), WORDS,
        frozenset(i for i, r in enumerate(c.rows) if r is c.pick),
        ("The pick is highlighted. * marks prices older than 90 days. A layout says how the work is split: dp "
         "replicas, tp tensor, pp pipeline, zero or fsdp sharding of state, mbs the micro-batch.",))
    parts: list[Part] = [Points("What decides this workload", tuple(metrics_that_matter(c.workload))), table]
    if c.refused:
        parts.append(refused_table(c.refused))
    return Section("comparison", "Comparison", tuple(parts))


def _cells(r: Row) -> tuple[str, ...]:
    p, rate = r.prediction, r.tokens_per_s_per_chip.value
    return (str(r.accelerators), str(p.layout), format_seconds(p.step.value), spread(p.step),
            f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}", percent(p.mfu), format_seconds(p.duration.value),
            kwh(p.kwh.value), _usd(r.ondemand, "no public price"), _usd(r.spot, "–"), p.step.evidence)


def _usd(q: Quote | None, missing: str) -> str:
    return missing if q is None else format_money(q.usd.value) + ("*" if q.price.stale else "")


def refused_table(refused: Sequence[Refused]) -> Table:
    """Chips that can't do the work on these terms, and why."""
    rows = tuple((str(r.accelerators or r.chip.id), r.reason, r.unlock or "–") for r in refused)
    headers = ("chips", "why not", "what would unlock it")
    return Table("Refused", headers, rows, frozenset(headers))


def _trade(c: Comparison) -> Section:
    priced = [(r, r.prediction.duration, r.ondemand.usd) for r in c.rows if r.ondemand]
    if len(priced) < 2:
        return Section("trade-off", "Cost against time", (Prose("Fewer than two chips have a public price, so there "
                                                                "is nothing to weigh."),))
    unit, scale = time_unit(sorted(d.value for _, d, _ in priced)[len(priced) // 2])
    dots = [charts.Dot(str(r.accelerators), d.value / scale, d.low / scale, d.high / scale,
                       usd.value, usd.low, usd.high, r is c.pick) for r, d, usd in priced]
    words = "; ".join(f"{d.label}: {format_money(d.y)}, {number(d.x)} {unit}" for d in dots)
    figure = charts.front("fig-front", "Cost on demand against time to train, with 90 % intervals; lower left is "
                          "better", f"Cost against time: {words}", dots, f"{unit} to train",
                          "US dollars on demand", number)
    return Section("trade-off", "Cost against time", (
        Prose("Chips on the dashed front are worth considering: every other is beaten by one that is no dearer and no "
              "slower."), figure))


def _sensitivity(c: Comparison, statements: Sequence[Statement]) -> Section:
    parts: list[Part] = [Prose("The smallest changes found that make another chip the pick, smallest first. A price "
                               "that falls by half counts as large as a batch that doubles.")]
    if c.flips:
        rows = tuple((f.kind, f.winner, f.words) for f in c.flips)
        parts.append(Table("What would flip the decision", ("change of", "new pick", "in words"), rows,
                           frozenset({"change of", "new pick", "in words"})))
    else:
        parts.append(Prose(c.words.flip))
    parts += [figure for s in statements[:1] if (figure := tornado_part(s))]
    return Section("sensitivity", "Sensitivity", tuple(parts))


def _evidence(c: Comparison, calibration: str) -> Section:
    chips = tuple(dict.fromkeys(r.accelerators.chip.id for r in c.rows))
    families = tuple(dict.fromkeys(r.accelerators.chip.family for r in c.rows))
    rows = [(str(r.accelerators), r.prediction.step) for r in c.rows]
    return evidence_section("training", calibration, families, chips, rows)


def _assumptions(c: Comparison, statements: Sequence[Statement]) -> Section:
    prices = [(str(r.accelerators), q.price) for r in c.rows for q in (r.ondemand, r.spot) if q]
    return assumptions_section(prices, c.assumptions, [p for s in statements[:1] for p in assumption_parts(s)])
