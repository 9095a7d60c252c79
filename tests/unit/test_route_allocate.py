"""Gangs, reservations, preemption, moves, ageing and fallback, whatever the policy; and the board they come from."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields, replace
from math import inf

import numpy as np
import pytest
from route_views import HOUR, board_of, candidate, option, pool, random_board, view_of

from chipwise.errors import InputError
from chipwise.io.jit import interpreted, lent
from chipwise.route.allocate import allocate, allocate_state
from chipwise.route.allocate.allocation import by_jobs, by_pairs, settle
from chipwise.route.allocate.queue_order import _collect
from chipwise.route.cluster_state import PolicyDecision
from chipwise.route.policies import POLICIES
from chipwise.route.policies.fair_share_kernels import behind, max_min
from chipwise.route.policies.throughput_per_dollar import planned, scored

POOL = pool("only", 8)


def wish(view, order=None, **more) -> PolicyDecision:
    return PolicyDecision(view.usd, view.arrival if order is None else np.array(order, dtype=float), "USD", **more)


def decisions(board, pools, now=0.0, free=None, order=None, patience=86_400.0, **more):
    view = view_of(board, pools, now, free)
    return {(d.job, d.kind): d for d in allocate(view, wish(view, order, **more), board.option, patience=patience)}


def test_a_gang_starts_with_all_its_chips_or_waits():
    board = board_of([POOL], [candidate("a", [option(POOL, 1, 5)]), candidate("b", [option(POOL, 1, 5)], 1.0)])
    found = decisions(board, [POOL])
    assert ("a", "start") in found and ("b", "wait") in found


def test_a_later_job_passes_a_reserved_one_only_if_it_ends_in_time_or_takes_what_is_left_over():
    def board(hours: float, big: int = 6):
        made = board_of(
            [POOL],
            [
                candidate("run", [option(POOL, 2, 4)]),
                candidate("big", [option(POOL, 1, big)], 1.0),
                candidate("small", [option(POOL, hours, 4)], 2.0),
            ],
        )
        made.started("run", "only", 0.0)
        return made

    assert ("small", "start") in decisions(board(1), [POOL], free={"only": 4})
    assert ("small", "wait") in decisions(board(1.9), [POOL], free={"only": 4})  # its high end is 2.4 h
    left = board_of(
        [POOL],
        [
            candidate("run", [option(POOL, 2, 6)]),
            candidate("big", [option(POOL, 1, 4)], 1.0),
            candidate("small", [option(POOL, 9, 2)], 2.0),
        ],
    )
    left.started("run", "only", 0.0)
    assert ("small", "start") in decisions(left, [POOL], free={"only": 2})


def test_a_job_ahead_stops_restartable_jobs_behind_where_the_policy_allows_it():
    board = board_of(
        [POOL],
        [
            candidate("low", [option(POOL, 9, 8)], restartable=True, every=60.0),
            candidate("high", [option(POOL, 1, 8)], 1.0),
        ],
    )
    board.started("low", "only", 0.0)
    at = {"now": 30.0, "free": {"only": 0}, "order": [2, 1]}
    assert ("high", "wait") in decisions(board, [POOL], **at)
    found = decisions(board, [POOL], preempts=True, **at)
    assert "for high" in found["low", "stop"].reason and found["high", "start"].pool == "only"
    assert list(found) == [("low", "stop"), ("high", "start")]


def test_a_stop_that_repeats_more_than_it_gains_is_not_made():
    board = board_of(
        [POOL],
        [
            candidate("low", [option(POOL, 9, 8)], restartable=True),  # it keeps nothing
            candidate("high", [option(POOL, 1, 8)], 1.0),
        ],
    )
    board.started("low", "only", 0.0)
    late = {"free": {"only": 0}, "order": [2, 1], "preempts": True}
    assert ("low", "stop") in decisions(board, [POOL], now=1 * HOUR, **late)  # repeats 1 h, saves 8 h of waiting
    assert ("high", "wait") in decisions(board, [POOL], now=8 * HOUR, **late)


def test_a_job_that_can_not_restart_is_never_stopped_or_moved():
    other = pool("other", 8, 0.01)
    board = board_of(
        [POOL, other],
        [candidate("fixed", [option(POOL, 9, 8), option(other, 9, 8)]), candidate("high", [option(POOL, 1, 8)], 1.0)],
    )
    board.started("fixed", "only", 0.0)
    found = decisions(board, [POOL, other], free={"only": 0, "other": 8}, order=[2, 1], preempts=True, moves=True)
    assert set(found) == {("high", "wait")}


def test_a_running_job_moves_when_that_pays_for_the_work_repeated():
    other = pool("other", 8, 0.5)
    for restart, moved in ((60.0, True), (9 * HOUR, False)):
        board = board_of(
            [POOL, other],
            [candidate("a", [option(POOL, 8, 8), option(other, 8, 8)], restartable=True, every=60.0, restart=restart)],
        )
        board.started("a", "only", 0.0)
        found = decisions(board, [POOL, other], 30.0, {"only": 0, "other": 8}, moves=True)
        assert (("a", "stop") in found) == (("a", "start") in found) == moved
        if moved:
            assert "moves from only" in found["a", "stop"].reason


@pytest.mark.parametrize("name", ["fastest", "balanced", "cheapest"])
def test_a_job_leaves_a_pool_whose_chips_are_all_gone(name):
    other = pool("other", 8, 9.0)
    board = board_of(
        [POOL, other], [candidate("a", [option(POOL, 1, 8), option(other, 3, 8)], restartable=True, every=60.0)]
    )
    board.started("a", "only", 0.0)
    view = board.state(30.0, {"only": 0, "other": 8}, {"only": 0, "other": 8})
    stop, start = allocate(view, POLICIES[name](view), board.option)
    assert (stop.kind, start.kind, start.pool) == ("stop", "start", "other")
    assert "moves from only (no longer possible) to other" in stop.reason


def test_whoever_has_waited_too_long_goes_first_and_keeps_its_place():
    board = board_of(
        [POOL],
        [
            candidate("run", [option(POOL, 2, 4)]),
            candidate("old", [option(POOL, 1, 8)], -90_000.0),
            candidate("new", [option(POOL, 9, 4)]),
        ],
    )
    board.started("run", "only", 0.0)
    at = {"free": {"only": 4}, "order": [0, 9, 1]}
    assert ("new", "start") in decisions(board, [POOL], patience=inf, **at)
    found = decisions(board, [POOL], **at)
    assert ("new", "wait") in found and "has waited long" in found["old", "wait"].reason


def test_the_pool_of_the_last_failure_is_taken_only_where_there_is_no_other():
    other = pool("other", 8, 9.0)
    for places, where in (([POOL, other], "other"), ([POOL], "only")):
        job = candidate("a", [option(p, 1) for p in places], last_failed=("only", "gpu"))
        assert decisions(board_of(places, [job]), places)["a", "start"].pool == where


def test_the_first_variant_that_did_not_fail_is_taken_in_a_pool():
    job = candidate("a", [option(POOL, 1, variant="first"), option(POOL, 2, variant="second")])
    board = board_of([POOL], [job])
    assert decisions(board, [POOL])["a", "start"].variant == "first"
    board.started("a", "only", 0.0)
    board.stopped("a", 10.0, done=0.0, last_failed=("only", "first"))
    assert decisions(board, [POOL])["a", "start"].variant == "second"


def test_a_job_waits_when_its_budget_is_too_small_everywhere():
    board = board_of([POOL], [candidate("a", [option(POOL, 10)], budget=10.0, spent=4.0)])
    assert "10.00 USD at the least and 6.00 USD" in decisions(board, [POOL])["a", "wait"].reason


def test_a_job_too_large_for_the_chips_that_work_waits_and_says_so():
    board = board_of([POOL], [candidate("a", [option(POOL, 1, 8)])])
    view = board.state(0.0, {"only": 4}, {"only": 4})
    assert "that many working chips" in allocate(view, wish(view))[0].reason


def test_only_the_waits_asked_for_are_explained():
    board = board_of([POOL], [candidate(f"j{k}", [option(POOL, 1, 8)], float(k)) for k in range(4)])
    view = view_of(board, [POOL])
    kinds = [(d.job, d.kind) for d in allocate(view, wish(view), explain=["j2"], depth=1)]
    assert kinds == [("j0", "start"), ("j2", "wait")]


def test_the_queue_in_front_counts_in_the_predicted_start():
    board = board_of([POOL], [candidate(f"j{k}", [option(POOL, 1, 8)], float(k)) for k in range(4)])
    reasons = [d.reason for d in allocate(view_of(board, [POOL]), POLICIES["fastest"](view_of(board, [POOL])))]
    assert "starts in 60.0 min" in reasons[1] and "starts in 3.00 h" in reasons[3]


def test_the_board_counts_down_what_is_left_while_a_job_runs():
    board = board_of(
        [POOL], [candidate("a", [option(POOL, 4, 2, once=1.0)], restartable=True, every=HOUR, restart=60.0)]
    )
    view = view_of(board, [POOL])
    assert view.usd[0, 0] == pytest.approx(9.0)
    board.started("a", "only", 0.0)
    view = view_of(board, [POOL], 1.5 * HOUR, {"only": 6})
    assert view.seconds[0, 0] == pytest.approx(2.5 * HOUR)
    assert view.usd[0, 0] == pytest.approx(5.0)  # the data are there
    assert view.restart_cost_s[0] == pytest.approx(0.5 * HOUR + 60)
    assert view.served[0, 0] == pytest.approx(1.5 * HOUR)
    board.stopped("a", 2 * HOUR, done=0.25, spent=4.0)
    view = view_of(board, [POOL], 2 * HOUR)
    assert view.seconds[0, 0] == pytest.approx(3 * HOUR)
    assert view.current_pool[0] == -1 and view.served[0, 0] == pytest.approx(2 * HOUR)


def test_a_run_that_outlasts_its_estimate_is_about_to_end():
    board = board_of([POOL], [candidate("a", [option(POOL, 1, 8)]), candidate("b", [option(POOL, 1, 8)])])
    board.started("a", "only", 0.0)
    view = view_of(board, [POOL], 5 * HOUR, {"only": 0})
    assert view.start[1, 0] == pytest.approx(5 * HOUR + 36)


def test_a_job_that_goes_leaves_the_others_as_they_were():
    board = board_of([POOL], [candidate(f"j{k}", [option(POOL, k + 1)], float(k)) for k in range(100)])
    for k in range(0, 100, 3):
        board.remove(f"j{k}")
    view = view_of(board, [POOL])
    assert len(board) == 66 and "j3" not in board and "j4" in board
    assert {job: view.seconds[j, 0] / HOUR for j, job in enumerate(view.jobs)} == {
        f"j{k}": k + 1 for k in range(100) if k % 3
    }
    assert board.option("j4", "only").seconds.value == 5 * HOUR


def test_a_view_can_not_be_written_to_and_bad_input_is_refused():
    board = board_of([POOL], [candidate("a", [option(POOL, 1)])])
    with pytest.raises(ValueError, match="read-only"):
        view_of(board, [POOL]).usd[0, 0] = 0.0
    with pytest.raises(InputError, match="not in the table yet"):
        board.add(candidate("a", []))
    with pytest.raises(InputError, match="share between 0 and 1"):
        board.progress("a", 0.0, 1.5)


def test_a_view_shows_nothing_of_what_comes_after_it():
    board = board_of([POOL], [candidate(name, [option(POOL, 1)]) for name in "abc"])
    moment = board.moment(0.0, {"only": 8}, {"only": 8})
    whole, some = board.part(moment, None), board.part(moment, np.array([2, 0]))
    assert list(some.jobs) == ["c", "a"] and some.jobs[1:] == ["a"] and some.usd.shape == (2, 1)
    board.moment(0.0, {"only": 8}, {"only": 8})  # nothing has changed
    assert whole.chips.tolist() == [[1], [1], [1]]
    board.remove("b")
    for view in (whole, some):
        with pytest.raises(RuntimeError, match=r"seconds .* after the table has changed"):
            assert view.seconds is None
    with pytest.raises(RuntimeError, match=r"ids .* after the table has changed"):
        assert some.jobs[0] == "c"
    assert some.usd.shape == (2, 1)  # read before
    with pytest.raises(AttributeError, match="second"):
        assert some.second is None


def test_backends_say_when_full_pools_have_room():
    board = board_of([POOL], [candidate("a", [option(POOL, 1, 8)])])
    assert view_of(board, [POOL], 5.0, {"only": 0}, start={"only": 99.0}).start[0, 0] == 99.0
    assert view_of(board, [POOL], 5.0, start={"only": 99.0}).start[0, 0] == 5.0


@pytest.mark.parametrize("name", ["cheapest-within-deadline", "max-throughput-per-dollar", "max-min-fair"])
def test_a_pass_is_compiled_once_whoever_owns_its_arrays(name):
    """Numba compiles again, for many seconds, where an array may be written that could not be before."""
    places, board, free = random_board(np.random.default_rng(7), 12, 3, deadlines=True)
    view = view_of(board, places, 60.0, free)
    arrays = {f.name: getattr(view, f.name) for f in fields(view) if isinstance(getattr(view, f.name), np.ndarray)}
    frozen = {field: lent(array) for field, array in arrays.items()}
    owned = {field: array.copy() for field, array in arrays.items()}
    kernels = (settle, by_jobs, by_pairs, _collect, scored, planned, max_min, behind)
    compiled = []
    for state in (replace(view, **frozen), replace(view, **owned)):
        allocate_state(state, POLICIES[name](state))
        compiled.append([len(kernel.dispatcher.signatures) for kernel in kernels])
    assert compiled[0] == compiled[1] and any(compiled[0])


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_decides_alike_in_python_and_compiled(name):
    """What `jobs submit` says of a few jobs is decided in Python, what the router does by compiled code."""
    decisions = []
    for way in (interpreted, nullcontext):
        with way():
            places, board, free = random_board(np.random.default_rng(11), 4, 5, deadlines=True)
            decisions.append(POLICIES[name](view_of(board, places, 60.0, free)))
    for field in ("score", "order", "tie", "wait", "shares"):
        a, b = (np.asarray(getattr(decision, field), dtype=float) for decision in decisions)  # no shares: nan
        assert np.array_equal(a, b, equal_nan=True), field
