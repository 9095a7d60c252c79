"""Estimates as FOCUS rows: the columns and rules of the specification, and the way back through our own import."""

import csv
import io
import json
import re
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog import load
from chipwise.errors import InputError
from chipwise.prices import laid_over, listed, read_custom_prices
from chipwise.prices.custom_prices import PRICES, custom_prices_csv
from chipwise.prices.focus import COLUMNS, Charge, focus_rows
from chipwise.prices.focus_import import read_focus

DAY, NEXT = date(2026, 9, 30), date(2026, 10, 2)
# Allowed values and rules of FOCUS 1.1, https://focus.finops.org/focus-specification/v1-1/
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
    "CommitmentDiscountCategory": {"", "Spend", "Usage"},
    "CommitmentDiscountStatus": {"", "Used", "Unused"},
    "ServiceCategory": {
        "AI and Machine Learning",
        "Analytics",
        "Business Applications",
        "Compute",
        "Databases",
        "Developer Tools",
        "Multicloud",
        "Identity",
        "Integration",
        "Internet of Things",
        "Management and Governance",
        "Media",
        "Migration",
        "Mobile",
        "Networking",
        "Security",
        "Storage",
        "Web",
        "Other",
    },
}
MANDATORY = (  # feature level "Mandatory" of FOCUS 1.1
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
DECIMALS = [name for name in COLUMNS if name.endswith(("Cost", "Price", "Quantity"))]
TIMES = [name for name in COLUMNS if name.endswith(("PeriodStart", "PeriodEnd"))]


def faults(row):
    """What the specification forbids in a row."""
    found = [f"{name} is null" for name in MANDATORY if name != "ChargeClass" and not row.get(name)]
    found += [f"{name}: {row[name]}" for name, values in ALLOWED.items() if row[name] not in values]
    found += [f"{name}: {row[name]}" for name in DECIMALS if row[name] and not re.fullmatch(r"\d+(\.\d+)?", row[name])]
    for name in TIMES:
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name]) or not datetime.fromisoformat(row[name]):
            found.append(f"{name}: {row[name]}")
    if not row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]:
        found.append("a charge outside of its billing period")
    quantity = float(row["PricingQuantity"])
    for cost, price in (("ListCost", "ListUnitPrice"), ("ContractedCost", "ContractedUnitPrice")):
        if float(row[cost]) != pytest.approx(float(row[price]) * quantity, rel=1e-6, abs=1e-9):
            found.append(f"{cost} is not {price} x PricingQuantity")
    if row["ChargeCategory"] == "Purchase" and row["ChargeFrequency"] == "Usage-Based":
        found.append("a purchase that is usage-based")
    committed = row["PricingCategory"] == "Committed" and row["ChargeCategory"] == "Usage"
    for name in ("Category", "Id", "Name", "Quantity", "Status", "Type", "Unit"):
        if bool(row[f"CommitmentDiscount{name}"]) != committed:
            found.append(f"CommitmentDiscount{name}")
    if not row["ServiceSubcategory"] or (row["SkuId"] and not row["SkuMeter"]):
        found.append("ServiceSubcategory or SkuMeter")
    if committed and float(row["BilledCost"]) != 0 and float(row["BilledCost"]) == float(row["EffectiveCost"]):
        found.append("committed usage billed twice")
    if bool(row["SkuPriceId"]) < bool(row["SkuPriceDetails"]) or (
        row["SkuPriceDetails"] and not json.loads(row["SkuPriceDetails"])
    ):
        found.append("SkuPriceDetails")
    if not re.fullmatch(r"[A-Z]{3}", row["BillingCurrency"]):
        found.append("BillingCurrency")
    return found


def charge(**changes):
    how = {
        "provider": "gcp",
        "region": "us-central1",
        "instance": "a3-highgpu-8g",
        "chip_id": "h100",
        "chips": 8,
        "description": "h100 on demand",
        "category": "Usage",
        "pricing_category": "Standard",
        "start": DAY,
        "end": NEXT,
        "quantity": 48.0,
        "list_unit_price": 88.0,
        "effective_cost": 48.0 * 80.0,
    }
    return Charge(**{**how, **changes})


CHARGES = {
    "on demand": charge(),
    "spot": charge(pricing_category="Dynamic", effective_cost=48 * 30.0),
    "committed": charge(pricing_category="Committed", effective_cost=48 * 50.0),
    "committed and not used": charge(
        pricing_category="Committed", effective_cost=48 * 50.0, list_unit_price=0.0, idle=True
    ),
    "by the chip-hour": charge(unit="Chip-Hours", quantity=384.0, list_unit_price=11.0, effective_cost=384 * 10.0),
    "the purchase of a commitment": charge(
        category="Purchase", quantity=1.0, unit="Commitments", list_unit_price=9e5, effective_cost=0.0, billed_cost=9e5
    ),
    "storage": charge(
        chip_id="",
        chips=0,
        instance="",
        unit="GB-Months",
        service="storage",
        quantity=1000.0,
        list_unit_price=0.02,
        effective_cost=20.0,
        description="checkpoints",
    ),
    "energy on premises": charge(
        provider="on-premises",
        region="own",
        service="energy",
        unit="kWh",
        chip_id="",
        instance="",
        quantity=1e6,
        list_unit_price=0.083,
        effective_cost=83_000.0,
    ),
    "tiny": charge(quantity=1e-3, effective_cost=1e-6, list_unit_price=1e-7),
    "December": charge(start=date(2026, 12, 31), end=date(2027, 1, 1)),
    "nothing": charge(quantity=0.0, effective_cost=0.0),
}


@pytest.mark.parametrize("case", CHARGES)
def test_a_row_keeps_the_rules_of_the_specification(case):
    row = focus_rows([CHARGES[case]])[0]
    assert faults(row) == [] and tuple(row) == COLUMNS and set(MANDATORY) <= set(row)
    assert all(isinstance(value, str) for value in row.values())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("BilledCost", ""),
        ("EffectiveCost", "1e-3"),
        ("ListCost", "1"),
        ("ChargeCategory", "usage"),
        ("ChargePeriodStart", "2026-09-30"),
        ("ChargePeriodEnd", "2026-09-01T00:00:00Z"),
        ("PricingCategory", "Spot"),
        ("CommitmentDiscountId", "x"),
        ("BillingCurrency", "dollars"),
        ("ServiceCategory", "GPUs"),
    ],
)
def test_the_rules_find_what_is_wrong(column, value):
    assert faults({**focus_rows([charge()])[0], column: value})


def test_there_are_twenty_one_mandatory_columns_and_custom_ones_are_marked():
    assert len(set(MANDATORY)) == 21 and len(set(COLUMNS)) == len(COLUMNS)
    assert [name for name in COLUMNS if name.startswith("x_")] == ["x_Estimate"]


def test_committed_usage_is_billed_with_the_commitment_and_costs_its_share():
    row = focus_rows([CHARGES["committed"]])[0]
    assert (row["BilledCost"], row["EffectiveCost"], row["ContractedCost"]) == ("0", "2400", "4224")


def test_a_billing_period_is_whole_months():
    row = focus_rows([charge()])[0]
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == ("2026-09-01T00:00:00Z", "2026-11-01T00:00:00Z")
    assert focus_rows([CHARGES["December"]])[0]["BillingPeriodEnd"] == "2027-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"category": "Tax"},
        {"pricing_category": "Spot"},
        {"category": "Purchase", "pricing_category": "Committed"},
        {"end": DAY},
        {"quantity": -1.0},
        {"list_unit_price": float("nan")},
        {"effective_cost": float("inf")},
        {"billed_cost": -1.0},
        {"service": "tea"},
        {"idle": True},
    ],
)
def test_a_charge_that_no_bill_has_is_refused(changes):
    with pytest.raises(InputError):
        charge(**changes)


def round_trip(charges, folder, years=1, rates=None, **how):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(focus_rows(charges, **how))
    bill = folder / "bill.csv"
    bill.write_text(text.getvalue(), encoding="utf-8")
    return read_focus([bill], rates or {}, years)


def test_our_export_read_back_gives_the_prices_that_went_in(tmp_path):
    found = round_trip([CHARGES["on demand"], CHARGES["spot"], CHARGES["committed"], CHARGES["storage"]], tmp_path)
    (row,) = found.rows
    assert (row.chip_id, row.cloud, row.region, row.instance, row.chips) == (
        "h100",
        "gcp",
        "us-central1",
        "a3-highgpu-8g",
        8,
    )
    assert dict(zip(PRICES, row.prices, strict=True)) == {
        "ondemand_usd_h": 80.0,
        "spot_usd_h": 30.0,
        "year1_usd_h": 50.0,
        "year3_usd_h": None,
    }
    assert (found.read, found.used) == (4, 3) and row.date == "2026-09-30"
    by_chip = round_trip([CHARGES["by the chip-hour"]], tmp_path).rows[0]
    assert (by_chip.prices[0], by_chip.chips) == (80.0, 8) and "accelerator only" not in by_chip.note
    uncounted = charge(chips=1, unit="Chip-Hours", quantity=384.0, list_unit_price=11.0, effective_cost=384 * 10.0)
    assert round_trip([uncounted], tmp_path).rows[0].chips == 8  # the instance is known


def test_the_prices_of_our_export_lie_over_the_list(tmp_path):
    found = round_trip([charge(effective_cost=48 * 8.0)], tmp_path)
    path = tmp_path / "own.csv"
    path.write_text(custom_prices_csv(found.rows), encoding="utf-8")
    book = laid_over(listed(), read_custom_prices(path, today=date(2026, 11, 1)))
    assert book.offers_for("h100")[0].ondemand_usd_per_chip_hour == 1.0


OFFERS = [o for o in load().offers if o.ondemand_usd_per_chip_hour and not o.instance.startswith("(")]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(OFFERS),
    st.floats(0.01, 30.0),
    st.floats(0.1, 1e5),
    st.sampled_from(["Hours", "Chip-Hours"]),
    st.sampled_from([("EUR", 1.08), ("USD", 1.0)]),
)
def test_any_offer_survives_the_way_out_and_back(tmp_path_factory, offer, usd, hours, unit, currency):
    each = usd if unit == "Chip-Hours" else usd * offer.chips
    made = charge(
        provider=offer.cloud,
        region=offer.region,
        instance=offer.instance,
        chip_id=offer.chip_id,
        chips=offer.chips,
        unit=unit,
        quantity=hours,
        list_unit_price=each,
        effective_cost=each * hours,
    )
    row = focus_rows([made])[0]
    assert faults(row) == []
    code, rate = currency
    found = round_trip([made], tmp_path_factory.mktemp("bill"), rates={code: rate}, currency=code)
    assert found.rows[0].prices[0] == pytest.approx(usd * offer.chips * rate, rel=1e-6)
    assert (found.rows[0].cloud, found.rows[0].chips) == (offer.cloud, offer.chips)
