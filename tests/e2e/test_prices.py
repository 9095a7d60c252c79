"""chipwise prices as people run it: lists, own prices in every verb, imports, and bad input in one line."""

import csv
import io
import json
import os

import pytest
from command import EXAMPLE, ROOT, chipwise, good

OWN = str(ROOT / "examples" / "prices" / "own.csv")
SKYPILOT = sorted(str(path) for path in (ROOT / "examples" / "prices" / "skypilot").glob("*/vms.csv"))
FOCUS = {name: str(ROOT / "examples" / "prices" / f"focus-{name}.csv") for name in ("aws", "gcp", "azure-eur")}
SERVED = str(ROOT / "examples" / "bert-serve.yaml")
HEAD = "chip,cloud,region,instance,chips,ondemand_usd_h,spot_usd_h,date"


def table(*arguments):
    return list(csv.DictReader(io.StringIO(good(*arguments, "-o", "csv"))))


def refusal(*arguments, **more):
    """The line of a refusal."""
    done = chipwise(*arguments, **more)
    assert done.returncode == 2 and not done.stdout, done
    return done.stderr


def own(row):
    """Whether one of the prices of a row is a company's own."""
    return any(row[f"{terms}_own"] == "True" for terms in ("ondemand", "spot", "year1", "year3"))


def cheap(tmp_path, chip="h100", usd="0.80"):
    """A file whose price nobody beats: a tenth of a dollar a chip-hour."""
    path = tmp_path / "own.csv"
    path.write_text(f"{HEAD}\n{chip},gcp,us-central1,own-8,8,{usd},{usd},2026-10-31\n", encoding="utf-8")
    return str(path)


def test_the_list_is_cheapest_first_and_marks_what_is_stale():
    rows = table("prices", "--on", "h100", "--all")
    priced = [float(row["ondemand_usd_per_chip_hour"]) for row in rows if row["ondemand_usd_per_chip_hour"]]
    assert priced == sorted(priced) and len(priced) > 50
    old = [row for row in rows if row["date"] < "2026-01-01" and row["ondemand_usd_per_chip_hour"]]
    assert old and all(row["ondemand_stale"] == "True" and int(row["age_days"]) > 90 for row in old)
    shown = good("prices", "--on", "h100")
    assert "* marks stale prices, older than 90 days" in shown and "11.06*" in shown


def test_filters_narrow_the_list():
    rows = table("prices", "--on", "v5e,h100", "--cloud", "GCP", "--region", "us-central1", "--pricing", "3y")
    assert {(row["cloud"], row["region"] or "us-central1") for row in rows} == {("gcp", "us-central1")}
    assert [row["chip"] for row in rows] == sorted((row["chip"] for row in rows), reverse=True)
    assert all(row["year3_usd_per_chip_hour"] for row in rows)


@pytest.mark.parametrize("on", [(), ("--on", "h100,v5e"), ("h100",)])
def test_there_is_one_line_a_chip_and_cloud_and_all_shows_every_offer(on):
    rows, every = table("prices", *on), table("prices", *on, "--all")
    assert len({(row["chip"], row["cloud"]) for row in rows}) == len(rows) < len(every)
    assert on or len(every) > 600


def test_chips_may_be_named_as_of_chips():
    assert good("prices", "h100") == good("prices", "--on", "h100")
    said = refusal("prices", "h10O")
    assert "h100" in said


def test_clouds_go_by_the_names_people_type():
    assert {row["cloud"] for row in table("prices", "--on", "h100", "--cloud", "amazon,Microsoft")} == {"aws", "azure"}


def test_offers_on_a_known_fabric_alone_and_no_older_than_asked_for():
    rows = table("prices", "--on", "h200", "--fabric", "known", "--max-age", "400d", "--all")
    assert rows and all(row["joined"] == "yes" and int(row["age_days"]) <= 400 for row in rows)


def test_every_verb_that_prices_takes_the_filters_and_prices_given():
    how = ("--cloud", "amazon", "--max-age", "1000d", "--fabric", "known")
    for verb in (("compare", EXAMPLE, "--on", "h100:64"), ("predict", EXAMPLE, "--on", "h100:64")):
        assert "(aws, us-east-1" in good(*verb, *how)
        assert "$1.25/h (given, any" in good(*verb, *how, "--price", "h100=1.25")
    assert "aws us-east-1" in good("cost", EXAMPLE, "--on", "h100:64", "--pricing", "ondemand", *how)
    assert "--price: 'h100' is not accepted" in refusal("predict", EXAMPLE, "--on", "h100:64", "--price", "h100")


def test_an_update_is_said_and_used_from_then_on(tmp_path):
    env = {**os.environ, "CHIPWISE_DATA": str(tmp_path)}
    made = good("prices", "update", "examples/prices/skypilot", "--date", "2026-11-01", env=env)
    assert "11 offers of 3 clouds, the newest of 2026-11-01" in made and "In force from now on" in made
    assert "updated with prices up to 2026-11-01" in good("prices", "h100", env=env)
    said = refusal("prices", "update", "http://127.0.0.1:9/x", env=env)
    assert len(said.strip().splitlines()) == 1 and "without a network" in said


def test_a_chip_without_a_public_price_is_said():
    assert good("prices", "--on", "mi355x") == "mi355x: no public price that matches\n"
    assert "mi355x: no public price that matches" in good("prices", "--on", "mi355x,h100")
    assert json.loads(good("prices", "--on", "mi355x,h100", "-o", "json"))["missing"] == ["mi355x"]


def test_json_has_each_price_with_its_date_and_source():
    document = json.loads(good("prices", "--on", "v6e", "--cloud", "gcp", "-o", "json"))
    first = document["offers"][0]
    assert first["ondemand"]["source"] and first["ondemand"]["date"] and first["ondemand"]["own"] is False
    assert any(each["year1"] for each in document["offers"])


def test_own_prices_are_used_by_every_verb_that_prices_and_each_says_so(tmp_path):
    own = cheap(tmp_path)
    said = "own prices (1 offers and 0 commitments of own.csv) over list prices of the catalog"
    compared = good("compare", EXAMPLE, "--on", "h100:64", "--prices", own)
    assert (
        f"prices: {said}; used for h100 on gcp" in compared
        and "$0.10/h (gcp, us-central1, 2026-10-31, own price)" in compared
    )
    served = good("compare", SERVED, "--on", "h100", "--prices", own)
    assert f"prices: {said}; used for h100 on gcp" in served
    predicted = good("predict", EXAMPLE, "--on", "h100:64", "--prices", own)
    assert said in predicted and "$0.10/h" in predicted
    row = next(line for line in good("chips", "--prices", own).splitlines() if line.startswith("h100 "))
    assert row.split()[-1] == "0.10"  # of one among several hosts; one alone costs less by another's
    assert "own-8" in good("chips", "h100", "--prices", own) and said in good("chips", "--prices", own)
    assert "0.10+" in good("prices", "--on", "h100", "--prices", own)


def test_records_tell_own_prices_from_list_prices(tmp_path):
    own = cheap(tmp_path)
    predicted = json.loads(good("predict", EXAMPLE, "--on", "h100:64", "--prices", own, "-o", "json"))
    assert (
        predicted["ondemand"]["own"]
        and predicted["ondemand"]["usd_per_chip_hour"] == 0.1
        and "own.csv" in predicted["prices"]
    )
    assert json.loads(good("predict", EXAMPLE, "--on", "h100:64", "-o", "json"))["ondemand"]["own"] is False
    offers = json.loads(good("chips", "h100", "--prices", own, "-o", "json"))["chips"][0]["offers"]
    assert [o["ondemand"]["own"] for o in offers if o["ondemand"]].count(True) == 1 and offers[0]["ondemand"]["own"]


def test_a_price_is_one_record_in_every_document():
    prices = json.loads(good("prices", "--on", "h100", "--all", "-o", "json"))["offers"]
    assert json.loads(good("chips", "h100", "-o", "json"))["chips"][0]["offers"] == prices
    quote = {"cloud", "region", "instance", *prices[0]["ondemand"]}
    row = json.loads(good("compare", EXAMPLE, "--on", "h100:64", "-o", "json"))["rows"][0]
    assert set(row["ondemand"]) == {"usd", "per", *quote}
    statement = json.loads(good("cost", EXAMPLE, "--on", "h100:64", "-o", "json"))["statements"][0]
    assert all(set(option["quote"]) == quote for option in statement["options"])
    assert all(quote <= set(rival) for rival in (*statement["purchase"]["break_even"], *statement["commitments"]))


def test_the_environment_names_files_too_and_a_flag_lies_over_it(tmp_path):
    (tmp_path / "a").mkdir()
    first, second = cheap(tmp_path / "a", usd="1.60"), cheap(tmp_path)
    env = {**os.environ, "CHIPWISE_PRICES": first}
    assert "0.20+" in good("prices", "--on", "h100", env=env)
    assert "0.10+" in good("prices", "--on", "h100", "--prices", second, env=env)
    both = {**os.environ, "CHIPWISE_PRICES": os.pathsep.join([second, first])}
    assert "0.20+" in good("prices", "--on", "h100", env=both)


def test_another_currency_takes_a_rate_from_a_flag_or_the_environment(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"{HEAD},currency\nh100,gcp,us-central1,own-8,8,0.80,,2026-10-31,EUR\n", encoding="utf-8")
    assert "0.20+" in good("prices", "--on", "h100", "--prices", path, "--fx", "EUR=2")
    assert "0.20+" in good(
        "prices", "--on", "h100", "--prices", path, env={**os.environ, "CHIPWISE_FX": "GBP=1.3,EUR=2"}
    )


def test_prices_from_a_skypilot_catalog_are_prices_of_ones_own(tmp_path):
    out = tmp_path / "own.csv"
    shown = good("prices", "import", "skypilot", *SKYPILOT, "--date", "2026-08-21", "--out", out)
    assert "unknown accelerator K80" in shown and "a placeholder" in shown and "Assumptions" not in shown
    rows = {(row["chip"], row["cloud"]): row for row in table("prices", "--all", "--prices", out) if own(row)}
    assert float(rows["h100", "gcp"]["ondemand_usd_per_chip_hour"]) == pytest.approx((9.46006 + 78.3724) / 8)
    guessed = good("prices", "import", "skypilot", SKYPILOT[0], "--out", out)
    assert "by the time of the file; --date says another" in guessed


@pytest.mark.parametrize(
    ("name", "more", "chip", "usd"),
    [
        ("aws", ("--years", "1"), "h100", 46.784 / 8),
        ("gcp", (), "v5p", 3.36),
        ("azure-eur", ("--years", "3", "--fx", "EUR=1.08"), "h100", 9.72),
    ],
)
def test_prices_from_a_focus_bill_are_what_was_paid(name, more, chip, usd, tmp_path):
    out = tmp_path / "own.csv"
    shown = good("prices", "import", "focus", FOCUS[name], *more, "--out", out)
    assert "not an accelerator" in shown and "what was paid" in shown
    rows = [row for row in table("prices", "--on", chip, "--prices", out) if own(row)]
    assert float(rows[0]["ondemand_usd_per_chip_hour"]) == pytest.approx(usd)


def test_every_key_of_an_imports_json_is_documented(tmp_path):
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    document = json.loads(
        good("prices", "import", "focus", FOCUS["aws"], "--years", "1", "--out", tmp_path / "own.csv", "-o", "json")
    )
    keys = {*document, *document["own_prices"][0], *document["left_out"][0]}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
    assert document["rows_read"] == 10 and document["rows_used"] == 5


def refused(arguments, said, folder, env=None):
    before = sorted(folder.rglob("*"))
    done = chipwise(*arguments, cwd=folder, env=env)
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr.count("\n") == 1 and said in done.stderr, done.stderr
    assert done.stderr.startswith("chipwise: ") and sorted(folder.rglob("*")) == before


CASES = {
    "an unknown chip": (("prices", "--on", "h10"), "did you mean h100"),
    "an empty list of chips": (("prices", "--on", ","), "--on"),
    "an unknown cloud": (("prices", "--cloud", "gpc"), "did you mean gcp"),
    "an unknown region": (("prices", "--region", "us-central9"), "did you mean us-central"),
    "an empty list of clouds": (("prices", "--cloud", " , "), "--cloud"),
    "unknown terms": (("prices", "--pricing", "2y"), "one of ondemand, spot, 1y, 3y"),
    "an unknown format": (("prices", "-o", "xml"), "one of table, json, csv"),
    "no file of that name": (("prices", "--prices", "nowhere.csv"), "no such file"),
    "a folder": (("prices", "--prices", "."), "not a folder"),
    "a bill as own prices": (
        ("prices", "--prices", FOCUS["aws"]),
        "the columns chip, cloud, region, instance, chips, date",
    ),
    "own prices for a comparison": (
        ("compare", EXAMPLE, "--on", "h100", "--prices", "nowhere.csv"),
        "no such file",
    ),
    "own prices for a service": (("compare", SERVED, "--on", "h100", "--prices", "nowhere.csv"), "no such file"),
    "own prices for a prediction": (
        ("predict", EXAMPLE, "--on", "h100:64", "--prices", "nowhere.csv"),
        "no such file",
    ),
    "own prices for chips": (("chips", "--prices", "nowhere.csv"), "no such file"),
    "a rate that is none": (("prices", "--fx", "EUR"), "--fx: 'EUR'"),
    "a negative rate": (("prices", "--prices", OWN, "--fx", "EUR=-1"), "--fx: 'EUR=-1'"),
    "an option before the import": (
        ("prices", "--on", "h100", "import", "focus", FOCUS["aws"], "--out", "x.csv"),
        "give it after import",
    ),
    "an import of nothing": (("prices", "import", "focus", "--out", "x.csv"), "Missing argument"),
    "an import to nowhere": (("prices", "import", "focus", FOCUS["gcp"]), "--out"),
    "an import into no folder": (
        ("prices", "import", "focus", FOCUS["gcp"], "--out", "no/such/x.csv"),
        "can be written",
    ),
    "an import of no kind": (("prices", "import", "cur", "bill.csv"), "No such command 'cur'"),
    "a bill that isn't there": (("prices", "import", "focus", "nowhere.csv", "--out", "x.csv"), "no such file"),
    "a bill with commitments of no length": (("prices", "import", "focus", FOCUS["aws"], "--out", "x.csv"), "--years"),
    "commitments of two years": (
        ("prices", "import", "focus", FOCUS["aws"], "--years", "2", "--out", "x.csv"),
        "1 or 3",
    ),
    "own prices as a bill": (("prices", "import", "focus", OWN, "--out", "x.csv"), "the columns BillingCurrency, "),
    "own prices as a catalog": (
        ("prices", "import", "skypilot", OWN, "--cloud", "gcp", "--out", "x.csv"),
        "the columns InstanceType, ",
    ),
    "a catalog of no cloud": (("prices", "import", "skypilot", OWN, "--out", "x.csv"), "--cloud"),
    "a date that is none": (
        ("prices", "import", "skypilot", SKYPILOT[0], "--date", "today", "--out", "x.csv"),
        "--date",
    ),
    "a date to come": (
        ("prices", "import", "skypilot", SKYPILOT[0], "--date", "2099-01-01", "--out", "x.csv"),
        "not after today",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_and_nothing_is_written(case, tmp_path):
    refused(*CASES[case], tmp_path)


ROWS = {
    "a negative price": ("h100,gcp,us-central1,i,8,-1,,2026-10-31", "own.csv line 2 ondemand_usd_h: '-1'"),
    "a price of nothing": ("h100,gcp,us-central1,i,8,0,,2026-10-31", "own.csv line 2 ondemand_usd_h: '0'"),
    "no price": ("h100,gcp,us-central1,i,8,,,2026-10-31", "one price at least"),
    "a price in words": ("h100,gcp,us-central1,i,8,ten,,2026-10-31", "own.csv line 2 ondemand_usd_h: 'ten'"),
    "an unknown chip": ("h10,gcp,us-central1,i,8,10,,2026-10-31", "own.csv line 2 chip: unknown name 'h10'"),
    "a bad date": ("h100,gcp,us-central1,i,8,10,,tomorrow", "own.csv line 2 date: 'tomorrow'"),
    "a cell too many": ("h100,gcp,us-central1,i,8,10,,2026-10-31,x", "own.csv line 2: '9 cells'"),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_of_own_prices_is_named_by_file_row_and_field(case, tmp_path):
    row, said = ROWS[case]
    (tmp_path / "own.csv").write_text(f"{HEAD}\n{row}\n", encoding="utf-8")
    refused(("prices", "--prices", "own.csv"), said, tmp_path)
    refused(("prices",), said, tmp_path, env={**os.environ, "CHIPWISE_PRICES": "own.csv"})


def test_a_currency_without_a_rate_is_one_line_and_a_known_rate_is_said(tmp_path):
    own, words = tmp_path / "own.csv", f"{HEAD},currency\nh100,gcp,us-central1,i,8,10,,2026-10-31,"
    own.write_text(f"{words}XAF\n", encoding="utf-8")
    refused(("compare", EXAMPLE, "--on", "h100", "--prices", "own.csv"), "own.csv line 2 currency: 'XAF'", tmp_path)
    own.write_text(f"{words}EUR\n", encoding="utf-8")
    assert "of own.csv, EUR at 1.14811 USD of 2026-09-17) over" in good("prices", "--on", "h100", "--prices", own)
    bill = good("prices", "import", "focus", FOCUS["azure-eur"], "--years", "1", "--out", tmp_path / "x.csv")
    assert "the bill's EUR at 1.14811 USD of 2026-09-17" in bill


def test_no_line_looks_like_a_prompt(tmp_path):
    said = good("prices", "--on", "h100") + good(
        "prices",
        "import",
        "focus",
        str(ROOT / "examples" / "prices" / "focus-aws.csv"),
        "--years",
        "1",
        "--out",
        tmp_path / "own.csv",
    )
    assert not [line for line in said.splitlines() if line.startswith("$ ")]  # pages take such lines for commands
