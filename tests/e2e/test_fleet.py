"""`chipwise fleet plan` as another process: the plan, its formats, and one line for every bad demand."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import ROOT, chipwise

SMALL: dict[str, Any] = {
    "name": "small",
    "start": "2030-01",
    "months": 3,
    "workloads": [
        {
            "name": "run",
            "workload": str(ROOT / "examples" / "llama-2-70b-lora.yaml"),
            "train": {"deadline": "2030-02", "chips": [8]},
        },
        {
            "name": "search",
            "workload": str(ROOT / "examples" / "bert-serve.yaml"),
            "serve": {"rate": 5000, "peak": 2, "peak_hours": 6},
        },
    ],
    "candidates": [{"chip": "h100", "clouds": ["gcp"]}, {"chip": "v5e", "terms": ["ondemand"], "quota": 16}],
}


def demand(folder: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> str:
    raw = json.loads(json.dumps(SMALL))
    change(raw)
    file = folder / "demand.yaml"
    file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = chipwise("fleet", "plan", demand(tmp_path_factory.mktemp("fleet")), "-o", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_json_holds_the_plan_and_what_it_rests_on(record: dict[str, Any]) -> None:
    plan = record["plan"]
    assert plan["gap"] <= 0.01
    assert plan["usd"] == pytest.approx(sum(plan["costs"].values()))
    assert plan["usd"] == pytest.approx(sum(plan["usd_by_period"]) + plan["after_usd"])
    assert {r["run"] for r in plan["runs"]} == {"run"}
    assert {s["service"] for s in plan["services"]} == {"search"}
    assert [a["name"] for a in record["alternatives"]] == ["GPU only", "TPU only", "best mix"]
    assert [s["name"] for s in record["sensitivity"]] == [
        "demand +20 %",
        "demand -20 %",
        "prices +20 %",
        "prices -20 %",
        "bad end of all intervals",
    ]
    bad = record["sensitivity"][-1]["plan"]
    assert bad is None or bad["usd"] >= plan["usd"] * (1 - 0.01)  # to the gap
    assert all(s["source"] for s in record["supplies"])
    assert any("a cautious plan" in a for a in record["assumptions"])


def test_every_workload_of_the_plan_gets_advice_on_its_network_and_storage(record: dict[str, Any]) -> None:
    advice = {a["workload"]: a for a in record["advice"]}
    assert set(advice) == {"run", "search"} and all(a["words"] for a in advice.values())
    run, search = advice["run"], advice["search"]
    assert run["accelerators"]["count"] >= 1 and search["accelerators"]["chip"]
    assert run["layout"] and run["split"] is None and search["layout"] is None and search["split"]["tp"] >= 1
    assert run["storage"]["checkpoint_bytes"] > 0 and run["network"]["source"]
    assert run["network"]["enough"] == (
        not run["network"]["crosses"]
        or run["network"]["has_bytes_per_second"] >= run["network"]["needed_bytes_per_second"]
    )
    assert search["storage"]["weights_bytes"] > 0 and not search["network"]["crosses"]


def test_v5e_stays_within_its_quota(record: dict[str, Any]) -> None:
    used = [h["chips"] for h in record["plan"]["holdings"] if h["supply"].startswith("v5e")]
    assert all(chips <= 16 for chips in used)


def test_the_same_demand_gives_the_same_output(tmp_path: Path) -> None:
    file = demand(tmp_path)
    one, other = (chipwise("fleet", "plan", file, "--no-sensitivity", "-o", "csv") for _ in range(2))
    assert one.returncode == 0, one.stderr
    assert one.stdout == other.stdout
    rows = list(csv.DictReader(io.StringIO(one.stdout)))
    assert {r["period"] for r in rows} == {"2030-01", "2030-02", "2030-03"}


def test_focus_rows_add_up_to_what_is_paid_within_the_plan(tmp_path: Path, record: dict[str, Any]) -> None:
    done = chipwise("fleet", "plan", demand(tmp_path), "--no-sensitivity", "-o", "focus")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert sum(float(r["BilledCost"]) for r in rows) == pytest.approx(sum(record["plan"]["usd_by_period"]))


def test_the_table_names_supplies_workloads_and_the_gap(tmp_path: Path) -> None:
    done = chipwise("fleet", "plan", demand(tmp_path), "--no-sensitivity", "--cautious")
    assert done.returncode == 0, done.stderr
    for words in (
        "no plan is cheaper by more than",
        "What runs where",
        "search",
        "GPU only",
        "TPU only",
        "best mix",
        "the bad end of each interval",
    ):
        assert words in done.stdout


def test_a_demand_that_cannot_be_met_names_what_has_to_give_way(tmp_path: Path) -> None:
    done = chipwise("fleet", "plan", demand(tmp_path, lambda raw: raw.update(limits={"budget": 100})))
    assert done.returncode == 0, done.stderr
    assert "no plan meets the demand" in done.stdout
    assert "- budget: $" in done.stdout


def test_the_picture_is_drawn_and_refused_where_there_is_no_plan(tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"
    done = chipwise("fleet", "plan", demand(tmp_path), "--no-sensitivity", "--plot", str(out))
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "chips, the most at once" in text and "US dollars paid" in text
    out.unlink()
    done = chipwise(
        "fleet", "plan", demand(tmp_path, lambda raw: raw.update(limits={"budget": 100})), "--plot", str(out)
    )
    assert done.returncode == 2
    assert done.stderr.startswith("chipwise: --plot:")
    assert not out.exists()


def no_quota(raw: dict[str, Any]) -> None:
    raw["candidates"] = [{"chip": "v5e", "quota": 0}]


def no_price(raw: dict[str, Any]) -> None:
    raw["offers"] = [{"name": "deal", "chip": "h100", "cloud": "gcp", "terms": "1y"}]


def below_zero(raw: dict[str, Any]) -> None:
    raw["offers"] = [{"name": "deal", "chip": "h100", "cloud": "gcp", "terms": "1y", "usd_chip_hour": -2}]


def in_another_currency(raw: dict[str, Any]) -> None:
    raw["offers"] = [
        {"name": "deal", "chip": "h100", "cloud": "gcp", "terms": "1y", "usd_chip_hour": 2, "currency": "XYZ"}
    ]


def overlap(raw: dict[str, Any]) -> None:
    each = {"contract": "c", "chip": "h100", "chips": 8, "cloud": "gcp", "usd_chip_hour": 2}
    raw["existing"] = [{**each, "until": "2030-02"}, {**each, "start": "2030-02"}]


def gap(raw: dict[str, Any]) -> None:
    raw["workloads"][1]["serve"] = {"rates": {"2030-01": 1, "2030-03": 1}}


def past(raw: dict[str, Any]) -> None:
    raw["start"] = "2020-01"


def before(raw: dict[str, Any]) -> None:
    raw["workloads"][0]["train"]["deadline"] = "2029-12"


def unknown(raw: dict[str, Any]) -> None:
    raw["candidates"][0]["chip"] = "h1oo"


def odd_chips(raw: dict[str, Any]) -> None:
    raw["existing"] = [{"contract": "c", "chip": "h100", "chips": 12, "cloud": "gcp", "usd_chip_hour": 2}]


def no_workload(raw: dict[str, Any]) -> None:
    raw["workloads"][0]["workload"] = "nowhere.yaml"


def other_kind(raw: dict[str, Any]) -> None:
    raw["workloads"][0]["workload"] = str(ROOT / "examples" / "bert-serve.yaml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            no_quota,
            "candidates[0].quota: 0 is not accepted; expected at least 8 chips, one unit: v5e is the only chip that search",
        ),
        (no_price, "offers[0].usd_chip_hour: missing"),
        (below_zero, "offers[0].usd_chip_hour: -2 is not accepted; expected a price of more than 0"),
        (
            in_another_currency,
            "offers[0].currency: 'XYZ' is not accepted; expected a currency that is known, or a rate",
        ),
        (overlap, "existing[1]: 'c from 2030-02 to beyond' is not accepted"),
        (gap, "workloads[1].serve.rates: 'nothing for 2030-02' is not accepted"),
        (past, "start: '2020-01' is not accepted"),
        (before, "workloads[0].train.deadline: '2029-12' is not accepted"),
        (unknown, "candidates[0].chip: unknown name 'h1oo'"),
        (odd_chips, "existing[0].chips: 12 is not accepted; expected a multiple of 8"),
        (no_workload, "workloads[0].workload file:"),
        (other_kind, "workloads[0].workload workload:"),
    ],
)
def test_bad_demands_are_one_line_and_write_nothing(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    out = tmp_path / "plan.json"
    done = chipwise("fleet", "plan", demand(tmp_path, change), "-o", "json", "--out", str(out))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"chipwise: {words}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--gap", "2"), "--gap: '2' is not accepted"),
        (("--time-limit", "soon"), "--time-limit: 'soon' is not accepted"),
        (("--time-limit", "0"), "--time-limit:"),
        (("-o", "xml"), "--output: 'xml' is not accepted"),
    ],
)
def test_bad_flags_are_one_line(tmp_path: Path, flags: tuple[str, str], words: str) -> None:
    done = chipwise("fleet", "plan", demand(tmp_path), *flags)
    assert done.returncode == 2
    assert done.stderr.startswith(f"chipwise: {words}")


def test_the_schema_of_the_demand_file_is_printed() -> None:
    done = chipwise("schema", "demand")
    assert json.loads(done.stdout)["title"] == "chipwise demand"
