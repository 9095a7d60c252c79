"""Tests of significance against scipy's, over random samples with and without ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chipwise.bench.method import summarize
from chipwise.bench.significance import benjamini_hochberg, mann_whitney, ratio_interval

SAMPLES = st.lists(st.integers(1, 30).map(lambda n: n / 8), min_size=4, max_size=31)


@given(SAMPLES, SAMPLES)
def test_the_u_test_is_scipys(a, b):
    if len({*a, *b}) == 1:
        assert mann_whitney(a, b) == 1.0
        return
    wanted = stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True).pvalue
    assert mann_whitney(a, b) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@given(SAMPLES, SAMPLES)
def test_the_u_test_does_not_care_which_is_first(a, b):
    assert mann_whitney(a, b) == pytest.approx(mann_whitney(b, a))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_false_alarms_are_controlled_as_scipy_does(values):
    assert benjamini_hochberg(values) == pytest.approx(list(stats.false_discovery_control(values)), abs=1e-12)


@given(SAMPLES)
def test_the_interval_of_a_file_against_itself_holds_one(a):
    low, high = ratio_interval(a, a)
    assert low <= 1.0 <= high


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40))
def test_quartiles_are_numpys(seconds):
    found = summarize(seconds, 1)
    wanted = np.quantile(seconds, [0.25, 0.5, 0.75])
    assert (found.p25, found.median, found.p75) == pytest.approx(tuple(wanted), rel=1e-12)
