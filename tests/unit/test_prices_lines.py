"""Price lists: every offer with its prices side by side, cheapest first."""

from dataclasses import replace

import pytest

from chipwise.catalog import Commitment, Offer
from chipwise.prices import PriceBook, listed
from chipwise.prices.lines import TERMS, cheapest_of_each, price_lines


def offer(cloud="gcp", region="r1", instance="i8", ondemand=2.0, spot=None, own=False):
    return Offer("v5e", cloud, region, instance, 8, ondemand, spot, "2026-08-21", "list", own=own)


def committed(years, usd, cloud="gcp", region="r1", instance="", own=False):
    return Commitment("v5e", cloud, region, instance, years, usd, 2.0, "2025-03-03", "list", own=own)


def lines(*offers, commitments=(), **how):
    return price_lines(PriceBook(offers, tuple(commitments), "a list"), ["v5e"], **how)


def test_lines_are_cheapest_first_and_those_without_an_on_demand_price_last():
    found = lines(offer(ondemand=3.0), offer(ondemand=None, spot=0.1, region="r2"), offer(ondemand=1.0, region="r3"))
    assert [line.region for line in found] == ["r3", "r1", "r2"]


def test_terms_keep_only_offers_with_such_a_price_and_rank_by_it():
    offers = offer(spot=0.9), offer(region="r2", ondemand=1.0), offer(region="r3", ondemand=9.0, spot=0.2)
    assert [line.region for line in lines(*offers, terms="spot")] == ["r3", "r1"]


def test_a_commitment_stands_beside_the_offers_of_its_region_and_instance():
    found = lines(
        offer(),
        offer(region="r2"),
        commitments=[committed(1, 1.4), committed(3, 0.9, instance="i8"), committed(3, 1.1)],
    )
    first = next(line for line in found if line.region == "r1")
    assert (first.year1.usd_per_chip_hour, first.year3.usd_per_chip_hour) == (
        1.4,
        0.9,
    )  # one for the very instance before one for any
    assert next(line for line in found if line.region == "r2").year1 is None


def test_an_own_commitment_stands_before_the_lists():
    found = lines(offer(), commitments=[committed(1, 1.0, instance="i8"), committed(1, 1.5, own=True)])
    assert found[0].year1.own and found[0].year1.usd_per_chip_hour == 1.5


def test_a_commitment_without_an_offer_has_a_line_of_its_own():
    found = lines(offer(), commitments=[committed(1, 1.4, region=""), committed(3, 1.0, region="")])
    alone = found[-1]
    assert (
        alone.region,
        alone.chips,
        alone.ondemand,
        alone.year1.usd_per_chip_hour,
        alone.year3.usd_per_chip_hour,
    ) == (
        "",
        None,
        None,
        1.4,
        1.0,
    )
    assert alone.date == "2025-03-03" and alone.cheapest == 1.0


def test_of_equal_prices_the_newest_stands_first():
    found = lines(
        offer(), replace(offer(region="r2"), date="2026-09-21"), replace(offer(region="r0"), date="2026-08-01")
    )
    assert [line.region for line in found] == ["r2", "r1", "r0"]


def test_a_spot_price_may_be_of_another_day():
    (line,) = lines(replace(offer(spot=0.5), spot_date="2026-07-01"))
    assert (line.ondemand.date, line.spot.date) == ("2026-08-21", "2026-07-01")


def test_the_cheapest_of_each_cloud_is_one_line_a_chip_and_cloud():
    found = cheapest_of_each(lines(offer(ondemand=3.0), offer(ondemand=1.0, region="r2"), offer(cloud="aws")))
    assert [(line.cloud, line.cheapest) for line in found] == [("gcp", 1.0), ("aws", 2.0)]


@pytest.mark.parametrize("terms", TERMS)
def test_every_price_of_the_catalog_is_in_its_list(terms):
    chips = ["v5e", "v6e", "h100", "a100-80gb", "trainium2"]
    found = price_lines(listed(), chips, terms=terms)
    assert found and all(line.on(terms) is not None for line in found)
    for chip in chips:
        prices = [line.on(terms).usd_per_chip_hour for line in found if line.chip_id == chip]
        assert [round(usd, 6) for usd in prices] == sorted(round(usd, 6) for usd in prices)
        if terms in ("ondemand", "spot"):
            every = [o.price(terms == "spot") for o in listed().offers if o.chip_id == chip]
            assert sorted(prices) == sorted(usd for usd in every if usd is not None)
        else:
            assert {c.usd_per_chip_hour for c in listed().commitments_for(chip, int(terms[0]))} <= set(prices)
