"""Pairs of a GPU and a TPU: who wins, and whether that was predicted."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chipwise.predict.estimate import Estimate
from chipwise.validate.winners import Runner, duels, winners


def runner(family, observed, predicted, model="m", spread=1.05, tokens=1000.0, sequence=2048):
    step = Estimate(predicted, predicted / spread, predicted * spread, "modelled")
    return Runner(model=model, family=family, sequence=sequence, tokens=tokens, observed_s=observed, step=step)


def test_a_wrong_winner_counts_with_what_it_loses():
    table = winners([runner("gpu", 1.0, 3.0), runner("tpu", 2.0, 2.0)])
    assert table["all clear pairs"] == {
        "pairs": 1,
        "right": 0,
        "share_right": 0.0,
        "median_lost": 0.5,
        "most_lost": 0.5,
    }
    assert table["intervals apart"]["right"] == 0


def test_close_pairs_other_models_and_one_family_are_no_pairs():
    assert not duels([runner("gpu", 1.0, 1.0), runner("tpu", 1.05, 1.0)])
    assert not duels([runner("gpu", 1.0, 1.0), runner("tpu", 2.0, 1.0, model="other")])
    assert winners([runner("gpu", 1.0, 1.0), runner("gpu", 2.0, 1.0)]) == {}


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=8))
def test_perfect_predictions_are_always_right(pairs):
    runners = [runner(("gpu", "tpu")[i % 2], one, one, tokens=other * 100) for i, (one, other) in enumerate(pairs)]
    assert all(duel.right and duel.lost == 0 for duel in duels(runners))


def test_intervals_that_overlap_are_not_called_certain():
    wide = [runner("gpu", 1.0, 1.0, spread=3.0), runner("tpu", 2.0, 2.0, spread=3.0)]
    narrow = [runner("gpu", 1.0, 1.0), runner("tpu", 2.0, 2.0)]
    assert [duel.sure for duel in duels(wide) + duels(narrow)] == [False, True]
    assert all(a.observed == b.observed for a, b in pairwise(duels(wide) + duels(narrow)))
