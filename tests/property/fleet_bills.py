"""What `cost` states and what a plan comes to, of the same work: shared by the tests that hold one to the other."""

from datetime import date

from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.economics import site
from chipwise.compare import Candidate, Terms
from chipwise.compare.comparison import comparer_of
from chipwise.compare.decision import Refused
from chipwise.cost import CostAssumptions, state_cost
from chipwise.fleet.demand import demand_of
from chipwise.fleet.planner import plan
from chipwise.fleet.request import plan_request
from chipwise.knowledge import Knowledge

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


def stated(work, count, chip, terms, knowledge):
    """Dollars of the chips by `cost`; None where it has none to state."""
    row = comparer_of(work, Terms(), knowledge).evaluate(Candidate.read(f"{chip}:{count}" if count else chip))
    if isinstance(row, Refused):
        return None
    assumptions = CostAssumptions(site("us-average"), knowledge, utilization=1.0, draws=100, pricing=(PRICING[terms],))
    options = state_cost(row, assumptions).options
    return options[0].split.compute if options else None


def planned(workloads, candidates, start="2027-01", months=1):
    """Dollars of the cheapest plan, proved."""
    demand = {
        "start": start,
        "months": months,
        "beyond": "prorated",
        "workloads": workloads,
        "candidates": candidates,
        "headroom": {"serving": 0.0, "serving_replicas": 0, "training": 0.0},
    }
    found = plan(plan_request(demand_of(demand, today=DAY), KNOWN).problem, gap=0.0, threads=1)
    return None if found is None else found.usd
