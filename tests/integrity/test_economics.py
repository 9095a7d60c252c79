"""Servers, sites and assumptions: whole, positive, in order, and each with a source and a date."""

from datetime import date
from pathlib import Path

import pytest

from chipwise.catalog import load
from chipwise.catalog.economics import ANYWHERE, DEFAULT_SITE, economics, servers, site, sites
from chipwise.catalog.files import rows
from chipwise.predict.model.energy import watts

FILES = ("servers.csv", "sites.csv", "economics.csv")


@pytest.mark.parametrize("name", FILES)
def test_names_are_unique_and_every_cell_is_trimmed(name):
    found = list(rows(name))
    key = next(iter(found[0]))
    assert len({row[key] for row in found}) == len(found)
    for row in found:
        assert None not in row and None not in row.values(), row
        assert all(cell == cell.strip() for cell in row.values()), row


@pytest.mark.parametrize("server", servers().values(), ids=lambda s: s.id)
def test_a_server_is_of_a_known_chip_with_prices_and_power_that_make_sense(server):
    chip = load().chips[server.chip_id]
    assert chip.family != "tpu", "TPUs are not sold"
    assert 0 < server.usd_low <= server.usd <= server.usd_high < 4 * server.usd_low
    assert 500 < server.usd / server.chips < 100_000
    assert server.chips * chip.idle_w < server.load_w <= server.max_w
    assert server.chips * chip.tdp_w <= server.max_w * 1.01
    assert server.load_w >= 0.8 * server.chips * watts(chip, 1.0)
    assert server.rack_units >= 1 and server.network > 0
    for source, dated in ((server.price_source, server.price_date), (server.power_source, server.power_date)):
        assert source and date(2015, 1, 1) < date.fromisoformat(dated) <= date.today()


@pytest.mark.parametrize("place", sites().values(), ids=lambda s: s.id)
def test_a_site_has_sourced_figures_in_range(place):
    assert 1.0 < place.pue.value < 2.0 and 0 <= place.g_kwh.value < 1000
    for cited in (place.pue, place.g_kwh, place.usd_kwh):
        if cited is not None:
            assert cited.source and date.fromisoformat(cited.date) <= date.today()
    if place.kind == "own":
        assert place.usd_kwh is not None and 0.02 < place.usd_kwh.value < 0.5
        assert place.local is not None and (place.currency == "USD" or place.currency in place.usd_kwh.source)
    else:
        assert place.usd_kwh is None and place.id == f"{place.cloud}/{place.region}"


def test_countries_are_named_once_and_on_the_page():
    page = (Path(__file__).parents[2] / "docs" / "cost.md").read_text()
    own = [place for place in sites().values() if place.kind == "own"]
    codes = [place.country for place in own if place.country]
    assert len(codes) == len(set(codes)) > 40 and all(len(code) == 2 and code.isupper() for code in codes)
    assert not [place.id for place in own if f"`{place.id}`" not in page]


@pytest.mark.parametrize("cloud", ["gcp", "aws", "azure", "oci", "lambda", "nebius", "runpod"])
def test_every_region_with_an_offer_of_a_large_cloud_is_a_site(cloud):
    regions = {offer.region for offer in load().offers if offer.cloud == cloud} - {"any"}
    assert regions and not [r for r in regions if f"{cloud}/{r}" not in sites()]


def test_the_sites_that_stand_for_others_are_there():
    assert site(DEFAULT_SITE).usd_kwh is not None and ANYWHERE in sites()


@pytest.mark.parametrize("known", economics().table.values(), ids=lambda a: a.name)
def test_an_assumption_lies_in_its_range_and_says_where_it_comes_from(known):
    assert 0 <= known.low <= known.value <= known.high
    assert known.unit and known.source and date.fromisoformat(known.date) <= date.today()
    if known.unit.startswith("share"):
        assert known.high <= 1
    if known.source.startswith("assumed"):
        assert known.note, "an assumption without a source says why"
        assert known.high >= 1.2 * known.low, "and has a wide range"


def test_what_depends_on_the_cloud_has_a_figure_for_the_rest():
    table = economics().table
    for name in table:
        if name.endswith((".aws", ".gcp", ".azure")):
            assert name.rpartition(".")[0] in table


def test_the_page_lists_every_assumption_as_it_is():
    page = (Path(__file__).resolve().parents[2] / "docs" / "cost.md").read_text(encoding="utf-8")
    for row in rows("economics.csv"):
        assert f"| `{row['name']}` | {row['value']} | {row['low']} to {row['high']} | {row['unit']} |" in page, row[
            "name"
        ]
