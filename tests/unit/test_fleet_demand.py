"""The demand file: what it says, and one clear line for what can't be used."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from chipwise.catalog.currencies import exchange_rates
from chipwise.errors import ChipwiseError, InputError
from chipwise.fleet.demand import Calendar, demand_of, read_demand, schema_text
from chipwise.fleet.market import Buying, Stock, stock
from chipwise.fleet.request import day
from chipwise.fleet.service import monthly
from chipwise.knowledge import Knowledge
from chipwise.prices import PriceBook, listed

TODAY = date(2026, 11, 15)
ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {
    "start": "2027-01",
    "months": 6,
    "workloads": [
        {"name": "run", "workload": "run.yaml", "train": {"start": "2027-02", "deadline": "2027-05"}},
        {
            "name": "chat",
            "workload": "chat.yaml",
            "serve": {"rate": 10, "growth_year": 1.0, "peak": 2.0, "peak_hours": "9-17"},
        },
    ],
    "candidates": [{"chip": "h100", "quota": 64}],
    "offers": [{"name": "deal", "chip": "v5e", "cloud": "gcp", "terms": "1y", "usd_chip_hour": 0.8}],
    "existing": [
        {"contract": "a", "chip": "h100", "chips": 8, "cloud": "gcp", "usd_chip_hour": 2.0, "until": "2027-03"}
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good demand with one value changed; None takes the key out."""
    raw = deepcopy(GOOD)
    node: Any = raw
    *outer, last = path.split(".")
    for part in outer:
        node = node[int(part)] if part.isdigit() else node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return raw


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        demand_of(raw, today=TODAY)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        ("offers.0.usd_chip_hour", -1.0, "offers[0].usd_chip_hour", "more than 0"),
        ("offers.0.usd_chip_hour", None, "offers[0].usd_chip_hour", "missing"),
        ("offers.0.currency", "XYZ", "offers[0].currency", "a rate for it"),
        ("existing.0.usd_chip_hour", -2.0, "existing[0].usd_chip_hour", "at least 0"),
        ("existing.0.currency", "XYZ", "existing[0].currency", "a rate for it"),
        ("start", "2026-10", "start", "2026-11 or later"),
        ("start", "soon", "start", "a month such as"),
        ("months", 0, "months", "at least 1"),
        ("months", None, "months", "either months or quarters"),
        ("quarters", 2, "months", "either months or quarters"),
        ("workloads.0.train.deadline", "2026-12", "workloads[0].train.deadline", "2027-02"),
        ("workloads.0.train.deadline", "2027-01", "workloads[0].train.deadline", "2027-02"),
        ("workloads.0.train.deadline", "2028-01", "workloads[0].train.deadline", "2027-06"),
        ("workloads.0.train.start", "2026-12", "workloads[0].train.start", "2027-01 to 2027-06"),
        ("workloads.0.train", None, "workloads[0]", "either train or serve"),
        ("workloads.1.serve.rate", None, "workloads[1].serve", "either rate"),
        ("workloads.1.serve.rates", {"2027-01": 1}, "workloads[1].serve", "either rate"),
        ("workloads.1.serve.peak_hours", None, "workloads[1].serve.peak_hours", "both peak and peak_hours"),
        ("workloads.1.serve.peak_hours", "9-30", "workloads[1].serve.peak_hours", "hours such as"),
        ("workloads.1.serve.peak", 4.0, "workloads[1].serve.peak", "at most 3"),
        ("workloads.1.serve.growth_month", 0.1, "workloads[1].serve.growth_year", "one of growth_month"),
        ("workloads.1.serve.growth_year", -1.0, "workloads[1].serve.growth_year", "more than -1"),
        ("workloads.1.name", "run", "workloads.name", "a name of its own"),
        ("candidates.0.chip", "h10", "candidates[0].chip", "h100"),
        ("candidates.0.quota", -1, "candidates[0].quota", "at least 0"),
        ("candidates.0.terms", ["2y"], "candidates[0].terms[0]", "ondemand"),
        ("candidates.0.prize", 2, "candidates[0].prize", "one of chip"),
        ("limits", {"budget": -5}, "limits.budget", "at least 0"),
        ("headroom", {"serving": "much"}, "headroom.serving", "a number"),
        ("workloads", [], "workloads", "at least one entry"),
        ("headroom", {"training": True}, "headroom.training", "a number"),
        ("headroom", {"serving": float("nan")}, "headroom.serving", "a number"),
        ("workloads.1.serve.growth_year", float("inf"), "workloads[1].serve.growth_year", "a number"),
        ("workloads.1.serve.peak", float("nan"), "workloads[1].serve.peak", "a number"),
        ("workloads.0.workload", 5, "workloads[0].workload", "the name of a file"),
        ("exclusive", [{"name": "one", "clouds": ["gcp"]}], "exclusive[0].clouds", "at least 2 entries"),
        ("rates", {"EURO": 1.1}, "rates.EURO", "three letters"),
        ("name", "", "name", "text"),
        ("name", "x" * 201, "name", "at most 200 characters"),
        ("on_premises", {"chips": ["h100"], "server_usd": {"h200": 5}}, "on_premises.server_usd", "h100"),
    ],
)
def test_one_line_names_the_field_that_cannot_be_used(path: str, value: Any, field: str, words: str) -> None:
    said = refused(changed(path, value))
    assert said.startswith(f"{field}:")
    assert words in said


def test_gaps_in_a_demand_by_months_are_named() -> None:
    rates = {f"2027-{m:02}": 5.0 for m in (1, 2, 4, 5, 6)}
    said = refused(changed("workloads.1.serve", {"rates": rates}))
    assert said.startswith("workloads[1].serve.rates: 'nothing for 2027-03'")


def test_months_of_one_contract_must_not_overlap() -> None:
    raw = deepcopy(GOOD)
    raw["existing"].append({**raw["existing"][0], "start": "2027-03", "until": "2027-06"})
    assert refused(raw).startswith("existing[1]: 'a from 2027-03 to 2027-06'")
    raw["existing"][1]["start"] = "2027-04"
    demand_of(raw, today=TODAY)
    raw["existing"][1].update(start="2027-02", contract="b")
    demand_of(raw, today=TODAY)


def test_nothing_to_plan_with_is_refused() -> None:
    raw = {key: GOOD[key] for key in ("start", "months", "workloads")}
    assert refused(raw).startswith("candidates:")


def test_another_currency_is_taken_with_its_rate() -> None:
    raw = changed("offers.0.currency", "eur")
    raw["rates"] = {"EUR": 1.1}
    demand_of(raw, today=TODAY)


def test_quarters_have_the_hours_of_their_months() -> None:
    calendar = Calendar("2027-01", 6, 3)
    assert [p.name for p in calendar.periods] == ["2027 Q1", "2027 Q2"]
    assert [p.hours for p in calendar.periods] == [90 * 24, 91 * 24]
    assert (calendar.period("2027-03"), calendar.period("2027-04"), calendar.index("2026-12")) == (0, 1, -1)


def test_rates_grow_from_the_month_in_which_the_service_starts() -> None:
    raw = changed("workloads.1.serve", {"rate": 10, "growth_month": 0.5, "start": "2027-03"})
    found = demand_of(raw, today=TODAY)
    serve = found.spec.workloads[1].serve
    assert serve is not None
    assert monthly(found, serve) == [0, 0, 10, 15, 22.5, 33.75]


def test_the_day_falls_into_blocks_of_equal_peaks() -> None:
    raw = deepcopy(GOOD)
    raw["workloads"].append({"name": "mail", "workload": "x.yaml", "serve": {"rate": 1, "peak": 1.5, "peak_hours": 6}})
    blocks, peaks = day(demand_of(raw, today=TODAY).spec.workloads)  # chat 9-17, mail 9-15
    assert [(b.name, round(b.share * 24)) for b in blocks] == [
        ("base", 16),
        ("peak of chat", 2),
        ("peak of chat, mail", 6),
    ]
    assert peaks == (frozenset(), frozenset({"chat"}), frozenset({"chat", "mail"}))


def test_the_committed_schema_is_that_of_the_code() -> None:
    file = resources.files("chipwise.fleet").joinpath("data/demand.schema.json")
    assert file.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "fleet").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_examples_are_demand_files(file: Path) -> None:
    assert read_demand(file, TODAY).name


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    for text in ("", "- a\n- b\n", "start: [\n"):
        file = tmp_path / "demand.yaml"
        file.write_text(text)
        with pytest.raises(ChipwiseError):
            read_demand(file, TODAY)


def quarters(**train: Any) -> dict[str, Any]:
    raw = changed("workloads.0.train", {"start": "2027-04", "deadline": "2027-09", **train})
    del raw["months"]
    return {**raw, "quarters": 4}


@pytest.mark.parametrize(
    ("train", "field", "words"),
    [
        ({"start": "2027-05"}, "start", "the first month of a quarter of the plan (2027-04 or 2027-07)"),
        ({"start": "2027-11", "deadline": "2027-12"}, "start", "the first month of a quarter of the plan (2027-10)"),
        ({"deadline": "2027-08"}, "deadline", "the last month of a quarter of the plan (2027-06 or 2027-09)"),
        ({"every": 4}, "every", "a multiple of 3 in a plan of quarters"),
    ],
)
def test_in_a_plan_of_quarters_runs_begin_and_end_with_one(train: dict[str, Any], field: str, words: str) -> None:
    said = refused(quarters(**train))
    assert said.startswith(f"workloads[0].train.{field}:")
    assert words in said


def test_windows_of_whole_quarters_are_taken() -> None:
    found = demand_of(quarters(every=6), today=TODAY)
    assert found.calendar.count == 4


def market(raw: dict[str, Any], prices: PriceBook | None = None) -> Stock:
    return stock(Buying(demand_of(raw, today=TODAY), Knowledge(prices=prices or listed(), today=TODAY)))


def test_a_contract_that_ends_within_a_quarter_is_paid_to_its_end_but_not_planned_with() -> None:
    raw = quarters()
    raw["existing"][0].update(until="2027-05")
    found = market(raw)
    (contract,) = (s for s in found.supplies if s.pricing == "existing")
    assert contract.existing == (1, 0, 0, 0)
    assert contract.idle_usd == (0.0, 8 * 2.0 * (30 + 31) * 24, 0.0, 0.0)  # April and May
    assert "a: there in a part of 2027 Q2 alone: paid for that part, not used in it" in found.said


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("candidates.0.clouds", ["gpc"], "candidates[0].clouds: unknown name 'gpc'"),
        ("candidates.0.regions", ["us-centrall1"], "candidates[0].regions: unknown name 'us-centrall1'"),
        ("exclusive", [{"name": "one", "clouds": ["gcp", "gpc"]}], "exclusive[0].clouds: unknown name 'gpc'"),
        ("exclusive", [{"name": "one", "clouds": ["gcp", "gcp"]}], "exclusive[0].clouds: 'gcp, gcp' is not accepted"),
    ],
)
def test_places_that_nobody_prices_are_named(path: str, value: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        market(changed(path, value))
    assert str(caught.value).startswith(said)


def test_a_quota_of_nothing_shuts_a_pool_only_where_nothing_else_of_it_can_be_had() -> None:
    raw = changed("candidates", [{"chip": "h100", "clouds": ["gcp"], "terms": ["ondemand"], "quota": 0}])
    (pool,) = {s.pool for s in market(raw).supplies if s.pricing == "existing"}
    assert market(raw).shut(pool) is None  # the contract's chips are there
    raw["existing"] = []
    assert market(raw).shut(pool) == ("candidates[0].quota", 0)
    raw["offers"].append(
        {
            "name": "other",
            "chip": "h100",
            "cloud": "gcp",
            "region": pool.split("/")[1],
            "terms": "1y",
            "usd_chip_hour": 2.0,
        }
    )
    assert market(raw).shut(pool) is None


def test_every_size_of_instance_is_a_unit_and_only_what_is_joined_holds_more() -> None:
    raw = quarters()
    raw["candidates"] = [{"chip": "h200", "terms": ["ondemand"]}]
    found = market(raw)
    sizes = {(pool.chips, found.joined[pool.id]) for pool in found.pools.values() if pool.chip == "h200"}
    assert {(1, False), (8, True)} <= sizes and all(chips >= 8 for chips, joined in sizes if joined)
    raw["candidates"] = [{"chip": "h200", "clouds": ["verda"], "terms": ["ondemand"]}]
    found = market(raw)
    assert {
        (pool.chips, found.joined[pool.id]) for pool in found.pools.values() if found.clouds[pool.id] == "verda"
    } == {
        (1, False),
        (8, False),
    }


def test_what_is_taken_for_granted_of_prices_leads_and_sites_is_said() -> None:
    raw = quarters()
    raw["candidates"] = [{"chip": "v6e", "clouds": ["gcp"], "terms": ["ondemand", "1y"], "lead": 4}]
    raw["existing"] = [{"contract": "mine", "chip": "h100", "chips": 8, "usd_chip_hour": 0}]
    east = tuple(c for c in listed().commitments if c.region == "us-east5")
    found = market(raw, replace(listed(), commitments=east))
    (near,) = (s for s in found.supplies if s.pricing == "year1" and "v6e" in s.id)
    assert found.origins[near.id].region == found.pools[near.pool].region == "us-east5"
    assert found.said == [
        "v6e: 4 months from order to use, counted as 2 quarters",
        "mine: electricity, PUE and grid of us-average, as no site is named",
    ]
    raw["on_premises"] = {"chips": ["h100"]}
    assert any(words.endswith("; 3 months from order to use") for words in market(raw).said)


def test_a_currency_that_is_known_needs_no_rate_of_the_file() -> None:
    def paid(rates: dict[str, float]) -> tuple[float, str]:
        raw = changed("offers.0.currency", "EUR") | {"rates": rates}
        found = market(raw)
        (origin,) = (o for o in found.origins.values() if o.source.startswith("the demand file: 0.8 EUR"))
        return origin.usd_per_chip_hour, origin.source

    known = exchange_rates()["EUR"]
    assert paid({})[0] == pytest.approx(0.8 * known)
    assert paid({"EUR": 2.0}) == (1.6, "the demand file: 0.8 EUR at 2 USD as given")
