"""Fallback and retries: a job whose attempt has ended is done, tried again elsewhere, or failed. Pure.

An attempt that failed counts against the job's retries. One that was lost, preempted or refused doesn't, since the job
is not to blame; those are bounded too, and each makes the job wait longer before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf, isfinite

from chipwise.route import backend as on
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger.records import CANCELLED, FAILED, PENDING, SUCCEEDED, AttemptEnd, AttemptRow, JobRow

BLAMELESS = frozenset({"lost", "preempted", "refused"})
SOON_S = 60.0  # an attempt stopped later than that had its share: policies that share stop jobs again and again
MOST_BLAMELESS = 20  # in a row; a job that loses its chips so often needs a person
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0  # before the next attempt, doubled each time: a broken pool is not hammered
DAY_S = 86_400.0
SLACK_S = 60.0  # that an attempt may have ended before a router noticed, without its backend being wrong
MOST_DONE = 0.999  # of a job that has not ended: something is left, if only to say so


def concluded(
    row: JobRow,
    attempt: AttemptRow,
    status: AttemptStatus,
    earlier: Sequence[AttemptRow],
    now: float,
    progress: float | None = None,
) -> AttemptEnd:
    """The end of an attempt as its backend shows it. `earlier`: attempts since the job was last retried by hand.

    `progress` is the share done as the program itself wrote it, where it did.
    """
    began, ended = span(attempt, status, now)
    spent = cost(attempt, began, ended)
    done = _done(row, attempt, began, ended, progress)
    if status.state == on.SUCCEEDED:
        return AttemptEnd("succeeded", SUCCEEDED, status.reason, done=1.0, spent=spent)
    over = row.spent + spent >= row.job.budget
    state, reason = _state(attempt, status)
    if (over or attempt.stop == "budget") and state != "cancelled":
        return AttemptEnd(
            state,
            FAILED,
            f"its budget of {row.job.budget:g} USD is spent ({row.spent + spent:.2f} USD)",
            done=done,
            spent=spent,
        )
    if state == "cancelled":
        ours = attempt.stop == "cancel"
        words = "cancelled on request" if ours else f"stopped on the backend by someone else: {reason}"
        return AttemptEnd(state, CANCELLED if ours else FAILED, words, done=done, spent=spent)
    return _again(row, attempt, state, reason, earlier, now, done, spent)


def refused(row: JobRow, attempt: AttemptRow, reason: str, earlier: Sequence[AttemptRow], now: float) -> AttemptEnd:
    """The end of an attempt that no backend has taken."""
    if attempt.stop == "cancel":
        return AttemptEnd("cancelled", CANCELLED, "cancelled on request before it ran")
    return _again(row, attempt, "preempted" if attempt.stop else "refused", reason, earlier, now, None, 0.0)


def cost(attempt: AttemptRow, began: float | None, ended: float) -> float:
    """USD of an attempt that ran from `began` to `ended`; nothing if it never began."""
    if began is None:
        return 0.0
    return attempt.option.usd_hour * max(0.0, ended - began) / 3600 + attempt.option.usd_once


def time_limit(row: JobRow, attempt: AttemptRow, most: float) -> float | None:
    """Seconds that an attempt may run: the pool's limit, and what is left of the budget."""
    left = row.job.budget - row.spent - attempt.option.usd_once
    paid = 3600 * left / attempt.option.usd_hour if attempt.option.usd_hour > 0 and isfinite(left) else inf
    limit = min(most, paid)
    return max(1.0, limit) if isfinite(limit) else None


def span(attempt: AttemptRow, status: AttemptStatus, now: float) -> tuple[float | None, float]:
    """From when to when it ran: as its backend says, and at least for as long as routers saw it run.

    Without a word of its end it ran for as long as they saw. A program can write when it began: a moment before it was
    intended, or to come, is not believed, by a day for clocks that differ.
    """
    said = [moment for moment in (status.started, attempt.started) if moment is not None]
    if not said:
        return None, now if status.ended is None else status.ended
    length = attempt.seen if status.ended is None else max(0.0, status.ended - said[0])
    if length < attempt.seen - SLACK_S:
        length = attempt.seen
    began = next((t for t in said if attempt.intended - DAY_S <= t <= now + DAY_S), attempt.intended)
    if began == said[0] and status.ended is not None and length == status.ended - began:
        return began, status.ended
    return began, began + length


def over_budget(row: JobRow, attempt: AttemptRow) -> bool:
    """Whether a running attempt has spent what its job may: by the time that routers have seen it run."""
    began = 0.0 if attempt.seen else None
    return row.spent + cost(attempt, began, attempt.seen) > row.job.budget


def _state(attempt: AttemptRow, status: AttemptStatus) -> tuple[str, str]:
    """The ledger's word for how it ended, and why."""
    reason = status.reason or (f"left with status {status.exit_code}" if status.exit_code else "")
    if attempt.stop and status.state in (on.CANCELLED, on.LOST):
        why = {
            "cancel": "",
            "preempt": "stopped for another job",
            "move": "stopped to run elsewhere",
            "budget": "stopped: its budget is spent",
        }[attempt.stop]
        return ("cancelled" if attempt.stop == "cancel" else "preempted"), why or reason
    if status.state == on.CANCELLED:
        return ("failed" if "time limit" in reason.lower() else "cancelled"), reason
    return ("lost" if status.state == on.LOST else "failed"), reason


def _done(row: JobRow, attempt: AttemptRow, began: float | None, ended: float, progress: float | None) -> float | None:
    """The share of the work that checkpoints hold after this attempt."""
    checkpoint = row.job.checkpoint
    if not checkpoint.restartable:
        return None
    if progress is not None:
        return min(max(row.done, progress), MOST_DONE)
    if began is None or not isfinite(checkpoint.every) or checkpoint.every <= 0:
        return row.done
    worked = max(0.0, ended - began - (checkpoint.restart if attempt.number > 1 else 0.0))
    saved = floor(worked / checkpoint.every) * checkpoint.every
    return min(row.done + saved / max(attempt.option.seconds.value, 1e-9), MOST_DONE)


def _again(
    row: JobRow,
    attempt: AttemptRow,
    state: str,
    reason: str,
    earlier: Sequence[AttemptRow],
    now: float,
    done: float | None,
    spent: float,
) -> AttemptEnd:
    which = f"attempt {attempt.number} ({attempt.pool}, variant {attempt.variant}) {words(state)}"
    report = f"{which}: {reason}" if reason else which
    shortfall = unpaid(row, done, spent)
    if shortfall:
        return AttemptEnd(state, FAILED, f"{report}; {shortfall}", done=done, spent=spent)
    if state == "failed":
        failures = row.failures + 1
        if failures > row.job.retries:
            many = f"{_counted(failures, 'attempt', 'attempts')} failed and "
            many += (
                f"{_counted(row.job.retries, 'retry is', 'retries are')} allowed"
                if row.job.retries
                else "no retry is allowed"
            )
            return AttemptEnd(state, FAILED, f"{report}; {many}", done=done, spent=spent)
        return AttemptEnd(state, PENDING, report, now + wait(failures), done, spent)
    forward = done is not None and done > row.done
    in_a_row = 1 if forward else blameless(earlier, _kept_after(row)) + 1
    if in_a_row > MOST_BLAMELESS:
        many = f"{in_a_row} attempts in a row came to nothing"
        return AttemptEnd(state, FAILED, f"{report}; {many}", done=done, spent=spent)
    pause = 0.0 if state == "preempted" else wait(in_a_row)
    return AttemptEnd(state, PENDING, report, now + pause, done, spent)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def unpaid(row: JobRow, done: float | None, spent: float) -> str:
    """Why no option can be paid for out of what is left of the budget; empty where one can."""
    left = row.job.budget - row.spent - spent
    part = 1.0 - max(row.done, done or 0.0)
    least = min((o.usd_hour * o.seconds.value / 3600 * part + o.usd_once for o in row.options), default=0.0)
    if not isfinite(row.job.budget) or least <= left:
        return ""
    return f"what is left of it costs {least:.2f} USD at the least, and {left:.2f} USD of its budget are left"


def blameless(earlier: Sequence[AttemptRow], kept_after: float = inf) -> int:
    """How many of the last attempts in a row came to nothing without the job's fault.

    One that ran for `kept_after` seconds has brought the job to its next checkpoint.
    """
    count = 0
    for attempt in reversed(earlier):
        got_somewhere = _ran(attempt) >= kept_after or (attempt.state == "preempted" and _ran(attempt) > SOON_S)
        if attempt.state not in BLAMELESS or got_somewhere:
            break
        count += 1
    return count


def _kept_after(row: JobRow) -> float:
    """Seconds after which an attempt has kept some of its work; inf where it never does."""
    checkpoint = row.job.checkpoint
    return checkpoint.restart + checkpoint.every if checkpoint.restartable else inf


def _ran(attempt: AttemptRow) -> float:
    return 0.0 if attempt.started is None or attempt.ended is None else attempt.ended - attempt.started


def wait(times: int) -> float:
    """Seconds before the next attempt.

    >>> wait(1), wait(3), wait(50)
    (1.0, 4.0, 300.0)
    """
    return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(times - 1, 30)))


def words(state: str) -> str:
    """An end in words."""
    return {"refused": "was refused", "lost": "was lost", "preempted": "was stopped"}.get(state, state)
