"""The price data: every offer and commitment positive, dated, sourced, and near what others ask for the same chip.

Each check is a function that names what is wrong, so that it is shown to find a fault as well as to find none.
"""

import re
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import pytest

from chipwise.catalog import instances, load
from chipwise.catalog.files import rows
from chipwise.catalog.joined import joined, joined_rules
from chipwise.catalog.supply import USUAL_INSTANCES, supply_rules

CHIPS = load().chips
OFFERS, COMMITMENTS = load().offers, load().commitments
LARGE = ("gcp", "aws", "azure", "lambda", "oci", "runpod", "nebius")
DATE = re.compile(r"20\d\d-[01]\d-[0-3]\d")
OLDEST = "2024-06"  # older lists were left out: scp, ibm, ovhcloud and scaleway are of 2023
OLDEST_COMMITMENT = timedelta(days=5 * 365)
MOST_SPREAD = 5.0

SPOT_ABOVE = {  # chip, cloud, region, instance: why
    ("a100-80gb", "aws", "ap-southeast-1", "p4de.24xlarge"): "the catalog rounds the same price to other digits",
}
SPREAD = {  # chip, cloud: why its price is more than five times from another's
    ("a100-80gb", "gcp"): "Google's list price; few pay it, spot is little over half",
    ("a100-80gb-pcie", "vast"): "a marketplace of single machines",
    ("gb200", "azure"): "Microsoft's list price; CoreWeave asks two fifths",
    ("h100", "azure"): "Microsoft's list price; few pay it",
    ("h100", "gcp"): "Google's list price; few pay it, spot is a third",
    ("h100", "oci"): "a list price of January 2025, before the price cuts of that year",
    ("h100", "hyperbolic"): "single GPUs of many owners, the lowest price of 2025",
    ("h200", "azure"): "Microsoft's list price; few pay it",
    ("h200", "gcp"): "Google's list price; few pay it, spot is a third",
    ("h200", "primeintellect"): "a marketplace, its lowest seller",
    ("l40s", "vast"): "a marketplace of single machines",
    ("v100", "primeintellect"): "a marketplace that sells off an old chip",
    ("v100", "vast"): "a marketplace that sells off an old chip",
}
SPOT_ONLY = {("trainium2", "aws"): "the catalog lists no on-demand price"}


def key(o):
    return o.chip_id, o.cloud, o.region, o.instance


def plain_faults(offers):
    """Offers that are not positive, dated, sourced and of a known chip."""
    for o in offers:
        prices = [usd for usd in (o.ondemand_usd_per_chip_hour, o.spot_usd_per_chip_hour) if usd is not None]
        if o.chip_id not in CHIPS:
            yield f"{key(o)}: unknown chip"
        if not prices or not all(0.01 < usd < 30 for usd in prices):
            yield f"{key(o)}: no price, or one that no chip-hour has"
        if o.ondemand_usd_per_chip_hour is None and (o.chip_id, o.cloud) not in SPOT_ONLY:
            yield f"{key(o)}: no on-demand price and no reason"
        if not (o.chips >= 1 and o.cloud == o.cloud.lower() and o.region and o.instance):
            yield f"{key(o)}: not complete"
        if not DATE.fullmatch(o.date) or o.date < OLDEST or o.date > date.today().isoformat():
            yield f"{key(o)}: date {o.date}"
        if len(o.source) < 10:
            yield f"{key(o)}: no source"


def spot_faults(offers, exceptions=SPOT_ABOVE):
    """Offers whose spot price is above that on demand."""
    for o in offers:
        above = (
            o.spot_usd_per_chip_hour is not None
            and o.ondemand_usd_per_chip_hour is not None
            and o.spot_usd_per_chip_hour > o.ondemand_usd_per_chip_hour
        )
        if above and key(o) not in exceptions:
            yield f"{key(o)}: spot {o.spot_usd_per_chip_hour} above {o.ondemand_usd_per_chip_hour}"


def spread_faults(offers, exceptions=SPREAD):
    """Chips for which one cloud's cheapest price is more than five times another's."""
    best = {}
    for o in offers:
        if o.ondemand_usd_per_chip_hour is not None and (o.chip_id, o.cloud) not in exceptions:
            best.setdefault(o.chip_id, {})
            best[o.chip_id][o.cloud] = min(o.ondemand_usd_per_chip_hour, best[o.chip_id].get(o.cloud, float("inf")))
    for chip_id, clouds in best.items():
        low, high = min(clouds, key=clouds.get), max(clouds, key=clouds.get)
        if clouds[high] > MOST_SPREAD * clouds[low]:
            yield f"{chip_id}: {high} asks {clouds[high]:.2f}, {low} {clouds[low]:.2f}"


def commitment_faults(commitments):
    """Commitments that are not positive, of 1 or 3 years, dated, sourced, and below the on-demand price."""
    newest = date.fromisoformat(max(o.date for o in OFFERS))
    for c in commitments:
        if c.chip_id not in CHIPS or not 0.01 < c.usd_per_chip_hour < 30 or c.years not in (1, 3):
            yield f"{key(c)}: chip, price or years"
        if c.ondemand_usd_per_chip_hour is not None and c.usd_per_chip_hour > c.ondemand_usd_per_chip_hour:
            yield f"{key(c)}: {c.usd_per_chip_hour} committed, {c.ondemand_usd_per_chip_hour} on demand"
        if not DATE.fullmatch(c.date) or newest - date.fromisoformat(c.date) > OLDEST_COMMITMENT:
            yield f"{key(c)}: date {c.date}"
        if len(c.source) < 10 or c.cloud != c.cloud.lower():
            yield f"{key(c)}: source or cloud"


def longer_faults(commitments):
    """Three years that cost more per hour than one year of the same."""
    one = {(*key(c), c.date): c.usd_per_chip_hour for c in commitments if c.years == 1}
    for c in commitments:
        if c.years == 3 and c.usd_per_chip_hour > one.get((*key(c), c.date), float("inf")):
            yield f"{key(c)}: three years cost {c.usd_per_chip_hour}"


def superseded_faults(commitments):
    """Commitments of which a newer one for the same chip, cloud, region, instance and years exists."""
    newest = {}
    for c in commitments:
        newest[*key(c), c.years] = max(c.date, newest.get((*key(c), c.years), ""))
    for c in commitments:
        if c.date < newest[*key(c), c.years]:
            yield f"{key(c)}: {c.date} is superseded"


def twice(found, *more):
    """Offers or commitments that are there twice."""
    counts = Counter((*key(o), *(getattr(o, name) for name in more)) for o in found)
    return [f"{each}: {n} times" for each, n in counts.items() if n > 1]


def test_every_offer_is_positive_dated_sourced_and_of_a_known_chip():
    assert list(plain_faults(OFFERS)) == []


def test_spot_is_at_most_on_demand_but_for_the_exceptions_named():
    assert list(spot_faults(OFFERS)) == []


def test_the_same_chip_costs_within_five_times_across_clouds_but_for_the_exceptions_named():
    assert list(spread_faults(OFFERS)) == []


def test_every_commitment_is_positive_of_one_or_three_years_and_below_on_demand():
    assert list(commitment_faults(COMMITMENTS)) == []


def test_three_years_cost_at_most_what_one_year_costs():
    assert list(longer_faults(COMMITMENTS)) == []


def test_nothing_is_there_twice_or_superseded():
    assert twice(OFFERS, "chips") == [] == twice(COMMITMENTS, "years") == list(superseded_faults(COMMITMENTS))


def test_every_exception_is_still_needed_and_has_a_reason():
    for each, why in SPREAD.items():
        others = {k: v for k, v in SPREAD.items() if k != each}
        assert why and list(spread_faults(OFFERS, others)), each
    for each, why in SPOT_ABOVE.items():
        assert why and [fault for fault in spot_faults(OFFERS, {}) if fault.startswith(str(each))], each
    assert {(o.chip_id, o.cloud) for o in OFFERS if o.ondemand_usd_per_chip_hour is None} == set(SPOT_ONLY)


GOOD = next(
    o
    for o in OFFERS
    if o.spot_usd_per_chip_hour is not None and o.ondemand_usd_per_chip_hour is not None and o.chip_id == "v5e"
)
YEAR = next(c for c in COMMITMENTS if c.years == 1 and c.chip_id == "v5e")
LONG = next(c for c in COMMITMENTS if c.years == 3 and key(c) == key(YEAR))
WRONG = {
    "an unknown chip": (plain_faults, [replace(GOOD, chip_id="h10")]),
    "a price of nothing": (plain_faults, [replace(GOOD, ondemand_usd_per_chip_hour=0.0)]),
    "a negative price": (plain_faults, [replace(GOOD, spot_usd_per_chip_hour=-1.0)]),
    "a price of a whole pod": (plain_faults, [replace(GOOD, ondemand_usd_per_chip_hour=700.0)]),
    "no price": (plain_faults, [replace(GOOD, ondemand_usd_per_chip_hour=None, spot_usd_per_chip_hour=None)]),
    "spot alone": (plain_faults, [replace(GOOD, ondemand_usd_per_chip_hour=None)]),
    "no date": (plain_faults, [replace(GOOD, date="")]),
    "a date to come": (plain_faults, [replace(GOOD, date="2099-01-01")]),
    "an old list": (plain_faults, [replace(GOOD, date="2023-05-22")]),
    "no source": (plain_faults, [replace(GOOD, source="")]),
    "no region": (plain_faults, [replace(GOOD, region="")]),
    "spot above on demand": (
        spot_faults,
        [replace(GOOD, spot_usd_per_chip_hour=GOOD.ondemand_usd_per_chip_hour * 1.01)],
    ),
    "six times the price": (
        spread_faults,
        [GOOD, replace(GOOD, cloud="other", ondemand_usd_per_chip_hour=6 * GOOD.ondemand_usd_per_chip_hour)],
    ),
    "a commitment of two years": (commitment_faults, [replace(YEAR, years=2)]),
    "a free commitment": (commitment_faults, [replace(YEAR, usd_per_chip_hour=0.0)]),
    "a commitment dearer than on demand": (
        commitment_faults,
        [replace(YEAR, usd_per_chip_hour=YEAR.ondemand_usd_per_chip_hour * 1.01)],
    ),
    "a commitment of long ago": (commitment_faults, [replace(YEAR, date="2019-01-01")]),
    "a commitment without a source": (commitment_faults, [replace(YEAR, source="")]),
    "three years dearer than one": (
        longer_faults,
        [YEAR, replace(LONG, usd_per_chip_hour=YEAR.usd_per_chip_hour * 1.01)],
    ),
    "an older commitment": (superseded_faults, [YEAR, replace(YEAR, date="2024-01-01")]),
    "an offer twice": (lambda found: twice(found, "chips"), [GOOD, GOOD]),
    "a commitment twice": (lambda found: twice(found, "years"), [YEAR, YEAR]),
}


@pytest.mark.parametrize("case", WRONG)
def test_every_check_finds_its_fault(case):
    check, found = WRONG[case]
    assert list(check(found))


def test_the_large_clouds_and_every_tpu_with_a_public_price_are_covered():
    assert set(LARGE) <= {o.cloud for o in OFFERS}
    assert {o.chip_id for o in OFFERS if CHIPS[o.chip_id].family == "tpu"} == {
        *("v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x")
    }
    assert {o.chip_id for o in OFFERS} >= {"gb200", "mi300x", "mi325x", "b300", "trainium2"}
    assert {c.chip_id for c in COMMITMENTS} >= {"v4", "v5e", "v5p", "v6e", "v7x", "h100", "a100-80gb", "inferentia2"}
    recent = {(c.chip_id, c.cloud) for c in COMMITMENTS if c.date >= "2026"}
    assert recent >= {("h100", "gcp"), ("h100", "aws"), ("v5p", "gcp"), ("v7x", "gcp"), ("l4", "gcp")}


def test_placeholders_and_far_away_regions_are_left_out():
    assert "mithril" not in {o.cloud for o in OFFERS}  # asks 8.00 for an instance of any chip
    places = {(o.chip_id, o.cloud, o.region) for o in OFFERS if o.region != "any"}
    regions = Counter((chip, cloud) for chip, cloud, _ in places)
    assert max(regions.values()) <= 4


def test_instance_types_are_of_known_chips_sourced_and_agree_with_the_offers():
    for row in rows("instances.csv"):
        assert row["chip"] in CHIPS and float(row["chips"]) > 0 and row["source"] and DATE.fullmatch(row["date"]), row
        assert row["cloud"] in LARGE
    assert twice_named() == []
    for o in OFFERS:
        known = None if o.instance.startswith("(") else instances().get((o.cloud, _squash(o.instance)))
        if known and o.cloud in LARGE:
            assert (known.chip_id, known.chips) == (o.chip_id, o.chips), o


def twice_named():
    counts = Counter((row["cloud"], _squash(row["instance"])) for row in rows("instances.csv"))
    return [name for name, n in counts.items() if n > 1]


def _squash(name):
    from chipwise.catalog.instances import squashed

    return squashed(name)


def test_every_rule_of_a_fabric_is_sourced_and_dated_and_the_large_clouds_have_one_for_every_type():
    assert max(int(rule.value) for rule in supply_rules()) == USUAL_INSTANCES
    for rule in (*joined_rules(), *supply_rules()):
        assert rule.reason and len(rule.source) > 10 and DATE.fullmatch(rule.date), rule
    assert not [
        o.instance for o in OFFERS if o.cloud in ("aws", "azure", "gcp", "lambda", "runpod") and o.joined == "unknown"
    ]
    assert {o.cloud for o in OFFERS if o.joined == "yes"} >= {"aws", "azure", "gcp", "oci", "nebius", "coreweave"}


@pytest.mark.parametrize(
    ("cloud", "instance", "known"),
    [
        ("aws", "p5en.48xlarge", "yes"),
        ("aws", "p5.4xlarge", "no"),
        ("azure", "Standard_ND96isr_H100_v5", "yes"),
        ("azure", "Standard_ND96is_H100_v5", "no"),
        ("gcp", "a3-megagpu-8g", "yes"),
        ("gcp", "a3-highgpu-1g", "no"),
        ("gcp", "v5litepod-256", "yes"),
        ("seeweb", "ECS8GPU10", "unknown"),
        ("nebius", "gpu-h100-sxm_8gpu-128vcpu-1600gb", "yes"),
        ("nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb", "no"),
    ],
)
def test_a_type_is_joined_as_its_source_says(cloud, instance, known):
    assert joined(cloud, instance) == known
