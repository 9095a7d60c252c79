"""One price for one thing: an offer more never raises it, one less never lowers it, and every verb asks the same."""

from dataclasses import replace
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog import load, parse
from chipwise.catalog.offers import ANY
from chipwise.compare.serving.fleet import held, rent
from chipwise.prices import PriceBook, cheapest, listed
from chipwise.prices.fit import rentals

DAY = date(2026, 11, 18)
CHIPS = load().chips
PRICED = sorted({o.chip_id for o in listed().offers})
GPUS = sorted(chip for chip in PRICED if chip not in load().slices)
SUPPLIED = 1024  # chips that several sellers supply; beyond what anybody does, a price is a guess at a contract
ASKED = st.tuples(
    st.sampled_from(PRICED),
    st.sampled_from([1, 2, 3, 4, 8, 12, 16, 64, 256, SUPPLIED]),
    st.integers(1, 9),
    st.booleans(),
)


@st.composite
def offers(draw, chip):
    """An offer of a chip much as the list has them: of any size, age, fabric, with notes that shut some out."""
    like = draw(st.sampled_from([o for o in listed().offers if o.chip_id == chip]))
    return replace(
        like,
        cloud=draw(st.sampled_from(["aws", "gcp", "nobody"])),
        instance=draw(st.sampled_from([like.instance, "new-type", ANY])),
        chips=draw(st.sampled_from([like.chips, 1.0, 2.0, 8.0, 16.0, 256.0])),
        ondemand_usd_per_chip_hour=draw(st.floats(0.05, 50.0)),
        spot_usd_per_chip_hour=draw(st.none() | st.floats(0.05, 50.0)),
        date=draw(st.dates(date(2025, 1, 1), DAY)).isoformat(),
        spot_date="",
        joined=draw(st.sampled_from(["yes", "no", "unknown"])),
        note=draw(st.sampled_from(["", "accelerator only; host extra", "low confidence", "marketplace"])),
        own=draw(st.booleans()),
    )


def usd(book: PriceBook, asked) -> float:
    chip, chips, pieces, spot = asked
    rental = cheapest(CHIPS[chip], chips, pieces, spot, DAY, book)
    return float("inf") if rental is None else rental.usd_per_hour


@settings(max_examples=400)
@given(ASKED, st.data())
def test_an_offer_more_never_raises_a_price(asked, data):
    book = replace(listed(), fabric=data.draw(st.sampled_from(["known", "any"])))
    more = replace(book, offers=(*book.offers, data.draw(offers(asked[0]))))
    assert usd(more, asked) <= usd(book, asked) * (1 + 1e-9)


@settings(max_examples=400)
@given(ASKED, st.data())
def test_fewer_sellers_never_lower_a_price(asked, data):
    book = listed()
    clouds = sorted({o.cloud for o in book.offers if o.chip_id == asked[0]})
    some = data.draw(st.sets(st.sampled_from(clouds), min_size=1))
    fewer = replace(book, offers=tuple(o for o in book.offers if o.cloud in some))
    assert usd(fewer, asked) >= usd(book, asked) * (1 - 1e-9)


@settings(max_examples=400)
@given(ASKED)
def test_more_pieces_or_larger_ones_never_cost_less(asked):
    chip, chips, pieces, spot = asked
    now = usd(listed(), asked)
    assert usd(listed(), (chip, chips, pieces + 1, spot)) >= now * (1 - 1e-9)
    if chip not in load().slices:  # of which some sizes do not exist, and a pod's chip-hour may cost more than a host's
        assert usd(listed(), (chip, chips, pieces, spot)) <= usd(listed(), (chip, chips * 2, pieces, spot)) * (1 + 1e-9)


@settings(max_examples=400)
@given(st.sampled_from(GPUS), st.integers(1, 4), st.integers(1, 16), st.integers(0, 7), st.booleans())
def test_chips_left_free_never_cost_more_than_any_that_are_named(chip, power, replicas, spare, spot):
    each = 2 ** (power - 1)
    free = rent(CHIPS[chip], each, replicas, spot, DAY).usd_per_hour
    named = held(parse(f"{chip}:{each * replicas + spare}"), each, spot, DAY).usd_per_hour
    assert (free is None) == (named is None)
    assert free is None or free <= named * (1 + 1e-9)


@settings(max_examples=400)
@given(st.sampled_from(GPUS), st.integers(1, 64), st.booleans())
def test_the_same_chips_cost_no_more_when_they_need_not_work_together(chip, chips, spot):
    apart, together = (rentals(CHIPS[chip], *asked, spot, DAY) for asked in ((1, chips), (chips, 1)))
    if together:
        assert apart[0].usd_per_hour <= together[0].usd_per_hour * (1 + 1e-9)
