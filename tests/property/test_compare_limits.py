"""Counts within limits, held against brute force over all counts."""

from functools import cache
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise import load as load_workload
from chipwise.catalog import load
from chipwise.compare import Refused, Terms
from chipwise.compare.terms import Candidate, ladder
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.errors import Refusal
from chipwise.knowledge import Knowledge

RUNS = {
    "small": ("gpt2", {"tokens": "3B", "batch": 256, "sequence": 1024}),
    "large": ("llama-3.1-8b", {"tokens": "100B", "batch": 512, "sequence": 4096}),
    "tuned": ("llama-3.1-70b", {"tokens": "200M", "batch": 64, "sequence": 4096, "lora": 16}),
}
CHIPS = ("h100", "h200", "l4", "v5e", "v5p", "v7x")


@cache
def comparer(run):
    model, options = RUNS[run]
    return TrainingComparer.of(load_workload(model, **options), Terms(), Knowledge.default())


@cache
def every_count(run, chip):
    """(chips, seconds, at most, US dollars, at most, kWh) of every count that can run it, each on its own."""
    made, out = comparer(run), []
    for acc in made.buyable(load().chips[chip]):
        try:
            row = made.row(acc)
        except Refusal:
            continue
        duration, quote = row.prediction.duration, row.ondemand
        usd = (quote.usd.value, quote.usd.high) if quote else (inf, inf)
        out.append((acc.count, duration.value, duration.high, *usd, row.prediction.kwh.value))
    return out


def brute_force(run, chip, objective, deadline, budget):
    """The fewest chips within 5 % of the best of all that keep the limits; None where none does."""
    kept = [
        row
        for row in every_count(run, chip)
        if (deadline is None or row[2] <= deadline) and (budget is None or row[4] <= budget)
    ]
    if not kept:
        return None
    value = {"cost": 3, "time": 1, "energy": 5}[objective]
    best = min(row[value] for row in kept)
    return kept[0][0] if best == inf else next(row[0] for row in kept if row[value] <= best * 1.05)


LIMITS = st.one_of(st.none(), st.floats(-1.0, 4.0))


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(RUNS)), st.sampled_from(CHIPS), st.sampled_from(["cost", "time", "energy"]), LIMITS, LIMITS
)
def test_the_count_is_that_of_brute_force(run, chip, objective, late, rich):
    rows = every_count(run, chip)
    deadline = None if late is None or not rows else min(row[2] for row in rows) * 10**late
    priced = [row[4] for row in rows if row[4] < inf]
    budget = None if rich is None or not priced else min(priced) * 10 ** (rich / 4)
    if deadline is None and budget is None:
        return
    deadline = deadline and min(max(deadline, 1.0), 3e9)
    terms = Terms(objective, deadline_s=deadline, budget_usd=budget)
    made = comparer(run)
    got = TrainingComparer(
        made.workload, terms, made.knowledge, made.stack, known=made.known, legal=made.legal
    ).evaluate(Candidate(load().chips[chip]))
    best = brute_force(run, chip, objective, deadline, budget)
    assert isinstance(got, Refused) if best is None else got.accelerators.count == best


@pytest.mark.parametrize("chips", [8, 64])
def test_a_count_that_is_given_keeps_the_other_limits(chips):
    made, chip = comparer("large"), load().chips["h100"]
    row = made.row(next(a for a in ladder(chip) if a.count == chips))
    hours, usd = row.prediction.duration.high, row.ondemand.usd.high
    for deadline, budget, held in (
        (hours * 1.01, usd * 1.01, True),
        (hours * 0.99, usd * 1.01, False),
        (None, usd * 0.9, False),
    ):
        terms = Terms(chips=chips, deadline_s=deadline, budget_usd=budget)
        got = TrainingComparer(made.workload, terms, made.knowledge, made.stack).evaluate(Candidate(chip))
        assert (not isinstance(got, Refused)) == held
        assert got.accelerators.count == chips
