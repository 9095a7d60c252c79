"""The queue's own sorts give what numpy's stable ones do, whatever the keys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chipwise.route.allocate import queue_order
from chipwise.route.allocate.queue_order import SMALL, _by_job, in_order
from chipwise.route.policies.rows import least, most

NUMBERS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 5e-324])


@settings(max_examples=150, deadline=None)
@given(arrays(np.float64, st.integers(0, 2 * SMALL), elements=NUMBERS), st.integers(1, 4))
def test_keys_are_sorted_as_by_a_stable_sort(key, times):
    key = np.tile(key, times)  # many alike, and more than numpy is left with
    assert np.array_equal(in_order(key), np.argsort(key, kind="stable"))


@pytest.mark.parametrize("count", [SMALL, 5_000, 70_000])
def test_many_keys_are_sorted_and_left_as_they_were(count):
    rng = np.random.default_rng(count)
    key = np.round(rng.normal(size=count) * 10.0 ** rng.integers(-3, 9, count), 1)
    before = key.copy()
    assert np.array_equal(in_order(key), np.argsort(before, kind="stable")) and np.array_equal(key, before)
    assert count >= queue_order.SMALL  # by digits, not by numpy


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=1, max_size=8), min_size=1, max_size=20),
    st.data(),
)
def test_pairs_of_overdue_jobs_go_by_job_and_then_by_key(keys_of_jobs, data):
    due = np.array(
        data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=len(keys_of_jobs), max_size=len(keys_of_jobs)))
    )
    key = np.array([key for keys in keys_of_jobs for key in keys])
    job = np.repeat(np.arange(len(keys_of_jobs)), [len(keys) for keys in keys_of_jobs])
    begins = np.concatenate([[0], np.cumsum([len(keys) for keys in keys_of_jobs])])
    order = np.empty(len(key), dtype=np.int64)
    _by_job(np.argsort(due, kind="stable"), begins, key, order)
    assert np.array_equal(order, np.lexsort((key, job, due[job])))


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 4)), elements=NUMBERS | st.just(np.nan)))
def test_the_least_and_the_most_of_rows_are_numpys(what):
    for rows in (what, np.asfortranarray(what)):
        assert np.array_equal(least(rows), np.min(what, axis=1, initial=np.inf), equal_nan=True)
        assert np.array_equal(most(rows), np.max(what, axis=1, initial=-np.inf), equal_nan=True)
