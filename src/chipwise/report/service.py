"""The report of a model that is served: the pick on one page, then the comparison and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.compare.serving import ServingComparison
from chipwise.compare.serving_rows import Rent, ServingRow, promised
from chipwise.cost.statement import Statement
from chipwise.predict.estimate import Estimate
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
from chipwise.report.shown import EVIDENCE, ends, number, percent, spread, time_ends, time_unit
from chipwise.report.training import MOST_BARS, refused_table
from chipwise.units import format_count, format_money, format_seconds
from chipwise.workload.serve_criteria import what_decides_serving


def service_report(c: ServingComparison, made: date, statements: Sequence[Statement] = ()) -> Report:
    """The report of a comparison on a model that is served; `statements` as for a training run."""
    sections = [_comparison(c)]
    if statements:
        sections += [cost_section(statements), break_even_section(statements[0])]
    sections += [_trade(c), _sensitivity(c, statements), _evidence(c), _assumptions(c, statements)]
    return Report(c.workload.name, about(c), made, _decision(c, statements), tuple(sections))


def about(c: ServingComparison) -> str:
    """What is served, in a line."""
    s, demand = c.workload.serve, c.market.demand
    work = str(demand)
    if demand.kind == "job":
        work = f"{format_count(s.requests)} requests" if s.requests else "an offline job"
        work += f" within {format_seconds(s.deadline_s)}" if s.deadline_s else " without a deadline"
    lengths = f", {s.input.mean:,.0f} tokens in and {s.output.mean:,.0f} out on average" if c.rows[0].writes else ""
    promise = f"; promised: {', '.join(map(str, s.slo))}" if s.slo else "; no promise of latency"
    return (f"Serving of {c.workload.model.name}: {work}{lengths}, {s.precision}{promise}; {len(c.rows)} kinds of "
            f"chips compared by {c.terms.objective}")


def _decision(c: ServingComparison, statements: Sequence[Statement]) -> Decision:
    answers = [Points("Why", (c.words.why,)), Points("What would flip it", _flips(c))]
    if c.pick is None:
        return Decision("No pick: no public price", c.words.pick, (), tuple(answers), _bars(c))
    answers += [Points("How sure is it", _sure(c, c.pick)), Points("On other terms", other_terms(statements))]
    return Decision(_headline(c.pick), c.words.pick, tuple(_tiles(c.pick, statements)),
                    tuple(a for a in answers if a.items), _bars(c))


def _headline(pick: ServingRow) -> str:
    acc = pick.accelerators
    return f"Pick {acc.count:,} × {acc.chip.name}" + (", rented on demand" if pick.ondemand else "")


def _tiles(r: ServingRow, statements: Sequence[Statement]) -> list[Tile]:
    million = r.per_million(r.ondemand)
    tiles = [Tile("Cost on demand", "no public price")]
    if r.ondemand:
        usd = r.ondemand.usd_h
        tiles = [Tile("Cost on demand", f"{format_money(usd.value)} an hour", ends(usd, format_money),
                      str(r.ondemand.price))]
    tiles += [tile for s in statements[:1] if (tile := cost_tile(s))]
    if million is not None:
        tiles.append(Tile(f"Cost of a million {_unit(r)}", format_money(million.value), ends(million, format_money)))
    tiles.append(Tile("Chips", f"{r.accelerators.count:,} × {r.accelerators.chip.id}", r.accelerators.chip.name,
                      f"{r.fleet.engines:,} engines of {r.split}; {r.served.service.place.stack.name}"))
    tiles += [Tile(name, format_seconds(e.value), time_ends(e)) for name, e in promised(r)[:2]]
    if r.headroom is not None:
        tiles.append(Tile("Room above the demand", percent(r.headroom.value), _room(r.headroom), f"until {r.limit}"))
    return [*tiles, Tile("Evidence", r.evidence, "", r.load.because)]


def _unit(r: ServingRow) -> str:
    return "tokens" if r.writes else r.served.service.place.workload.serve.unit


def _room(e: Estimate) -> str:
    return f"{e.low * 100:+.0f} to {e.high * 100:+.0f} %".replace("-", "−")


def _flips(c: ServingComparison) -> tuple[str, ...]:
    kinds = dict.fromkeys(f.kind for f in c.flips)
    said = tuple(next(f.words for f in c.flips if f.kind == kind) + "." for kind in kinds)
    return said or (c.words.flip,)


def _sure(c: ServingComparison, pick: ServingRow) -> tuple[str, ...]:
    said = [f"Times are {pick.evidence}: {pick.load.because or EVIDENCE.get(pick.evidence, '')}."]
    if pick.ondemand and pick.ondemand.price.stale:
        said.append(f"Its price is of {pick.ondemand.price.offer.date}, more than 90 days old: ask for a quote.")
    mine = pick.by(c.terms.objective)
    near = [str(r.accelerators) for r in c.rows
            if r is not pick and mine and (by := r.by(c.terms.objective)) and by.low <= mine.high]
    said.append(f"The intervals of {', '.join(near[:4])}{' and others' if len(near) > 4 else ''} overlap with it."
                if near else "No other chip's interval reaches it.")
    return tuple(said)


def _bars(c: ServingComparison) -> Figure:
    by = c.terms.objective
    rows = [(r, e) for r in c.rows if (e := r.by(by)) is not None]
    if not rows:
        by = "time"
        rows = [(r, r.seconds) for r in c.rows]
    left, rows = len(rows) - MOST_BARS, rows[:MOST_BARS]
    unit, scale = time_unit(max(e.value for _, e in rows)) if by == "time" else ("", 1.0)
    given = [charts.Bar(str(r.accelerators), e.value / scale, e.low / scale, e.high / scale, r is c.pick,
                        e.evidence == "bounded") for r, e in rows]
    job = c.market.demand.kind == "job"
    cost = f"US dollars a million {_unit(rows[0][0])}, on demand" if job else "US dollars an hour, on demand"
    axis = {"cost": cost, "time": f"{unit} for the job" if job else f"{unit} a request, median",
            "energy": f"joules of one of the {_unit(rows[0][0])}"}[by]
    show, label = (charts.money, charts.amount) if by == "cost" else (number, number)
    what = {"cost": "Cost on demand", "time": "Time", "energy": "Energy"}[by]
    caption = f"{what} by chip, with 90 % intervals" + (f"; the best {MOST_BARS}, {left} more in the table" if left > 0
                                                        else "")
    if any(b.weak for b in given):
        caption += "; hatched: on bounded evidence"
    words = "; ".join(f"{b.label} {label(b.value)}" for b in given)
    return charts.bars("fig-costs", caption, f"{what}, {axis}: {words}", given, axis, show, label)


def _comparison(c: ServingComparison) -> Section:
    first = c.rows[0]
    names = [name for name, _ in promised(first)]
    headers = ("chips", "engines", *names, f"{_unit(first)}/s", "room", "$/h", f"$/M {_unit(first)}", "$/h on spot",
               "evidence")
    table = Table(
        f"All chips that carry it, ranked by {c.terms.objective}", headers, tuple(_cells(r, names) for r in c.rows),
        frozenset({"chips", "engines", "evidence"}), frozenset(i for i, r in enumerate(c.rows) if r is c.pick),
        ("The pick is highlighted. * marks prices older than 90 days. Room is what the engines carry beyond the "
         "demand.",))
    parts: list[Part] = [Points("What decides this workload", tuple(what_decides_serving(c.workload))), table]
    if c.refused:
        parts.append(refused_table(c.refused))
    return Section("comparison", "Comparison", tuple(parts))


def _cells(r: ServingRow, names: list[str]) -> tuple[str, ...]:
    by = dict(promised(r))
    times = [f"{format_seconds(by[n].value)} ({spread(by[n])})" if n in by and by[n].value else "–" for n in names]
    million = r.per_million(r.ondemand)
    rate = r.unit_rate.value
    return (str(r.accelerators), f"{r.fleet.engines:,} of {r.split}", *times,
            f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
            "–" if r.headroom is None else f"{percent(r.headroom.value)} ({_room(r.headroom)})",
            _usd(r.ondemand, "no public price"), "–" if million is None else format_money(million.value),
            _usd(r.spot, "–"), r.evidence)


def _usd(rent: Rent | None, missing: str) -> str:
    return missing if rent is None else format_money(rent.usd_h.value) + ("*" if rent.price.stale else "")


def _trade(c: ServingComparison) -> Section:
    priced = [(r, r.seconds, r.ondemand.usd_h) for r in c.rows if r.ondemand]
    if len(priced) < 2:
        return Section("trade-off", "Cost against time", (Prose("Fewer than two chips have a public price, so there "
                                                                "is nothing to weigh."),))
    unit, scale = time_unit(max(s.value for _, s, _ in priced))
    dots = [charts.Dot(str(r.accelerators), s.value / scale, s.low / scale, s.high / scale,
                       usd.value, usd.low, usd.high, r is c.pick) for r, s, usd in priced]
    what = "to finish the job" if c.market.demand.kind == "job" else "of a whole answer, median"
    words = "; ".join(f"{d.label}: {format_money(d.y)} an hour, {number(d.x)} {unit}" for d in dots)
    figure = charts.front("fig-front", f"Cost an hour on demand against the time {what}, with 90 % intervals; lower "
                          "left is better", f"Cost against time: {words}", dots, f"{unit} {what}",
                          "US dollars an hour", number)
    return Section("trade-off", "Cost against time", (
        Prose("Chips on the dashed front are worth considering: every other is beaten by one that is no dearer and no "
              "slower."), figure))


def _sensitivity(c: ServingComparison, statements: Sequence[Statement]) -> Section:
    parts: list[Part] = [Prose("The smallest changes found that make another chip the pick, smallest first.")]
    if c.flips:
        parts.append(Table("What would flip the decision", ("change of", "new pick", "in words"),
                           tuple((f.kind, f.winner, f.words) for f in c.flips),
                           frozenset({"change of", "new pick", "in words"})))
    else:
        parts.append(Prose(c.words.flip))
    parts += [figure for s in statements[:1] if (figure := tornado_part(s))]
    return Section("sensitivity", "Sensitivity", tuple(parts))


def _evidence(c: ServingComparison) -> Section:
    chips = tuple(dict.fromkeys(r.accelerators.chip.id for r in c.rows))
    families = tuple(dict.fromkeys(r.accelerators.chip.family for r in c.rows))
    return evidence_section("inference", c.market.taught.date, families, chips,
                            [(str(r.accelerators), r.load) for r in c.rows])


def _assumptions(c: ServingComparison, statements: Sequence[Statement]) -> Section:
    prices = [(str(r.accelerators), q.price) for r in c.rows for q in (r.ondemand, r.spot) if q]
    return assumptions_section(prices, c.assumptions, [p for s in statements[:1] for p in assumption_parts(s)])
