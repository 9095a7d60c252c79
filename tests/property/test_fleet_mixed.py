"""Several workloads on mixed chips cost no more in one plan than each in a plan of its own, nor than `cost` states."""

import random

import pytest
from fleet_bills import CHAT, COST_HOURS, EMBED, KNOWN, LORA, VISION, planned, stated

import lane
from chipwise.workload import load_serving, load_workload

CASES = 24
CHIPS = ("h100", "h200", "l40s", "a100-80gb", "v5e", "l4")
HOURS = {"01": 744, "02": 672, "03": 744, "04": 720, "05": 744, "06": 720, "07": 744, "08": 744, "09": 720}
HOURS |= {"10": 744, "11": 720, "12": 744}  # of the months of 2027


def month(seed):
    """Chips, the month, and two to four workloads: services at their rates, runs on a count of chips."""
    chance = random.Random(f"mixed {seed}")
    chips = ["h100", *chance.sample(CHIPS[1:], chance.choice((1, 2)))]
    work = []
    for n in range(chance.choice((2, 3, 4))):
        raw = chance.choice((CHAT, EMBED, LORA, VISION))
        if "serve" in raw:
            rate = round(chance.uniform(1, 60) if raw is CHAT else chance.uniform(200, 4000), 1)
            work.append({"name": f"w{n}", "workload": raw, "serve": {"rate": rate}})
        else:
            work.append({"name": f"w{n}", "workload": raw, "train": {"chips": [chance.choice((4, 8, 16))]}})
    return chips, chance.choice(sorted(HOURS)), work


def least(entry, chips, hours):
    """The least that `cost` states for the workload on one kind of these chips, on demand, in that month."""
    raw = entry["workload"]
    bills = []
    for chip in chips:
        if "serve" in entry:
            rate = {"rate": entry["serve"]["rate"]}
            usd = stated(
                load_serving(overrides={**raw, "serve": {**raw["serve"], "arrival": rate}}), 0, chip, "ondemand", KNOWN
            )
            bills.append(None if usd is None else usd * hours / COST_HOURS)
        else:
            bills.append(stated(load_workload(overrides=raw), entry["train"]["chips"][0], chip, "ondemand", KNOWN))
    return min((usd for usd in bills if usd is not None), default=None)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", lane.share(range(CASES), of=12))
def test_one_plan_of_all_costs_no_more_than_plans_of_each(seed):
    chips, when, work = month(seed)
    candidates = [{"chip": chip, "terms": ["ondemand"]} for chip in chips]
    together = planned(work, candidates, f"2027-{when}")
    apart = [planned([entry], candidates, f"2027-{when}") for entry in work]
    assert together is not None and None not in apart
    assert together <= sum(apart) * (1 + 1e-6)
    for entry, usd in zip(work, apart, strict=True):
        bill = least(entry, chips, HOURS[when])
        assert bill is None or usd <= bill * (1 + 1e-6), (entry["name"], usd, bill)
