"""Which steps jobs and attempts may take. Every change of state passes here; anything else raises."""

from __future__ import annotations

from chipwise.route.ledger.error import Conflict
from chipwise.route.ledger.records import CANCELLED, ENDS, FAILED, INTENDED, PENDING, RUNNING, SUBMITTED, SUCCEEDED

JOB_STEPS: dict[str, frozenset[str]] = {
    PENDING: frozenset({RUNNING, FAILED, CANCELLED}),
    RUNNING: frozenset({PENDING, SUCCEEDED, FAILED, CANCELLED}),
    FAILED: frozenset({PENDING, CANCELLED}),  # tried again, or given up for good
    CANCELLED: frozenset({PENDING}),
    SUCCEEDED: frozenset(),
}
ATTEMPT_STEPS: dict[str, frozenset[str]] = {
    INTENDED: frozenset({SUBMITTED, RUNNING}) | ENDS,  # running at once: found on the backend after a crash of ours
    SUBMITTED: frozenset({RUNNING}) | ENDS,
    RUNNING: frozenset({SUBMITTED}) | ENDS,  # back in the backend's own queue: it was requeued there
}
# what becomes of a job whose attempt ended so
AFTER: dict[str, frozenset[str]] = {
    "succeeded": frozenset({SUCCEEDED}),
    "cancelled": frozenset({CANCELLED, PENDING, FAILED}),  # not cancelled: stopped on the backend by someone else
    **dict.fromkeys(("failed", "lost", "preempted", "refused"), frozenset({PENDING, FAILED, CANCELLED})),
}
STOPS = ("cancel", "preempt", "move", "budget")
# no router lets a job wait, or takes a lease, for longer: a moment further ahead is of a clock that was wrong
FURTHEST_S = 2 * 86_400.0


def is_due(moment: float, now: float) -> bool:
    """Whether a moment that someone wrote down has come.

    >>> is_due(10.0, 11.0), is_due(12.0, 11.0), is_due(1e12, 11.0)
    (True, False, True)
    """
    return not now < moment <= now + FURTHEST_S


def step_job(job_id: str, old: str, new: str) -> None:
    """Let a job go from one state to another, or raise."""
    if new not in JOB_STEPS[old]:
        raise Conflict(f"job {job_id} is {old}: it can't become {new}")


def step_attempt(attempt: str, old: str, new: str) -> None:
    """Let an attempt go from one state to another, or raise."""
    if new not in ATTEMPT_STEPS.get(old, frozenset()):
        raise Conflict(f"attempt {attempt} is {old}: it can't become {new}")


def step_after(attempt: str, end: str, job: str) -> None:
    """Let a job take a state after an attempt that ended so, or raise."""
    if end not in ENDS:
        raise Conflict(f"attempt {attempt} can't end as {end!r}; ends are {', '.join(sorted(ENDS))}")
    if job not in AFTER[end]:
        raise Conflict(f"attempt {attempt} ended as {end}: its job can't become {job}")
