"""Where servers stand: countries, currencies, and figures of one's own in their place."""

import json

import pytest

from chipwise.catalog.economics import economics, own_site, site
from chipwise.cli.main import run
from chipwise.errors import InputError
from chipwise.knowledge import Knowledge


def test_a_country_goes_by_name_and_by_its_letters():
    assert site("germany") == site("DE") == site("de")
    assert site("US").id == "us-average"


def test_a_price_in_euros_is_taken_at_the_rate_that_is_known():
    place, rate = site("germany"), economics().value("usd_per_eur")
    assert place.currency == "EUR" and place.usd_kwh.value == pytest.approx(place.local.value * rate)
    dear = own_site("germany", know=Knowledge.default(fx=["EUR=1.5"]).economics)
    assert dear.usd_kwh.value == pytest.approx(place.local.value * 1.5) and dear.local == place.local
    both = Knowledge.default(fx=["EUR=1.5"], assumptions={"usd_per_eur": 1.4}).economics
    assert both.value("usd_per_eur") == 1.4  # what is named by its own name comes first


@pytest.mark.parametrize(
    ("text", "usd", "currency"),
    [("0.12", 0.12, "USD"), (0.12, 0.12, "USD"), ("$.12/kWh", 0.12, "USD"), ("0.2 eur", 0.2 / 0.871, "EUR"),
     ("€0.2", 0.2 / 0.871, "EUR"), ("£0.2", 0.2 / 0.74758, "GBP"), ("0", 0.0, "USD"), ("14ct/kWh", 0.14 / 0.871, "EUR"),
     ("15p", 0.15 / 0.74758, "GBP"), ("25JPY", 25 / 155.69, "JPY"), ("80 EUR/MWh", 0.08 / 0.871, "EUR"), ("12c", 0.12, "USD")],
)  # fmt: skip
def test_a_price_of_electricity_is_read_as_people_write_it(text, usd, currency):
    place = own_site("norway", text)
    assert place.usd_kwh.value == pytest.approx(usd, rel=1e-5) and place.currency == currency
    assert "given" in place.usd_kwh.source


@pytest.mark.parametrize("text", ["0,2EUR", "-1", "0.2XAF", "", "cheap", "$0.2EUR", "101", "99EUR", "nan"])
def test_a_price_that_cannot_be_read_is_asked_back(text):
    with pytest.raises(InputError, match=r"0\.12, 0\.14EUR or 14ct|0\.2EUR or 2EUR") as error:
        own_site("germany", text)
    assert error.value.field == "energy_price"


@pytest.mark.parametrize("grams", [-1.0, 2001.0, float("nan")])
def test_a_grid_out_of_range_is_refused(grams):
    with pytest.raises(InputError) as error:
        own_site("germany", g_kwh=grams)
    assert error.value.field == "grid"


def test_the_bill_rests_on_the_place(capsys):
    def bill(*flags: str) -> dict:
        what = ["llama-3.1-8b", "--tokens", "1B", "--batch", "512", "--sequence", "4096", "--on", "h100:64"]
        assert run(["cost", *what, "--pricing", "on-premises", "-o", "json", *flags]) == 0
        return json.loads(capsys.readouterr().out)

    there, mine = (
        bill("--site", "ireland"),
        bill("--site", "IE", "--energy-price", "0.1EUR", "--grid", "0", "--pue", "1.1"),
    )
    price = next(source for source in there["site"]["sources"] if source["figure"] == "per_kwh")
    assert there["site"]["currency"] == "EUR" and price["source"].startswith("Eurostat")
    assert mine["site"] | {"sources": 0} == {
        "name": "ireland", "usd_per_kwh": pytest.approx(0.1 / 0.871, rel=1e-5), "pue": 1.1, "grams_co2_per_kwh": 0.0, "currency": "EUR",
        "per_kwh": 0.1, "sources": 0,
    }  # fmt: skip
    (a,), (b,) = (x["statements"][0]["options"] for x in (there, mine))
    assert b["split_usd"]["energy"] < a["split_usd"]["energy"] and b["kg_co2"] == 0 < a["kg_co2"]
