"""Prices: which offer is taken, how old it may be, and what a run costs at it."""

from dataclasses import replace
from datetime import date

import pytest

from chipwise.catalog import Accelerators, load, parse
from chipwise.predict.estimate import Estimate
from chipwise.prices import chip_hours, listed, price_of, quote, run_cost, why_no_price
from chipwise.prices.book import OUTDATED_DAYS
from chipwise.prices.fit import Price, Rental, fitting, with_fresh
from chipwise.prices.offer_filter import OfferFilter

CHIPS = load().chips
DAY = date(2026, 9, 1)


def test_a_run_costs_chip_hours_times_the_price():
    assert run_cost(8, 3_600, 2.5) == chip_hours(8, 3_600) * 2.5 == 20.0


def test_the_interval_of_a_quote_is_that_of_the_duration():
    got = quote(parse("v5p:64"), Estimate(3_600, 1_800, 7_200, "modelled", "why"), today=DAY)
    assert got.usd.low / got.usd.value == pytest.approx(0.5) and got.usd.high / got.usd.value == pytest.approx(2.0)
    assert (got.usd.evidence, got.usd.because) == ("modelled", "why")


@pytest.mark.parametrize("spot", [False, True])
@pytest.mark.parametrize("chip", ["h100", "b200", "v5e", "a100-80gb"])
def test_a_price_names_an_offer_of_the_catalog(chip, spot):
    got = price_of(CHIPS[chip], 64, spot, DAY)
    offers = [(o.cloud, o.region, o.price(spot)) for o in listed().offers_for(chip, spot)]
    assert (got.offer.cloud, got.offer.region, got.usd_per_chip_hour) in offers and got.spot == spot


def test_large_runs_are_priced_by_whole_hosts():
    got = price_of(CHIPS["h100"], 64, today=DAY)
    assert got.offer.chips >= CHIPS["h100"].fabric.host_chips and not got.note
    assert price_of(CHIPS["h100"], 1, today=DAY).usd_per_chip_hour <= got.usd_per_chip_hour


def test_instances_smaller_than_a_host_hold_no_run_over_several():
    azure = listed().offers_for("h100-nvl", clouds=["azure"])
    small = replace(listed(), offers=tuple(replace(o, joined="yes") for o in azure))
    assert all(o.chips < 8 for o in azure) and price_of(CHIPS["h100-nvl"], 2, today=DAY, book=small)
    assert price_of(CHIPS["h100-nvl"], 64, today=DAY, book=small) is None


def test_one_instance_that_holds_the_chips_needs_no_fabric():
    verda = replace(listed(), offers=listed().offers_for("h200", clouds=["verda"]))
    assert {o.joined for o in verda.offers} == {"unknown"}
    assert price_of(CHIPS["h200"], 8, today=DAY, book=verda).offer.chips == 8
    assert price_of(CHIPS["h200"], 16, today=DAY, book=verda) is None
    assert "--fabric any" in why_no_price(CHIPS["h200"], 16, False, verda)


def test_an_outdated_price_decides_nothing_unless_its_age_is_asked_for():
    book = listed()
    old = [o for o in book.offers_for("h200") if book.outdated(o)]
    assert old and all((book.made - date.fromisoformat(o.date)).days > OUTDATED_DAYS for o in old)
    assert not {o.date for o in old} & {o.date for o in fitting(CHIPS["h200"], 1, False, book)[0]}
    alone = replace(book, offers=tuple(old))
    assert price_of(CHIPS["h200"], 1, today=DAY, book=alone) is None
    assert "outdated; --max-age" in why_no_price(CHIPS["h200"], 1, False, alone)
    asked = OfferFilter.read(max_age="1000d").apply(alone, DAY)
    assert price_of(CHIPS["h200"], 1, today=DAY, book=asked).usd_per_chip_hour == 2.0


def test_a_stale_price_says_what_a_fresh_one_costs():
    offers = [o for o in listed().offers_for("h200") if o.chips == 1][:1]
    old = replace(offers[0], date="2026-06-01", ondemand_usd_per_chip_hour=2.0)
    fresh = replace(offers[0], date="2026-08-30", ondemand_usd_per_chip_hour=2.2, cloud="other")
    both = replace(listed(), offers=(old, fresh))
    got = price_of(CHIPS["h200"], 1, today=DAY, book=both)
    assert got.usd_per_chip_hour == 2.0 and got.stale
    assert "10 % more: $2.20/h (other" in got.caveat
    day_before = price_of(CHIPS["h200"], 1, today=date(2026, 8, 30), book=both)
    assert not day_before.stale and "more" not in day_before.caveat


def test_a_price_older_than_ninety_days_is_marked():
    price = price_of(CHIPS["v5e"], 64, today=DAY)
    assert not price.stale and "stale" not in str(price)
    later = price_of(CHIPS["v5e"], 64, today=date(2027, 9, 1))
    assert later.stale and "stale" in str(later)


def test_a_chip_nobody_lists_has_no_quote():
    assert quote(parse("mi355x:64"), Estimate(1, 1, 1, "modelled")) is None


def test_a_single_node_offer_does_not_price_a_run_over_many():
    assert price_of(CHIPS["gh200"], 1, today=DAY) is not None
    assert price_of(CHIPS["gh200"], 64, today=DAY) is None


def test_offers_are_cheapest_first_and_filtered_by_cloud_region_and_spot():
    book = listed()
    prices = [o.ondemand_usd_per_chip_hour for o in book.offers_for("h100")]
    assert prices == sorted(prices) and len(prices) > 10
    gcp = book.offers_for("v6e", spot=True, clouds=["gcp"], regions=["us-central1"])[0]
    assert (gcp.cloud, gcp.region) == ("gcp", "us-central1")
    assert gcp.spot_usd_per_chip_hour is not None and gcp.price(spot=True) == gcp.spot_usd_per_chip_hour
    assert book.offers_for("h100", clouds=["nowhere"]) == () == book.offers_for("gh200", spot=True)


def test_commitments_are_cheapest_first_and_filtered_by_years_cloud_and_region():
    book = listed()
    one, three = (book.commitments_for("v5e", years, clouds=["gcp"], regions=["us-central1"]) for years in (1, 3))
    assert one and three and three[0].usd_per_chip_hour < one[0].usd_per_chip_hour < one[0].ondemand_usd_per_chip_hour
    assert {c.region for c in one} == {"us-central1"} and book.commitments_for("v5e", 2) == ()


def test_a_price_without_its_host_decides_nothing():
    assert price_of(CHIPS["t4"], 1, today=DAY).offer.cloud == "aws"  # Google's is less, and asks for the host on top
    assert price_of(CHIPS["p100"], 4, today=DAY) is None
    assert "leaves the host out ($1.46/h, gcp); --price p100=1.46 counts it" in why_no_price(
        CHIPS["p100"], 4, False, listed()
    )


@pytest.mark.parametrize("chip", ["h100", "l4", "a100-80gb", "h200"])
@pytest.mark.parametrize("chips", [1, 2, 3, 8, 12])
def test_a_quote_pays_for_whole_instances_and_takes_those_that_cost_least(chip, chips):
    got = quote(Accelerators(CHIPS[chip], chips), Estimate(3_600, 3_600, 3_600, "modelled"), today=DAY)
    found, _ = fitting(CHIPS[chip], chips, False, listed())
    every = [
        -(-chips // o.chips) * o.chips * o.ondemand_usd_per_chip_hour
        if o.chips >= 1
        else chips * o.ondemand_usd_per_chip_hour
        for o in found
    ]
    assert got.usd.value == pytest.approx(min(every))


def test_a_stale_price_is_held_against_fresh_ones_that_hold_as_much():
    def rental(usd, pieces, age_days):
        offer = next(o for o in listed().offers if o.chip_id == "h100")
        return Rental(price=Price(usd, False, offer, age_days), size=4, chips=4 * pieces, pieces=pieces)

    stale = rental(2.0, 2, 400)
    words = with_fresh(stale, [rental(2.5, 1, 1), rental(3.0, 2, 1)]).price.note
    assert words.startswith("stale;") and "it costs 50 % more: $3.00/h" in words
