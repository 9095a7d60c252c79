"""Estimates as rows of a bill, in the FinOps Open Cost and Usage Specification (FOCUS) 1.1.

What others call::

    Charge(provider, region, instance, chip_id, chips, description, category, pricing_category, start, end,
           quantity, list_unit_price, effective_cost, unit="Hours", billed_cost=None, service=..., tags={}, idle=False)
    focus_rows(charges, account="chipwise estimate", currency="USD") -> list[dict[str, str]]   # one row a charge

`quantity` is in instance-hours with unit "Hours" and in chip-hours with unit "Chip-Hours"; `end` is the first day
after the charge. `Charge.list_cost` is computed. A charge without a chip (storage, egress, staff, ...) has chip_id ""
and a unit of its own. `read_focus` of `focus_import` reads such rows back.

Source of the columns and rules: https://focus.finops.org/focus-specification/v1-1/ (read 2026-11-15 from
github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256

from chipwise.errors import InputError
from chipwise.prices.providers import provider_name

VERSION = "1.1"
CATEGORIES = ("Usage", "Purchase")
PRICING = ("Standard", "Dynamic", "Committed")
HOURS, CHIP_HOURS = "Hours", "Chip-Hours"
COLUMNS = (  # all that a row has, by name as the specification has them; x_ ones are ours
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountQuantity",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "CommitmentDiscountUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "Tags",
    "x_Estimate",
)
SERVICES = {  # what a charge is for: ServiceCategory and ServiceSubcategory as FOCUS allows them
    "compute": ("Compute", "Virtual Machines"),
    "storage": ("Storage", "Other (Storage)"),
    "network": ("Networking", "Other (Networking)"),
    "energy": ("Other", "Other (Other)"),
    "staff": ("Other", "Other (Other)"),
    "migration": ("Other", "Other (Other)"),
    "other": ("Other", "Other (Other)"),
}


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of an estimated bill, in US dollars or whatever currency the rows are written in."""

    provider: str  # the cloud's id, such as gcp, or "on-premises"
    region: str
    instance: str
    chip_id: str  # "" where the charge is for no chip
    chips: float  # of one instance
    description: str
    category: str  # "Usage" or "Purchase"
    pricing_category: str  # "Standard", "Dynamic" (spot) or "Committed"
    start: date
    end: date  # the first day after it
    quantity: float
    list_unit_price: float  # per unit, on demand at list price
    effective_cost: float  # what it really costs: spot price, amortised commitment
    unit: str = HOURS
    billed_cost: float | None = None  # None: the effective cost, or 0 where a commitment was paid already
    service: str = "compute"
    tags: Mapping[str, str] = field(default_factory=dict)
    idle: bool = False  # a commitment that was paid for and not used

    def __post_init__(self) -> None:
        if self.category not in CATEGORIES:
            raise InputError("category", self.category, f"one of {', '.join(CATEGORIES)}")
        if self.pricing_category not in PRICING:
            raise InputError("pricing_category", self.pricing_category, f"one of {', '.join(PRICING)}")
        if self.category == "Purchase" and self.pricing_category == "Committed":
            raise InputError("pricing_category", "Committed", "Standard: the purchase of a commitment has no discount")
        if self.idle and (self.category, self.pricing_category) != ("Usage", "Committed"):
            raise InputError("idle", self.idle, "committed usage: nothing else is paid for unused")
        if self.service not in SERVICES:
            raise InputError("service", self.service, f"one of {', '.join(SERVICES)}")
        if self.end <= self.start:
            raise InputError("end", str(self.end), f"a day after the start, {self.start}")
        numbers = {
            "quantity": self.quantity,
            "list_unit_price": self.list_unit_price,
            "effective_cost": self.effective_cost,
            "billed_cost": self.billed_cost or 0.0,
        }
        for name, value in numbers.items():
            if not 0 <= value < math.inf:
                raise InputError(name, value, "a number of at least 0")

    @property
    def list_cost(self) -> float:
        """What the list asks for it."""
        return self.quantity * self.list_unit_price

    @property
    def contracted_unit_price(self) -> float:
        """Per unit as agreed, before any commitment: the list's for committed usage, else what is paid."""
        if self.pricing_category == "Committed" or self.category == "Purchase" or not self.quantity:
            return self.list_unit_price
        return self.effective_cost / self.quantity

    @property
    def billed(self) -> float:
        """On the invoice of the period: committed usage was paid for with the commitment."""
        if self.billed_cost is not None:
            return self.billed_cost
        return 0.0 if self.pricing_category == "Committed" else self.effective_cost


def focus_rows(
    charges: Iterable[Charge], account: str = "chipwise estimate", currency: str = "USD"
) -> list[dict[str, str]]:
    """One row of FOCUS 1.1 for each charge, every column of `COLUMNS` in that order.

    >>> day = date(2026, 9, 1)
    >>> hours = Charge("gcp", "us-central1", "a3-highgpu-8g", "h100", 8, "h100 on demand", "Usage", "Standard", day,
    ...                date(2026, 9, 2), 24.0, 88.0, 24.0 * 80.0)
    >>> row = focus_rows([hours])[0]
    >>> row["EffectiveCost"], row["ListCost"], row["ChargePeriodStart"], row["PricingUnit"]
    ('1920', '2112', '2026-09-01T00:00:00Z', 'Hours')
    """
    return [_row(charge, account, currency) for charge in charges]


def _row(c: Charge, account: str, currency: str) -> dict[str, str]:
    provider = provider_name(c.provider)
    opens, closes = _month(c.start), _month(c.end, after=True)
    usage, committed = c.category == "Usage", c.pricing_category == "Committed"
    sku = _key(c.provider, c.region, c.instance, c.chip_id, c.unit, c.service)
    price = _key(sku, c.pricing_category)
    values = {
        "BilledCost": _number(c.billed),
        "BillingAccountId": account,
        "BillingAccountName": account,
        "BillingCurrency": currency,
        "BillingPeriodEnd": _time(closes),
        "BillingPeriodStart": _time(opens),
        "ChargeCategory": c.category,
        "ChargeDescription": c.description,
        "ChargeFrequency": "Usage-Based" if usage else "One-Time",
        "ChargePeriodEnd": _time(c.end),
        "ChargePeriodStart": _time(c.start),
        "ContractedCost": _number(c.contracted_unit_price * c.quantity),
        "ContractedUnitPrice": _number(c.contracted_unit_price),
        "EffectiveCost": _number(c.effective_cost),
        "InvoiceIssuerName": provider,
        "ListCost": _number(c.list_cost),
        "ListUnitPrice": _number(c.list_unit_price),
        "PricingCategory": c.pricing_category,
        "PricingQuantity": _number(c.quantity),
        "PricingUnit": c.unit,
        "ProviderName": provider,
        "PublisherName": provider,
        "RegionId": c.region,
        "RegionName": c.region,
        "ServiceCategory": SERVICES[c.service][0],
        "ServiceName": f"{provider} {c.service}",
        "ServiceSubcategory": SERVICES[c.service][1],
        "SkuId": sku,
        "SkuMeter": c.instance or c.description,
        "SkuPriceDetails": _details(c),
        "SkuPriceId": price,
        "Tags": json.dumps(dict(c.tags), sort_keys=True) if c.tags else "",
        "x_Estimate": "chipwise",
    }
    if usage:
        name = c.instance or c.description
        values |= {
            "ConsumedQuantity": values["PricingQuantity"],
            "ConsumedUnit": c.unit,
            "ResourceId": sku,
            "ResourceName": name,
            "ResourceType": "Accelerator instance" if c.chip_id else c.service,
        }
    if usage and committed:
        values |= {
            "CommitmentDiscountCategory": "Usage",
            "CommitmentDiscountId": f"estimate-{price}",
            "CommitmentDiscountName": f"committed use of {c.instance or c.chip_id}",
            "CommitmentDiscountStatus": "Unused" if c.idle else "Used",
            "CommitmentDiscountType": "committed use",
            "CommitmentDiscountUnit": c.unit,
            "CommitmentDiscountQuantity": values["PricingQuantity"],
        }
    if c.idle:
        values |= {"ConsumedQuantity": "", "ConsumedUnit": ""}
    return {column: values.get(column, "") for column in COLUMNS}


def _details(c: Charge) -> str:
    """What one unit is: an instance with its chips, or one chip."""
    if not c.chip_id:
        return ""
    count = 1.0 if c.unit == CHIP_HOURS else c.chips
    details = {
        "GpuCount": _plain(count),
        "InstanceType": c.instance,
        "x_Chip": c.chip_id,
        "x_ChipsPerInstance": _plain(c.chips),
    }
    return json.dumps(details, sort_keys=True)


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _number(value: float) -> str:
    """A decimal without exponent, to twelve significant digits."""
    if value == 0:
        return "0"
    digits = max(0, 11 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _time(day: date) -> str:
    """Midnight UTC as ISO 8601."""
    return f"{day.isoformat()}T00:00:00Z"


def _month(day: date, after: bool = False) -> date:
    """The first of a day's month; `after`: the first day that no charge which ends on `day` reaches."""
    if not after:
        return day.replace(day=1)
    if day.day == 1:
        return day
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _key(*parts: str) -> str:
    """A short name for the same thing each time."""
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
