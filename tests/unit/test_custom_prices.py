"""A company's own prices: read from a file, laid over the list price by price."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import Commitment, Offer, load
from chipwise.catalog.currencies import read_rates
from chipwise.errors import InputError
from chipwise.prices import (
    PriceBook,
    custom_prices_in_words,
    laid_over,
    listed,
    price_of,
    prices_in_words,
    read_custom_prices,
)
from chipwise.prices.custom_prices import COLUMNS, CustomPrices, custom_prices_csv

CHIPS = load().chips
DAY = date(2026, 11, 1)
HEAD = ",".join(COLUMNS)
LINE = "h100,gcp,us-central1,a3-highgpu-8g,8,61.20,24.80,48.00,36.00,2026-10-31,contract 4711,"


def written(tmp_path, *lines, head=HEAD):
    path = tmp_path / "own.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def own(tmp_path, *lines, head=HEAD, rates=None):
    return read_custom_prices(written(tmp_path, *lines, head=head), rates or {}, DAY)


def book(*offers, commitments=()):
    return PriceBook(tuple(offers), tuple(commitments), "list prices")


def offer(region="us-central1", instance="a3-highgpu-8g", chips=8, ondemand=10.0, spot=4.0, dated="2026-08-21"):
    return Offer("h100", "gcp", region, instance, chips, ondemand, spot, dated, "list")


def test_a_line_becomes_an_offer_and_two_commitments_per_chip(tmp_path):
    found = own(tmp_path, LINE)
    assert found.offers == (
        Offer(
            "h100",
            "gcp",
            "us-central1",
            "a3-highgpu-8g",
            8.0,
            61.20 / 8,
            24.80 / 8,
            "2026-10-31",
            "contract 4711",
            "",
            own=True,
            joined="yes",
        ),
    )
    assert [(c.years, c.usd_per_chip_hour, c.ondemand_usd_per_chip_hour, c.own) for c in found.commitments] == [
        (1, 6.0, 61.20 / 8, True),
        (3, 4.5, 61.20 / 8, True),
    ]


def test_columns_may_come_in_any_order_and_prices_may_be_missing(tmp_path):
    found = own(
        tmp_path,
        "2026-10-31,8,a3-highgpu-8g,us-central1,gcp,NVIDIA H100,24.80",
        head="date,chips,instance,region,cloud,chip,spot_usd_h",
    )
    assert (
        found.offers[0].ondemand_usd_per_chip_hour is None
        and found.offers[0].spot_usd_per_chip_hour == 3.1
        and found.commitments == ()
    )
    assert found.offers[0].source == "own.csv"  # a file without sources is its own


def test_what_was_written_is_read_back(tmp_path):
    from chipwise.prices.custom_prices import CustomPriceRow

    row = CustomPriceRow(
        "v5p", "gcp", "us-east5", "v5p-8", 4, (None, 6.4, 11.8, None), "2026-10-31", "contract, 4711", 'a "note"'
    )
    path = tmp_path / "own.csv"
    path.write_text(custom_prices_csv([row]), encoding="utf-8")
    found = read_custom_prices(path, today=DAY)
    assert found.offers == (
        Offer("v5p", "gcp", "us-east5", "v5p-8", 4, None, 1.6, "2026-10-31", row.source, row.note, True, "yes"),
    )
    assert found.commitments == (
        Commitment("v5p", "gcp", "us-east5", "v5p-8", 1, 2.95, None, "2026-10-31", row.source, row.note, True),
    )


def test_another_currency_is_converted_at_the_rate_given(tmp_path):
    found = own(tmp_path, LINE + ",EUR", head=HEAD + ",currency", rates={"EUR": 1.1})
    assert found.offers[0].ondemand_usd_per_chip_hour == pytest.approx(61.20 * 1.1 / 8)
    assert found.commitments[0].usd_per_chip_hour == pytest.approx(48.00 * 1.1 / 8)


WRONG = {
    "an unknown chip": (LINE.replace("h100", "h10"), "own.csv line 2 chip: unknown name 'h10'"),
    "another chip's variant": (LINE.replace("h100", "h200-nvl"), "own.csv line 2 chip: unknown name 'h200-nvl'"),
    "a negative price": (LINE.replace("61.20", "-61.20"), "own.csv line 2 ondemand_usd_h: '-61.20'"),
    "a price of nothing": (LINE.replace("24.80", "0"), "own.csv line 2 spot_usd_h: '0'"),
    "a price in words": (LINE.replace("48.00", "cheap"), "own.csv line 2 year1_usd_h: 'cheap'"),
    "a price that is no number": (LINE.replace("36.00", "nan"), "own.csv line 2 year3_usd_h: 'nan'"),
    "an endless price": (LINE.replace("36.00", "inf"), "own.csv line 2 year3_usd_h: 'inf'"),
    "no price at all": ("h100,gcp,us-central1,a3-highgpu-8g,8,,,,,2026-10-31,,", "one price at least"),
    "no cloud": (LINE.replace("gcp", ""), "own.csv line 2 cloud: missing"),
    "no region": (LINE.replace("us-central1", " "), "own.csv line 2 region: missing"),
    "no instance": (LINE.replace("a3-highgpu-8g", ""), "own.csv line 2 instance: missing"),
    "no chips": (LINE.replace(",8,", ",0,"), "own.csv line 2 chips: '0'"),
    "a bad date": (LINE.replace("2026-10-31", "31.10.2026"), "own.csv line 2 date: '31.10.2026'"),
    "no date": (LINE.replace("2026-10-31", ""), "own.csv line 2 date: missing"),
    "a date to come": (LINE.replace("2026-10-31", "2027-10-31"), "own.csv line 2 date: '2027-10-31'"),
    "too few cells": ("h100,gcp", "own.csv line 2: '2 cells'"),
    "an offer twice": (f"{LINE}\n{LINE}", "own.csv line 3: 'h100 gcp us-central1 a3-highgpu-8g 8'"),
    "quotes without an end": (LINE + '"open', "own.csv line 2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_line_that_cannot_be_used_is_named(case, tmp_path):
    line, said = WRONG[case]
    with pytest.raises(InputError) as caught:
        own(tmp_path, line)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (HEAD.replace("chips,", ""), "the column chips"),
        (HEAD + ",prise", "own.csv line 1: unknown .* 'prise'"),
        (HEAD + ",note", "each column only once"),
    ],
)
def test_a_header_that_cannot_be_used_is_named(head, said, tmp_path):
    with pytest.raises(InputError, match=said):
        own(tmp_path, LINE, head=head)


def test_a_file_without_a_price_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least one price below the header"):
        own(tmp_path)


def test_a_currency_without_a_rate_is_refused_by_row_and_field(tmp_path):
    with pytest.raises(InputError, match=r"own.csv line 2 currency: 'EUR' .* --fx EUR=DOLLARS"):
        own(tmp_path, LINE + ",EUR", head=HEAD + ",currency")
    known = read_custom_prices(written(tmp_path, LINE + ",EUR", head=HEAD + ",currency"), today=DAY).offers[0]
    assert known.ondemand_usd_per_chip_hour == pytest.approx(61.2 / 8 / 0.871, rel=1e-4)
    assert known.source == "contract 4711; EUR at 1.14811 USD of 2026-09-17"


@pytest.mark.parametrize(
    "text", ["EUR", "EUR=", "EUR=0", "EUR=-1", "EUR=nan", "EURO=1.08", "=1.08", "EUR=1e9", "USD=2", "EUR=1..1"]
)
def test_a_rate_that_is_none_is_refused(text):
    with pytest.raises(InputError, match=r"^fx: "):
        read_rates([text])


def test_two_rates_for_one_currency_are_refused():
    assert read_rates(["EUR=1.08", "eur=1.08", "USD=1"]) == {"EUR": 1.08, "USD": 1.0}
    with pytest.raises(InputError, match="one rate for EUR"):
        read_rates(["EUR=1.08", "EUR=1.10"])


def test_an_own_price_replaces_the_list_price_of_the_same_instance_and_of_the_same_size(tmp_path):
    same, size, other, away = (
        offer(),
        offer(instance="a3-megagpu-8g"),
        offer(instance="a3-highgpu-1g", chips=1),
        offer(region="us-east4"),
    )
    found = laid_over(book(same, size, other, away), own(tmp_path, LINE))
    assert set(found.offers[1:]) == {other, away} and found.offers[0].own
    assert found.own == ("own.csv",) and "1 offers and 2 commitments of own.csv" in found.origin


def test_only_the_price_of_the_same_terms_gives_way(tmp_path):
    spot = own(tmp_path, "h100,gcp,us-central1,a3-highgpu-8g,8,,24.80,,,2026-10-31,,")
    found = laid_over(book(offer()), spot)
    assert [(o.own, o.ondemand_usd_per_chip_hour, o.spot_usd_per_chip_hour) for o in found.offers] == [
        (True, None, 3.1),
        (False, 10.0, None),
    ]
    assert [o.own for o in found.offers_for("h100")] == [False] and [o.own for o in found.offers_for("h100", True)] == [
        True
    ]


def test_a_price_for_any_size_replaces_every_size_of_the_region(tmp_path):
    every = own(tmp_path, "h100,gcp,us-central1,any,8,40,20,,,2026-10-31,,")
    assert all(o.own for o in laid_over(book(offer(), offer(instance="a3-highgpu-1g", chips=1)), every).offers)


def test_a_price_for_any_size_prices_large_runs_too(tmp_path):
    found = laid_over(listed(), own(tmp_path, "h100,gcp,us-central1,any,1,0.5,,,,2026-10-31,,"))
    assert price_of(CHIPS["h100"], 64, today=DAY, book=found).usd_per_chip_hour == 0.5
    assert price_of(CHIPS["h100"], 1, today=DAY, book=found).usd_per_chip_hour == 0.5


def test_own_commitments_replace_those_of_the_region_that_name_no_instance(tmp_path):
    def listed_for(years, instance="", region="us-central1"):
        return Commitment("h100", "gcp", region, instance, years, 7.0, 11.0, "2025-03-17", "list")

    kept = [listed_for(1, "a3-ultragpu-8g"), listed_for(3, region="us-east4")]
    found = laid_over(
        book(offer(), commitments=[listed_for(1), listed_for(3), listed_for(1, "a3-highgpu-8g"), *kept]),
        own(tmp_path, LINE),
    )
    assert [c for c in found.commitments if not c.own] == kept
    assert [c.usd_per_chip_hour for c in found.commitments_for("h100", 1, ["gcp"], ["us-central1"])] == [6.0, 7.0]


def test_a_later_file_lies_over_an_earlier_one(tmp_path):
    first, second = own(tmp_path, LINE), own(tmp_path, LINE.replace("61.20", "50"))
    found = laid_over(laid_over(book(offer()), first), second)
    assert found.offers_for("h100")[0].ondemand_usd_per_chip_hour == 50 / 8
    assert [o for o in found.offers if o.ondemand_usd_per_chip_hour == 61.20 / 8] == []


def test_the_own_price_prices_a_run_and_is_said(tmp_path):
    found = laid_over(listed(), own(tmp_path, LINE.replace("61.20", "8.00")))
    price = price_of(CHIPS["h100"], 64, today=DAY, book=found)
    assert price.usd_per_chip_hour == 1.0 and price.offer.own and "own price" in str(price)
    words = prices_in_words(found, [price, None])
    assert len(words) == 1 and "own.csv" in words[0] and "used for h100 on gcp" in words[0]
    assert (
        "none of them is the cheapest" in custom_prices_in_words(found, [])[0]
        and custom_prices_in_words(listed(), [price]) == ()
    )


def test_own_prices_neither_age_the_list_nor_grow_too_old_to_count(tmp_path):
    """The list's newest date stays the measure; an own price counts at any age, and is marked."""
    old = LINE.replace("61.20", "8.00").replace("2026-10-31", "2024-01-31")
    found = laid_over(listed(), own(tmp_path, old))
    assert found.made == listed().made
    price = price_of(CHIPS["h100"], 64, today=DAY, book=found)
    assert price.usd_per_chip_hour == 1.0 and price.stale
    assert price_of(CHIPS["v5e"], 64, today=DAY, book=found) == price_of(CHIPS["v5e"], 64, today=DAY)
    fresh = laid_over(listed(), own(tmp_path, LINE))
    assert price_of(CHIPS["a100-80gb"], 64, today=DAY, book=fresh) == price_of(CHIPS["a100-80gb"], 64, today=DAY)


def test_an_empty_overlay_changes_no_price():
    assert laid_over(listed(), CustomPrices("own.csv", (), ())).offers == listed().offers


PLACES = st.tuples(st.sampled_from(["r1", "r2"]), st.sampled_from([("i1", 1), ("i8", 8), ("j8", 8)]))
USD = st.none() | st.floats(0.1, 20.0)


@st.composite
def some_offers(draw, mine):
    found = {}
    for (region, (instance, chips)), ondemand, spot in draw(st.lists(st.tuples(PLACES, USD, USD), max_size=6)):
        if ondemand or spot:
            found[region, instance] = Offer(
                "h100", "gcp", region, instance, chips, ondemand, spot, "2026-08-21", "x", own=mine
            )
    return tuple(found.values())


@given(some_offers(False), some_offers(True))
def test_where_own_prices_stand_no_list_price_of_the_same_terms_and_size_does(offers, mine):
    found = laid_over(book(*offers), CustomPrices("own.csv", mine, ()))
    assert set(mine) <= set(found.offers)
    for spot in (False, True):
        places = {(o.region, o.chips) for o in mine if o.price(spot) is not None}
        left = [o for o in found.offers if not o.own and o.price(spot) is not None]
        assert not places & {(o.region, o.chips) for o in left}
        kept = [o for o in offers if o.price(spot) is not None and (o.region, o.chips) not in places]
        assert sorted(o.price(spot) for o in left) == sorted(o.price(spot) for o in kept)
