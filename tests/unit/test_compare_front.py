"""Cost against time over counts, and counts that somebody sells."""

from dataclasses import replace

import pytest

from chipwise import compare, load
from chipwise.catalog import load as catalog
from chipwise.compare import Refused, Terms
from chipwise.compare.terms import Candidate
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.front import FINALISTS, WIDE, undominated
from chipwise.errors import InputError
from chipwise.knowledge import Knowledge
from chipwise.prices import listed, price_of, supply, why_no_price
from lane import share

RUN = load("llama-3.1-8b", tokens="100B", batch=512, sequence=4096)


@pytest.fixture(scope="module")
def comparison():
    return compare(RUN, on="h100,h200,b200,v5p,a100-80gb", deadline="7d", budget="100k", front=True)


def test_the_front_has_the_counts_of_the_pick_and_the_next_best(comparison):
    chips = list(dict.fromkeys(p.row.accelerators.chip.id for p in comparison.front))
    assert len(chips) == FINALISTS and chips[0] == comparison.pick.accelerators.chip.id
    assert [p.row.accelerators for p in comparison.front if p.pick] == [comparison.pick.accelerators]
    for chip in chips:
        counts = [p.row.accelerators.count for p in comparison.front if p.row.accelerators.chip.id == chip]
        assert counts == sorted(set(counts)) and counts[-1] <= WIDE**2 * counts[0]


def test_points_on_the_front_are_those_that_nothing_beats(comparison):
    priced = [p for p in comparison.front if p.row.ondemand]
    for point in priced:
        beaten = any(
            other.row.prediction.duration.value < point.row.prediction.duration.value
            and other.row.ondemand.usd.value < point.row.ondemand.usd.value
            for other in priced
        )
        assert not (point.best and beaten)
    assert len(undominated([p.row for p in priced])) == sum(p.best for p in priced) >= 2


def test_points_know_the_limits(comparison):
    for point in comparison.front:
        late = point.row.prediction.duration.high > 7 * 86400
        rich = point.row.ondemand is None or point.row.ondemand.usd.high > 1e5
        assert point.within == (not late and not rich)


def test_the_front_is_in_text_json_and_a_picture(comparison, tmp_path):
    assert "Cost against time over counts" in str(comparison) and "beyond the limits" in str(comparison)
    points = comparison.to_dict()["front"]
    assert len(points) == len(comparison.front) and sum(point["pick"] for point in points) == 1
    comparison.plot(tmp_path / "front.svg")
    assert "<svg" in (tmp_path / "front.svg").read_text()[:400]


def test_a_service_has_no_front():
    work = load("llama-3.1-8b", rate=1, input_len=100, output_len=10)
    with pytest.raises(InputError, match="sized by its SLO"):
        compare(work, on="h100", front=True)


@pytest.mark.sampled
def test_no_count_is_chosen_that_no_offer_supplies():
    knowledge = Knowledge.default()
    for chip in share(catalog().chips.values()):
        terms = Terms("time", budget_usd=1e9)
        row = TrainingComparer.of(RUN, terms, knowledge).evaluate(Candidate(chip))
        if not isinstance(row, Refused):
            assert row.accelerators.count <= supply(chip, knowledge.prices), chip.id
            assert "contract" not in row.ondemand.price.caveat


def test_an_offer_that_joins_too_few_is_passed_over():
    book = listed()
    azure = [
        replace(o, ondemand_usd_per_chip_hour=0.01, date=str(book.made))
        for o in book.offers
        if o.chip_id == "h100" and o.cloud == "azure"
    ]
    cheap = replace(book, offers=(*book.offers, *azure))
    h100 = catalog().chips["h100"]
    assert price_of(h100, 512, book=cheap).offer.cloud == "azure"
    assert price_of(h100, 1024, book=cheap).offer.cloud != "azure"
    assert "contract" in price_of(h100, 16384, book=cheap).note


def test_a_price_of_low_confidence_decides_nothing():
    trainium = catalog().chips["trainium2"]
    assert price_of(trainium, 32) is None
    assert "--price trainium2=1.08" in why_no_price(trainium, 32, False, listed())
