"""Intervals of serving: what is farther from published figures is never surer than what is near."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.calibration import ServingCalibration
from chipwise.predict.estimate import DISTANCES, Distance
from chipwise.serving.distance import ENOUGH, Place, Seen
from chipwise.serving.widths import BY_DISTANCE, Error, Widths, as_columns, as_table, from_columns, learn

names = st.sampled_from(("a", "b", "c"))
errors = st.lists(
    st.builds(
        Error,
        row=names,
        metric=st.sampled_from(("tpot", "ttft")),
        distance=st.sampled_from(BY_DISTANCE),
        repository=names,
        group=st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=1),
        model=names,
        value=st.floats(-3, 3),
    ),
    min_size=1,
    max_size=60,
)
places = st.builds(Place, repository=names, vendor=names, design=names, chip=names, stack=names, load=names)


@given(errors)
def test_a_farther_distance_holds_what_a_nearer_one_holds(some):
    for table in learn(some).values():
        bounds = [(table[distance].low, table[distance].high) for distance in BY_DISTANCE]
        for (low, high), (lower, higher) in pairwise(bounds):
            assert lower <= low <= 0 <= high <= higher


@given(errors)
def test_widths_do_not_depend_on_the_order_of_rows_nor_on_rows_said_twice(some):
    assert as_table(learn(some)) == as_table(learn(some[::-1])) == as_table(learn(from_columns(as_columns(some))))
    doubled = {m: {d: w[:2] for d, w in t.items()} for m, t in as_table(learn([*some, *some])).items()}
    assert doubled == {m: {d: w[:2] for d, w in t.items()} for m, t in as_table(learn(some)).items()}


@given(errors, places, st.lists(places, max_size=8), st.lists(places, max_size=8))
def test_more_published_figures_never_widen(some, place, fewer, more):
    widths = as_table(learn(some))
    near, far = (Seen(dict.fromkeys(seen, ENOUGH)).distance(place) for seen in ([*fewer, *more], fewer))
    assert DISTANCES.index(near) <= DISTANCES.index(far)
    bounds = Widths(Seen({}), widths).bounds
    if near is not Distance.SOURCE:
        (low, high), (lower, higher) = bounds("tpot", near), bounds("tpot", far)
        assert lower <= low and high <= higher


def test_without_any_figure_a_calibration_is_unsure():
    low, high = Widths(Seen({}), ServingCalibration().widths).bounds("tpot", Distance.REGIME)
    assert low < -1 and high > 1
