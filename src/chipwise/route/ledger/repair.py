"""Repair of a ledger: rows that can't be read are set aside, and what contradicts the rest follows from the rest.

Nothing that runs is stopped or started here. Wherever a row says less than its attempts and its events do, they are
believed; a job of which nothing is known any more has failed, so that a person decides whether to submit it again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from chipwise.predict.estimate import Estimate
from chipwise.route.job import Job
from chipwise.route.ledger.audit import Replaced
from chipwise.route.ledger.check import lost_numbers, unreadable
from chipwise.route.ledger.codec import encode, storable
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.records import RUNNING
from chipwise.route.ledger.rows import next_id, note, stamp
from chipwise.route.ledger.schema import SQL_UNDER_WAY
from chipwise.route.option import Option

_BY = "ledger repair"
_MOST_LOST = 1_000_000  # jobs after the last one that is there: a number beyond is no job's


@dataclass(frozen=True, slots=True)
class _Fix:
    """Rows that contradict others, what is done to them, and how that is said."""

    rows: str  # a query whose first column is the id
    change: str  # a statement for one id
    text: str


_OVER_LAST = f"NOT EXISTS (SELECT 1 FROM attempts WHERE job_id = jobs.id AND state IN {SQL_UNDER_WAY})"
_WON = "EXISTS (SELECT 1 FROM attempts WHERE job_id = jobs.id AND state = 'succeeded')"
_FIXES = (
    _Fix(
        f"SELECT id FROM attempts WHERE state IN {SQL_UNDER_WAY} AND ended IS NOT NULL",
        "UPDATE attempts SET ended = NULL WHERE id = ?",
        "attempt {0} is under way: when it ended is forgotten",
    ),
    _Fix(
        f"SELECT id FROM attempts WHERE state NOT IN {SQL_UNDER_WAY} AND ended IS NULL",
        "UPDATE attempts SET ended = coalesce(started, submitted, intended) WHERE id = ?",
        "attempt {0} has ended: it is said to have done so when it began",
    ),
    _Fix(
        f"SELECT id FROM attempts WHERE state NOT IN {SQL_UNDER_WAY} AND stop <> ''",
        "UPDATE attempts SET stop = '' WHERE id = ?",
        "attempt {0} has ended: nothing is left to stop",
    ),
    _Fix(
        "SELECT id FROM attempts WHERE state = 'intended' AND (backend_id <> '' OR submitted IS NOT NULL)",
        "UPDATE attempts SET state = 'submitted', submitted = coalesce(submitted, intended) WHERE id = ?",
        "attempt {0} was submitted, as its backend's id says",
    ),
    _Fix(
        "SELECT id FROM attempts WHERE state = 'running' AND started IS NULL",
        "UPDATE attempts SET started = coalesce(submitted, intended) WHERE id = ?",
        "attempt {0} runs: it is said to have started when it was submitted",
    ),
    _Fix(
        f"SELECT id FROM jobs WHERE state <> 'succeeded' AND {_WON} AND {_OVER_LAST}",
        "UPDATE jobs SET state = 'succeeded', done = 1, cancel = 0, reason = '' WHERE id = ?",
        "job {0} has succeeded, as its attempt did",
    ),
    _Fix(
        f"SELECT id FROM jobs WHERE state IN ('pending', 'failed', 'cancelled') AND NOT ({_OVER_LAST})",
        "UPDATE jobs SET state = 'running' WHERE id = ?",
        "job {0} is running, as its attempt is under way",
    ),
    _Fix(
        f"SELECT id FROM jobs WHERE state = 'running' AND {_OVER_LAST}",
        "UPDATE jobs SET state = 'pending', cancel = 0, reason = 'put back by ledger repair' WHERE id = ?",
        "job {0} is pending: no attempt of it is under way",
    ),
    _Fix(
        f"SELECT id FROM jobs WHERE state = 'succeeded' AND NOT ({_WON}) AND {_OVER_LAST}",
        "UPDATE jobs SET state = 'failed', reason = 'no attempt of it is known to have succeeded' WHERE id = ?",
        "job {0} has failed: no attempt of it is known to have succeeded",
    ),
    _Fix(
        "SELECT id FROM jobs WHERE state = 'succeeded' AND done <> 1",
        "UPDATE jobs SET done = 1 WHERE id = ?",
        "job {0} has succeeded: all of its work is done",
    ),
    _Fix(
        "SELECT id FROM jobs WHERE cancel = 1 AND state <> 'running'",
        "UPDATE jobs SET cancel = 0 WHERE id = ?",
        "job {0} does not run: nothing is left to cancel",
    ),
    _Fix(
        """SELECT jobs.id FROM jobs LEFT JOIN attempts ON job_id = jobs.id GROUP BY jobs.id, jobs.spent
        HAVING abs(jobs.spent - coalesce(sum(attempts.spent), 0)) > 1e-9 * (1 + abs(jobs.spent))""",
        "UPDATE jobs SET spent = (SELECT coalesce(sum(spent), 0) FROM attempts WHERE job_id = jobs.id) WHERE id = ?",
        "job {0} has spent what its attempts have",
    ),
)


def repair(db: Database, now: float) -> tuple[list[str], Replaced]:
    """Repair a ledger, inside a transaction; what was done, one line each, and the rows that are others now."""
    replaced = Replaced()
    lines = _drop_strays(db, now, replaced)
    lines += _set_aside(db, now, replaced)
    lines += _fill_gaps(db, now, replaced)
    return [*lines, *_agree(db, now), *_tell(db, now)], replaced


def _drop_strays(db: Database, now: float, replaced: Replaced) -> list[str]:
    """Set aside attempts, events and decisions of jobs that can never have been: no number, or far beyond the last."""
    last = db.one("SELECT coalesce(max(id), 0) FROM jobs WHERE id < 1e18")
    assert last is not None
    furthest, lines = int(last[0]) + _MOST_LOST, []
    for table in ("attempts", "events", "decisions"):
        columns = sorted(db.columns(table))
        for row in db.all(f"SELECT {', '.join(columns)} FROM {table} WHERE NOT (job_id BETWEEN 1 AND {furthest})"):
            content = dict(zip(columns, row, strict=True))
            _keep(db, table[:-1], str(content["id"]), f"it is of job {content['job_id']}", content, now)
            db.run(f"DELETE FROM {table} WHERE id = ?", content["id"])
            if table == "decisions":
                replaced.decisions.add(int(content["id"]))
            lines.append(f"{table[:-1]} {content['id']} is of job {content['job_id']}, which can't be: it is set aside")
    return lines


def _keep(db: Database, kind: str, key: str, reason: str, content: dict[str, object], now: float) -> None:
    """Keep a row as it was."""
    db.run(
        "INSERT INTO quarantine (kind, id, at, reason, content) VALUES (?, ?, ?, ?, ?)",
        kind,
        storable(key),
        now,
        storable(reason),
        json.dumps(content, default=repr),
    )


def _set_aside(db: Database, now: float, replaced: Replaced) -> list[str]:
    """Put another row in the place of each that can't be read, and keep it as it was."""
    lines = []
    for error in unreadable(db):
        table, key = f"{error.kind}s", int(error.id) if error.kind in ("job", "event", "decision") else error.id
        columns = sorted(db.columns(table))
        row = db.one(f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?", key)
        assert row is not None
        content = dict(zip(columns, row, strict=True))
        _keep(db, error.kind, error.id, str(error), content, now)
        _replace(db, error.kind, key, content, now)
        if error.kind in ("job", "decision"):
            (replaced.jobs if error.kind == "job" else replaced.decisions).add(int(error.id))
        lines.append(f"{error.kind} {error.id} could not be read: it is in the table `quarantine` as it was")
    return lines


def _replace(db: Database, kind: str, key: object, content: dict[str, object], now: float) -> None:
    """Put what can be read of a row in its place."""
    if kind == "job":
        words = {name: value if isinstance(value := content[name], str) else "" for name in ("name", "owner")}
        db.run(
            "UPDATE jobs SET job = ?, options = '[]', infeasible = '[]', submitted = ?, done = ?, spent = 0, "
            "failures = 0, failed_at = NULL, not_before = 0, changed = ?, "
            "state = CASE state WHEN 'pending' THEN 'failed' ELSE state END, reason = ? WHERE id = ?",
            encode(Job(words["name"] or f"job {key}", (), owner=words["owner"]), Job),
            _moment(content["submitted"], now),
            1.0 if content["state"] == "succeeded" else 0.0,
            stamp(db, now),
            "its row in the ledger could not be read: submit it again",
            key,
        )
    elif kind == "attempt":
        chips = content["chips"] if isinstance(content["chips"], int) and content["chips"] > 0 else 1
        plan = Option(str(content["pool"]), str(content["variant"]), chips, "", Estimate(0, 0, 0, "bounded"), 0.0, 0.0)
        moments: dict[str, float | None] = {name: _moment(content[name], now) for name in ("lease", "intended")}
        moments |= {
            name: None if content[name] is None else _moment(content[name], now)
            for name in ("submitted", "started", "ended")
        }
        db.run(
            "UPDATE attempts SET plan = ?, lease = ?, intended = ?, submitted = ?, started = ?, ended = ?, seen = 0 "
            "WHERE id = ?",
            encode(plan, Option),
            *(moments[name] for name in ("lease", "intended", "submitted", "started", "ended")),
            key,
        )
    elif kind == "event":
        db.run("UPDATE events SET data = '{}' WHERE id = ?", key)
    else:
        db.run("UPDATE decisions SET decision = ? WHERE id = ?", '{"job":"0","kind":"wait"}', key)


def _moment(value: object, now: float) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else now


def _fill_gaps(db: Database, now: float, replaced: Replaced) -> list[str]:
    """Put a failed job in the place of each whose row is gone, and count events and decisions that are."""
    lines = []
    referred = [db.all(f"SELECT DISTINCT job_id FROM {table}") for table in ("attempts", "events", "decisions")]
    wanted = {int(number) for rows in referred for (number,) in rows}
    known = {int(number) for (number,) in db.all("SELECT id FROM jobs")}
    missing = sorted((wanted | set(range(1, max(known | wanted, default=0) + 1))) - known)
    for number in missing:
        db.run(
            "INSERT INTO jobs (id, digest, name, owner, state, submitted, job, options, infeasible, reason, changed) "
            "VALUES (?, '', ?, '', 'failed', ?, ?, '[]', '[]', ?, ?)",
            number,
            f"job {number}",
            now,
            encode(Job(f"job {number}", ()), Job),
            "its row in the ledger was lost: submit it again",
            stamp(db, now),
        )
        replaced.jobs.add(number)
        lines.append(f"job {number} was gone: it has failed, so that someone submits it again")
    for table in ("events", "decisions"):
        lost = lost_numbers(db, table)
        if lost:
            db.run(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                f"lost:{table}",
                str(lost),
            )
            lines.append(f"{lost} {table} are gone for good")
            if table == "decisions":
                there = {int(number) for (number,) in db.all("SELECT id FROM decisions")}
                replaced.decisions |= set(range(1, max(there, default=0))) - there
    return lines


def _agree(db: Database, now: float) -> list[str]:
    lines = []
    for fix in _FIXES:
        for (key,) in db.all(fix.rows):
            db.run(fix.change, key)
            if "UPDATE jobs" in fix.change:
                db.run("UPDATE jobs SET changed = ? WHERE id = ?", stamp(db, now), key)
            lines.append(fix.text.format(key))
    return lines


def _tell(db: Database, now: float) -> list[str]:
    """Write the events, and the decisions, that the rows imply and that are missing."""
    added = 0
    for (job,) in db.all(
        "SELECT id FROM jobs WHERE NOT EXISTS (SELECT 1 FROM events WHERE job_id = jobs.id AND kind = 'submitted' "
        "AND attempt = '') ORDER BY id"
    ):
        note(db, now, int(job), "submitted", f"written by {_BY}")
        added += 1
    for kind, which in (("intended", "1 = 1"), ("ended", f"state NOT IN {SQL_UNDER_WAY}")):
        for attempt, job, state in db.all(
            f"SELECT id, job_id, state FROM attempts WHERE {which} AND NOT EXISTS (SELECT 1 FROM events WHERE "
            f"attempt = attempts.id AND events.job_id = attempts.job_id AND kind = '{kind}') ORDER BY id"
        ):
            note(db, now, int(job), kind, f"{state}: written by {_BY}", attempt)
            added += 1
    for job, number, pool in db.all(
        "SELECT job_id, number, pool FROM attempts WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE "
        "decisions.job_id = attempts.job_id AND kind = 'start' AND decisions.pool = attempts.pool)"
    ):
        db.run(
            "INSERT INTO decisions (id, at, job_id, policy, router, kind, pool, decision) "
            "VALUES (?, ?, ?, '', ?, 'start', ?, ?)",
            next_id(db, "decisions"),
            now,
            job,
            _BY,
            pool,
            json.dumps({"job": str(job), "kind": "start", "pool": pool, "reason": f"attempt {number}, by {_BY}"}),
        )
        added += 1
    for job, state, last in db.all(
        "SELECT jobs.id, jobs.state, e.kind FROM jobs JOIN events e ON e.job_id = jobs.id WHERE e.id = "
        "(SELECT max(id) FROM events WHERE job_id = jobs.id) ORDER BY jobs.id"
    ):
        over = ("succeeded", "failed", "cancelled")
        if (state in over and last != state) or (state not in over and last in over):
            note(db, now, int(job), state if state != RUNNING else "put back", f"written by {_BY}")
            added += 1
    return [f"{added} events were missing: they are there, by the name of {_BY}"] if added else []
