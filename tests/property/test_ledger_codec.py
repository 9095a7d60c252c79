"""What the ledger writes comes back exactly: any characters, infinities, empty and missing fields."""

import json
from math import inf

from hypothesis import assume, given
from hypothesis import strategies as st

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Checkpoint, Constraints, Data, DeclaredRuntime, Job, Variant
from chipwise.route.ledger.codec import decode, encode, storable
from chipwise.route.ledger.error import masked
from chipwise.route.option import Infeasible, Option

text = st.text(st.characters(), max_size=8)  # lone surrogates and NUL included
number = st.floats(allow_nan=False)
ordered = st.tuples(number, number, number).map(sorted)
estimates = st.builds(lambda ends, *words: Estimate(ends[1], ends[0], ends[2], *words), ordered, text, text)
variants = st.builds(
    Variant,
    text,
    st.sampled_from(["gpu", "tpu", "cpu"]),
    st.integers(1, 9),
    on=st.frozensets(text, max_size=3),
    command=st.lists(text, max_size=3).map(tuple),
    environment=st.lists(st.tuples(text, text), max_size=2).map(tuple),
    batch=st.none() | st.integers(),
    flags=st.lists(text, max_size=2).map(tuple),
)
jobs = st.builds(
    Job,
    text,
    st.lists(variants, min_size=1, max_size=2).map(tuple),
    owner=text,
    workload=text,
    given=st.lists(st.builds(DeclaredRuntime, text, estimates, st.none() | number), max_size=2).map(tuple),
    constraints=st.builds(
        Constraints,
        regions=st.frozensets(text, max_size=2),
        spot=st.booleans(),
        data=st.none() | st.builds(Data, st.lists(text, max_size=2).map(tuple), number, st.booleans()),
    ),
    deadline=number,
    budget=number,
    checkpoint=st.builds(Checkpoint, st.booleans(), number, text, number),
    key=text,
)
options = st.builds(Option, text, text, st.integers(1, 99), text, estimates, number, number, note=text)
scores = st.dictionaries(
    text,
    st.recursive(
        st.none() | st.booleans() | st.integers() | number | text,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


@given(jobs)
def test_a_job_comes_back_as_it_was(job):
    written = encode(job)
    assert decode(Job, written) == job and written.isascii()
    json.loads(written, parse_constant=lambda word: 1 / 0)  # standard JSON: no Infinity


@given(
    st.lists(options, max_size=3).map(tuple),
    st.lists(st.builds(Infeasible, text, text, text, text), max_size=2).map(tuple),
)
def test_options_come_back_as_they_were(found, infeasible):
    assert decode(tuple[Option, ...], encode(found, tuple[Option, ...])) == found
    assert decode(tuple[Infeasible, ...], encode(infeasible, tuple[Infeasible, ...])) == infeasible


@given(st.builds(Decision, text, st.sampled_from(["start", "wait", "stop"]), text, text, text, scores))
def test_a_decision_comes_back_with_its_scores(decision):
    assert decode(Decision, encode(decision)) == decision


def test_numbers_of_numpy_are_numbers():
    import numpy as np

    decision = Decision("1", "start", scores={"h100": {"score": np.float64(inf), "chips": np.int64(8)}})
    assert decode(Decision, encode(decision)).scores == {"h100": {"score": inf, "chips": 8}}


def test_a_field_that_is_new_gets_its_default_and_one_that_is_gone_is_left_out():
    assert decode(Infeasible, '{"pool": "a", "variant": "b", "reason": "c", "color": "red"}') == Infeasible(
        "a", "b", "c"
    )


@given(text)
def test_what_is_stored_as_text_can_be_stored_everywhere(words):
    found = storable(words)
    assert "\x00" not in found and found.encode("utf-8").decode("utf-8") == found and storable(found) == found


@given(
    st.text(st.characters(categories=["L", "N"]), min_size=8),
    st.sampled_from(["ann", ""]),
    st.sampled_from(["db", "db:5432", "[::1]:5432", ""]),
)
def test_no_password_is_ever_shown(password, user, host):
    assume(password != "chipwise")  # which the name of the database is
    for url in (
        f"postgresql://{user}:{password}@{host}/chipwise",
        f"host={host} user=ann password={password}",
        f"postgresql://{host}/chipwise?user={user}&password={password}",
    ):
        assert password not in masked(f"connection to {url} failed") and password not in masked(url)
