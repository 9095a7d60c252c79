"""A fleet plan of one workload is never above what `cost` states for the same work, headroom and terms."""

from dataclasses import replace

import pytest
from fleet_bills import CHAT, COST_HOURS, DAY, EMBED, HOURS, KNOWN, LORA, VISION, planned, stated

import lane
from chipwise.errors import InputError
from chipwise.prices.offer_filter import OfferFilter
from chipwise.workload import load_serving, load_workload

SERVICES = [
    (work, rate, chip, terms, cloud)
    for n, (work, rate) in enumerate([(CHAT, 3), (CHAT, 20), (CHAT, 150), (EMBED, 700), (EMBED, 2000), (EMBED, 9000)])
    for chip, terms, cloud in [
        ("h100", "ondemand", None),
        ("h200", ("spot", "1y")[n % 2], None),
        (("l4", "v5e", "a100-80gb")[n % 3], ("3y", "ondemand")[n % 2], None),
        (("h200", "b200")[n % 2], "ondemand", ("verda", "nebius", "aws")[n % 3]),
    ]
]
RUNS = [
    (work, chips, chip, terms, cloud)
    for work in (LORA, VISION)
    for chips in (1, 2, 4, 8, 16)
    for chip, terms, cloud in [("h100", "ondemand", None), ("h200", "ondemand", "verda"), ("v5e", "spot", None)]
    if (chip, chips) != ("v5e", 2)  # of which there is no slice
]


def alone(raw, chip, terms, cloud, how):
    """Dollars of the cheapest plan of one workload on one kind of chips."""
    candidate = {"chip": chip, "terms": [terms], **({"clouds": [cloud]} if cloud else {})}
    return planned([{"name": "it", "workload": raw, **how}], [candidate])


def narrowed(cloud):
    return replace(KNOWN, prices=OfferFilter.read(cloud).apply(KNOWN.prices, DAY)) if cloud else KNOWN


@pytest.mark.sampled
@pytest.mark.parametrize(("raw", "rate", "chip", "terms", "cloud"), lane.share(SERVICES, of=6))
def test_a_service_costs_no_more_in_a_plan(raw, rate, chip, terms, cloud):
    work = load_serving(overrides={**raw, "serve": {**raw["serve"], "arrival": {"rate": rate}}})
    least = stated(work, 0, chip, terms, narrowed(cloud))
    try:
        usd = alone(raw, chip, terms, cloud, {"serve": {"rate": rate, "spot": terms == "spot"}})
    except InputError:
        usd = None
    assert least is None or usd / HOURS <= least / COST_HOURS * (1 + 1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize(("raw", "chips", "chip", "terms", "cloud"), lane.share(RUNS, of=6))
def test_a_run_costs_no_more_in_a_plan(raw, chips, chip, terms, cloud):
    work = load_workload(overrides=raw)
    least = stated(work, chips, chip, terms, narrowed(cloud))
    usd = alone(raw, chip, terms, cloud, {"train": {"chips": [chips]}})
    assert least is None or usd <= least * (1 + 1e-6)
