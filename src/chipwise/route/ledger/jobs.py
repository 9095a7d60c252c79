"""What happens to jobs at their owner's word: submitted, cancelled, tried again; and failed, by a router."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from chipwise.errors import InputError
from chipwise.route.job import Job
from chipwise.route.ledger import audit
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.codec import encode
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.error import Conflict
from chipwise.route.ledger.records import CANCELLED, FAILED, PENDING, RUNNING, NewJob
from chipwise.route.ledger.rows import heads, job_number, note, notes, stamp, text_of
from chipwise.route.ledger.schema import SQL_UNDER_WAY
from chipwise.route.ledger.states import step_job
from chipwise.route.option import Infeasible, Option


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job as its row holds it."""

    job: Job
    text: str
    digest: str
    key: str | None
    options: str
    infeasible: str
    team: str


def prepare(jobs: Sequence[NewJob]) -> list[Prepared]:
    """Encode jobs for `submit`."""
    prepared = []
    for new in jobs:
        text = encode(new.job, Job)
        # without the deadline: one that the file gives as a duration is another moment each time it is submitted
        endless = text if new.job.deadline == inf else encode(replace(new.job, deadline=inf), Job)
        digest = hashlib.sha256(endless.encode()).hexdigest()
        # exact, whatever its characters
        key = json.dumps([new.job.owner, new.job.key] if new.scoped else new.job.key) if new.job.key else None
        options = encode(tuple(new.options), tuple[Option, ...]) if new.options else ""
        infeasible = encode(tuple(new.infeasible), tuple[Infeasible, ...])
        prepared.append(Prepared(new.job, text, digest, key, options, infeasible, new.team))
    return prepared


_COLUMNS = (
    "key", "digest", "name", "owner", "state", "submitted",
    "job", "options", "infeasible", "reason", "submitter", "team",
)  # fmt: skip


def _row(new: Prepared, now: float, actor: Actor) -> tuple[object, ...]:
    """_COLUMNS of a job that is submitted."""
    if not new.options:
        raise InputError(f"job {new.job.name}", "no option", "a job that can run in some pool")
    return (
        new.key,
        new.digest,
        text_of(new.job.name),
        text_of(new.job.owner),
        PENDING,
        now,
        new.text,
        new.options,
        new.infeasible,
        "no scheduling pass yet",
        text_of(actor.who),
        text_of(new.team),
    )


def _audited(row: Sequence[object]) -> tuple[object, ...]:
    """Of _COLUMNS those that the audit log keeps a digest of, in its order."""
    return tuple(row[_COLUMNS.index(name)] for name in audit.JOB_COLUMNS.split(", ")[1:])


def submit_one(db: Database, new: Prepared, now: float, actor: Actor, uid: str) -> str:
    """Write a job that has no key; its id. Number, order and hash are made by the database, which `makes_hashes`."""
    row, places = _row(new, now, actor), ", ".join("?" * len(_COLUMNS))
    [(detail,)] = db.at_once(
        [
            (
                f"INSERT INTO jobs (id, {', '.join(_COLUMNS)}, changed) "
                f"VALUES ((SELECT coalesce(max(id), 0) + 1 FROM jobs), {places}, greatest(?, {_NEXT_CHANGE}))",
                (*row, now),
            ),
            (_NOTE_LAST_JOB, (now,)),
            audit.append_last_job(uid, actor, _audited(row), now),
        ]
    )
    return str(audit.submission_ids(detail)[1])


# as `rows.stamp`: the next number or the one after it
_NEXT_CHANGE = "(SELECT coalesce(max(changed), 0) * 1.0000000000000002 FROM jobs WHERE changed < 1e300)"
_NOTE_LAST_JOB = (
    "INSERT INTO events (id, at, job_id, attempt, kind, text, data) VALUES "
    "((SELECT coalesce(max(id), 0) + 1 FROM events), ?, (SELECT max(id) FROM jobs), '', 'submitted', '', '{}')"
)


def submit(db: Database, jobs: Sequence[Prepared], now: float, actor: Actor) -> list[str]:
    """Write jobs, all or none; their ids. A key that is there already stands for the job submitted with it."""
    ids: list[str] = []
    rows: list[tuple[object, ...]] = []
    number, event, changed, last = heads(db, now, actor.chain)
    batch_keys: dict[str, tuple[str, str]] = {}  # keys of this very batch: id and digest
    for new in jobs:
        key, digest = new.key, new.digest
        existing = batch_keys.get(key) or _with_key(db, key) if key else None
        if existing:
            _same(new.job, digest, *existing, same_batch=key in batch_keys)
            ids.append(existing[0])
            continue
        rows.append((number, *_row(new, now, actor), changed))
        ids.append(str(number))
        if key:
            batch_keys[key] = (str(number), digest)
        number += 1
    places = ", ".join("?" * len(_COLUMNS))
    db.many(f"INSERT INTO jobs (id, {', '.join(_COLUMNS)}, changed) VALUES (?, {places}, ?)", rows)
    notes(db, [(now, int(str(row[0])), "", "submitted", "", {}) for row in rows], event)
    if rows:
        columns = [(row[0], *_audited(row[1:])) for row in rows]
        audit.append_after(db, last, actor, audit.SUBMITTED, audit.submission_detail(columns), now)
    return ids


def known(db: Database, job: Prepared) -> bool:
    """Whether a job was submitted before, by its key."""
    return job.key is not None and _with_key(db, job.key) is not None


def _with_key(db: Database, key: str) -> tuple[str, str] | None:
    row = db.one("SELECT id, digest FROM jobs WHERE key = ?", key)
    return None if row is None else (str(row[0]), row[1])


def _same(job: Job, digest: str, existing: str, existing_digest: str, same_batch: bool) -> None:
    """Refuse a key that another job has; `same_batch`: one of the same submission, which has no number yet."""
    if digest != existing_digest and same_batch:
        raise InputError(
            f"job {job.name}.key",
            job.key,
            "a key of its own: another job of this submission has it, with other contents",
        )
    if digest != existing_digest:
        raise InputError(
            f"job {job.name}.key",
            job.key,
            f"a key of its own: job {existing} was submitted with this one and other contents",
        )


def ask_cancel(db: Database, job_id: str, now: float) -> str:
    """Cancel a job: at once while none of its attempts is under way, else once the backend has stopped it."""
    number, state = _state(db, job_id)
    if state == RUNNING:
        db.run(
            f"UPDATE attempts SET stop = 'cancel' WHERE job_id = ? AND state IN {SQL_UNDER_WAY}",
            number,
        )
        db.run("UPDATE jobs SET cancel = 1, changed = ?, reason = 'cancelling' WHERE id = ?", stamp(db, now), number)
        note(db, now, number, "cancel asked")
        return RUNNING
    if state == CANCELLED:
        return CANCELLED
    step_job(job_id, state, CANCELLED)
    db.run(
        "UPDATE jobs SET state = 'cancelled', reason = 'cancelled on request', changed = ? WHERE id = ?",
        stamp(db, now),
        number,
    )
    note(db, now, number, "cancelled", "before it ran" if state == PENDING else "after it failed")
    return CANCELLED


def retry(db: Database, job_id: str, now: float) -> None:
    """Let a job that failed or was cancelled wait again, with all its retries."""
    number, state = _state(db, job_id)
    if state not in (FAILED, CANCELLED):
        raise Conflict(f"job {job_id} is {state}: only a job that failed or was cancelled is tried again")
    step_job(job_id, state, PENDING)
    db.run(
        "UPDATE jobs SET state = 'pending', reason = 'to be tried again', failures = 0, failed_at = NULL, "
        "waits_for = NULL, not_before = 0, cancel = 0, changed = ? WHERE id = ?",
        stamp(db, now),
        number,
    )
    note(db, now, number, "retried", f"it was {state}")


def fail(db: Database, job_id: str, reason: str, now: float) -> None:
    """Give a pending job up, with the reason, until someone tries it again."""
    number, state = _state(db, job_id)
    if state != PENDING:
        raise Conflict(f"job {job_id} is {state}: only a pending job is given up so")
    db.run(
        "UPDATE jobs SET state = 'failed', reason = ?, changed = ? WHERE id = ?",
        text_of(reason),
        stamp(db, now),
        number,
    )
    note(db, now, number, "failed", reason)


def revise(db: Database, job_id: str, options: Sequence[Option], infeasible: Sequence[Infeasible], now: float) -> None:
    """Replace what a pending job would take in each pool."""
    number, state = _state(db, job_id)
    if state != PENDING:
        raise Conflict(f"job {job_id} is {state}: only a pending job is estimated again")
    if not options:
        raise Conflict(f"job {job_id} would have no pool left: give it up instead")
    db.run(
        "UPDATE jobs SET options = ?, infeasible = ?, changed = ? WHERE id = ?",
        encode(tuple(options), tuple[Option, ...]),
        encode(tuple(infeasible), tuple[Infeasible, ...]),
        stamp(db, now),
        number,
    )
    note(db, now, number, "estimated again", f"can run in {', '.join(dict.fromkeys(o.pool for o in options))}")


def _state(db: Database, job_id: str) -> tuple[int, str]:
    number = job_number(job_id)
    row = db.one("SELECT state FROM jobs WHERE id = ?", number)
    if row is None:
        raise InputError("job", job_id, "the number of a job, as `chipwise jobs list` shows it")
    return number, str(row[0])
