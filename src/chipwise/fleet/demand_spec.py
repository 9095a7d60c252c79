"""The demand file, as pydantic checks it: every key, its bounds and what it means.

Importing this module imports pydantic, so only `demand` does, when it is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from chipwise.catalog.money import ACCEPTED, NOTHING_ELSE, PER_KWH, parse_usd
from chipwise.workload.fields import Flag, Label, Strict, number_of, read

MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"
CURRENCY = r"^[A-Za-z]{3}$"
HOURS = r"^([01]?[0-9]|2[0-4])-([01]?[0-9]|2[0-4])$"
Terms = Literal["ondemand", "spot", "1y", "3y"]


def _month(value: Any) -> str:
    if hasattr(value, "isoformat"):
        value = value.isoformat()[:7]
    if not isinstance(value, str) or not re.fullmatch(MONTH, value):
        raise ValueError("a month such as 2027-03")
    return value


def _at_least_zero(value: Any) -> float:
    number = number_of(value, "a number of at least 0")
    if number < 0:
        raise ValueError("a number of at least 0")
    return number


def _price(value: Any) -> float:
    number = number_of(value, "US dollars of more than 0")
    if number <= 0:
        raise ValueError("a price of more than 0")
    return number


def _usd(value: Any, info: ValidationInfo, per: Mapping[str, float] = NOTHING_ELSE) -> float:
    """US dollars, at the file's own rates before those that are known: `context` has both."""
    rates = (info.context or {}).get("rates")
    return read(lambda amount: parse_usd(amount, accepted=ACCEPTED, rates=rates, per=per), value, ACCEPTED)


def _server_usd(value: Any, info: ValidationInfo) -> float:
    usd = _usd(value, info)
    if usd <= 0:
        raise ValueError("a price of more than 0")
    return usd


def _usd_kwh(value: Any, info: ValidationInfo) -> float:
    return _usd(value, info, PER_KWH)


def _peak_hours(value: Any) -> Any:
    if isinstance(value, str):
        found = re.fullmatch(HOURS, value)
        if not found or int(found[1]) == int(found[2]):
            raise ValueError("hours such as 8 or 9-17")
        return value
    number = number_of(value, "hours such as 8 or 9-17")
    if not 0 < number < 24:
        raise ValueError("more than 0 and fewer than 24 hours")
    return number


Month = Annotated[str, BeforeValidator(_month), WithJsonSchema({"type": "string", "pattern": MONTH})]
Amount = Annotated[float, BeforeValidator(_at_least_zero), WithJsonSchema({"type": "number", "minimum": 0})]
Price = Annotated[float, BeforeValidator(_price), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
MONEY = WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "minLength": 1}]})
Money = Annotated[float, BeforeValidator(_usd), MONEY]
ServerPrice = Annotated[float, BeforeValidator(_server_usd), MONEY]
EnergyPrice = Annotated[float, BeforeValidator(_usd_kwh), MONEY]
Whole = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Positive = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
FINITE = BeforeValidator(lambda value: number_of(value, "a number"))
Share = Annotated[float, Field(ge=0, le=10), FINITE]
Growth = Annotated[float, Field(gt=-1, le=10), FINITE]
PeakHours = Annotated[
    float | str,
    BeforeValidator(_peak_hours),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 24},
                {"type": "string", "pattern": HOURS},
            ]
        }
    ),
]


class RunSpec(Strict):
    """When a model is trained."""

    runs: Positive = Field(1, description="Runs, one after another, all within the window.")
    start: Month | None = Field(None, description="First month in which it may run; default: that of the plan.")
    deadline: Month | None = Field(None, description="Last month in which it may run; default: that of the plan.")
    every: Positive | None = Field(None, description="Again every so many months: a window of that length each.")
    chips: Annotated[list[Positive], Field(min_length=1, max_length=8)] | None = Field(
        None, description="Counts of chips to consider; default: the fewest that meet the deadline and twice that."
    )
    split: Flag = Field(False, description="It may move between chips and terms.")
    queue: Label | None = Field(None, description="Runs of one queue take turns: never two at a time.")


class RateSpec(Strict):
    """What a service must answer over time; requests a second, the mean of a day."""

    rate: Amount | None = Field(None, description="Requests a second in the first month.")
    growth_month: Growth | None = Field(None, description="Growth a month: 0.05 is 5 %.")
    growth_year: Growth | None = Field(None, description="Growth a year: 1.0 doubles it.")
    rates: dict[Month, Amount] | None = Field(None, description="Requests a second of every month, instead.")
    start: Month | None = Field(None, description="First month in which it answers; default: that of the plan.")
    peak: Annotated[float, Field(ge=1, le=100), FINITE] = Field(
        1.0, description="Load in the peak hours over the day's mean."
    )
    peak_hours: PeakHours | None = Field(None, description="Hours of the peak: how many, or from and to (UTC): 9-17.")
    spot: Flag = Field(False, description="Spot chips may answer too.")


class WorkSpec(Strict):
    """A workload and how much of it is wanted when."""

    name: Label = Field(description="What to call it.")
    workload: Label | dict[str, Any] = Field(
        description="A workload file, relative to this one, or its contents: model with train or serve."
    )
    train: RunSpec | None = Field(None, description="When it is trained.")
    serve: RateSpec | None = Field(None, description="What it must answer over time.")
    chips: Annotated[list[Label], Field(min_length=1)] | None = Field(None, description="On these chips alone.")


class CandidateSpec(Strict):
    """A chip that may be rented at list prices or your own."""

    chip: Label = Field(description="The chip.")
    clouds: Annotated[list[Label], Field(min_length=1)] | None = Field(
        None, description="From these clouds; default: all, of each size of instance the cheapest."
    )
    regions: Annotated[list[Label], Field(min_length=1)] | None = Field(
        None, description="In these regions; default: the cheapest of each cloud."
    )
    terms: Annotated[list[Terms], Field(min_length=1)] = Field(
        ["ondemand", "spot", "1y", "3y"], description="On these terms, where there is a price."
    )
    quota: Whole | None = Field(None, description="Most chips at once, on all terms together.")
    lead: Whole = Field(0, description="Months from an order to the first use.")


class OfferSpec(Strict):
    """An offer with its price."""

    name: Label = Field(description="What to call it.")
    chip: Label = Field(description="The chip.")
    cloud: Label = Field(description="Who makes it.")
    region: Label = Field("", description="Where.")
    terms: Terms = Field(description="ondemand, spot, 1y or 3y.")
    usd_chip_hour: Price = Field(description="Price of a chip-hour, in `currency`.")
    currency: Annotated[str, Field(pattern=CURRENCY)] = Field("USD", description="Of the price.")
    chips: Positive | None = Field(None, description="Chips of one unit; default: those of a host.")
    quota: Whole | None = Field(None, description="Most chips at once.")
    lead: Whole = Field(0, description="Months from an order to the first use.")


class SiteSpec(Strict):
    """Servers of one's own."""

    site: Label = Field("us-average", description="The place: its electricity, PUE and grid.")
    chips: Annotated[list[Label], Field(min_length=1)] = Field(description="Chips of the servers that may be bought.")
    lead: Whole = Field(3, description="Months from an order to the first use.")
    years: Annotated[float, Field(gt=0, le=20), FINITE] = Field(4.0, description="Years over which a server wears.")
    power_kw: Amount | None = Field(None, description="Most power, cooling included.")
    rack_units: Whole | None = Field(None, description="Most rack units.")
    server_usd: dict[Label, ServerPrice] = Field({}, description="Price of a server by chip, instead of the catalog's.")
    usd_kwh: EnergyPrice | None = Field(None, description="Price of electricity, instead of the site's.")
    pue: Annotated[float, Field(ge=1, le=10), FINITE] | None = Field(
        None, description="Of the building, instead of the site's."
    )
    g_kwh: Amount | None = Field(None, description="Grams of CO2 a kWh of the grid, instead of the site's.")


class ExistingSpec(Strict):
    """What is there already: a commitment under way, or servers of one's own."""

    contract: Label = Field(description="What to call it; entries of one contract must not overlap.")
    chip: Label = Field(description="The chip.")
    chips: Positive = Field(description="How many.")
    cloud: Label | None = Field(None, description="Who rents them out; none: at the site of one's own.")
    region: Label = Field("", description="Where.")
    start: Month | None = Field(None, description="First month; default: before the plan.")
    until: Month | None = Field(None, description="Last month; default: beyond the plan.")
    usd_chip_hour: Amount = Field(description="Price of a chip-hour, used or not, in `currency`; 0 where it is paid.")
    currency: Annotated[str, Field(pattern=CURRENCY)] = Field("USD", description="Of the price.")


class LimitSpec(Strict):
    """What the whole plan must not exceed."""

    budget_period: Money | None = Field(None, description="US dollars paid in a month (a quarter).")
    budget: Money | None = Field(None, description="US dollars paid within the plan.")
    power_kw: Amount | None = Field(None, description="Power of everything at once, clouds included.")
    carbon_t_period: Amount | None = Field(None, description="Tonnes of CO2 a month (a quarter).")
    carbon_t: Amount | None = Field(None, description="Tonnes of CO2 over the plan.")


class HeadroomSpec(Strict):
    """What stands by for failures."""

    serving: Share = Field(0.1, description="Load carried beyond the demand.")
    serving_replicas: Whole = Field(0, description="Replicas of every service that may fail at the peak.")
    training: Share = Field(0.0, description="Units that stand by for each run.")


class ExclusiveSpec(Strict):
    """Clouds whose commitments shut each other out."""

    name: Label = Field(description="What to call it.")
    clouds: Annotated[list[Label], Field(min_length=2)] = Field(description="Of these, at most one gets a commitment.")


class DemandSpec(Strict):
    """A demand file."""

    name: Label | None = Field(None, description="What to call the plan.")
    start: Month = Field(description="The first month.")
    months: Annotated[int, Field(strict=True, ge=1, le=120)] | None = Field(None, description="Months of the plan.")
    quarters: Annotated[int, Field(strict=True, ge=1, le=40)] | None = Field(
        None, description="Quarters of the plan, instead of months."
    )
    workloads: Annotated[list[WorkSpec], Field(min_length=1, max_length=100)] = Field(description="What is wanted.")
    candidates: list[CandidateSpec] = Field([], description="Chips that may be rented.")
    offers: list[OfferSpec] = Field([], description="Offers with their prices.")
    on_premises: SiteSpec | None = Field(None, description="Servers of one's own.")
    existing: list[ExistingSpec] = Field([], description="What is there already.")
    limits: LimitSpec = Field(
        default_factory=lambda: LimitSpec.model_validate({}), description="What the plan must not exceed."
    )
    headroom: HeadroomSpec = Field(
        default_factory=lambda: HeadroomSpec.model_validate({}), description="What stands by for failures."
    )
    exclusive: list[ExclusiveSpec] = Field([], description="Commitments that shut each other out.")
    beyond: Literal["full", "prorated"] = Field(
        "full", description="Commitments that outlast the plan: paid in full, or for the plan's months alone."
    )
    rates: dict[Annotated[str, Field(pattern=CURRENCY)], Price] = Field(
        {}, description="US dollars for one unit of another currency."
    )
