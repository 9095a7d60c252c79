"""`chipwise cost` for people: terms side by side, then what each total is made of and rests on."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

from chipwise.present.blocks import Block, Table, Text
from chipwise.units import HOUR, format_money, format_seconds

if TYPE_CHECKING:
    from chipwise.catalog.economics import Assumption
    from chipwise.cost import Costs, Statement, TermCost
    from chipwise.cost.statement import Purchase, Source, Spread

TORNADO = 8  # inputs shown, the largest swing first
ROLES = {  # inputs that are no assumption of their own name, in words
    "run_time": "time of the prediction",
    "chips_needed": "chips the prediction needs",
    "price": "price drift",
    "server_usd": "price of a server",
    "network_usd": "network of a server",
    "port_weeks": "weeks of the port",
    "wait_s": "spot_wait_s",
}
PER = {"run": "a run", "job": "a job", "month": "a month"}


def blocks(c: Costs) -> list[Block]:
    """The whole answer."""
    from chipwise.compare.view import refusals

    head = f"{c.workload.name}: cost of {PER[c.statements[0].basis]}; prices: {c.asked.knowledge.prices.origin}"
    out: list[Block] = [Text(head), _side_by_side(c)]
    out += [Text(line) for line in _best(c)]
    for s in c.statements:
        out += _details(s)
    if c.refused:
        out += [Text("Refused", True), *(Text(f"  {line}") for line in refusals(c.refused))]
    out += [Text("Assumptions", True), *([_assumed(c)] if any(s.used for s in c.statements) else [])]
    notes = dict.fromkeys(note for s in c.statements for note in s.notes)
    return [*out, Text(""), *(Text(f"  {note}") for note in (*notes, *_stale(c)))]


def _side_by_side(c: Costs) -> Table:
    from chipwise.cost import KINDS

    every = [(s, t) for s in c.statements for t in s.terms]
    units = [name for name in dict.fromkeys(n for _, t in every for n, _ in t.per) if name != c.statements[0].basis]
    basis = c.statements[0].basis
    prices = [f"$/{name}" for name in units]
    headers = [
        "chips",
        "terms",
        f"$/{basis}",
        "p50",
        "p10 to p90",
        *prices,
        "time",
        "time p90",
        "kWh",
        "kg CO2",
        "$/chip-h",
        "dated",
        "from",
        "evidence",
    ]
    found: list[tuple[float, list[str]]] = []
    for s in c.statements:
        name = str(s.accelerators)
        mine = [(t.kind, t.total, [name, *_cells(t, units), s.evidence]) for t in s.terms]
        mine += [(m.kind, inf, [name, m.kind, "-", *[""] * (len(headers) - 5), m.reason, ""]) for m in s.missing]
        found += [(usd, row) for _, usd, row in sorted(mine, key=lambda each: KINDS.index(each[0]))]
    rows, totals = [row for _, row in found], [usd for usd, _ in found]
    strong = frozenset({totals.index(min(totals))}) if every else frozenset()
    return Table(
        headers,
        rows,
        frozenset({"chips", "terms", "dated", "from", "evidence"}),
        strong,
        under=("from", "dated"),
        drop=("kg CO2", "kWh", "time p90", "evidence", *prices, "p50"),
    )


def _cells(t: TermCost, units: list[str]) -> list[str]:
    per = dict(t.per)
    return [
        t.kind,
        format_money(t.total),
        _money(t.usd.p50),
        _range(t.usd),
        *(format_money(per[u]) if u in per else "-" for u in units),
        format_seconds(t.hours * HOUR),
        _time(t.hours_range.p90),
        _digits(t.kwh),
        _digits(t.kg_co2),
        f"{t.source.usd_per_chip_hour:.2f}{'*' if t.source.stale else ''}",
        t.source.date,
        str(t.source),
    ]


def _best(c: Costs) -> list[str]:
    """The cheapest of all, in one line."""
    every = [(t.total, s, t) for s in c.statements for t in s.terms]
    if not every:
        return ["", "No terms have a public price: nothing is invented."]
    _, s, t = min(every, key=lambda each: each[0])
    return [
        "",
        f"Cheapest: {s.accelerators} {t.kind} at {format_money(t.total)} ({_range(t.usd)} eight times in ten), "
        f"from {t.source}.",
    ]


def _details(s: Statement) -> list[Block]:
    name = str(s.accelerators)
    out: list[Block] = []
    if s.terms:
        out.append(_split(s, name))
        out.append(_course(s, name) if s.basis == "run" else _away(s, name))
    out += _commitments(s, name)
    if s.purchase is not None:
        out += _purchase(s.purchase, name)
    p = s.port
    share = f", {format_money(p.usd_run)} for each {s.basis} of {p.runs:g}" if p.weeks else ""
    weeks = f"{p.weeks:g} engineer-week{'s' * (p.weeks != 1)}"
    out += [
        Text(f"Port to {name}: {weeks} ({p.weeks_low:g} to {p.weeks_high:g}){share}", True),
        *(Text(f"  {reason}") for reason in p.reasons),
    ]
    best = s.cheapest
    if best is not None and best.tornado:
        out.append(_tornado(best, name))
    return out


def _split(s: Statement, name: str) -> Table:
    from chipwise.cost import PARTS

    rows = [[t.kind, *(format_money(getattr(t.split, part)) for part in PARTS), format_money(t.total)] for t in s.terms]
    return Table(["terms", *PARTS, "total"], rows, frozenset({"terms"}), title=f"What {name} is paid for")


def _course(s: Statement, name: str) -> Table:
    """Checkpoints and interruptions of a run."""
    from chipwise.cost.spot import daly, young

    headers = [
        "terms",
        "stops every",
        "checkpoint",
        "interval",
        "Young",
        "Daly",
        "checkpoints",
        "lost",
        "restarts",
        "waits",
        "stretch",
        "expected",
        "p10",
        "p50",
        "p90",
    ]
    rows = []
    for t in s.terms:
        e = t.expected
        if e is None:
            continue
        write, mean = e.checkpoints_s / e.segments, HOUR / t.interruptions_h if t.interruptions_h else 0.0
        known = [young(write, mean), daly(write, mean)] if mean else []
        rows.append(
            [
                t.kind,
                format_seconds(mean) if mean else "never",
                format_seconds(write),
                format_seconds(e.interval_s),
                *([format_seconds(max(0.0, each)) for each in known] or ["-", "-"]),
                format_seconds(e.checkpoints_s),
                format_seconds(e.lost_s),
                format_seconds(e.restarts_s),
                format_seconds(e.wait_s),
                f"{(e.stretch - 1) * 100:+.1f}%",
                format_seconds(e.wall_s),
                *(_time(x) for x in (t.hours_range.p10, t.hours_range.p50, t.hours_range.p90)),
            ]
        )
    return Table(
        headers,
        rows,
        frozenset({"terms"}),
        title=f"Checkpoints, failures and interruptions on {name}",
        drop=("Young", "Daly", "waits", "restarts", "lost", "checkpoints", "p10", "p50", "checkpoint"),
    )


def _away(s: Statement, name: str) -> Table:
    """Interruptions of a service."""
    rows = [
        [t.kind, format_seconds(HOUR / t.interruptions_h) if t.interruptions_h else "never", f"{t.chip_hours:,.0f}"]
        for t in s.terms
    ]
    return Table(
        ["terms", "a replica stops every", "chip-hours paid"],
        rows,
        frozenset({"terms"}),
        title=f"Failures and interruptions on {name}",
    )


def _commitments(s: Statement, name: str) -> list[Block]:
    if not s.commitments:
        return []
    rows = [
        [
            f"{b.commitment.years} year{'s' * (b.commitment.years > 1)}",
            " ".join(x for x in (b.commitment.cloud, b.commitment.region, b.commitment.instance) if x),
            f"{b.commitment.usd_per_chip_hour:.2f}{'*' if b.stale else ''}",
            f"{b.ondemand_usd_per_chip_hour:.2f}",
            b.against,
            _share(b.utilisation),
        ]
        for b in s.commitments
    ]
    return [
        Table(
            ["years", "from", "$/chip-h", "on demand", "of", "cheaper from"],
            rows,
            frozenset({"years", "from", "of"}),
            title=f"Commitments for {name}: the use from which they pay",
            under=("of", "from"),
        )
    ]


def _purchase(p: Purchase, name: str) -> list[Block]:
    o = p.owned
    parts = [
        (
            "servers",
            f"{o.servers:,} x {o.server.id} in {o.racks:,} racks, {o.server.chips} chips, "
            f"{o.server.rack_units} rack units and up to {o.server.max_w / 1e3:g} kW each",
        ),
        (
            "price of one in place",
            f"{format_money(o.capex_usd)}, {format_money(o.residual_usd)} of it left after {o.years:g} years",
        ),
        (
            "a month of one",
            f"{format_money(o.payment_usd_month)} payment, {format_money(o.maintenance_usd_month)} "
            f"upkeep, {format_money(o.colocation_usd_month)} space, {format_money(o.staff_usd_month)} "
            "staff",
        ),
        (
            "electricity of one",
            f"{o.server_w(p.chip_w) / 1e3:.1f} kW x PUE {o.site.pue.value:g} x "
            f"{o.usd_kwh:g} USD/kWh = {format_money(o.energy_usd_per_hour(p.chip_w))} an hour; idle "
            f"{format_money(o.idle_usd_per_hour)}",
        ),
    ]
    curve = Table(
        [f"{share:.0%}" for share, _ in p.curve],
        [[f"{usd:.2f}" for _, usd in p.curve]],
        title="A used chip-hour in US dollars by the share of hours used",
    )
    rivals = Table(
        ["terms", "from", "$/chip-h", "owning is cheaper from"],
        [
            [
                r.kind,
                str(r.source),
                f"{r.source.usd_per_chip_hour:.2f}{'*' if r.source.stale else ''}",
                _share(r.utilisation),
            ]
            for r in p.rivals
        ],
        frozenset({"terms", "from"}),
        title="Against the cheapest of every cloud",
        under=("from",),
    )
    said: list[Block] = [Text(f"On-premises {name}", True), *(Text(f"  {what}: {how}") for what, how in parts), curve]
    return [*said, rivals] if p.rivals else said


def _tornado(t: TermCost, name: str) -> Table:
    rows = [
        [
            ROLES.get(w.name, w.name),
            _short(w.low),
            _short(w.high),
            format_money(w.usd_low),
            format_money(w.usd_high),
            format_money(w.swing),
        ]
        for w in t.tornado[:TORNADO]
    ]
    return Table(
        ["input", "p10", "p90", "total at p10", "total at p90", "swing"],
        rows,
        frozenset({"input"}),
        title=f"What matters most to {name} {t.kind}",
    )


def _assumed(c: Costs) -> Table:
    used: dict[str, Assumption] = {a.name: a for s in c.statements for a in s.used}
    rows = [
        [
            a.name,
            _short(a.value),
            f"{_short(a.low)} to {_short(a.high)}",
            a.unit,
            a.date if a.source != "given" else "",
            a.source + (f": {a.note}" if a.note and a.source.startswith("assumed") else ""),
        ]
        for a in sorted(used.values(), key=lambda a: a.name)
    ]
    return Table(
        ["assumption", "value", "range", "unit", "date", "source"],
        rows,
        frozenset({"assumption", "unit", "date", "source"}),
        under=("source",),
    )


def _stale(c: Costs) -> list[str]:
    from chipwise.prices import STALE_DAYS

    old = [src.date for s in c.statements for src in _sources(s) if src.stale]
    return [f"* marks stale prices, older than {STALE_DAYS} days: {len(old)}, the oldest of {min(old)}"] if old else []


def _sources(s: Statement) -> list[Source]:
    rivals = [r.source for r in s.purchase.rivals] if s.purchase else []
    return [t.source for t in s.terms] + rivals


def _range(s: Spread) -> str:
    return f"{_money(s.p10)} to {_money(s.p90)}"


def _money(usd: float) -> str:
    return format_money(usd) if isfinite(usd) else "no end"


def _time(hours: float) -> str:
    return format_seconds(hours * HOUR) if isfinite(hours) else "never"


def _share(share: float) -> str:
    return f"{share:.0%}" if share <= 1 else "never"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
