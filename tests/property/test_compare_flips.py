"""What would flip the decision does flip it, and nothing smaller does."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, compare
from chipwise.compare.decision import pick_of, price_flip, score
from chipwise.compare.training.flips import _by_efficiency
from chipwise.knowledge import Knowledge
from chipwise.workload import load_workload

WORK = load_workload(overrides={"model": "llama-3.1-8b", "steps": 1000, "global_batch": 256, "sequence": 4096})
ROWS = compare(
    WORK,
    [Candidate.read(c) for c in ("h100", "h200", "b200", "v5p", "mi300x", "v7x")],
    Knowledge(load_calibration(bench=False), today=date(2026, 9, 1)),
).rows
factors = st.lists(st.floats(1.0, 25.0), min_size=len(ROWS), max_size=len(ROWS))


def changed(by):
    return [row.slower(f) for row, f in zip(ROWS, by, strict=True)]


@given(factors)
@settings(max_examples=60, deadline=None)
def test_nothing_scores_better_than_the_pick(by):
    rows = changed(by)
    best = score(pick_of(rows, "cost"), "cost")
    assert all(best <= s for row in rows if (s := score(row, "cost")) is not None)


@given(factors)
@settings(max_examples=60, deadline=None)
def test_the_price_flip_flips_and_a_smaller_one_does_not(by):
    rows = changed(by)
    pick = pick_of(rows, "cost")
    for flip in price_flip(rows, pick):

        def at(share, flip=flip):
            price = flip.before + (flip.after - flip.before) * share
            return pick_of([r.priced(price) if str(r.accelerators) == flip.winner else r for r in rows], "cost")

        assert str(at(1.0).accelerators) == flip.winner
        assert at(0.99) is pick or flip.size < 1e-4
        assert 0 < flip.after <= flip.before


@pytest.mark.parametrize("objective", ["cost", "time", "energy"])
@given(by=factors)
@settings(max_examples=30, deadline=None)
def test_the_efficiency_flip_flips(objective, by):
    rows = changed(by)
    pick = pick_of(rows, objective)
    for flip in _by_efficiency(rows, pick, objective):
        slower = pick.slower(flip.before / flip.after)
        now = pick_of([slower if r is pick else r for r in rows], objective)
        assert str(now.accelerators) == flip.winner and now is not slower


@given(st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_scaling_every_price_keeps_the_pick(by):
    pick = pick_of(ROWS, "cost")
    scaled = [r.priced(r.ondemand.price.usd_per_chip_hour * by) if r.ondemand else r for r in ROWS]
    assert pick_of(scaled, "cost").accelerators == pick.accelerators
