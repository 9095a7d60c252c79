"""A fleet plan of one workload is never above what `cost` states for the same work, headroom and terms."""

from dataclasses import replace
from datetime import date

import pytest

import lane
from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.economics import site
from chipwise.compare import Candidate, Terms
from chipwise.compare.comparison import comparer_of
from chipwise.compare.decision import Refused
from chipwise.cost import CostAssumptions, state_cost
from chipwise.errors import InputError
from chipwise.fleet.demand import demand_of
from chipwise.fleet.planner import plan
from chipwise.fleet.request import plan_request
from chipwise.knowledge import Knowledge
from chipwise.prices.offer_filter import OfferFilter
from chipwise.workload import load_serving, load_workload

DAY = date(2026, 11, 18)
KNOWN = Knowledge(load_calibration(bench=False), today=DAY)
HOURS, COST_HOURS = 744.0, 730.5  # of the month of the plan, and of one that `cost` states
PRICING = {"ondemand": "on demand", "spot": "spot", "1y": "1 year", "3y": "3 years"}
CHAT = {
    "model": "llama-2-7b",
    "serve": {"input": 500, "output": 100, "arrival": {"rate": 1}, "slo": {"ttft": "1s", "tpot": "60ms"}},
}
EMBED = {"model": "bge-large", "serve": {"input": 256, "arrival": {"rate": 1}, "slo": {"e2e": "50ms"}}}
LORA = {"model": "llama-3.1-8b", "train": {"tokens": "20M", "global_batch": 64, "sequence": 2048, "lora": {"rank": 16}}}
VISION = {"model": "vit-b/16", "train": {"images": "20M", "global_batch": 1024}}
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


def stated(work, count, chip, terms, knowledge):
    """Dollars of the chips by `cost`; None where it has none to state."""
    row = comparer_of(work, Terms(), knowledge).evaluate(Candidate.read(f"{chip}:{count}" if count else chip))
    if isinstance(row, Refused):
        return None
    assumptions = CostAssumptions(site("us-average"), knowledge, utilization=1.0, draws=100, pricing=(PRICING[terms],))
    options = state_cost(row, assumptions).options
    return options[0].split.compute if options else None


def planned(raw, chip, terms, cloud, how):
    """Dollars of the cheapest plan, proved."""
    demand = {
        "start": "2027-01",
        "months": 1,
        "beyond": "prorated",
        "workloads": [{"name": "it", "workload": raw, **how}],
        "candidates": [{"chip": chip, "terms": [terms], **({"clouds": [cloud]} if cloud else {})}],
        "headroom": {"serving": 0.0, "serving_replicas": 0, "training": 0.0},
    }
    found = plan(plan_request(demand_of(demand, today=DAY), KNOWN).problem, gap=0.0, threads=1)
    return None if found is None else found.usd


def narrowed(cloud):
    return replace(KNOWN, prices=OfferFilter.read(cloud).apply(KNOWN.prices, DAY)) if cloud else KNOWN


@pytest.mark.sampled
@pytest.mark.parametrize(("raw", "rate", "chip", "terms", "cloud"), lane.share(SERVICES, of=6))
def test_a_service_costs_no_more_in_a_plan(raw, rate, chip, terms, cloud):
    work = load_serving(overrides={**raw, "serve": {**raw["serve"], "arrival": {"rate": rate}}})
    least = stated(work, 0, chip, terms, narrowed(cloud))
    try:
        usd = planned(raw, chip, terms, cloud, {"serve": {"rate": rate, "spot": terms == "spot"}})
    except InputError:
        usd = None
    assert least is None or usd / HOURS <= least / COST_HOURS * (1 + 1e-9)


@pytest.mark.sampled
@pytest.mark.parametrize(("raw", "chips", "chip", "terms", "cloud"), lane.share(RUNS, of=6))
def test_a_run_costs_no_more_in_a_plan(raw, chips, chip, terms, cloud):
    work = load_workload(overrides=raw)
    least = stated(work, chips, chip, terms, narrowed(cloud))
    usd = planned(raw, chip, terms, cloud, {"train": {"chips": [chips]}})
    assert least is None or usd <= least * (1 + 1e-6)
