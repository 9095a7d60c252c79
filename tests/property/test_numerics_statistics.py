"""Our tests over seeds against SciPy's."""

import math
from statistics import stdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats

from chipwise.numerics.statistics import incomplete_beta, paired, pairs_needed, sign_flip, t_below, t_point

freedoms = st.integers(1, 200)
samples = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=9)


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0, 1))
def test_the_incomplete_beta_function_is_that_of_scipy(a, b, x):
    assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-12)


@given(st.floats(-50, 50), freedoms)
def test_the_t_distribution_is_that_of_scipy(t, freedom):
    assert t_below(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), rel=1e-8, abs=1e-12)


@given(st.floats(0.001, 0.999), freedoms)
def test_points_of_the_t_distribution_are_those_of_scipy(chance, freedom):
    assert t_point(chance, freedom) == pytest.approx(stats.t.ppf(chance, freedom), rel=1e-6, abs=1e-6)


@given(samples, st.floats(0.01, 50))
def test_one_sided_and_two_sided_tests_are_those_of_scipy(differences, margin):
    spread = stdev(differences)
    assume(spread > 1e-3 * max(map(abs, differences)))  # SciPy warns of less
    found = paired(differences, margin)
    assert found.p_equivalence == max(found.p_not_worse, found.p_not_better)
    for popmean, side, ours in (
        (margin, "less", found.p_not_worse),
        (-margin, "greater", found.p_not_better),
        (margin, "greater", found.p_worse),
        (0.0, "two-sided", found.p_t),
    ):
        theirs = stats.ttest_1samp(differences, popmean, alternative=side).pvalue
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)
    low, high = stats.t.interval(0.9, len(differences) - 1, found.mean, spread / math.sqrt(len(differences)))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@given(samples)
def test_the_sign_flip_test_is_scipys_exact_permutation_test(differences):
    theirs = stats.permutation_test(
        (differences,), lambda x, axis=-1: x.sum(axis=axis), permutation_type="samples", n_resamples=math.inf
    ).pvalue
    assert sign_flip(differences) == pytest.approx(theirs)


@given(samples, st.floats(0.01, 50))
def test_more_seeds_are_asked_for_only_where_they_help(differences, margin):
    needed = pairs_needed(paired(differences, margin))
    assert needed is None or len(differences) < needed <= 1000


def test_differences_that_are_all_the_same_need_no_spread():
    assert paired([0.0] * 5, 0.1).p_not_worse == 0.0
    assert paired([0.2] * 5, 0.1).p_worse == 0.0
