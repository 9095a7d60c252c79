"""chipwise cost as people run it: formats that agree, bad input in one line, files whole or absent."""

import csv
import io
import json
import os

import pytest
from command import EXAMPLE, ROOT, chipwise, good

from chipwise.cost import PARTS, PRICING_MODELS
from chipwise.prices.focus_import import read_focus

TRAIN = ("cost", EXAMPLE, "--on", "h100:64,v5p:64", "--framework", "pytorch", "--custom-kernels", "2", "--runs", "10")
SERVE = ("cost", str(ROOT / "examples" / "llama-3.1-70b-serve.yaml"), "--on", "h100,v6e")


@pytest.fixture(scope="module")
def trained():
    return json.loads(good(*TRAIN, "-o", "json"))


@pytest.fixture(scope="module")
def served():
    return json.loads(good(*SERVE, "-o", "json"))


def test_every_pricing_model_of_a_run_is_there_with_its_parts(trained):
    assert trained["command"] == "cost" and trained["kind"] == "train"
    for s in trained["statements"]:
        assert s["basis"] == "run"
        assert sorted([t["pricing"] for t in s["options"]] + [m["pricing"] for m in s["missing"]]) == sorted(
            PRICING_MODELS
        )
        for t in s["options"]:
            assert set(t["split_usd"]) == set(PARTS) and t["usd"] == pytest.approx(sum(t["split_usd"].values()))
            assert t["usd_range"]["p10"] <= t["usd_range"]["p50"] <= t["usd_range"]["p90"]
            assert list(t["usd_per"]) == ["run", "step", "1M_tokens"]
            assert t["quote"]["date"] and isinstance(t["quote"]["stale"], bool) and t["quote"]["source"]
            assert t["expected"]["wall_seconds"] / 3600 == pytest.approx(t["hours"])
        assert s["assumed"] and all(a["source"] and a["date"] for a in s["assumed"])


def test_a_service_is_billed_by_the_month(served):
    assert served["kind"] == "serve"
    for s in served["statements"]:
        assert s["basis"] == "month"
        for t in s["options"]:
            per = t["usd_per"]
            assert per["month"] == t["usd"] and per["hour"] == pytest.approx(t["usd"] / 730.5)
            assert (
                per["1M_tokens_out"] > per["1M_tokens_in_and_out"] > 0
                and per["1M_tokens_out"] > per["1000_inferences"] > 0
            )


def test_the_full_table_has_every_section():
    said = good(*TRAIN, "--full")
    for words in (
        "What h100:64 is paid for",
        "Checkpoints, failures and interruptions on h100:64",
        "Commitments for v5p:4x4x4",
        "On-premises h100:64",
        "Against the cheapest of every cloud",
        "Migration to v5p:4x4x4: 16 engineer-weeks",
        "What matters most to",
        "Assumptions",
        "v5p is not sold",
        "* marks stale prices",
    ):
        assert words in said, words


def test_an_offline_job_has_a_cost_of_its_own():
    said = json.loads(good("cost", str(ROOT / "examples" / "llama-3.1-8b-offline.yaml"), "--on", "h100", "-o", "json"))
    term = said["statements"][0]["options"][0]
    assert said["statements"][0]["basis"] == "job" and term["usd_per"]["job"] == term["usd"]


def test_csv_has_a_row_for_every_pricing_model(trained):
    rows = list(csv.DictReader(io.StringIO(good(*TRAIN, "-o", "csv"))))
    assert len(rows) == 2 * len(PRICING_MODELS)
    known = {(s["accelerators"]["name"], t["pricing"]): t["usd"] for s in trained["statements"] for t in s["options"]}
    got = {(r["accelerators"], r["pricing"]): float(r["usd"]) for r in rows if r["usd"]}
    assert got == pytest.approx(known)


def test_focus_rows_add_up_to_the_totals(trained):
    rows = list(csv.DictReader(io.StringIO(good(*TRAIN, "-o", "focus"))))
    known = {(s["accelerators"]["name"], t["pricing"]): t["usd"] for s in trained["statements"] for t in s["options"]}
    for column in ("EffectiveCost", "BilledCost"):
        sums = {}
        for row in rows:
            tags = json.loads(row["Tags"])
            key = tags["accelerators"], tags["pricing"]
            sums[key] = sums.get(key, 0.0) + float(row[column])
        assert sums == pytest.approx(known, rel=1e-9), column


def test_focus_rows_of_a_commitment_tell_used_hours_from_idle_ones_and_read_back_as_its_price(tmp_path):
    path = tmp_path / "bill.csv"
    ask = ("cost", EXAMPLE, "--on", "v6e:256", "--pricing", "3y", "--utilization", "0.75")
    good(*ask, "-o", "focus", "--out", path)
    term = json.loads(good(*ask, "-o", "json"))["statements"][0]["options"][0]
    rows = [row for row in csv.DictReader(io.StringIO(path.read_text())) if row["ServiceCategory"] == "Compute"]
    hours = {row["CommitmentDiscountStatus"] or row["ChargeCategory"]: float(row["PricingQuantity"]) for row in rows}
    assert hours == pytest.approx(
        {"Purchase": term["chip_hours"], "Used": 0.75 * term["chip_hours"], "Unused": 0.25 * term["chip_hours"]}
    )
    found = read_focus([path], years=3).rows[0]
    assert found.prices[3] / found.chips == pytest.approx(term["quote"]["usd_per_chip_hour"])


def test_the_same_seed_prints_the_same_in_another_process(trained):
    assert json.loads(good(*TRAIN, "-o", "json")) == trained
    other = json.loads(good(*TRAIN, "--seed", "5", "-o", "json"))
    assert other["statements"][0]["options"][0]["usd_range"] != trained["statements"][0]["options"][0]["usd_range"]
    assert other["statements"][0]["options"][0]["usd"] == trained["statements"][0]["options"][0]["usd"]


def test_a_chip_without_a_price_is_said_to_have_none():
    said = good("cost", EXAMPLE, "--on", "mi355x:64")
    assert "mi355x has no public price" in said and "nothing is invented" in said


def test_own_prices_come_first(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(
        "chip,cloud,region,instance,chips,ondemand_usd_h,spot_usd_h,date,source\n"
        "h100,aws,us-east-1,p5.48xlarge,8,8.00,,2026-11-01,contract\n"
    )
    said = json.loads(good("cost", EXAMPLE, "--on", "h100:64", "--prices", path, "-o", "json"))
    first = said["statements"][0]["options"][0]
    assert first["quote"]["usd_per_chip_hour"] == 1.0 and first["quote"]["cloud"] == "aws" and first["quote"]["own"]


def test_a_check_file_takes_the_port_away(tmp_path):
    path = tmp_path / "check.json"
    path.write_text(
        json.dumps(
            {
                "command": "check",
                "program": "p.py",
                "rows": [{"accelerators": {"chip": "v5p"}, "compiles": True, "refused": None}],
            }
        )
    )
    said = json.loads(good("cost", EXAMPLE, "--on", "v5p:64", "--framework", "pytorch", "--check", path, "-o", "json"))
    migration = said["statements"][0]["migration"]
    assert migration["weeks"] == 0 and "compiled the program" in migration["reasons"][0]


def test_out_writes_the_file_whole(tmp_path):
    path = tmp_path / "bill.csv"
    assert good("cost", EXAMPLE, "--on", "h100:64", "-o", "focus", "--out", path) == ""
    assert path.read_text().startswith("BilledCost,")


BAD = {
    "--utilization 0": "--utilization",
    "--utilization 1.5": "--utilization",
    "--utilization nan": "--utilization",
    "--years 0": "--years",
    "--years -3": "--years",
    "--site mars": "--site",
    "--energy-price -1": "--energy-price",
    "--pue 0.9": "--pue",
    "--pue nan": "--pue",
    "--cloud nowhere": "--cloud",
    "--cloud gcp --region mars": "--region",
    "--offer gcp": "--offer",
    "--offer gcp/us-central1/a3-highgpu-9g": "--offer",
    "--framework mxnet": "--framework",
    "--custom-kernels rust:1": "--custom-kernels",
    "--runs 0": "--runs",
    "--runs -2": "--runs",
    "--epochs 0": "--epochs",
    "--draws 5": "--draws",
    "--seed -1": "--seed",
    "--set foo=1": "--set",
    "--set interest": "--set",
    "--set interest=-1": "--set interest",
    "--set utilization=0": "--set utilization",
    "--set interest=x": "--set",
    "--years -1 --pricing spot": "--years",
    "--years 1e-9": "--years",
    "--set interest=5": "--set interest",
    "--set staff_usd_year=1e300": "--set staff_usd_year",
    "--energy-price 1e300": "--energy-price",
    "--runs inf": "--runs",
    "--set utilization=0.5 --utilization 0.8": "can't combine --utilization with --set utilization",
    "--check nothing.json": "no such file: 'nothing.json'",
    "-o yaml": "--output",
    "--now-on h999": "chip",
    "--chips 0": "--chips",
    "--rate 5": "--rate",
    "--pricing rent": "--pricing",
    "--pricing ,": "--pricing",
    "--evidence guess": "--evidence",
}


@pytest.mark.parametrize("flags", BAD)
def test_bad_input_is_one_line(tmp_path, flags):
    out = tmp_path / "out"
    done = chipwise("cost", EXAMPLE, "--on", "h100:64", *flags.split(), "--out", out)
    assert (done.returncode, done.stdout, out.exists()) == (2, "", False)
    assert done.stderr.startswith(f"chipwise: {BAD[flags]}") and done.stderr.count("\n") == 1, done.stderr


def test_chips_that_do_not_fit_are_refused_in_one_line():
    done = chipwise("cost", str(ROOT / "examples" / "gpt3-175b-pretrain.yaml"), "--on", "h100:2")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


def test_an_offer_of_another_chip_leaves_the_terms_missing():
    said = good("cost", EXAMPLE, "--on", "h100:64", "--offer", "aws/us-east-1/p4d.24xlarge")
    assert "h100 has no public price in list prices of the catalog, aws/us-east-1/p4d.24xlarge alone" in said


@pytest.mark.parametrize(
    "checked, costed",
    [
        pytest.param("v5e:2x2", "v5e:256", marks=pytest.mark.compiler("tpu")),
        pytest.param("h100:4", "h100:64", marks=pytest.mark.compiler("cuda")),
    ],
)
def test_a_real_check_is_read_back(tmp_path, checked, costed):
    path = tmp_path / "check.json"
    program = "tests/e2e/compiled/programs/narrow_mlp.py:train"
    chipwise("check", program, "--on", checked, "-o", "json", "--out", path)
    said = json.loads(good("cost", EXAMPLE, "--on", costed, "--framework", "pytorch", "--check", path, "-o", "json"))
    migration = said["statements"][0]["migration"]
    assert json.loads(path.read_text())["rows"][0]["compiles"] and migration["weeks"] == 0
    assert any("`chipwise check` compiled the program" in reason for reason in migration["reasons"])


def test_a_deadline_and_a_count_choose_the_chips():
    chips = {
        flag: json.loads(good("cost", EXAMPLE, "--on", "h100", *flag.split(), "-o", "json"))["statements"][0][
            "accelerators"
        ]["count"]
        for flag in ("--chips 128", "--deadline 60d")
    }
    assert chips["--chips 128"] == 128 and chips["--deadline 60d"] >= 256


def test_compute_of_a_service_is_its_chip_hours_by_the_price(served):
    for s in served["statements"]:
        term = s["options"][0]
        assert term["split_usd"]["compute"] == pytest.approx(term["chip_hours"] * term["quote"]["usd_per_chip_hour"])
        assert term["chip_hours"] >= s["accelerators"]["count"] * 730.5


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("--offer aws/us-east-1/p5.4", "aws/us-east-1/p5.48xlarge"),
        ("--region us-central", "us-central1"),
        ("--cloud la", "lambda"),
    ],
)
def test_clouds_regions_and_offers_complete_in_the_shell(typed, offered):
    env = {
        **os.environ,
        "_CHIPWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"chipwise cost x {typed}",
        "COMP_CWORD": "4",
    }
    assert offered in chipwise(env=env).stdout.split()


def test_the_table_is_plain_ascii():
    assert good("cost", EXAMPLE, "--on", "h100:64").isascii()


def test_pricing_models_can_be_named_and_their_bill_read_back(tmp_path):
    path = tmp_path / "bill.csv"
    good("cost", EXAMPLE, "--on", "h100:64", "--pricing", "spot", "--cloud", "aws", "-o", "focus", "--out", path)
    assert {json.loads(row["Tags"])["pricing"] for row in csv.DictReader(io.StringIO(path.read_text()))} == {"spot"}
    asked = json.loads(good("cost", EXAMPLE, "--on", "h100:64", "--pricing", "spot", "--cloud", "aws", "-o", "json"))
    term = asked["statements"][0]["options"][0]
    found = read_focus([path]).rows
    assert len(found) == 1 and (found[0].chip_id, found[0].cloud, found[0].chips) == ("h100", "aws", 8)
    assert found[0].prices[1] / 8 == pytest.approx(term["quote"]["usd_per_chip_hour"])


def test_the_library_gives_what_the_command_prints():
    from chipwise import api

    costs = api.cost(EXAMPLE, "h100:64,v5p:64", framework="pytorch", custom_kernels=[2], runs=10)
    assert json.loads(json.dumps(costs.to_dict())) == json.loads(good(*TRAIN, "-o", "json"))
    printed = list(csv.DictReader(io.StringIO(good(*TRAIN, "-o", "csv"))))
    rows = costs.flat_rows()
    assert [list(row) for row in rows] == [list(row) for row in printed]
    assert costs.cheapest.total == min(row["usd"] for row in rows if row["usd"] is not None)
    html = costs._repr_html_()
    assert html.startswith('<div class="chipwise">') and "on-premises" in html
