"""What becomes of a job after an attempt: pure rules, held to what must never happen."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from route_cases import job, option, pool, restartable

from chipwise.route.backend import CANCELLED, FAILED, LOST, RUNNING, SUCCEEDED, AttemptStatus, Capacity
from chipwise.route.ledger.records import AttemptRow, JobRow
from chipwise.route.ledger.states import step_after
from chipwise.route.router.capacity import count_chips
from chipwise.route.router.fallback import MOST_BLAMELESS, blameless, concluded, refused, time_limit

NOW = 1_000.0


def row(a_job=None, **more):
    return JobRow("1", a_job or job("run"), "running", 0.0, (option(),), (), **more)


def attempt(number=1, state="running", **more):
    return AttemptRow(f"u-1-{number}", "1", number, "near", "cpu", option(), state, "one", 0.0, **more)


@given(
    state=st.sampled_from([SUCCEEDED, FAILED, LOST, CANCELLED]),
    stop=st.sampled_from(["", "cancel", "preempt", "move"]),
    failures=st.integers(0, 5),
    retries=st.integers(0, 5),
    lost=st.integers(0, 30),
    budget=st.sampled_from([inf, 0.0, 1.0, 100.0]),
    ran=st.floats(0, 1e5),
    done=st.floats(0, 0.9),
    told=st.none() | st.floats(0, 1),
    code=st.none() | st.integers(0, 255),
    keeps=st.booleans(),
    reason=st.sampled_from(["", "Time limit", "NODE_FAIL"]),
)
def test_every_end_is_one_that_the_ledger_allows_and_no_work_is_forgotten(
    state, stop, failures, retries, lost, budget, ran, done, told, code, keeps, reason
):
    a_job = job("run", retries=retries, budget=budget, **({"checkpoint": restartable()} if keeps else {}))
    there = row(a_job, failures=failures, done=done)
    earlier = [attempt(n, "lost") for n in range(1, lost + 1)]
    seen = AttemptStatus("u-1-9", "17", state, code, NOW - ran, NOW, reason=reason)
    found = concluded(there, attempt(lost + 1, stop=stop), seen, earlier, NOW, told)
    step_after("u-1-9", found.state, found.next)
    assert found.spent >= 0 and (found.next == "succeeded") == (state == SUCCEEDED)
    assert found.done is None or found.done == 1.0 or done <= found.done < 1
    assert found.next != "failed" or found.reason
    if found.next == "pending":
        assert NOW <= found.not_before <= NOW + 300 and (found.state != "failed" or failures < retries)
        assert found.state == "failed" or lost < MOST_BLAMELESS or (found.done is not None and found.done > done)


def test_attempts_and_retries_are_counted_in_words_that_agree():
    def failed(failures, retries):
        return concluded(
            row(job("run", retries=retries), failures=failures), attempt(), AttemptStatus("a", "1", FAILED, 9), [], NOW
        ).reason

    assert failed(0, 0).endswith("; 1 attempt failed and no retry is allowed")
    assert failed(1, 1).endswith("; 2 attempts failed and 1 retry is allowed")
    assert failed(2, 2).endswith("; 3 attempts failed and 2 retries are allowed")


def test_attempts_stopped_after_their_turn_are_no_row_of_failures():
    served = [attempt(n, "preempted", started=0.0, ended=600.0) for n in range(1, 40)]
    assert blameless(served) == 0
    at_once = [attempt(n, "preempted", started=0.0, ended=1.0) for n in range(1, 4)]
    assert blameless([*served, *at_once]) == 3


def test_lost_attempts_that_reached_a_checkpoint_are_no_row_of_failures():
    keeps = row(job("run", checkpoint=replace(restartable(), every=60.0, restart=10.0)), done=0.5)
    forward = [attempt(n, "lost", started=0.0, ended=70.0) for n in range(1, 40)]
    assert (
        concluded(keeps, attempt(40), AttemptStatus("a", "1", LOST, started=NOW - 5, ended=NOW), forward, NOW).next
        == "pending"
    )
    in_vain = [attempt(n, "lost", started=0.0, ended=69.0) for n in range(1, 40)]
    assert (
        concluded(keeps, attempt(40), AttemptStatus("a", "1", LOST, started=NOW - 5, ended=NOW), in_vain, NOW).next
        == "failed"
    )
    assert (
        concluded(keeps, attempt(40), AttemptStatus("a", "1", LOST, started=NOW - 5, ended=NOW), in_vain, NOW, 0.6).next
        == "pending"
    )


def test_a_program_that_finished_is_done_even_when_its_owner_cancelled_it():
    assert (
        concluded(row(cancel=True), attempt(stop="cancel"), AttemptStatus("a", "1", SUCCEEDED, 0), [], NOW).next
        == "succeeded"
    )


def test_a_lost_attempt_that_was_told_to_stop_was_stopped():
    found = concluded(row(), attempt(stop="preempt"), AttemptStatus("a", "1", LOST), [], NOW)
    assert (found.state, found.next, found.not_before) == ("preempted", "pending", NOW)


def test_what_was_never_submitted_costs_nothing():
    found = refused(row(), attempt(stop="cancel"), "no", [], NOW)
    assert (found.state, found.next, found.spent) == ("cancelled", "cancelled", 0.0)
    assert refused(row(), attempt(stop="move"), "no", [], NOW).state == "preempted"


@pytest.mark.parametrize(
    ("budget", "most", "limit"), [(inf, inf, None), (inf, 60.0, 60.0), (1.0, inf, 1000.0), (0.0, inf, 1.0)]
)
def test_the_time_limit_is_the_pools_or_what_the_budget_pays_for(budget, most, limit):
    assert time_limit(row(job("run", budget=budget)), attempt(), most) == limit


def test_money_that_moves_data_is_paid_once_an_attempt_has_begun():
    moved = replace(attempt(), option=replace(option(), usd_once=7.0))
    assert concluded(row(), moved, AttemptStatus("a", "1", LOST), [], NOW).spent == 0.0
    lost = AttemptStatus("a", "1", LOST, started=NOW - 3600)
    assert concluded(row(), replace(moved, seen=3600.0), lost, [], NOW).spent == pytest.approx(10.6)
    assert concluded(row(), moved, replace(lost, ended=NOW), [], NOW).spent == pytest.approx(10.6)


@given(
    count=st.integers(1, 16),
    foreign=st.integers(0, 16),
    ours=st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["running", "submitted", "intended"])), max_size=6),
    cap=st.sampled_from([inf, 0.0, 2500.0]),
    drained=st.booleans(),
)
def test_room_never_exceeds_what_is_there(count, foreign, ours, cap, drained):
    at = pool("near", count, watts_chip=1000.0, power_cap=cap)
    rows = [replace(attempt(n, state), option=option(chips=chips)) for n, (chips, state) in enumerate(ours, 1)]
    shown = [AttemptStatus(r.id, "x", RUNNING) for r in rows if r.state == "running"]
    there = sum(r.option.chips for r in rows if r.state == "running")
    free = max(0, count - foreign - there)
    found = count_chips([at], {"near": Capacity(count, free)}, rows, shown, {"near"} if drained else set())["near"]
    assert 0 <= found.free <= free and found.free <= max(0, found.ours)
    assert not drained or (found.free, found.total) == (0, 0)
    assert found.ours <= (2 if cap == 2500.0 else 0 if cap == 0 else count)
    assert count_chips([at], {}, rows, [], set())["near"].free == 0
