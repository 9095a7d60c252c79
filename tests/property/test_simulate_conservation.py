"""Whatever a policy does, a replay keeps the books: chips, jobs, work, money and the clock."""

from collections import defaultdict
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulate_schedulers import Fifo, Whims

from chipwise.predict.estimate import Estimate
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Infeasible, Option
from chipwise.route.policies import POLICIES
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace, in_order
from chipwise.route.simulate.events import MOST_LOST, ReplayOptions, replay, usable
from chipwise.route.simulate.measures import busy, measure
from chipwise.route.simulate.plots import boxes
from chipwise.route.simulate.policy_scheduler import PolicyScheduler
from chipwise.route.simulate.random_events import RandomEvents
from chipwise.units import HOUR

SECONDS = st.floats(1.0, 5e4)


@st.composite
def pools(draw):
    out = []
    for i in range(draw(st.integers(1, 3))):
        unit = draw(st.sampled_from([1, 2, 4]))
        terms = draw(st.sampled_from(["ondemand", "spot"]))
        out.append(
            Pool(
                f"p{i}",
                "local",
                f"chip{i}",
                "gpu",
                unit * draw(st.integers(1, 6)),
                unit,
                usd_per_chip_hour=draw(st.floats(0, 10)),
                terms=terms,
                watts_chip=draw(st.floats(1, 1000)),
                interruptions=draw(st.floats(0, 0.5)) if terms == "spot" else 0.0,
                power_cap=draw(st.sampled_from([inf, 5000.0])),
            )
        )
    return tuple(out)


@st.composite
def arrivals(draw, where):
    out = []
    for i in range(draw(st.integers(1, 12))):
        chips = draw(st.integers(1, 8))
        every = draw(st.sampled_from([inf, 10.0, 60.0, 600.0]))
        keep = Checkpoint(draw(st.booleans()), every, restart=draw(st.sampled_from([0.0, 30.0])))
        at = draw(st.floats(0, 1e5))
        job = Job(
            f"j{i}",
            (Variant("gpu", "gpu", chips),),
            owner=draw(st.sampled_from("ab")),
            checkpoint=keep,
            deadline=draw(st.sampled_from([inf, at + 1000.0])),
        )
        options, infeasible = [], []
        for pool in where:
            taken = pool.takes(chips)
            if taken is None or draw(st.integers(0, 5)) == 0:
                infeasible.append(Infeasible(pool.name, "gpu", "it doesn't run there"))
                continue
            value = draw(SECONDS)
            options.append(
                Option(
                    pool.name,
                    "gpu",
                    taken[0],
                    "",
                    Estimate(value, value * 0.7, value * 1.6, "modelled"),
                    taken[0] * pool.usd_per_chip_hour,
                    taken[0] * pool.watts_chip,
                    usd_once=draw(st.sampled_from([0.0, 2.5])),
                )
            )
        out.append(Arrival(f"j{i}", at, job, tuple(options), tuple(infeasible)))
    return in_order(out)


@st.composite
def replays(draw):
    where = draw(pools())
    trace = Trace("made", "jobs", draw(arrivals(where)), where)
    chance = RandomEvents(draw(st.none() | st.integers(0, 99)), draw(st.sampled_from([0.0, 0.0, 0.01])), 1800.0)
    room = {p.name: usable(p) for p in where}
    whim = draw(st.none() | st.integers(0, 99))
    make = (lambda: Fifo(where, room)) if whim is None else (lambda: Whims(where, whim, room))
    return trace, chance, make


@settings(max_examples=150, deadline=None)
@given(replays())
def test_the_books_are_kept(case):
    trace, chance, make = case
    desk = make()
    outcome = replay(trace, desk, ReplayOptions(chance))
    assert desk.clock == sorted(desk.clock)
    kept(trace, outcome)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=20, deadline=None)
@given(replays())
def test_the_books_are_kept_by_every_policy(name, case):
    trace, chance, _ = case
    kept(trace, replay(trace, PolicyScheduler(name, POLICIES[name], trace.pools), ReplayOptions(chance)))


def kept(trace, outcome):
    room = {p.name: usable(p) for p in trace.pools}
    # no pool over its capacity at any instant
    for pool in trace.pools:
        changes = defaultdict(int)
        for run in outcome.runs:
            if run.pool == pool.name:
                changes[run.start] += run.chips
                changes[run.end] -= run.chips
        level = 0
        for when in sorted(changes):
            level += changes[when]
            assert 0 <= level <= room[pool.name]
        assert level == 0
    # every job is done exactly once, or refused with a reason
    ends = defaultdict(int)
    for run in outcome.runs:
        assert run.end >= run.start >= trace.arrivals[run.job].at
        ends[run.job] += run.how == "succeeded"
    for i, (fate, arrival) in enumerate(zip(outcome.fates, trace.arrivals, strict=True)):
        could = any(o.chips <= room[o.pool] for o in arrival.options)
        failed = fate.refused.startswith("failed: ") and vain(outcome, i) > MOST_LOST
        assert (fate.end is not None) == (could and not failed) == (ends[i] == 1)
        assert bool(fate.refused) == (fate.end is None) and ends[i] <= 1
    # nobody holds chips twice at once
    last = defaultdict(float)
    for run in sorted(outcome.runs, key=lambda r: (r.start, r.end)):
        assert run.start >= last[run.job]
        last[run.job] = run.end


def vain(outcome, job):
    """The last runs of a job in a row that kept nothing."""
    count = 0
    for run in reversed([r for r in outcome.runs if r.job == job]):
        if run.end - run.start - run.lost > 1e-9:
            break
        count += 1
    return count


@settings(max_examples=100, deadline=None)
@given(replays())
def test_work_and_money_are_conserved(case):
    trace, chance, make = case
    outcome = replay(trace, make(), ReplayOptions(chance))
    work, once = defaultdict(float), defaultdict(set)
    paid = 0.0
    prices = {p.name: p.usd_per_chip_hour for p in trace.pools}
    for run in outcome.runs:
        arrival = trace.arrivals[run.job]
        option = next(o for o in arrival.options if o.pool == run.pool)
        work[run.job] += (run.end - run.start - run.lost) / chance.seconds(option.seconds, arrival.id, run.pool)
        paid += run.chips * prices[run.pool] * (run.end - run.start) / HOUR
        if run.pool not in once[run.job]:
            once[run.job].add(run.pool)
            paid += option.usd_once
        assert -1e-6 <= run.lost <= run.end - run.start + 1e-6
    for i, fate in enumerate(outcome.fates):
        if fate.end is not None:
            assert isclose(work[i], 1.0, rel_tol=1e-6)
    figures = measure(outcome)
    assert isclose(figures.cost_usd, paid, rel_tol=1e-9, abs_tol=1e-9)
    assert isclose(sum(p.usd for p in figures.pools), figures.cost_usd, rel_tol=1e-9, abs_tol=1e-9)
    assert figures.completed + figures.refused == figures.jobs
    assert sum(count for _, count in figures.reasons) == figures.refused
    assert 0 <= figures.utilization <= 1 + 1e-9


@settings(max_examples=50, deadline=None)
@given(replays())
def test_the_same_seed_gives_the_same_replay(case):
    trace, chance, make = case
    one, two = replay(trace, make(), ReplayOptions(chance)), replay(trace, make(), ReplayOptions(chance))
    told = [repr((each.fates, each.runs, each.decisions, each.downs)) for each in (one, two)]  # nan is no equal of nan
    assert told[0] == told[1]


@settings(max_examples=50, deadline=None)
@given(replays())
def test_the_picture_shows_every_chip_second_once(case):
    import numpy as np

    trace, chance, make = case
    outcome = replay(trace, make(), ReplayOptions(chance))
    end = max((r.end for r in outcome.runs), default=1.0)
    for pool in outcome.pools:
        shown = defaultdict(int)
        for run, first, chips in boxes(outcome, pool):
            assert first >= 0 and first + chips <= pool.chips
            shown[run] += chips
        for i, run in enumerate(outcome.runs):
            if run.pool == pool.name:
                assert shown[i] == run.chips
        edges = np.linspace(0, end, 7)
        held = sum(r.chips * (r.end - r.start) for r in outcome.runs if r.pool == pool.name)
        assert isclose(
            float((busy(outcome, pool.name, edges) * np.diff(edges)).sum()), held, rel_tol=1e-6, abs_tol=1e-3
        )
