"""What happens to attempts: decided, submitted, observed, ended. Every step compares before it sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chipwise.predict.estimate import Estimate
from chipwise.route.backend import AttemptStatus
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger.codec import encode, storable
from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.error import BadRow, Conflict
from chipwise.route.ledger.records import (
    CANCELLED,
    FAILED,
    INTENDED,
    PENDING,
    RUNNING,
    SUBMITTED,
    SUCCEEDED,
    UNDER_WAY,
    AttemptEnd,
    AttemptRow,
)
from chipwise.route.ledger.rows import (
    ATTEMPT,
    attempt_of,
    job_number,
    next_id,
    note,
    notes,
    options_of,
    stamp,
    text_of,
)
from chipwise.route.ledger.schema import SQL_UNDER_WAY
from chipwise.route.ledger.states import FURTHEST_S, STOPS, is_due, step_after, step_attempt, step_job
from chipwise.route.option import Option

_AT_ONCE = 500  # values of one query: SQLite takes 999 at the least
_FAILED = frozenset({"failed", "lost", "refused"})  # ends after which another option is tried first


def decide(
    db: Database,
    uid: str,
    router: str,
    policy: str,
    decisions: Sequence[Decision],
    now: float,
    lease: float,
    capacity: Mapping[str, int],
) -> list[AttemptRow]:
    """Carry decisions into the ledger as far as they still hold; the attempts that are now intended."""
    held: dict[str, int] = {
        pool: int(chips)
        for pool, chips in db.all(f"SELECT pool, sum(chips) FROM attempts WHERE state IN {SQL_UNDER_WAY} GROUP BY pool")
    }
    drained = {name for (name,) in db.all("SELECT name FROM pools WHERE drained = 1")}
    begun: list[AttemptRow] = []
    written: list[tuple[Any, ...]] = []
    changed = stamp(db, now)
    pending = _pending(db, [job_number(decision.job) for decision in decisions])
    for decision in decisions:
        carried_out, pool = False, storable(decision.pool)
        if decision.kind == "start" and decision.job in pending and pool not in drained:
            option = _startable(
                db, decision, is_due(pending[decision.job][0], now), capacity.get(decision.pool, 0) - held.get(pool, 0)
            )
            if option is not None:
                del pending[decision.job]
                held[pool] = held.get(pool, 0) + option.chips
                begun.append(_begin(db, uid, router, decision, option, now, changed, lease))
                carried_out = True
        elif decision.kind == "stop":
            carried_out = _stop_for(db, decision, now)
        elif decision.kind == "wait" and decision.job in pending:
            _, reason, waits_for = pending[decision.job]
            carried_out = _wait(db, decision, pool, reason, waits_for)
        if carried_out:
            written.append(
                (now, job_number(decision.job), policy, router, decision.kind, pool, encode(decision, Decision))
            )
    first = next_id(db, "decisions")
    db.many(
        "INSERT INTO decisions (id, at, job_id, policy, router, kind, pool, decision) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(first + i, *row) for i, row in enumerate(written)],
    )
    notes(
        db,
        [
            (now, row[1], "", "decided", f"{row[4]} {row[5]}".strip(), {"decision": first + i})
            for i, row in enumerate(written)
        ],
    )
    notes(
        db,
        [(now, int(a.job_id), a.id, "intended", f"{a.pool}, variant {a.variant}", {"number": a.number}) for a in begun],
    )
    return begun


def _pending(db: Database, jobs: Sequence[int]) -> dict[str, list[Any]]:
    """Of these jobs those that wait: until when, why, and for which pool."""
    sql = "SELECT id, not_before, reason, waits_for FROM jobs WHERE state = 'pending' AND id IN ({ids})"
    return {str(job): rest for job, *rest in _in_batches(db, sql, jobs)}


def _startable(db: Database, decision: Decision, due: bool, free: int) -> Option | None:
    """The option to start, if its pending job is due and enough chips are free."""
    row = db.one("SELECT options FROM jobs WHERE id = ?", job_number(decision.job)) if due and free > 0 else None
    if row is None:
        return None
    try:
        options = options_of(decision.job, row[0])
    except BadRow:  # damaged since it was read: the next pass says so
        return None
    option = next((o for o in options if (o.pool, o.variant) == (decision.pool, decision.variant)), None)
    return option if option is not None and option.chips <= free else None


def _begin(
    db: Database, uid: str, router: str, decision: Decision, option: Option, now: float, changed: float, lease: float
) -> AttemptRow:
    job = job_number(decision.job)
    row_of_number = db.one("SELECT coalesce(max(number), 0) + 1 FROM attempts WHERE job_id = ?", job)
    assert row_of_number is not None
    number = int(row_of_number[0])
    row = AttemptRow(
        f"{uid}-{job}-{number}",
        str(job),
        number,
        option.pool,
        option.variant,
        option,
        INTENDED,
        router,
        now + lease,
        intended=now,
    )
    db.run(
        "INSERT INTO attempts (id, job_id, number, pool, variant, chips, plan, state, router, lease, intended) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row.id,
        job,
        number,
        storable(row.pool),
        storable(row.variant),
        option.chips,
        encode(option, Option),
        INTENDED,
        router,
        row.lease,
        now,
    )
    step_job(decision.job, PENDING, RUNNING)
    db.run(
        "UPDATE jobs SET state = 'running', waits_for = NULL, reason = ?, changed = ? WHERE id = ?",
        text_of(decision.reason),
        changed,
        job,
    )
    return row


def _stop_for(db: Database, decision: Decision, now: float) -> bool:
    row = db.one(
        f"SELECT id, stop FROM attempts WHERE job_id = ? AND state IN {SQL_UNDER_WAY}", job_number(decision.job)
    )
    if row is None or row[1]:
        return False  # it has ended, or is being stopped already
    ask_stop(db, row[0], "preempt", now)
    return True


def _wait(db: Database, decision: Decision, pool: str, reason: str, waits_for: str | None) -> bool:
    """Note why a job waits. One decision is written as long as it waits for the same pool."""
    if (reason, waits_for) != (text_of(decision.reason), pool):
        db.run(
            "UPDATE jobs SET reason = ?, waits_for = ? WHERE id = ?",
            text_of(decision.reason),
            pool,
            job_number(decision.job),
        )
    return waits_for != pool


def take(
    db: Database, router: str, now: float, lease: float, pools: Sequence[str] | None = None, seen: float = 0.0
) -> list[Row]:
    """The attempts, as rows, that this router looks after from now on: its own, and those whose lease has run out.

    Its own that run have done so for `seen` seconds more.
    """
    only = "" if pools is None else f" AND pool IN ({', '.join('?' * len(pools)) or 'NULL'})"
    rows = db.all(
        f"SELECT {ATTEMPT} FROM attempts WHERE state IN {SQL_UNDER_WAY} AND (router = ? OR lease < ? OR lease > ?)"
        f"{only} ORDER BY job_id, number",
        router,
        now,
        now + FURTHEST_S,
        *map(storable, pools or ()),
    )
    db.many(
        "UPDATE attempts SET router = ?, lease = ?, seen = seen + ? WHERE id = ?",
        [(router, now + lease, seen_more(row[4], row[5], router, seen), row[0]) for row in rows],
    )
    notes(
        db,
        [
            (now, int(row[1]), row[0], "taken over", f"the lease of router {row[5]} ran out", {})
            for row in rows
            if row[5] != router
        ],
    )
    return rows


def seen_more(state: str, before: str, router: str, seconds: float) -> float:
    """Of the seconds since a router last looked, those for which it saw an attempt run that `before` looked after."""
    return seconds if state == RUNNING and before == router else 0.0


def mark_submitted(db: Database, attempt: str, backend_id: str, now: float) -> None:
    """The backend has taken an attempt, under an id of its own."""
    row, backend_id = one(db, attempt), storable(backend_id)
    if row.state != INTENDED and row.backend_id == backend_id:
        return  # reported twice
    if row.state == RUNNING:  # submitted twice by routers, and the other runs: what the backend shows decides
        raise Conflict(f"attempt {attempt} runs as {row.backend_id}: it isn't submitted as {backend_id}")
    step_attempt(attempt, row.state, SUBMITTED)
    db.run(
        "UPDATE attempts SET state = 'submitted', backend_id = ?, submitted = ? WHERE id = ?", backend_id, now, attempt
    )
    db.run("UPDATE jobs SET changed = ? WHERE id = ?", stamp(db, now), int(row.job_id))
    note(db, now, int(row.job_id), "submitted", f"{row.pool} knows it as {backend_id}", attempt)


def observe(db: Database, attempt: str, status: AttemptStatus, now: float) -> None:
    """What the backend shows of an attempt that has not ended there."""
    row = one(db, attempt)
    state = {PENDING: SUBMITTED, RUNNING: RUNNING}.get(status.state)
    if state is None:
        raise Conflict(f"attempt {attempt} has ended on its backend ({status.state}): `end` it")
    if row.state not in UNDER_WAY:
        raise Conflict(f"attempt {attempt} is {row.state}: it can't become {state}")
    if state != row.state:
        step_attempt(attempt, row.state, state)
    after = replace(
        row,
        state=state,
        backend_id=storable(status.backend_id) or row.backend_id,
        submitted=now if row.submitted is None else row.submitted,
        started=status.started if status.started is not None else row.started or (now if state == RUNNING else None),
        where=text_of(status.where) or row.where,
        reason=text_of(status.reason),
        restarts=max(status.restarts, row.restarts),
    )
    if after == row:
        return
    db.run(
        "UPDATE attempts SET state = ?, backend_id = ?, submitted = ?, started = ?, place = ?, reason = ?, "
        "restarts = ? WHERE id = ?",
        state,
        after.backend_id,
        after.submitted,
        after.started,
        after.where,
        after.reason,
        after.restarts,
        attempt,
    )
    if state != row.state:
        db.run("UPDATE jobs SET changed = ? WHERE id = ?", stamp(db, now), int(row.job_id))
        note(
            db,
            now,
            int(row.job_id),
            "running" if state == RUNNING else "queued",
            (after.where or after.reason) if state == RUNNING else (after.reason or after.where),
            attempt,
            restarts=after.restarts,
        )


def end(db: Database, attempt: str, how: AttemptEnd, now: float) -> bool:
    """End an attempt and give its job its next state; False where the attempt had ended so before."""
    row, state, job_state = one(db, attempt), how.state, how.next
    if row.state == state:
        return False
    job = db.one("SELECT state, cancel, done FROM jobs WHERE id = ?", int(row.job_id))
    assert job is not None
    if job[1] and state != SUCCEEDED:
        job_state = CANCELLED
    step_attempt(attempt, row.state, state)
    step_after(attempt, state, job_state)
    step_job(row.job_id, job[0], job_state)
    if not 0 <= how.spent < float("inf"):
        raise Conflict(f"attempt {attempt} can't have cost {how.spent}")
    share = 1.0 if state == SUCCEEDED else max(job[2], min(max(how.done or 0.0, 0.0), 1.0))
    db.run(
        "UPDATE attempts SET state = ?, ended = ?, started = ?, exit_code = ?, place = ?, reason = ?, spent = ?, "
        "stop = '' WHERE id = ?",
        state,
        now if how.ended is None else how.ended,
        row.started if how.started is None else how.started,
        how.exit_code,
        text_of(how.where) or row.where,
        text_of(how.reason),
        float(how.spent),
        attempt,
    )
    fault = encode((row.pool, row.variant), tuple[str, str]) if state in _FAILED else None
    db.run(
        "UPDATE jobs SET state = ?, reason = ?, done = ?, failures = failures + ?, failed_at = ?, "
        "waits_for = NULL, not_before = ?, cancel = 0, changed = ?, "
        "spent = (SELECT sum(spent) FROM attempts WHERE job_id = jobs.id) WHERE id = ?",
        job_state,
        "" if job_state == SUCCEEDED else text_of(how.reason),
        share,
        int(state == FAILED),
        fault,
        how.not_before,
        stamp(db, now),
        int(row.job_id),
    )
    note(
        db,
        now,
        int(row.job_id),
        "ended",
        f"{state}{f': {how.reason}' if how.reason else ''}",
        attempt,
        state=state,
        exit_code=how.exit_code,
        spent=float(how.spent),
        done=share,
    )
    note(db, now, int(row.job_id), job_state, how.reason if job_state == FAILED else "", attempt)
    return True


def expect(db: Database, expected: Mapping[str, Estimate], now: float) -> int:
    """Write down how long attempts under way take by their steps, from start to end; how many are still under way."""
    count = 0
    for attempt, estimate in expected.items():
        row = db.one(f"SELECT job_id FROM attempts WHERE id = ? AND state IN {SQL_UNDER_WAY}", attempt)
        if row is not None:
            count += 1
            db.run("UPDATE attempts SET expected = ? WHERE id = ?", encode(estimate, Estimate), attempt)
            db.run("UPDATE jobs SET changed = ? WHERE id = ?", stamp(db, now), row[0])  # routers read it again
    return count


def ask_stop(db: Database, attempt: str, why: str, now: float) -> int | None:
    """Ask that an attempt be stopped: whoever looks after it tells the backend. Its job; None: it was asked before."""
    if why not in STOPS:
        raise Conflict(f"attempt {attempt} can't be stopped as {why!r}; expected one of {', '.join(STOPS)}")
    row = one(db, attempt)
    if row.state not in UNDER_WAY:
        raise Conflict(f"attempt {attempt} is {row.state}: there is nothing to stop")
    if row.stop in (why, "cancel"):  # an owner's word outweighs a policy's
        return None
    db.run("UPDATE attempts SET stop = ? WHERE id = ?", why, attempt)
    db.run("UPDATE jobs SET changed = ? WHERE id = ?", stamp(db, now), int(row.job_id))
    note(db, now, int(row.job_id), "stop asked", why, attempt)
    return int(row.job_id)


def over_before(db: Database, attempts: Sequence[str], when: float) -> list[str]:
    """Of these attempts those that ended before a moment, and whose jobs were over by then."""
    sql = (
        f"SELECT attempts.id FROM attempts JOIN jobs ON jobs.id = job_id WHERE attempts.state NOT IN {SQL_UNDER_WAY} "
        "AND ended < ? AND jobs.state IN ('succeeded', 'failed', 'cancelled') AND jobs.changed < ? AND "
        "attempts.id IN ({ids}) ORDER BY attempts.id"
    )
    return [name for (name,) in _in_batches(db, sql, [*map(storable, attempts)], when, when)]


def _in_batches(db: Database, sql: str, ids: Sequence[object], *values: object) -> list[Row]:
    """The rows of a query about many ids, which stand for `{ids}`: so many at once as a database takes."""
    rows: list[Row] = []
    for i in range(0, len(ids), _AT_ONCE):
        batch = ids[i : i + _AT_ONCE]
        rows += db.all(sql.replace("{ids}", ", ".join("?" * len(batch))), *values, *batch)
    return rows


def one(db: Database, attempt: str) -> AttemptRow:
    """One attempt."""
    row = db.one(f"SELECT {ATTEMPT} FROM attempts WHERE id = ?", attempt)
    if row is None:
        raise Conflict(f"attempt {attempt} is not in this ledger")
    return attempt_of(row)
