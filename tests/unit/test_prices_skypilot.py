"""SkyPilot catalogs read as own prices: hosts and chips apart, slices by their names, nothing dropped in silence."""

from pathlib import Path

import pytest

from chipwise.errors import InputError
from chipwise.prices import read_custom_prices
from chipwise.prices.custom_prices import custom_prices_csv
from chipwise.prices.skypilot import (
    NO_CHIPS,
    NO_HOST,
    NO_PRICE,
    NOT_ACCELERATORS,
    ONE_EMPTY,
    PLACEHOLDER,
    SAME,
    read_skypilot,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "prices" / "skypilot"
HEAD = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region,AvailabilityZone"


def catalog(tmp_path, *lines, cloud="aws", head=HEAD):
    folder = tmp_path / cloud
    folder.mkdir(exist_ok=True)
    path = folder / "vms.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def found(tmp_path, *lines, cloud="aws"):
    return read_skypilot([catalog(tmp_path, *lines, cloud=cloud)], dated="2026-08-22")


def offers(imported):
    return [(r.chip_id, r.region, r.instance, r.chips, *r.prices[:2]) for r in imported.rows]


def left(imported):
    return {each.reason: each.rows for each in imported.left_out}


def test_a_regions_price_is_that_of_its_cheapest_zone(tmp_path):
    got = found(
        tmp_path,
        "p5.48xlarge,H100,8.0,55.04,24.0,us-east-1,a",
        "p5.48xlarge,H100,8.0,55.04,22.5,us-east-1,b",
        "p5.48xlarge,H100,8.0,60.00,30.0,us-west-1,a",
    )
    assert offers(got) == [
        ("h100", "us-east-1", "p5.48xlarge", 8, 55.04, 22.5),
        ("h100", "us-west-1", "p5.48xlarge", 8, 60.0, 30.0),
    ]
    assert (got.read, got.used) == (3, 3)


def test_googles_hosts_and_chips_are_added_by_zone(tmp_path):
    got = found(
        tmp_path,
        "a2-highgpu-8g,,,6.0,3.0,us-central1,a",
        "a2-highgpu-8g,,,6.0,2.0,us-central1,b",
        "a3-highgpu-8g,,,9.0,3.0,us-central1,a",
        "a3-megagpu-8g,,,12.0,4.0,us-central1,a",
        ",A100,8,24.0,12.0,us-central1,a",
        ",A100,8,24.0,12.5,us-central1,b",
        ",H100-MEGA,8,74.0,20.0,us-central1,a",
        ",A100,4,12.0,6.0,us-central1,a",
        cloud="gcp",
    )
    assert offers(got) == [
        ("a100-40gb", "us-central1", "a2-highgpu-8g", 8, 30.0, 14.5),
        ("h100", "us-central1", "a3-megagpu-8g", 8, 86.0, 24.0),
    ]
    assert left(got) == {NO_HOST: 1, NO_CHIPS: 1} and got.read == 8 == got.used + 2


def test_one_accelerator_may_have_several_hosts(tmp_path):
    got = found(
        tmp_path,
        "g2-standard-4,,,0.15,0.05,us-east1,b",
        "g2-standard-8,,,0.3,0.1,us-east1,b",
        ",L4,1,0.56,0.2,us-east1,b",
        cloud="gcp",
    )
    assert [(r.instance, round(r.prices[0], 2)) for r in got.rows] == [("g2-standard-4", 0.71), ("g2-standard-8", 0.86)]


@pytest.mark.parametrize(
    ("name", "chip", "chips"),
    [
        ("tpu-v2-8", "v2", 4),
        ("tpu-v3-32", "v3", 16),
        ("tpu-v4-8", "v4", 4),
        ("tpu-v5p-8", "v5p", 4),
        ("tpu-v5p-12288", "v5p", 6144),
        ("tpu-v5litepod-16", "v5e", 16),
        ("tpu-v6e-8", "v6e", 8),
    ],
)
def test_names_of_slices_count_cores_or_chips(name, chip, chips, tmp_path):
    got = found(tmp_path, f",{name},1,16.8,6.72,us-east5,a", cloud="gcp")
    assert offers(got) == [(chip, "us-east5", name.removeprefix("tpu-"), chips, 16.8, 6.72)]


def test_chips_attached_to_a_plain_host_say_that_the_host_is_extra(tmp_path):
    got = found(tmp_path, ",T4,1,0.35,0.2,us-east1,b", ",T4,4,1.4,0.8,us-east1,b", cloud="gcp")
    assert [r.chips for r in got.rows] == [1, 4]
    assert {r.note for r in got.rows} == {"accelerator only; the N1 host VM is extra"}
    path = tmp_path / "own.csv"
    path.write_text(custom_prices_csv(got.rows), encoding="utf-8")
    assert len(read_custom_prices(path).offers) == 2


def test_the_instance_says_which_chip_where_the_name_does_not(tmp_path):
    """Lambda and RunPod call their PCIe cards H100, Amazon leaves Trainium2 without a name, Azure's count is wrong."""
    assert found(tmp_path, "gpu_1x_h100_pcie,H100,1,3.29,,us-east-1,", cloud="lambda").rows[0].chip_id == "h100-pcie"
    assert offers(found(tmp_path, "trn2.48xlarge,,,,8.6,us-east-2,a")) == [
        ("trainium2", "us-east-2", "trn2.48xlarge", 16, None, 8.6)
    ]
    assert found(tmp_path, "Standard_ND96isr_H100_v5,H100,12,98.32,,eastus,", cloud="azure").rows[0].chips == 8


def test_an_instance_that_is_new_goes_by_its_name_and_count(tmp_path):
    assert offers(found(tmp_path, "p9.48xlarge,H200,16,100,50,us-east-1,a")) == [
        ("h200", "us-east-1", "p9.48xlarge", 16, 100.0, 50.0)
    ]


def test_what_cannot_be_used_is_counted(tmp_path):
    got = found(
        tmp_path,
        "p5.48xlarge,H100,8,55.04,24,us-east-1,a",
        "a1.large,,,0.05,0.05,us-east-1,a",
        "g5g.xlarge,T4g,1,0.42,0.17,us-east-1,a",
        "g3.4xlarge,M60,1,1.14,0.5,us-east-1,a",
        "g3.8xlarge,M60,2,2.28,1.0,us-east-1,a",
        "p4d.24xlarge,A100,8,,0.0,us-east-1,a",
    )
    assert left(got) == {NOT_ACCELERATORS: 1, "unknown accelerator T4g": 1, "unknown accelerator M60": 2, NO_PRICE: 1}
    assert got.read == 6 and got.used == 1


def test_placeholders_are_left_out(tmp_path):
    got = found(
        tmp_path,
        ",tpu-v6e-1,1,700.0,700.0,asia-east1,c",
        ",tpu-v6e-8,1,700.0,700.0,asia-east1,c",
        ",tpu-v6e-8,1,21.6,700.0,us-east1,d",
        ",tpu-v6e-1,1,2.7,700.0,us-east1,d",
        cloud="gcp",
    )
    assert offers(got) == [("v6e", "us-east1", "v6e-1", 1, 2.7, None), ("v6e", "us-east1", "v6e-8", 8, 21.6, None)]
    assert left(got) == {PLACEHOLDER: 2, ONE_EMPTY: 2}


def test_a_spot_price_that_repeats_on_demand_is_left_empty(tmp_path):
    got = found(tmp_path, "1x_H200-SXM_SECURE,H200-SXM,1,3.99,3.99,US,", cloud="runpod")
    assert offers(got) == [("h200", "US", "1x_H200-SXM_SECURE", 1, 3.99, None)] and left(got) == {SAME: 1}


def test_the_cloud_is_that_of_the_folder_or_the_one_named(tmp_path):
    line = "gpu_8x_h100_sxm5,H100,8,31.92,,us-east-1,"
    path = catalog(tmp_path, line, cloud="somewhere")
    assert read_skypilot([path], cloud="lambda").rows[0].cloud == "lambda"
    with pytest.raises(InputError, match="cloud: missing"):
        read_skypilot([path])


def test_the_date_is_that_of_the_file_unless_said_and_is_said(tmp_path):
    path = catalog(tmp_path, "p5.48xlarge,H100,8,55.04,24,us-east-1,a")
    guessed = read_skypilot([path])
    assert "by the time of the file" in guessed.assumptions[0] and guessed.rows[0].date in guessed.assumptions[0]
    assert read_skypilot([path], dated="2026-08-22").assumptions == ()


WRONG = {
    "a negative price": ("p5.48xlarge,H100,8,-55,24,us-east-1,a", "vms.csv line 2 Price: '-55'"),
    "a price in words": ("p5.48xlarge,H100,8,55,low,us-east-1,a", "vms.csv line 2 SpotPrice: 'low'"),
    "no region": ("p5.48xlarge,H100,8,55,24,,a", "vms.csv line 2 Region: missing"),
    "no count": ("new.large,H100,,55,24,us-east-1,a", "vms.csv line 2 AcceleratorCount: missing"),
    "no instance": (",H100,8,55,24,us-east-1,a", "vms.csv line 2 InstanceType: missing"),
    "nothing of use": ("a1.large,,,0.05,0.05,us-east-1,a", "a row with an accelerator that is known"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_line_that_cannot_be_used_is_named(case, tmp_path):
    line, said = WRONG[case]
    with pytest.raises(InputError) as caught:
        found(tmp_path, line)
    assert said in str(caught.value)


def test_a_column_that_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match="the column SpotPrice"):
        read_skypilot([catalog(tmp_path, "a", head=HEAD.replace("SpotPrice,", ""))])


def test_the_examples_give_the_prices_worked_out_by_hand():
    got = read_skypilot(sorted(EXAMPLES.glob("*/vms.csv")), dated="2026-08-21")
    by = {(r.cloud, r.chip_id): r.prices[:2] for r in got.rows}
    assert by["gcp", "h100"] == pytest.approx((9.46006 + 78.3724, 2.88933 + 23.94))
    assert by["gcp", "a100-40gb"] == pytest.approx((5.91582 + 23.47126, 2.958 + 12.55))
    assert (
        by["gcp", "v5p"] == (16.8, 6.72)
        and by["aws", "h100"] == (55.04, 22.4043)
        and by["aws", "trainium2"] == (None, 8.5964)
    )
    assert got.read == 27 == got.used + sum(left(got).values())  # every row is used or said
