"""Jobs that come to the table together are as if each had come alone; texts of jobs are read back exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.ledger.codec import decode, encode
from chipwise.route.ledger.rows import _job
from chipwise.route.option import Option
from chipwise.route.pool import Pool

POOLS = [
    Pool("a", "local", "h100", "gpu", 8, usd_per_chip_hour=2.0, interruptions=0.1),
    Pool("b", "local", "h100", "gpu", 4, usd_per_chip_hour=1.0),
    Pool("c", "local", "cpu", "cpu", 2),
]


@st.composite
def options(draw):
    ways = []
    for pool, variant in draw(
        st.lists(st.tuples(st.sampled_from("abcx"), st.sampled_from(("v", "w"))), max_size=5)
    ):  # x is no pool
        seconds = draw(st.floats(1.0, 1e6))
        ways.append(
            Option(
                pool,
                variant,
                draw(st.integers(1, 9)),
                "",
                Estimate(seconds, seconds / 2, 2 * seconds, "modelled"),
                draw(st.floats(0, 100)),
                draw(st.floats(0, 1000)),
                usd_once=draw(st.floats(0, 5)),
            )
        )
    return tuple(ways)


@st.composite
def queues(draw):
    kinds = draw(st.lists(options(), min_size=1, max_size=4))
    count = draw(st.integers(0, 150))  # more than the table has rows at first
    failed = st.none() | st.tuples(st.sampled_from("abc"), st.sampled_from(("v", "w")))
    return [
        Candidate(
            f"job{k}",
            float(k),
            draw(st.sampled_from(kinds)),
            budget=draw(st.sampled_from((10.0, np.inf))),
            restartable=draw(st.booleans()),
            restart=draw(st.sampled_from((0.0, 60.0))),
            done=draw(st.sampled_from((0.0, 0.5))),
            spent=draw(st.sampled_from((0.0, 3.0))),
            last_failed=draw(failed),
        )
        for k in range(count)
    ]


def alone(candidates, table=None):
    table = table or JobTable(POOLS)
    for candidate in candidates:
        table.add(candidate)
    return table


def same(one, other):
    assert len(one) == len(other)
    states = [table.state(100.0, {"a": 3}, {p.name: p.count for p in POOLS}) for table in (one, other)]
    assert states[0].jobs == states[1].jobs
    for name in one._arrays:
        assert np.array_equal(one.column(name), other.column(name), equal_nan=True), name
    assert np.array_equal(states[0].start, states[1].start)
    for job in states[0].jobs:
        for pool in "abc":
            j, p = one._row[job], one._column[pool]
            assert one._chosen[j].get(p) is other._chosen[other._row[job]].get(p)


@settings(max_examples=60, deadline=None)
@given(queues(), st.integers(0, 150), st.integers(0, 20))
def test_jobs_that_come_together_are_as_if_each_came_alone(queue, first, gone):
    bulk = JobTable(POOLS)
    bulk.add_all(queue[:first])
    one_by_one = alone(queue[:first])
    for table in (bulk, one_by_one):  # rows that others have left behind are taken again
        for candidate in queue[: min(gone, first)]:
            table.remove(candidate.id)
    bulk.add_all(queue[first:])
    same(bulk, alone(queue[first:], one_by_one))


def test_an_id_that_is_there_already_is_refused():
    table = JobTable(POOLS)
    table.add_all([Candidate("1", 0.0, ())])
    with pytest.raises(InputError, match="not in the table yet"):
        table.add_all([Candidate("2", 0.0, ()), Candidate("1", 0.0, ())])
    assert len(table) == 1 and "2" not in table


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text(), st.floats(0, 1e12), st.booleans())
def test_jobs_that_differ_in_their_names_alone_are_read_back_exactly(name, owner, budget, restartable):
    job = Job(
        name,
        (Variant("cpu", "cpu", 1, command=(name, '","name":"x"')),),
        owner=owner,
        budget=budget,
        checkpoint=Checkpoint(restartable=restartable),
    )
    text = encode(job, Job)
    assert _job(text) == decode(Job, text) == job
    assert _job(text.replace('{"name"', '{ "name"', 1)) == job  # written by another hand
