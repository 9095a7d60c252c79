"""What the same chips cost at every seller, and how the pick changes at the median price."""

from dataclasses import replace
from datetime import date

import pytest

import chipwise as cw
from chipwise.catalog import Offer
from chipwise.compare.sellers import sellers_of
from chipwise.knowledge import Knowledge
from chipwise.prices import PriceBook

DAY = date(2026, 11, 16)
JOB = cw.load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)


def offer(chip, cloud, usd, chips=8.0, spot=None, joined="yes", note=""):
    return Offer(chip, cloud, "r", f"{chip}-{chips:g}", chips, usd, spot, "2026-11-01", "a list", note, joined=joined)


def known(*offers):
    return replace(Knowledge.default(today=DAY), prices=PriceBook(offers, (), "a list"))


MARKET = (
    offer("h200", "cheap", 2.6, note="form factor not stated"),
    offer("h200", "middle", 6.0),
    offer("h200", "dear", 8.0),
    offer("b200", "one", 6.0),
    offer("b200", "two", 6.2),
)


def test_the_decision_shows_the_sellers_and_how_the_pick_changes_at_the_median():
    comparison = cw.compare(JOB, on="h200:64,b200:64", knowledge=known(*MARKET))
    assert str(comparison.pick.accelerators) == "h200:64"
    words = comparison.words.sellers
    assert "3 sellers of h200:64" in words and "$2.60 to $8.00/h" in words and "median $6.00" in words
    assert "At the median price of every chip b200:64 wins" in words and "form factor not stated" in words
    assert words in str(comparison) and comparison.to_dict()["words"]["sellers"] == words


def test_a_pick_that_holds_at_the_median_is_said_to():
    comparison = cw.compare(JOB, on="h200:64,b200:64", knowledge=known(*MARKET[:1], *MARKET[3:]))
    assert "One seller of h200:64 is listed: cheap at $2.60/h" in comparison.words.sellers
    assert "it still wins" in comparison.words.sellers


def test_by_time_the_sellers_are_shown_without_another_pick():
    comparison = cw.compare(JOB, on="h200:64,b200:64", by="time", knowledge=known(*MARKET))
    assert (
        "2 sellers of b200:64" in comparison.words.sellers and "median price of every" not in comparison.words.sellers
    )


def test_the_median_pays_for_whole_instances():
    knowledge = known(offer("h200", "small", 3.0, chips=2.0), offer("h200", "large", 2.0))
    row = cw.compare(JOB, on="h200:2", knowledge=knowledge).rows[0]
    sellers = sellers_of(row, knowledge)
    assert sellers.hourly == (("small", 6.0), ("large", 16.0)) and sellers.median == pytest.approx(5.5)
    assert sellers.to_dict()["sellers"] == ["small", "large"]


def test_spot_that_costs_more_than_on_demand_is_not_shown():
    knowledge = known(offer("h200", "small", 3.0, chips=2.0), offer("h200", "large", 9.0, spot=2.5))
    (row,) = cw.compare(JOB, on="h200:2", knowledge=knowledge).rows
    assert row.ondemand.usd.value > 0 and row.spot is None  # $2.50 a chip-hour, and eight of them are paid for


def test_services_show_their_sellers_too():
    chat = cw.load("llama-3.1-8b", input_len=500, output_len=100, rate=2, ttft="1s")
    comparison = cw.compare(chat, on="h100", knowledge=known(offer("h100", "x", 2.0, 1.0), offer("h100", "y", 4.0)))
    assert "2 sellers of h100:1" in comparison.words.sellers and "$2.00 to $32.00/h" in comparison.words.sellers


def test_the_report_says_on_its_first_page_who_sells_it():
    decision = cw.report(JOB, on="h200:64,b200:64", knowledge=known(*MARKET)).decision
    (points,) = [answer for answer in decision.answers if answer.title == "Who sells it"]
    assert "3 sellers of h200:64" in points.items[0]


def test_a_pick_by_a_stale_price_says_what_wins_without_stale_prices():
    old = replace(offer("h200", "old", 2.6), date="2026-07-31")
    comparison = cw.compare(JOB, on="h200:64,b200:64", knowledge=known(old, *MARKET[1:]))
    words = comparison.words.sellers
    assert str(comparison.pick.accelerators) == "h200:64" and comparison.pick.ondemand.price.stale
    assert "with prices of the last 90 days it costs 2.31 times as much: $6.00/h (middle" in words
    assert "Without stale prices b200:64 wins at" in words
    fresh = cw.compare(JOB, on="h200:64,b200:64", knowledge=known(*MARKET))
    assert "stale" not in fresh.words.sellers
