"""The columns of bills, each declared once: terminal, JSON, CSV, HTML and the report are drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from chipwise.catalog.economics import Assumption, Basis
from chipwise.cost.commitment import BreakEven
from chipwise.cost.spot import Expected, daly, young
from chipwise.cost.statement import PARTS, CostOption, Missing, Rival, Spread, Statement, Swing
from chipwise.present.blocks import Cell, Link
from chipwise.present.columns import Column
from chipwise.present.numbers import rate
from chipwise.units import HOUR, format_money, format_seconds

INPUTS = {  # inputs that are no assumption of their own name, in words
    "run_time": "time of the prediction",
    "chips_needed": "chips the prediction needs",
    "price": "price drift",
    "server_usd": "price of a server",
    "network_usd": "network of a server",
    "migration_weeks": "weeks of the migration",
    "wait_s": "spot_wait_s",
}


@dataclass(frozen=True, slots=True)
class CostRow:
    """One pricing model of one set of chips: its bill, or why there is none."""

    statement: Statement
    bill: CostOption | Missing

    @property
    def option(self) -> CostOption | None:
        """The bill, where there is one."""
        return self.bill if isinstance(self.bill, CostOption) else None

    @property
    def total(self) -> float:
        """US dollars at the median; without end where there is no bill."""
        return self.bill.total if isinstance(self.bill, CostOption) else float("inf")


def money(usd: float) -> str:
    """US dollars; a run that never ends has no end of them."""
    return format_money(usd) if isfinite(usd) else "no end"


def spread(s: Spread) -> str:
    """From the 10th to the 90th percentile."""
    return f"{money(s.p10)} to {money(s.p90)}"


def share(used: float) -> str:
    """The share of hours used from which something is cheaper."""
    return f"{used:.0%}" if used <= 1 else "never"


def short(value: float) -> str:
    """An input of a bill.

    >>> short(12_345.6), short(0.0123)
    ('12,346', '0.0123')
    """
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _hours(hours: float) -> str:
    return format_seconds(hours * HOUR) if isfinite(hours) else "never"


def _where(row: CostRow) -> str:
    return row.bill.reason if isinstance(row.bill, Missing) else str(row.bill.source)


def unit_key(unit: str) -> str:
    """A unit of work in a key.

    >>> unit_key("1,000 inferences")
    '1000_inferences'
    """
    return unit.replace(" ", "_").replace(",", "")


BILL: list[Column[CostOption]] = [
    Column(
        "usd",
        lambda o: o.total,
        lambda basis: f"$/{basis}",
        lambda o: format_money(o.total),
        help="the total with every input at its median",
        unit="USD",
    ),
    Column("", None, "p50", lambda o: money(o.usd.p50), drop=9, help="median of the draws"),
    Column(
        "usd_range",
        lambda o: o.usd,
        "p10 to p90",
        lambda o: spread(o.usd),
        help="`p10`, `p50` and `p90` of the draws; null where a run never ends",
        unit="USD",
    ),
    Column(
        "split_usd",
        lambda o: o.split,
        help="the total by what it pays for: compute, storage, egress, energy, staff, migration",
        unit="USD",
    ),
    Column(
        "usd_per",
        lambda o: {unit_key(name): usd for name, usd in o.per},
        help="the total by unit of work: run, epoch, step, 1M_tokens, 1000_images; hour, month, job, 1000_inferences,"
        " 1M_tokens_in_and_out (prompts and answers), 1M_tokens_out (answers alone)",
        unit="USD",
    ),
    Column(
        "quote",
        lambda o: o.source,
        help="the price as listed and who asks it; of owned chips `usd_per_chip_hour` is that of a used hour",
        unit="USD",
    ),
    Column(
        "hours",
        lambda o: o.hours,
        "time",
        lambda o: format_seconds(o.hours * HOUR),
        help="from beginning to end; of a service, of a month",
        unit="h",
    ),
    Column(
        "hours_range",
        lambda o: o.hours_range,
        "time p90",
        lambda o: _hours(o.hours_range.p90),
        drop=3,
        help="`p10`, `p50` and `p90` of the draws",
        unit="h",
    ),
    Column("chip_hours", lambda o: o.chip_hours, help="paid for", unit="h"),
    Column("utilization", lambda o: o.utilization, help="of the hours paid for that is used", unit="share"),
    Column(
        "meter_kwh",
        lambda o: o.kwh,
        "meter kWh",
        lambda o: rate(o.kwh),
        drop=2,
        help="at the meter of the building, for the hours of the work",
        unit="kWh",
    ),
    Column(
        "kg_co2",
        lambda o: o.kg_co2,
        "kg CO2",
        lambda o: rate(o.kg_co2),
        drop=1,
        help="of the grid, for that energy",
        unit="kg",
    ),
    Column(
        "interruptions_per_hour",
        lambda o: o.interruptions_per_hour,
        help="of all chips of a run together, of one replica of a service",
        unit="1/h",
    ),
    Column("expected", lambda o: o.expected, nested=True, help="the course of a run, below; null of a service"),
    Column(
        "tornado",
        lambda o: o.tornado,
        nested=True,
        help="the largest swing first: `input`, `low` and `high` (its 10th and 90th percentile), `usd_low` and "
        "`usd_high` (the total there)",
    ),
    Column("", None, "$/chip-h", lambda o: o.source.price, help="as listed"),
    Column("", None, "dated", lambda o: o.source.date, words=True, under=True, help="when the price was listed"),
]


def per_unit(unit: str) -> Column[CostOption]:
    """The column of a total by one unit of work."""
    return Column(
        "", None, f"$/{unit}", lambda o: format_money(dict(o.per)[unit]) if unit in dict(o.per) else "-", drop=5
    )


def part(name: str, header: str) -> Column[CostOption]:
    """The column of what a bill has for storage, energy or another part."""
    return Column("", None, header, lambda o: format_money(getattr(o.split, name)))


PRICING: Column[CostOption] = Column("", None, "pricing", lambda o: o.pricing, words=True)
TOTAL: Column[CostOption] = Column("", None, "total", lambda o: format_money(o.total))
SPLIT: list[Column[CostOption]] = [PRICING, *(part(name, name) for name in PARTS), TOTAL]


def of_bill(column: Column[CostOption]) -> Column[CostRow]:
    """A column of bills in rows that may have none."""
    return column.within(lambda row: row.option, "-" if column.key == "usd" else "")


STATEMENT: list[Column[CostRow]] = [
    Column("accelerators", lambda r: r.statement.accelerators, "chips", words=True, help="chips, how many"),
    Column("basis", lambda r: r.statement.basis, help="what every total is for: run, job or month"),
]
OPTION: list[Column[CostRow]] = [
    Column(
        "pricing",
        lambda r: r.bill.pricing,
        "pricing",
        words=True,
        help="on demand, 1 year, 3 years, spot or on-premises",
    ),
    *map(of_bill, BILL),
    Column("", None, "from", _where, words=True, under=True, help="who asks the price, or why there is none"),
]
EVIDENCE: Column[CostRow] = Column(
    "evidence",
    lambda r: r.statement.evidence,
    "evidence",
    lambda r: r.statement.evidence if r.option else "",
    words=True,
    drop=4,
    help="what the hours rest on",
)


def _stops(option: CostOption) -> str:
    return format_seconds(HOUR / option.interruptions_per_hour) if option.interruptions_per_hour else "never"


def _course(show: Callable[[Expected], str]) -> Callable[[CostOption], str]:
    return lambda o: "-" if o.expected is None else show(o.expected)


def _interval(formula: Callable[[float, float], float]) -> Callable[[CostOption], str]:
    def show(o: CostOption) -> str:
        if o.expected is None or not o.interruptions_per_hour:
            return "-"
        return format_seconds(max(0.0, formula(o.expected.checkpoint_s, HOUR / o.interruptions_per_hour)))

    return show


COURSE: list[Column[CostOption]] = [  # checkpoints and interruptions of a run
    PRICING,
    Column("", None, "stops every", _stops),
    Column("", None, "checkpoint", _course(lambda e: format_seconds(e.checkpoint_s)), drop=9),
    Column("", None, "interval", _course(lambda e: format_seconds(e.interval_s))),
    Column("", None, "Young", _interval(young), drop=1),
    Column("", None, "Daly", _interval(daly), drop=2),
    Column("", None, "checkpoints", _course(lambda e: format_seconds(e.checkpoints_s)), drop=6),
    Column("", None, "lost", _course(lambda e: format_seconds(e.lost_s)), drop=5),
    Column("", None, "restarts", _course(lambda e: format_seconds(e.restarts_s)), drop=4),
    Column("", None, "waits", _course(lambda e: format_seconds(e.wait_s)), drop=3),
    Column("", None, "stretch", _course(lambda e: f"{(e.stretch - 1) * 100:+.1f}%")),
    Column("", None, "expected", _course(lambda e: format_seconds(e.wall_s))),
    Column("", None, "p10", lambda o: _hours(o.hours_range.p10), drop=7),
    Column("", None, "p50", lambda o: _hours(o.hours_range.p50), drop=8),
    Column("", None, "p90", lambda o: _hours(o.hours_range.p90)),
]
INTERRUPTIONS: list[Column[CostOption]] = [  # of a service
    PRICING,
    Column("", None, "a replica stops every", _stops),
    Column("", None, "chip-hours paid", lambda o: f"{o.chip_hours:,.0f}"),
]


def _committed_by(b: BreakEven) -> str:
    return " ".join(x for x in (b.commitment.cloud, b.commitment.region, b.commitment.instance) if x)


COMMITMENTS: list[Column[BreakEven]] = [
    Column("", None, "years", lambda b: f"{b.commitment.years} year{'s' * (b.commitment.years > 1)}", words=True),
    Column("", None, "from", _committed_by, words=True, under=True),
    Column("", None, "$/chip-h", lambda b: f"{b.commitment.usd_per_chip_hour:.2f}{'*' if b.stale else ''}"),
    Column("", None, "on demand", lambda b: f"{b.ondemand_usd_per_chip_hour:.2f}"),
    Column("", None, "of", lambda b: b.against, words=True, under=True),
    Column("", None, "cheaper from", lambda b: share(b.utilization)),
]
RIVALS: list[Column[Rival]] = [
    Column("", None, "pricing", lambda r: r.pricing, words=True),
    Column("", None, "from", lambda r: str(r.source), words=True, under=True),
    Column("", None, "$/chip-h", lambda r: r.source.price),
    Column("", None, "owning is cheaper from", lambda r: share(r.utilization)),
]
TORNADO: list[Column[Swing]] = [
    Column("", None, "input", lambda w: INPUTS.get(w.name, w.name), words=True),
    Column("", None, "p10", lambda w: short(w.low)),
    Column("", None, "p90", lambda w: short(w.high)),
    Column("", None, "total at p10", lambda w: format_money(w.usd_low)),
    Column("", None, "total at p90", lambda w: format_money(w.usd_high)),
    Column("", None, "swing", lambda w: format_money(w.swing)),
]


def cited(a: Assumption) -> Cell:
    """The source of an assumption, with its note where nobody published one."""
    note = f": {a.note}" if a.note and a.evidence is not Basis.PUBLISHED else ""
    return Link(a.source + note, a.source)


ASSUMPTIONS: list[Column[Assumption]] = [
    Column("", None, "assumption", lambda a: a.name, words=True),
    Column("", None, "value", lambda a: short(a.value)),
    Column("", None, "range", lambda a: f"{short(a.low)} to {short(a.high)}"),
    Column("", None, "unit", lambda a: a.unit, words=True),
    Column("", None, "date", lambda a: a.date if a.source != Basis.GIVEN else "", words=True),
    Column("", None, "source", cited, words=True, under=True),
]
