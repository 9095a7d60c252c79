"""Which offers count: clouds, regions, age, fabric; and prices given by hand."""

from dataclasses import replace
from datetime import date

import pytest

from chipwise import Knowledge
from chipwise.catalog import Accelerators, Offer, load, parse
from chipwise.errors import InputError, UnknownName
from chipwise.predict.estimate import Estimate
from chipwise.prices import PriceBook, cheapest_of, listed, price_of, quote
from chipwise.prices.fit import fitting, why_no_price
from chipwise.prices.given import read_given, with_given
from chipwise.prices.offer_filter import OfferFilter

CHIPS, DAY = load().chips, date(2026, 11, 16)
HOUR = Estimate(3_600, 3_600, 3_600, "modelled")


def offer(cloud="a", chips=8.0, usd=2.0, spot=None, joined="yes", dated="2026-11-01", chip="h100", instance="i"):
    return Offer(chip, cloud, "r", instance, chips, usd, spot, dated, "a list", joined=joined)


def book(*offers, **how):
    return PriceBook(offers, (), "a list", **how)


@pytest.mark.parametrize(
    ("name", "cloud"), [("amazon", "aws"), ("Google", "gcp"), ("microsoft", "azure"), ("AWS", "aws")]
)
def test_clouds_go_by_the_names_people_give_them(name, cloud):
    assert {o.cloud for o in Knowledge.default(cloud=name).prices.offers} == {cloud}


def test_several_clouds_and_regions_can_be_named():
    prices = Knowledge.default(cloud="aws,gcp", region=["us-east-1", "us-central1"]).prices
    assert {(o.cloud, o.region) for o in prices.offers} == {("aws", "us-east-1"), ("gcp", "us-central1")}
    assert "aws, gcp/us-east-1, us-central1 alone" in prices.origin


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"cloud": "nowhere"}, UnknownName),
        ({"cloud": "gcp", "region": "us-east-1"}, UnknownName),
        ({"cloud": ","}, InputError),
        ({"max_age": "soon"}, InputError),
        ({"max_age": "-3d"}, InputError),
        ({"fabric": "fast"}, InputError),
        ({"price": ["v7x"]}, InputError),
        ({"price": ["v7x=-1"]}, InputError),
        ({"price": ["h10=2"]}, UnknownName),
        ({"price": ["v7x=1", "v7x=2"]}, InputError),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(how, error):
    with pytest.raises(error):
        Knowledge.default(**how)


def test_older_offers_than_asked_for_do_not_count_and_an_age_that_leaves_none_is_refused():
    prices = OfferFilter.read(max_age="90d").apply(listed(), DAY)
    assert prices.offers and min(o.date for o in prices.offers) >= "2026-08-18"
    assert OfferFilter.read(max_age="90").max_age_days == OfferFilter.read(max_age=90).max_age_days == 90
    with pytest.raises(InputError, match="the newest is 2026-"):
        OfferFilter.read(max_age="1d").apply(listed(), DAY)


def test_above_one_instance_only_offers_known_to_be_joined_count():
    joined, unknown, alone = offer("a", usd=4.0), offer("b", usd=3.0, joined="unknown"), offer("c", joined="no")
    prices = book(joined, unknown, alone)
    assert [o.cloud for o in fitting(CHIPS["h100"], 16, False, prices)[0]] == ["a"]
    assert [o.cloud for o in fitting(CHIPS["h100"], 8, False, prices)[0]] == ["c", "b", "a"]  # one instance holds them
    allowed = replace(prices, fabric="any")
    assert [o.cloud for o in fitting(CHIPS["h100"], 16, False, allowed)[0]] == ["b", "a"]


def test_a_chip_without_a_joined_offer_has_no_price_and_says_what_would_count():
    prices = book(offer(joined="unknown"), offer("b", joined="no"))
    assert price_of(CHIPS["h100"], 64, book=prices) is None
    words = why_no_price(CHIPS["h100"], 64, False, prices)
    assert "none of the 2 offers" in words and "--fabric any counts one offer" in words


def test_of_equal_prices_the_fresher_is_taken():
    prices = book(offer("a", dated="2026-09-01"), offer("b", dated="2026-11-01"), offer("c", dated="2026-10-01"))
    assert price_of(CHIPS["h100"], 8, today=DAY, book=prices).offer.cloud == "b"


def test_a_tpu_offer_holds_the_slice_and_is_named_after_it():
    spot = price_of(CHIPS["v5p"], 512, True, DAY)
    assert spot.offer.instance == "v5p-1024" and spot.offer.chips >= 512
    half = price_of(CHIPS["v5p"], 256, True, DAY)
    assert half.offer.instance == "v5p-512" and "the price of v5p-" in half.caveat
    many = cheapest_of(parse("v6e:1024"), True, DAY)
    assert many.price.offer.instance == "v6e-256" and many.chips == 1024
    pod = price_of(CHIPS["v2"], 16, today=DAY)
    assert pod.usd_per_chip_hour == 1.5  # not v2-8 at $1.13, a host by itself


def test_a_price_of_a_chip_holds_slices_of_every_size():
    assert price_of(CHIPS["v7x"], 64, today=DAY).usd_per_chip_hour == 12.0


def test_a_given_price_stands_in_place_of_every_offer_on_demand():
    prices = with_given(listed(), ["mi355x=3.5", "h100=$1.50"], DAY)
    assert price_of(CHIPS["mi355x"], 64, today=DAY, book=prices).usd_per_chip_hour == 3.5
    assert (
        quote(Accelerators(CHIPS["h100"], 3), HOUR, today=DAY, book=prices).usd.value == 4.5
    )  # no whole instances are known
    assert [o.cloud for o in prices.offers_for("h100")] == ["given"] and prices.offers_for("h100", spot=True)
    assert "mi355x at $3.5/h, h100 at $1.5/h as given" in prices.origin
    assert read_given({"v7x": 12.0}) == {"v7x": 12.0}


def test_a_given_price_counts_whatever_the_cloud():
    prices = Knowledge.default(cloud="gcp", price=["h100=1.5"]).prices
    assert price_of(CHIPS["h100"], 64, today=DAY, book=prices).usd_per_chip_hour == 1.5


def test_an_older_offer_counts_until_it_is_outdated():
    large, small = offer("large", usd=2.0), offer("small", chips=2.0, usd=3.0, dated="2026-07-15")
    two, eight = (Accelerators(CHIPS["h100"], count) for count in (2, 8))
    assert quote(two, HOUR, today=DAY, book=book(large, small)).usd.value == 6.0
    assert quote(eight, HOUR, today=DAY, book=book(large, small)).usd.value == 16.0
    ancient = replace(small, date="2025-07-15")
    assert quote(two, HOUR, today=DAY, book=book(large, ancient)).usd.value == 16.0
