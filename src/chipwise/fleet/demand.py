"""The demand file read: checked field by field, dates against the plan's months, every failure one line."""

from __future__ import annotations

import json
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.catalog import load
from chipwise.catalog.currencies import exchange_rates, rate_note
from chipwise.errors import InputError, UnknownName
from chipwise.fleet.problem import Period
from chipwise.io.clock import day_of_asking
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.io.schema_errors import Wording, validate

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import DemandSpec, RateSpec, RunSpec

QUARTER = 3


@dataclass(frozen=True, slots=True)
class Calendar:
    """The plan's months, as periods of one or three of them."""

    first: str  # "2027-01"
    months: int
    each: int  # months in a period

    @property
    def periods(self) -> tuple[Period, ...]:
        """Names and hours."""
        return tuple(
            Period(self._name(t), sum(self.hours(m) for m in range(t * self.each, (t + 1) * self.each)))
            for t in range(self.count)
        )

    @property
    def count(self) -> int:
        """How many periods."""
        return self.months // self.each

    def month(self, index: int) -> str:
        """A month by its place in the plan.

        >>> Calendar("2027-11", 3, 1).month(2)
        '2028-01'
        """
        year, month = divmod(_number(self.first) + index, 12)
        return f"{year}-{month + 1:02}"

    def index(self, month: str) -> int:
        """The place of a month; negative before the plan."""
        return _number(month) - _number(self.first)

    def period(self, month: str) -> int:
        """The period of a month; outside the plan it is negative or too large."""
        return self.index(month) // self.each

    def hours(self, index: int) -> float:
        """Hours of a month by its place in the plan."""
        year, month = (int(part) for part in self.month(index).split("-"))
        return monthrange(year, month)[1] * 24.0

    def _name(self, t: int) -> str:
        first = self.month(t * self.each)
        if self.each == 1:
            return first
        year, month = first.split("-")
        if int(month) % 3 == 1:
            return f"{year} Q{int(month) // 3 + 1}"
        return f"{first}..{self.month((t + 1) * self.each - 1)[5:]}"


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand file that holds together."""

    name: str
    spec: DemandSpec
    calendar: Calendar
    base: Path  # where relative paths start


def _number(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:7]) - 1


def read_demand(path: Path | str, today: date | None = None) -> Demand:
    """The demand in a file; an `InputError` names the field that can't be used."""
    file = Path(path)
    raw = parse_yaml(read_text(file, MAX_YAML_BYTES), file.name)
    return demand_of(raw, file.parent, file.stem, today)


def is_demand(name: str | Path) -> bool:
    """Whether this is the name of a demand file: a YAML file with workloads in it."""
    path = Path(name)
    try:
        if path.suffix not in (".yaml", ".yml") or not path.is_file():
            return False
    except (OSError, ValueError):
        return False  # what is wrong with the name is said where workloads are read
    return "workloads" in parse_yaml(read_text(path, MAX_YAML_BYTES), path.name)


def demand_of(raw: Mapping[str, Any], base: Path = Path(), name: str = "demand", today: date | None = None) -> Demand:
    """The demand that a mapping holds."""
    from chipwise.fleet.demand_spec import CURRENCY, DemandSpec

    wording = Wording(schema="chipwise schema demand", patterns={CURRENCY: "three letters such as EUR"})
    spec = validate(DemandSpec, raw, wording, context={"rates": _rates(raw)})
    calendar = _calendar(spec, today or day_of_asking())
    _check_names(spec)
    _check_work(spec, calendar)
    _check_existing(spec, calendar)
    _check_currencies(spec)
    return Demand(spec.name or name, spec, calendar, base)


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the demand file, for editors."""
    from chipwise.fleet.demand_spec import DemandSpec

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **DemandSpec.model_json_schema(),
        "title": "chipwise demand",
    }


def schema_text() -> str:
    """The schema as text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _calendar(spec: DemandSpec, today: date) -> Calendar:
    if (spec.months is None) == (spec.quarters is None):
        raise InputError(
            "months",
            "neither months nor quarters" if spec.months is None else "months and quarters",
            "either months or quarters",
        )
    if _number(spec.start) < today.year * 12 + today.month - 1:
        raise InputError("start", spec.start, f"a month that is not over: {today:%Y-%m} or later")
    if spec.quarters is not None:
        return Calendar(spec.start, spec.quarters * QUARTER, QUARTER)
    assert spec.months is not None
    return Calendar(spec.start, spec.months, 1)


def _check_names(spec: DemandSpec) -> None:
    chips = load().chips
    named = [(f"candidates[{i}].chip", c.chip) for i, c in enumerate(spec.candidates)]
    named += [(f"offers[{i}].chip", o.chip) for i, o in enumerate(spec.offers)]
    named += [(f"existing[{i}].chip", e.chip) for i, e in enumerate(spec.existing)]
    named += [(f"workloads[{i}].chips", chip) for i, w in enumerate(spec.workloads) for chip in w.chips or ()]
    if spec.on_premises:
        named += [("on_premises.chips", chip) for chip in spec.on_premises.chips]
        for chip in spec.on_premises.server_usd:
            if chip not in spec.on_premises.chips:
                raise InputError(
                    "on_premises.server_usd", chip, f"one of on_premises.chips: {', '.join(spec.on_premises.chips)}"
                )
    for field, chip in named:
        if chip not in chips:
            raise UnknownName(field, chip, chips)
    for key, names in (("workloads", [w.name for w in spec.workloads]), ("offers", [o.name for o in spec.offers])):
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise InputError(f"{key}.name", twice, "a name of its own for each")
    if not spec.candidates and not spec.offers and not spec.on_premises and not spec.existing:
        raise InputError("candidates", "nothing", "candidates, offers, on_premises or existing chips to plan with")


def _check_work(spec: DemandSpec, calendar: Calendar) -> None:
    last = calendar.month(calendar.months - 1)
    for i, work in enumerate(spec.workloads):
        if (work.train is None) == (work.serve is None):
            shown = "train and serve" if work.train else "neither train nor serve"
            raise InputError(f"workloads[{i}]", shown, "either train or serve: when, or how much over time")
        where = f"workloads[{i}].{'train' if work.train else 'serve'}"
        section = work.train or work.serve
        assert section is not None
        if section.start is not None and not 0 <= calendar.index(section.start) < calendar.months:
            raise InputError(f"{where}.start", section.start, f"a month of the plan: {calendar.first} to {last}")
        if work.train is not None and work.train.deadline is not None:
            begin = work.train.start or calendar.first
            if calendar.index(work.train.deadline) < calendar.index(begin):
                raise InputError(f"{where}.deadline", work.train.deadline, f"{begin}, when it may start, or later")
            if calendar.index(work.train.deadline) >= calendar.months:
                raise InputError(f"{where}.deadline", work.train.deadline, f"{last}, the end of the plan, or earlier")
        if work.train is not None:
            _check_quarters(work.train, calendar, where)
        if work.serve is not None:
            _check_rates(work.serve, calendar, where)


def _check_quarters(train: RunSpec, calendar: Calendar, where: str) -> None:
    """In a plan of quarters a run begins and ends with one: it could else run before its start or after its end."""
    each = calendar.each
    if train.start is not None and (index := calendar.index(train.start)) % each:
        begin = index // each * each
        near = [calendar.month(m) for m in (begin, begin + each) if m < calendar.months]
        raise InputError(
            f"{where}.start",
            train.start,
            f"the first month of a quarter of the plan ({' or '.join(near)}), or a plan by months",
        )
    if train.deadline is not None and (index := calendar.index(train.deadline) + 1) % each:
        end = index // each * each
        near = [calendar.month(m - 1) for m in (end, end + each) if 0 < m <= calendar.months]
        raise InputError(
            f"{where}.deadline",
            train.deadline,
            f"the last month of a quarter of the plan ({' or '.join(near)}), or a plan by months",
        )
    if train.every is not None and train.every % each:
        raise InputError(
            f"{where}.every", train.every, f"a multiple of {each} in a plan of quarters, or a plan by months"
        )


def _check_rates(serve: RateSpec, calendar: Calendar, where: str) -> None:
    if (serve.rate is None) == (serve.rates is None):
        raise InputError(
            where,
            "neither rate nor rates" if serve.rate is None else "rate and rates",
            "either rate (with growth) or rates (of every month)",
        )
    if serve.growth_month is not None and serve.growth_year is not None:
        raise InputError(f"{where}.growth_year", serve.growth_year, "one of growth_month and growth_year")
    if (serve.peak > 1) != (serve.peak_hours is not None):
        raise InputError(f"{where}.peak_hours", serve.peak_hours or "nothing", "both peak and peak_hours, or neither")
    if serve.rates is not None:
        if serve.growth_month is not None or serve.growth_year is not None:
            raise InputError(where, "rates and growth", "growth beside rate alone: rates say every month")
        begin = calendar.index(serve.start) if serve.start else 0
        for index in range(begin, calendar.months):
            if calendar.month(index) not in serve.rates:
                raise InputError(
                    f"{where}.rates",
                    f"nothing for {calendar.month(index)}",
                    f"every month from {calendar.month(begin)} to {calendar.month(calendar.months - 1)}",
                )
    hours = peak_hours(serve)
    if hours and serve.peak * hours > 24:
        raise InputError(
            f"{where}.peak", serve.peak, f"at most {24 / hours:g}: {hours:g} hours would else hold more than the day"
        )


def peak_hours(serve: RateSpec) -> float:
    """How many hours of the day are those of the peak; 0 without one."""
    if serve.peak_hours is None:
        return 0.0
    if isinstance(serve.peak_hours, str):
        begin, end = (int(part) for part in serve.peak_hours.split("-"))
        return float((end - begin) % 24 or 24)
    return float(serve.peak_hours)


def _check_existing(spec: DemandSpec, calendar: Calendar) -> None:
    """Spans of one contract lie apart."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for i, e in enumerate(spec.existing):
        begin = calendar.index(e.start) if e.start else -(10**6)
        end = calendar.index(e.until) if e.until else 10**6
        if end < begin:
            raise InputError(f"existing[{i}].until", e.until, f"{e.start}, when it starts, or later")
        for other_begin, other_end, other in spans.get(e.contract, []):
            if begin <= other_end and other_begin <= end:
                raise InputError(
                    f"existing[{i}]",
                    f"{e.contract} from {e.start or 'before'} to {e.until or 'beyond'}",
                    f"months that existing[{other}] of the same contract doesn't have",
                )
        spans.setdefault(e.contract, []).append((begin, end, i))


def _check_currencies(spec: DemandSpec) -> None:
    rates = file_rates(spec)
    priced = [(f"offers[{i}].currency", o.currency) for i, o in enumerate(spec.offers)]
    priced += [(f"existing[{i}].currency", e.currency) for i, e in enumerate(spec.existing)]
    for field, code in priced:
        if code.upper() not in rates:
            hint = f"rates: {{{code.upper()}: US dollars for one}}"
            raise InputError(field, code, f"a currency that is known, or a rate for it: {hint}")


def _rates(raw: Mapping[str, Any]) -> dict[str, float]:
    """The file's own rates, as far as they are numbers, over those that are known; the schema refuses others."""
    named = raw.get("rates") if isinstance(raw, Mapping) else None
    own = named.items() if isinstance(named, Mapping) else ()
    numbers = {str(code).upper(): usd for code, usd in own if isinstance(usd, int | float) and usd > 0}
    return {**exchange_rates(), **numbers}


def file_rates(spec: DemandSpec) -> dict[str, float]:
    """US dollars for one unit of currencies: the file's own rates over those that are known."""
    return {**exchange_rates(), **{code.upper(): usd for code, usd in spec.rates.items()}}


def usd_rate(spec: DemandSpec, code: str) -> float:
    """US dollars for one unit of a currency of the file."""
    return file_rates(spec)[code.upper()]


def price_source(spec: DemandSpec, usd_per_unit: float, code: str) -> str:
    """Where a price of the file comes from, with the rate of another currency."""
    note = rate_note(code, file_rates(spec))
    return f"the demand file: {usd_per_unit:,.10g} {note}" if note else "the demand file"
