"""The report of a fleet plan: what to rent and buy on one page, then the plan by period and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.catalog.calibration import load_calibration
from chipwise.fleet.options import DemandRequest, Placed
from chipwise.fleet.plan import COSTS, Alternative, FleetAnswer, FleetPlan, Running
from chipwise.present.blocks import Cell, Link, Table
from chipwise.present.numbers import dollars, number, percent, plural, spread
from chipwise.prices import STALE_DAYS
from chipwise.report import charts
from chipwise.report.evidence import INTERVALS, coverage, meanings
from chipwise.report.parts import Decision, Figure, Part, Points, Prose, Report, Section, Tile
from chipwise.units import format_bytes, format_money, format_rate, format_seconds

TERMS = {
    "ondemand": "on demand",
    "spot": "spot",
    "year1": "1-year commitment",
    "year3": "3-year commitment",
    "owned": "bought",
    "existing": "there already",
}
MOST_LAYERS = 8  # supplies with a colour of their own


def fleet_report(title: str, answer: FleetAnswer, made: date, asked: DemandRequest | None = None) -> Report:
    """The report of what `fleet plan` found for a demand; `asked` is what the problem was made from."""
    if answer.plan is None:
        return _infeasible(title, answer, made, asked)
    plan = answer.plan
    periods = plan.problem.periods
    about = (
        f"Fleet plan from {periods[0].name} to {periods[-1].name}: "
        f"{plural(len(plan.problem.services), 'service')} and {plural(len(plan.problem.runs), 'training run')}, "
        f"{plural(len(plan.problem.supplies), 'candidate offer')}"
    )
    sections = [
        _plan(plan),
        _where(plan),
        _advice(answer),
        _costs(answer, plan),
        _limits(answer),
        _sensitivity(answer, plan),
        _evidence(asked),
        _assumptions(answer, asked),
    ]
    return Report(title, about, made, _decision(answer, plan), tuple(s for s in sections if s.parts))


def _infeasible(title: str, answer: FleetAnswer, made: date, asked: DemandRequest | None) -> Report:
    relax = tuple(r.words for r in answer.relax)
    proved = all(r.proved for r in answer.relax)
    which = (
        "The fewest constraints that would have"
        if proved
        else ("The time ran out: fewer may do than these constraints that would have")
    )
    decision = Decision(
        "No plan meets this demand",
        f"The demand and the limits contradict each other. {which} to give way, below.",
        (),
        (Points("What has to give way", relax),),
    )
    sections = (_evidence(asked), _assumptions(answer, asked))
    return Report(title, "Fleet plan", made, decision, tuple(s for s in sections if s.parts))


def _chips(plan: FleetPlan, supply: str) -> list[float]:
    each = plan.problem.pool(plan.problem.supply(supply).pool).chips
    return [float(units * each) for units in plan.units(supply)]


def _decision(answer: FleetAnswer, plan: FleetPlan) -> Decision:
    used = sorted(plan.used(), key=lambda s: -sum(_chips(plan, s)))
    most = "; ".join(f"{s}: up to {max(_chips(plan, s)):,.0f} chips" for s in used[:4])
    more = f"; and {len(used) - 4} more" if len(used) > 4 else ""
    mix = sorted(plan.mix().items(), key=lambda pair: -pair[1])
    tiles = [
        Tile(
            "Cost of the plan",
            format_money(plan.usd),
            f"no plan costs less than {format_money(plan.bound)}",
            f"proved by the solver to within {percent(plan.gap, 2)}",
        ),
        Tile(
            "Mix",
            " + ".join(chip for chip, _ in mix[:3]),
            ", ".join(f"{chip} {percent(s)}" for chip, s in mix[:4]),
            "of the chip-hours paid for",
        ),
        Tile("Utilisation", percent(plan.utilisation()), "", "of the chip-hours paid for are at work"),
        Tile("Power", f"{max(plan.kw(), default=0.0):,.0f} kW", "", "at its most"),
        Tile("Carbon", f"{sum(plan.kg()) / 1e3:,.0f} t CO2", "", "over the plan"),
    ]
    answers = [
        Points("Why this mix", tuple(_against(plan, a) for a in answer.alternatives if a.plan is not plan)),
        Points("What would save most", tuple(s.words for s in answer.shadows if s.saves > 0)[:3]),
        Points(
            "If demand, prices or speeds differ",
            tuple(f"{s.name}: {_became(plan, s.plan, s.why)}." for s in answer.sensitivity),
        ),
    ]
    if plan.timed_out:
        answers.append(Points("Caution", ("The solver ran out of time: the gap says how much may be left.",)))
    return Decision(
        f"{_verb(plan)} {_listed([chip for chip, _ in mix])} for {format_money(plan.usd)}",
        f"{most}{more}.",
        tuple(tiles),
        tuple(a for a in answers if a.items),
        _by_period(plan),
    )


def _listed(names: Sequence[str]) -> str:
    """Names in words, the first three of them.

    >>> _listed(["v5p"]), _listed(["v5p", "h100"]), _listed(["v5p", "h100", "h200", "l4"])
    ('v5p', 'v5p and h100', 'v5p, h100, h200 and others')
    """
    some = [*names[:3], *(["others"] if len(names) > 3 else [])]
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}" if some else "nothing"


def _verb(plan: FleetPlan) -> str:
    kinds = {plan.problem.supply(s).terms for s in plan.used()}
    if "owned" not in kinds:
        return "Rent"
    return "Rent and buy" if kinds - {"owned", "existing"} else "Buy"


def _against(plan: FleetPlan, other: Alternative) -> str:
    if other.plan is None:
        return f"{other.name}: no plan meets the demand ({other.why})."
    more = other.plan.usd / plan.usd - 1 if plan.usd else 0.0
    size = f"{percent(abs(more), 1)} {'more' if more >= 0 else 'less'}"
    return f"{other.name} costs {format_money(other.plan.usd)}, {size}."


def _became(plan: FleetPlan, other: FleetPlan | None, why: str) -> str:
    if other is None:
        return f"no plan ({why})"
    change = other.usd / plan.usd - 1 if plan.usd else 0.0
    return f"{format_money(other.usd)} ({change * 100:+.0f} %)".replace("-", "−")


def _layers(plan: FleetPlan) -> dict[str, list[float]]:
    """Chips by supply and period; the small ones together."""
    used = sorted(plan.used(), key=lambda s: -sum(_chips(plan, s)))
    out: dict[str, list[float]] = {}
    for i, supply in enumerate(used):
        label = supply if i < MOST_LAYERS - 1 or len(used) == MOST_LAYERS else "others"
        before = out.get(label, [0.0] * len(plan.problem.periods))
        out[label] = [a + b for a, b in zip(before, _chips(plan, supply), strict=True)]
    return out


def _by_period(plan: FleetPlan) -> Figure:
    names, layers = [p.name for p in plan.problem.periods], _layers(plan)
    words = "; ".join(
        f"{label}: {number(v[0])} at first, {number(max(v))} at most, {number(v[-1])} at last"
        for label, v in layers.items()
    )
    return charts.over_time(
        "fig-plan",
        "Chips by period and terms, the most at once",
        f"Chips held and rented: {words}",
        names,
        layers,
        "chips",
        number,
    )


def _plan(plan: FleetPlan) -> Section:
    used, layers = sorted(plan.used(), key=lambda s: -sum(_chips(plan, s))), _layers(plan)
    orders = [
        (
            plan.problem.periods[h.period].name,
            h.supply,
            f"{h.started:,}",
            f"{h.started * plan.problem.pool(plan.problem.supply(h.supply).pool).chips:,}",
        )
        for h in sorted(plan.holdings, key=lambda h: (h.period, h.supply))
        if h.started
    ]
    parts: list[Part] = [_capacity(plan)]
    if orders:
        parts.append(
            Table(
                ("period", "supply", "units", "chips"),
                tuple(orders),
                left=frozenset({"period", "supply"}),
                title="What to sign or order, and when",
            )
        )
    parts.append(
        Table(
            ("supply", "chip", "terms", "chips at most", "chip-hours", "paid"),
            tuple(_supply_cells(plan, s) for s in used),
            left=frozenset({"supply", "chip", "terms"}),
            title="What the plan uses",
        )
    )
    rows = tuple(
        (
            p.name,
            *(f"{v[t]:,.0f}" for v in layers.values()),
            dollars(plan.by_period()[t]),
            _use(plan, t),
            f"{plan.kw()[t]:,.0f}",
        )
        for t, p in enumerate(plan.problem.periods)
    )
    parts.append(
        Table(
            ("period", *layers, "paid", "used", "kW"),
            rows,
            left=frozenset({"period"}),
            title="Chips by period, the most at once",
            notes=("Used: the share of the chip-hours paid for that are at work.",),
        )
    )
    return Section("plan", "Fleet plan", tuple(parts))


def _supply_cells(plan: FleetPlan, supply: str) -> tuple[str, ...]:
    s = plan.problem.supply(supply)
    pool = plan.problem.pool(s.pool)
    hours = sum(h.unit_hours for h in plan.holdings if h.supply == supply) * pool.chips
    paid = sum(c.usd for c in plan.costs if c.supply == supply and c.period is not None)
    return (
        supply,
        pool.chip,
        TERMS.get(s.terms, s.terms),
        f"{max(_chips(plan, supply)):,.0f}",
        f"{hours:,.0f}",
        dollars(paid),
    )


def _use(plan: FleetPlan, period: int) -> str:
    chips = {p.id: p.chips for p in plan.problem.pools}
    here = [u for u in plan.usage if u.period == period]
    paid = sum(u.paid_hours * chips[u.pool] for u in here)
    return percent(sum(u.used_hours * chips[u.pool] for u in here) / paid) if paid else "–"


def _capacity(plan: FleetPlan) -> Figure:
    """Chips paid for by kind of chip, and those at work."""
    pools, periods = {p.id: p for p in plan.problem.pools}, plan.problem.periods
    layers: dict[str, list[float]] = {}
    work = [0.0] * len(periods)
    for u in plan.usage:
        pool, hours = pools[u.pool], periods[u.period].hours
        layers.setdefault(f"{pool.chip} paid for", [0.0] * len(periods))[u.period] += u.paid_hours * pool.chips / hours
        work[u.period] += u.used_hours * pool.chips / hours
    layers = dict(sorted(layers.items(), key=lambda pair: -sum(pair[1])))
    words = "; ".join(
        f"{p.name}: {number(work[t])} of {number(sum(v[t] for v in layers.values()))} chips at work"
        for t, p in enumerate(periods)
    )
    return charts.over_time(
        "fig-capacity",
        "Demand against capacity: chips paid for and chips at work, means over each period",
        words,
        [p.name for p in periods],
        layers,
        "chips",
        number,
        {"at work": work},
    )


def _where(plan: FleetPlan) -> Section:
    """Which workload runs where."""
    parts: list[Part] = []
    if plan.serving:
        most: dict[tuple[str, str], list[int]] = {}
        for s in plan.serving:
            if s.units:
                most.setdefault((s.service, s.pool), []).append(s.units)
        rows = tuple(
            (service, plan.problem.pool(pool).chip, pool, _between(min(units), max(units)))
            for (service, pool), units in sorted(most.items())
        )
        parts.append(
            Table(
                ("service", "chip", "pool", "units"),
                rows,
                left=frozenset({"service", "chip", "pool"}),
                title="Services: units at work over the plan",
            )
        )
    if plan.running:
        ordered = sorted(plan.running, key=lambda r: (r.run, r.period))
        parts.append(
            Table(
                ("run", "chip", "on", "period", "units", "hours"),
                tuple(_run_cells(plan, r) for r in ordered),
                left=frozenset({"run", "chip", "on", "period"}),
                title="Training runs",
            )
        )
    return Section("where", "What runs where", tuple(parts))


def _between(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _run_cells(plan: FleetPlan, r: Running) -> tuple[str, ...]:
    option = r.option
    on = option.supply if option.supply else f"held units of {option.pool}"
    return (
        r.run,
        plan.problem.pool(option.pool).chip,
        on,
        plan.problem.periods[r.period].name,
        f"{option.units:,}",
        number(r.hours),
    )


def _advice(answer: FleetAnswer) -> Section:
    """Interconnect and storage of what runs where."""
    rows = tuple(
        (
            a.workload,
            a.pool,
            f"{a.accelerators}, {a.split}",
            format_rate(a.network.needed * 8, "b/s"),
            format_rate(a.network.has * 8, "b/s") + ("" if a.network.network != "usual" else " (usual)"),
            "yes" if a.network.enough else "NO",
            format_bytes(a.storage.checkpoint) if a.storage.checkpoint else "–",
        )
        for a in answer.advice
        if a.network.crosses
    )
    parts: list[Part] = []
    if rows:
        words = frozenset({"workload", "on", "chips and split", "enough"})
        parts.append(
            Table(
                ("workload", "on", "chips and split", "a node needs", "it has", "enough", "checkpoint"),
                rows,
                left=words,
                title="Networks that the work needs between nodes, and what is there",
                notes=("Usual: the network of the offer is not known, that of most such nodes is assumed.",),
            )
        )
    parts += [Points(f"{a.workload} on {a.pool}", a.words) for a in answer.advice]
    return Section("interconnect", "Interconnect and storage", tuple(parts))


def _costs(answer: FleetAnswer, plan: FleetPlan) -> Section:
    periods = plan.problem.periods
    kinds = list(plan.by_kind())
    layers = {
        kind: [sum(c.usd for c in plan.costs if c.kind == kind and c.period == t) for t in range(len(periods))]
        for kind in kinds
    }
    words = "; ".join(f"{kind} {dollars(usd)}" for kind, usd in plan.by_kind().items())
    parts: list[Part] = [
        charts.over_time(
            "fig-paid",
            "What is paid in each period, by kind",
            f"Over the plan: {words}",
            [p.name for p in periods],
            {k: v for k, v in layers.items() if any(v)},
            "US dollars",
            charts.money,
        )
    ]
    found = [a for a in answer.alternatives if a.plan is not None]
    if len(found) > 1:
        parts.append(_alternatives(plan, found))
    names = [a.name for a in found] or ["the plan"]
    plans = [a.plan for a in found if a.plan] or [plan]
    every = [kind for kind in COSTS if any(kind in p.by_kind() for p in plans)]
    rows = [(kind, *(dollars(p.by_kind().get(kind, 0.0)) for p in plans)) for kind in every]
    rows += [
        ("total", *(format_money(p.usd) for p in plans)),
        ("proved gap", *(percent(p.gap, 2) for p in plans)),
        ("utilisation", *(percent(p.utilisation()) for p in plans)),
        ("most kW", *(f"{max(p.kw(), default=0.0):,.0f}" for p in plans)),
        ("t CO2", *(f"{sum(p.kg()) / 1e3:,.0f}" for p in plans)),
    ]
    parts.append(
        Table(
            ("kind", *names),
            tuple(rows),
            left=frozenset({"kind"}),
            strong=frozenset({len(every)}),
            title="Cost of the plans side by side",
        )
    )
    if plan.after():
        parts.append(
            Prose(
                f"{dollars(plan.after())} of the total fall after the plan's end: what commitments still "
                "ask for, less what purchases are then worth."
            )
        )
    why = tuple(f"{a.name}: {a.why}" for a in answer.alternatives if a.plan is None)
    if why:
        parts.append(Points("Plans that do not exist", why))
    return Section("costs", "What it costs", tuple(parts))


def _alternatives(plan: FleetPlan, found: Sequence[Alternative]) -> Figure:
    bars = [
        charts.Bar(a.name, a.plan.usd, min(a.plan.bound, a.plan.usd), a.plan.usd, a.plan.usd == plan.usd)
        for a in found
        if a.plan
    ]
    words = "; ".join(f"{b.label} {format_money(b.value)}" for b in bars)
    return charts.bars(
        "fig-alternatives",
        "Cost of the plan with all chips allowed and with some left out; lines reach down to what no plan can undercut",
        f"Cost of the plans: {words}",
        bars,
        "US dollars over the plan",
    )


def _limits(answer: FleetAnswer) -> Section:
    rows = tuple(
        (
            s.limit,
            f"{number(s.amount)} {s.unit}".strip(),
            format_money(s.saves) if s.saves > 0 else "–",
            "yes" if s.proved else "no",
            s.words,
        )
        for s in answer.shadows
    )
    parts: tuple[Part, ...] = ()
    if rows:
        parts = (
            Table(
                ("limit", "more", "saves", "proved", "in words"),
                rows,
                left=frozenset({"limit", "proved", "in words"}),
                title="What loosening one limit would save",
                notes=("Each was solved anew. Proved: the saving is larger than what the gaps leave open.",),
            ),
        )
    return Section("limits", "Limits that cost money", parts)


def _sensitivity(answer: FleetAnswer, plan: FleetPlan) -> Section:
    solved = [s for s in answer.sensitivity if s.plan is not None]
    parts: list[Part] = []
    if solved:
        bars = [charts.Bar("as planned", plan.usd, plan.usd, plan.usd, True)]
        bars += [charts.Bar(s.name, s.plan.usd, s.plan.usd, s.plan.usd) for s in solved if s.plan]
        words = "; ".join(f"{b.label} {format_money(b.value)}" for b in bars)
        parts.append(
            charts.bars(
                "fig-sensitivity",
                "Cost of the best plan when demand, prices or speeds differ",
                f"Cost of the best plan: {words}",
                bars,
                "US dollars over the plan",
            )
        )
    if answer.sensitivity:
        parts.append(
            Table(
                ("change", "cost", "what changes"),
                tuple((s.name, _became(plan, s.plan, s.why), s.change or "–") for s in answer.sensitivity),
                left=frozenset({"change", "what changes"}),
                title="The plan solved anew",
            )
        )
    return Section("sensitivity", "Sensitivity", tuple(parts))


def _evidence(asked: DemandRequest | None) -> Section:
    """How fast the work is taken to be on every chip, and how sure that is."""
    if asked is None or not asked.placed:
        return Section("evidence", "Evidence and error bars", ())
    placed = list(asked.placed.values())
    rows = tuple(
        (p.work, str(p.accelerators), p.layout, *_pace(p), p.estimate.evidence, p.estimate.because or "–")
        for p in placed
    )
    kinds = [kind for kind, some in (("training", asked.problem.runs), ("inference", asked.problem.services)) if some]
    calibration = load_calibration()
    dates = {"training": calibration.training.date, "inference": calibration.serving.date}
    words = ("work", "chips", "split", "evidence", "because")
    return Section(
        "evidence",
        "Evidence and error bars",
        (
            Prose(INTERVALS),
            *(part for kind in kinds for part in coverage(kind, dates[kind])),
            Table(
                ("work", "chips", "split", "takes or carries", "90 %", "evidence", "because"),
                rows,
                left=frozenset(words),
                title="What each workload takes on each chip",
            ),
            meanings(p.estimate for p in placed),
        ),
    )


def _pace(p: Placed) -> tuple[str, str]:
    """The time of a run, or the load that a replica carries, and its interval."""
    if p.prediction is not None:
        return format_seconds(p.estimate.value), spread(p.estimate)
    return f"{number(p.estimate.value)} requests/s", spread(p.estimate)


def _price_rows(asked: DemandRequest) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for s in asked.problem.supplies:
        o = asked.origins[s.id]
        price = (
            f"${o.usd_per_chip_hour:.2f}"
            if o.usd_per_chip_hour
            else f"{format_money(s.capex)} a server"
            if s.capex
            else "–"
        )
        rows.append(
            (
                s.id,
                o.cloud or "own",
                o.region or "–",
                o.instance or "–",
                price,
                f"{o.date} stale" if o.stale else o.date or "–",
                Link(o.source, o.source),
            )
        )
    stale = sum(asked.origins[s.id].stale for s in asked.problem.supplies)
    notes = (f"Stale prices are more than {STALE_DAYS} days old: {stale} of {len(rows)}.",) if stale else ()
    words = frozenset({"supply", "cloud", "region", "instance", "dated", "source"})
    return Table(
        ("supply", "cloud", "region", "instance", "$/chip-h", "dated", "source"),
        tuple(rows),
        left=words,
        title="Prices used",
        notes=notes,
    )


def _assumptions(answer: FleetAnswer, asked: DemandRequest | None) -> Section:
    parts: list[Part] = [Points("Assumed in this plan", answer.assumptions)] if answer.assumptions else []
    if answer.refused:
        rows = tuple((work or "all", on, why) for work, on, why in answer.refused)
        parts.append(Table(("work", "on", "why"), rows, left=frozenset({"work", "on", "why"}), title="Left out"))
    if asked is not None:
        parts.append(_price_rows(asked))
    return Section("assumptions", "Assumptions and sources", tuple(parts))
