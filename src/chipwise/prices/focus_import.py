"""What a company really paid for chips: a FOCUS billing export, versions 1.0 to 1.2, as own prices.

A price is the sum of EffectiveCost over the chip-hours of the same cloud, region, instance and pricing category:
Standard is on demand, Dynamic is spot, Committed is a commitment whose years the user says, since FOCUS doesn't.
Only usage counts: taxes, credits, purchases and idle commitments are left out, counted and said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from chipwise.catalog import load
from chipwise.catalog.currencies import Rates, exchange_rates, rate_note, usd_for_one
from chipwise.errors import NOTHING, BrokenFile, InputError
from chipwise.io.csv_lines import Line, check_columns, lines_of
from chipwise.io.regular_file import text_lines
from chipwise.prices.billed import Billed, hours_of, what_for
from chipwise.prices.custom_prices import PRICES, YEARS, CustomPriceRow
from chipwise.prices.imported import Imported, Tally
from chipwise.prices.providers import cloud_id

NEEDED = (
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodStart",
    "EffectiveCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
)
PROVIDERS = ("ProviderName", "ServiceProviderName")  # the second from FOCUS 1.3 on
TERMS = {"Standard": "ondemand_usd_h", "Dynamic": "spot_usd_h"}
COMMITTED = "Committed"
EVERY = 50_000  # rows between two reports of progress

Progress = Callable[[int], None]


@dataclass(slots=True)
class Group:
    """What was paid for one kind of instance on one pricing model."""

    usd: float = 0.0
    chip_hours: float = 0.0
    rows: int = 0
    hosts: bool = False  # lines for the host came with those for the chips
    chips_alone: bool = False
    first: str = "9999-12-31"
    last: str = "0001-01-01"


@dataclass(slots=True)
class Bill:
    """Everything read so far."""

    groups: dict[tuple[str, str, str, str, float, str], Group] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    read: int = 0
    codes: dict[str, None] = field(default_factory=dict)  # currencies, in the order met


def read_focus(
    files: Sequence[Path], rates: Rates | None = None, years: int | None = None, progress: Progress | None = None
) -> Imported:
    """Own prices from billing exports (.csv or .csv.gz); `years` is how long its commitments run.

    Other currencies are taken at `rates`, or else at those that are known.
    """
    rates = exchange_rates() if rates is None else rates
    bill = Bill()
    for path in files:
        for line in _lines(path):
            bill.read += 1
            if progress and bill.read % EVERY == 0:
                progress(bill.read)
            _take(line, bill, rates)
    priced = {key: group for key, group in bill.groups.items() if _priced(group, bill.tally)}
    if any(key[-1] == COMMITTED for key in priced) and years not in YEARS:
        raise InputError(
            "years",
            NOTHING if years is None else years,
            "1 or 3: the bill has committed usage, and FOCUS doesn't say for how long",
        )
    rows = _rows(priced, years, ", ".join(dict.fromkeys(path.name for path in files)))
    if not rows:
        why = "; ".join(f"{part.rows:,} {part.reason}" for part in bill.tally.left_out()) or "it has no rows"
        raise BrokenFile("files", ", ".join(map(str, files)), f"usage of a chip that is known ({why})")
    used = sum(group.rows for group in priced.values())
    return Imported(
        rows, bill.read, used, bill.tally.left_out(), (*_rate_notes(bill, rates), *_assumptions(years, priced))
    )


def _rate_notes(bill: Bill, rates: Rates) -> tuple[str, ...]:
    return tuple(f"the bill's {note}" for code in bill.codes if (note := rate_note(code, rates)))


def _lines(path: Path) -> Iterator[Line]:
    """The lines of a file of any size, read one after another."""
    header, lines = lines_of(path.name, text_lines(path, packed=path.suffix == ".gz"))
    check_columns(path.name, header, NEEDED)
    if not any(name in header for name in PROVIDERS):
        raise BrokenFile(f"{path.name} line 1", ",".join(header), f"the column {PROVIDERS[0]}")
    yield from lines


def _take(line: Line, bill: Bill, rates: Rates) -> None:
    """Count one line to its group, or say why it is left out."""
    code = line["BillingCurrency"]
    usd = _number(line, "EffectiveCost") * usd_for_one(code, rates, line.where("BillingCurrency"))
    bill.codes[code.upper()] = None
    category, terms = line["ChargeCategory"], line["PricingCategory"]
    if category != "Usage":
        return bill.tally.add(f"{category or 'nothing'} as ChargeCategory, not usage", usd)
    if line["CommitmentDiscountStatus"] == "Unused":
        return bill.tally.add("commitments that lay idle", usd)
    cloud = cloud_id(line[PROVIDERS[0]] or line[PROVIDERS[1]])
    billed = what_for(line, cloud)
    if isinstance(billed, str):
        return bill.tally.add(billed, usd)
    if terms not in (*TERMS, COMMITTED):
        correction = "a correction" if line["ChargeClass"] == "Correction" else "usage"
        return bill.tally.add(f"{correction} with {terms or 'nothing'} as PricingCategory", usd)
    hours = _hours(line)
    if hours is None:
        return bill.tally.add(f"in {line['PricingUnit'] or 'no unit'}, not in hours", usd)
    region = line["RegionId"] or line["RegionName"] or "global"
    key = (billed.chip_id, cloud, region, billed.instance, billed.chips, terms)
    _count(bill.groups.setdefault(key, Group()), billed, usd, *hours, _day(line))
    return None


def _hours(line: Line) -> tuple[float, str] | None:
    """Hours of a line and what they are of; a correction of the cost alone has none."""
    if not line["PricingQuantity"]:
        return 0.0, "instance"
    return hours_of(_number(line, "PricingQuantity"), line["PricingUnit"])


def _count(group: Group, billed: Billed, usd: float, hours: float, unit: str, day: str) -> None:
    per = billed.per if unit == "instance" else unit
    group.usd += usd
    group.rows += 1
    group.first, group.last = min(group.first, day), max(group.last, day)
    if per == "host":
        group.hosts = True
    elif per == "chip":
        group.chip_hours += hours
        group.chips_alone = billed.per == "chip"
    else:
        group.chip_hours += hours * billed.chips


def _number(line: Line, column: str) -> float:
    """A cost or a quantity, which corrections may make negative."""
    try:
        value = float(line[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise line.wrong(column, "a number")
    return value


def _day(line: Line) -> str:
    text = line["ChargePeriodStart"]
    try:
        return datetime.fromisoformat(text.replace(" UTC", "Z")).date().isoformat()
    except ValueError:
        raise line.wrong("ChargePeriodStart", "a time such as 2026-09-01T00:00:00Z") from None


def _priced(group: Group, tally: Tally) -> bool:
    """Whether a group has a price; what was free or has no chip-hours of its own has none."""
    if group.chip_hours > 0 and group.usd > 0:
        return True
    reason = "usage that was free or refunded" if group.chip_hours > 0 else "hosts without lines for their chips"
    for _ in range(group.rows):
        tally.add(reason, group.usd / group.rows)
    return False


def _rows(
    groups: dict[tuple[str, str, str, str, float, str], Group], years: int | None, source: str
) -> tuple[CustomPriceRow, ...]:
    """One row an instance, its prices side by side."""
    kinds: dict[tuple[str, str, str, str, float], dict[str, Group]] = {}
    for key, group in sorted(groups.items()):
        kinds.setdefault(key[:5], {})[key[5]] = group
    rows = []
    for (chip_id, cloud, region, instance, chips), terms in kinds.items():
        prices: dict[str, float | None] = dict.fromkeys(PRICES)
        for name, group in terms.items():
            column = TERMS.get(name) or YEARS[years or 0]
            prices[column] = group.usd / group.chip_hours * chips
        first, second, third, fourth = (prices[column] for column in PRICES)
        last = max(group.last for group in terms.values())
        rows.append(
            CustomPriceRow(
                chip_id,
                cloud,
                region,
                instance,
                chips,
                (first, second, third, fourth),
                last,
                f"FOCUS export {source}",
                _note(terms, chip_id),
            )
        )
    return tuple(rows)


def _note(terms: dict[str, Group], chip_id: str) -> str:
    hours = sum(group.chip_hours for group in terms.values())
    first = min(group.first for group in terms.values())
    last = max(group.last for group in terms.values())
    period = f"paid for {hours:,.0f} chip-hours from {first} to {last}"
    bare = all(group.chips_alone and not group.hosts for group in terms.values())
    hosted = load().chips[chip_id].family == "tpu"  # Google's price of a TPU has its host in it
    return f"accelerator only; {period}" if bare and not hosted else period


def _assumptions(years: int | None, groups: dict[tuple[str, str, str, str, float, str], Group]) -> tuple[str, ...]:
    notes = ["prices are what was paid: EffectiveCost over chip-hours, discounts and corrections included"]
    if any(key[-1] == COMMITTED for key in groups):
        notes.append(f"committed usage is taken to be on {years}-year terms, as --years says")
    if any("accelerator only" in _note({"": group}, key[0]) for key, group in groups.items()):
        notes.append("where the bill has no lines for the host, the price is that of the accelerators alone")
    return tuple(notes)
