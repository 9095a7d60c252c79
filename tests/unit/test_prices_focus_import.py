"""FOCUS bills read as own prices: what counts, what doesn't, and how clouds write instance types."""

import csv
import gzip
from pathlib import Path

import pytest

from chipwise.catalog.currencies import currencies
from chipwise.errors import InputError
from chipwise.prices.custom_prices import PRICES
from chipwise.prices.focus_import import read_focus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "prices"
HOURS = {
    "ChargeCategory": "Usage",
    "PricingCategory": "Standard",
    "PricingUnit": "Hours",
    "BillingCurrency": "USD",
    "ProviderName": "AWS",
    "RegionId": "us-east-1",
    "ChargePeriodStart": "2026-10-01T00:00:00Z",
    "ChargeDescription": "$55.04 per On Demand Linux p5.48xlarge Instance Hour",
}


def bill(tmp_path, *rows, name="bill.csv", drop=()):
    rows = [
        {
            **HOURS,
            "ChargeClass": "",
            "CommitmentDiscountStatus": "",
            "SkuPriceDetails": "",
            "x_SkuMeterName": "",
            "x_UsageType": "",
            "x_SystemLabels": "",
            **row,
        }
        for row in rows
    ]
    columns = [c for c in rows[0] if c not in drop]
    path = tmp_path / name
    with gzip.open(path, "wt", newline="") if name.endswith(".gz") else path.open("w", newline="") as f:
        writer = csv.DictWriter(f, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def row(cost, hours, **more):
    return {"EffectiveCost": str(cost), "PricingQuantity": str(hours), **more}


def prices(found, i=0):
    return {name: usd for name, usd in zip(PRICES, found.rows[i].prices, strict=True) if usd is not None}


def left(found):
    return {each.reason: (each.rows, each.usd) for each in found.left_out}


def test_the_price_is_cost_over_hours_whatever_the_lines(tmp_path):
    """24 h at $40 and 8 h at $56 an instance: (960 + 448) / 32 = $44 an hour."""
    found = read_focus([bill(tmp_path, row(960, 24), row(448, 8))])
    assert prices(found) == {"ondemand_usd_h": 44.0} and found.rows[0].chips == 8


def test_standard_dynamic_and_committed_are_the_three_kinds_of_terms(tmp_path):
    path = bill(tmp_path, row(44, 1), row(20, 1, PricingCategory="Dynamic"), row(30, 1, PricingCategory="Committed"))
    assert prices(read_focus([path], years=3)) == {"ondemand_usd_h": 44.0, "spot_usd_h": 20.0, "year3_usd_h": 30.0}
    with pytest.raises(InputError, match="years: missing; expected 1 or 3"):
        read_focus([path])


def test_only_usage_counts_and_the_rest_is_said_with_its_cost(tmp_path):
    found = read_focus(
        [
            bill(
                tmp_path,
                row(44, 1),
                row(8, 0, ChargeCategory="Tax"),
                row(-5, 0, ChargeCategory="Credit"),
                row(900, 0, ChargeCategory="Purchase"),
                row(7, 0, CommitmentDiscountStatus="Unused"),
                row(3, 1, ChargeDescription="m5.xlarge"),
                row(2, 1, ChargeDescription="p2.xlarge"),
                row(1, 5, PricingUnit="Requests"),
                row(4, 1, PricingCategory="Other"),
            )
        ]
    )
    assert prices(found) == {"ondemand_usd_h": 44.0} and (found.read, found.used) == (9, 1)
    assert left(found) == {
        "Tax as ChargeCategory, not usage": (1, 8),
        "Credit as ChargeCategory, not usage": (1, -5),
        "Purchase as ChargeCategory, not usage": (1, 900),
        "commitments that lay idle": (1, 7),
        "not an accelerator": (1, 3),
        "unknown accelerator p2.xlarge": (1, 2),
        "in Requests, not in hours": (1, 1),
        "usage with Other as PricingCategory": (1, 4),
    }


def test_corrections_count_with_their_cost_and_their_hours(tmp_path):
    """10 h for $440, of which 2 h and $88 were billed twice, and $16 came back: (440 - 88 - 16) / 8 = $42."""
    found = read_focus(
        [
            bill(
                tmp_path,
                row(440, 10),
                row(-88, -2, ChargeClass="Correction"),
                row(-16, "", ChargeClass="Correction", PricingUnit=""),
                row(-9, 0, ChargeClass="Correction", PricingCategory=""),
            )
        ]
    )
    assert prices(found) == {"ondemand_usd_h": 42.0} and found.used == 3
    assert left(found) == {"a correction with nothing as PricingCategory": (1, -9)}


def test_what_was_free_has_no_price(tmp_path):
    found = read_focus([bill(tmp_path, row(44, 1), row(0, 5, RegionId="us-east-2"))])
    assert len(found.rows) == 1 and left(found) == {"usage that was free or refunded": (1, 0)}


INSTANCES = {
    "AWS, description": ("AWS", {}, "p5.48xlarge"),
    "AWS, usage type": (
        "Amazon Web Services",
        {"ChargeDescription": "", "x_UsageType": "USW2-SpotUsage:p4d.24xlarge"},
        "p4d.24xlarge",
    ),
    "AWS, a family with a hyphen": (
        "AWS",
        {"ChargeDescription": "$114 per On Demand Linux p6-b200.48xlarge Instance Hour"},
        "p6-b200.48xlarge",
    ),
    "AWS, Trainium": ("AWS", {"ChargeDescription": "trn2.48xlarge"}, "trn2.48xlarge"),
    "Azure, meter": (
        "Microsoft",
        {"ChargeDescription": "", "x_SkuMeterName": "ND96isr H100 v5 Spot"},
        "Standard_ND96isr_H100_v5",
    ),
    "Azure, meter with the chip": ("Microsoft", {"ChargeDescription": "ND96asr A100 v4"}, "ND96asr A100 v4"),
    "Azure, description": (
        "Microsoft",
        {"ChargeDescription": "Virtual Machines NCads Series - NC24adsA100v4 - US East"},
        "Standard_NC24ads_A100_v4",
    ),
    "Azure, properties": (
        "Microsoft",
        {"ChargeDescription": "", "SkuPriceDetails": '{"InstanceType": "NC96ads_A100_v4"}'},
        "Standard_NC96ads_A100_v4",
    ),
    "Google, a slice": ("Google Cloud", {"ChargeDescription": "v5litepod-16 slice"}, "v5litepod-16"),
    "Google, GKE": ("Google Cloud", {"ChargeDescription": "ct5lp-hightpu-4t"}, "ct5lp-hightpu-4t"),
    "Oracle": ("Oracle", {"ChargeDescription": "BM.GPU.H100.8"}, "BM.GPU.H100.8"),
    "Lambda": (
        "Lambda",
        {"ChargeDescription": "", "SkuPriceDetails": '{"F_InstanceType": "gpu_8x_h100_sxm5"}'},
        "gpu_8x_h100_sxm5",
    ),
    "another, by its properties": (
        "CoreWeave",
        {"ChargeDescription": "", "SkuPriceDetails": '{"GpuType": "H100", "GpuCount": 8, "InstanceType": "gd-8xh100"}'},
        "gd-8xh100",
    ),
}


@pytest.mark.parametrize("case", INSTANCES)
def test_instances_are_found_as_clouds_write_them(case, tmp_path):
    provider, cells, instance = INSTANCES[case]
    found = read_focus([bill(tmp_path, row(80, 2, ProviderName=provider, **cells))])
    assert found.rows[0].instance == instance and found.rows[0].prices[0] == 40.0


def test_google_bills_cores_memory_and_gpus_apart(tmp_path):
    """8 GPUs for 10 h: 80 chip-hours for 640 + 60 + 20 dollars are $9 a chip-hour, $72 an instance-hour."""
    labels = {
        "ProviderName": "Google Cloud",
        "RegionId": "us-central1",
        "x_SystemLabels": '{"compute.googleapis.com/machine_spec": "a3-highgpu-8g"}',
    }
    found = read_focus(
        [
            bill(
                tmp_path,
                row(640, 80, PricingUnit="hour", ChargeDescription="Nvidia H100 80GB GPU running in Iowa", **labels),
                row(60, 2080, PricingUnit="hour", ChargeDescription="A3 Instance Core running in Iowa", **labels),
                row(
                    20,
                    18720,
                    PricingUnit="gibibyte hour",
                    ChargeDescription="A3 Instance Ram running in Iowa",
                    **labels,
                ),
            )
        ]
    )
    assert prices(found) == {"ondemand_usd_h": 72.0} and found.rows[0].instance == "a3-highgpu-8g"
    assert not found.rows[0].note.startswith("accelerator only")


def test_hosts_whose_chips_are_not_in_the_bill_have_no_price(tmp_path):
    host = {"ProviderName": "Google Cloud", "x_SystemLabels": "a2-highgpu-8g", "ChargeDescription": "A2 Instance Core"}
    found = read_focus([bill(tmp_path, row(44, 1), row(60, 960, **host))])
    assert left(found) == {"hosts without lines for their chips": (1, 60)}


def test_gpus_without_an_instance_are_priced_alone_and_say_so(tmp_path):
    gpu = {"ProviderName": "Google Cloud", "ChargeDescription": "Nvidia Tesla A100 GPU running in Iowa"}
    found = read_focus([bill(tmp_path, row(293, 100, **gpu))])
    assert (found.rows[0].chip_id, found.rows[0].instance) == ("a100-40gb", "any")
    assert found.rows[0].prices[0] / found.rows[0].chips == pytest.approx(2.93)
    assert found.rows[0].note.startswith("accelerator only") and any("alone" in line for line in found.assumptions)


def test_old_tpus_that_are_billed_by_the_board_are_not_guessed_at(tmp_path):
    old = {"ProviderName": "Google Cloud", "ChargeDescription": "TPU v2 in Iowa"}
    found = read_focus([bill(tmp_path, row(44, 1), row(45, 10, **old))])
    assert left(found) == {"unknown accelerator TPU v2 in Iowa": (1, 45)}


def test_other_currencies_need_a_rate(tmp_path):
    path = bill(tmp_path, row(100, 2, BillingCurrency="XAF"))
    assert prices(read_focus([path], {"XAF": 0.5})) == {"ondemand_usd_h": pytest.approx(25.0)}
    with pytest.raises(InputError, match=r"bill.csv line 2 BillingCurrency: 'XAF'"):
        read_focus([path])


def test_a_bill_in_a_listed_currency_is_read_at_the_dated_rate(tmp_path):
    path = bill(tmp_path, row(100, 2, BillingCurrency="EUR"))
    assert prices(read_focus([path])) == {"ondemand_usd_h": pytest.approx(50.0 * currencies()["EUR"].usd)}
    assert prices(read_focus([path], {"EUR": 1.1})) == {"ondemand_usd_h": pytest.approx(55.0)}


def test_a_bill_may_be_packed_and_come_in_several_files(tmp_path):
    one = bill(tmp_path, row(40, 1), name="one.csv.gz")
    two = bill(tmp_path, row(44, 1, ChargePeriodStart="2026-10-09 00:00:00 UTC"), name="two.csv")
    found = read_focus([one, two])
    assert prices(found) == {"ondemand_usd_h": 42.0} and found.rows[0].date == "2026-10-09"
    assert "one.csv.gz, two.csv" in found.rows[0].source


WRONG = {
    "a cost in words": ({"EffectiveCost": "much"}, "bill.csv line 2 EffectiveCost: 'much'"),
    "no cost": ({"EffectiveCost": ""}, "bill.csv line 2 EffectiveCost: missing"),
    "a cost without end": ({"EffectiveCost": "inf"}, "bill.csv line 2 EffectiveCost: 'inf'"),
    "a quantity in words": ({"PricingQuantity": "some"}, "bill.csv line 2 PricingQuantity: 'some'"),
    "no time": ({"ChargePeriodStart": "yesterday"}, "bill.csv line 2 ChargePeriodStart: 'yesterday'"),
    "broken properties": ({"SkuPriceDetails": '{"InstanceType"'}, "bill.csv line 2 SkuPriceDetails"),
    "nothing of use": ({"ChargeDescription": "m5.large"}, "usage of a chip that is known (1 not an accelerator)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_line_that_cannot_be_used_is_named(case, tmp_path):
    cells, said = WRONG[case]
    with pytest.raises(InputError) as caught:
        read_focus([bill(tmp_path, {**row(44, 1), **cells})])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "column", ["EffectiveCost", "PricingCategory", "PricingUnit", "ProviderName", "BillingCurrency"]
)
def test_a_column_that_is_missing_is_named(column, tmp_path):
    with pytest.raises(InputError, match=f"the column {column}"):
        read_focus([bill(tmp_path, row(44, 1), drop=(column,))])


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "empty.csv", "isn't empty"),
        (b"\xff\xfe", "binary.csv", "UTF-8"),
        (b"plain", "not.csv.gz", "readable file"),
    ],
)
def test_a_file_that_is_no_bill_is_one_line(content, name, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_focus([tmp_path / name])
    with pytest.raises(InputError, match="no such file"):
        read_focus([tmp_path / "nowhere.csv"])
    with pytest.raises(InputError, match="a file, not a folder"):
        read_focus([tmp_path])


def test_a_packed_bill_that_ends_too_soon_is_one_line(tmp_path):
    path = bill(tmp_path, *[row(44 + i, 1) for i in range(2000)], name="cut.csv.gz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="readable file"):
        read_focus([path])


def test_the_examples_give_the_prices_worked_out_by_hand():
    """AWS: (24 + 12 - 2) h at 46.784 on demand, 30 h at 22.60 spot, 48 h at 34.00 committed."""
    aws = read_focus([EXAMPLES / "focus-aws.csv"], years=1)
    assert prices(aws) == pytest.approx({"ondemand_usd_h": 46.784, "spot_usd_h": 22.6, "year1_usd_h": 34.0})
    google = {r.chip_id: r for r in read_focus([EXAMPLES / "focus-gcp.csv"]).rows}
    assert google["h100"].prices[0] == pytest.approx(8 * 7.80 + 5.2 + 2.0)
    assert google["v5p"].prices[:2] == pytest.approx((4 * 3.36, 4 * 1.62))
    azure = read_focus([EXAMPLES / "focus-azure-eur.csv"], {"EUR": 1.08}, years=3)
    assert prices(azure, 0) == pytest.approx({"year3_usd_h": 2.1 * 1.08})
    assert prices(azure, 1) == pytest.approx({"ondemand_usd_h": 72.0 * 1.08, "spot_usd_h": 31.5 * 1.08})
