"""Consistency check of a ledger: every rule that its transactions keep, checked from outside."""

from __future__ import annotations

from collections.abc import Callable

from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.error import BadRow
from chipwise.route.ledger.rows import ATTEMPT, DECISION, EVENT, JOB, Decoded, attempt_of, decision_of, event_of
from chipwise.route.ledger.schema import SQL_UNDER_WAY

# a query that finds what should not be, and what to say of each row it finds: {0}, {1}, ... are its columns
_RULES: tuple[tuple[str, str], ...] = (
    (
        f"SELECT job_id, count(*) FROM attempts WHERE state IN {SQL_UNDER_WAY} GROUP BY job_id HAVING count(*) > 1",
        "job {0}: {1} attempts are under way at once",
    ),
    (
        f"""SELECT id FROM jobs WHERE state = 'running' AND NOT EXISTS
         (SELECT 1 FROM attempts WHERE job_id = jobs.id AND state IN {SQL_UNDER_WAY})""",
        "job {0}: running without an attempt under way",
    ),
    (
        f"""SELECT jobs.id, jobs.state, attempts.id FROM jobs JOIN attempts ON job_id = jobs.id
         WHERE jobs.state <> 'running' AND attempts.state IN {SQL_UNDER_WAY}""",
        "job {0}: {1}, with attempt {2} under way",
    ),
    (
        "SELECT job_id, count(*), max(number) FROM attempts GROUP BY job_id HAVING count(*) <> max(number) "
        "OR min(number) <> 1",
        "job {0}: {1} attempts, numbered up to {2}",
    ),
    (
        """SELECT jobs.id, count(attempts.id) FROM jobs LEFT JOIN attempts ON job_id = jobs.id AND
        attempts.state = 'succeeded' WHERE jobs.state = 'succeeded' GROUP BY jobs.id HAVING count(attempts.id) <> 1""",
        "job {0}: succeeded, with {1} attempts that succeeded",
    ),
    (
        """SELECT jobs.id, jobs.state, attempts.id FROM jobs JOIN attempts ON job_id = jobs.id
        WHERE attempts.state = 'succeeded' AND jobs.state <> 'succeeded'""",
        "job {0}: {1}, though attempt {2} succeeded",
    ),
    (
        """SELECT a.job_id, a.id FROM attempts a WHERE a.state = 'succeeded' AND EXISTS
        (SELECT 1 FROM attempts b WHERE b.job_id = a.job_id AND b.number > a.number)""",
        "job {0}: tried again after attempt {1} succeeded",
    ),
    (
        """SELECT jobs.id, jobs.spent, coalesce(sum(attempts.spent), 0) FROM jobs LEFT JOIN attempts ON job_id = jobs.id
        GROUP BY jobs.id, jobs.spent
        HAVING abs(jobs.spent - coalesce(sum(attempts.spent), 0)) > 1e-9 * (1 + abs(jobs.spent))""",
        "job {0}: spent {1}, its attempts {2}",
    ),
    (
        "SELECT id, done FROM jobs WHERE state = 'succeeded' AND done <> 1",
        "job {0}: succeeded, with {1} of its work done",
    ),
    (
        "SELECT id, state FROM jobs WHERE cancel = 1 AND state <> 'running'",
        "job {0}: {1}, with a cancellation still to carry out",
    ),
    (
        f"SELECT id FROM attempts WHERE state IN {SQL_UNDER_WAY} AND ended IS NOT NULL",
        "attempt {0}: under way, with a time at which it ended",
    ),
    (
        f"SELECT id, state FROM attempts WHERE state NOT IN {SQL_UNDER_WAY} AND ended IS NULL",
        "attempt {0}: {1}, without a time at which it ended",
    ),
    (
        f"SELECT id, state, stop FROM attempts WHERE state NOT IN {SQL_UNDER_WAY} AND stop <> ''",
        "attempt {0}: {1}, with a stop ({2}) still to carry out",
    ),
    (
        "SELECT id FROM attempts WHERE state = 'intended' AND (backend_id <> '' OR submitted IS NOT NULL)",
        "attempt {0}: intended, though a backend has it",
    ),
    (
        "SELECT id FROM attempts WHERE state = 'running' AND started IS NULL",
        "attempt {0}: running, without a time at which it started",
    ),
    (
        # under way: a slurmctld that was killed gives the ids again that it gave last
        f"SELECT max(backend_id), pool, count(*) FROM attempts WHERE backend_id <> '' AND state IN {SQL_UNDER_WAY} "
        "GROUP BY pool, backend_id HAVING count(*) > 1",
        "backend id {0} of pool {1} belongs to {2} attempts that are under way",
    ),
    *(
        (
            f"""SELECT attempts.id, count(events.id) FROM attempts LEFT JOIN events ON events.attempt = attempts.id
           AND events.job_id = attempts.job_id AND kind = '{kind}' {where} GROUP BY attempts.id
           HAVING count(events.id) <> 1""",
            f"attempt {{0}}: {{1}} events say that it was {kind}",
        )
        for kind, where in (("intended", ""), ("ended", f"WHERE attempts.state NOT IN {SQL_UNDER_WAY}"))
    ),
    (
        """SELECT jobs.id, count(events.id) FROM jobs LEFT JOIN events ON events.job_id = jobs.id AND kind = 'submitted'
        AND events.attempt = ''
        GROUP BY jobs.id HAVING count(events.id) <> 1""",
        "job {0}: {1} events say that it was submitted",
    ),
    (
        """SELECT job_id, number FROM attempts WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE
        decisions.job_id = attempts.job_id AND kind = 'start' AND decisions.pool = attempts.pool)""",
        "job {0}: attempt {1} was never decided",
    ),
    (
        """SELECT jobs.id, jobs.state, e.kind FROM jobs JOIN events e ON e.job_id = jobs.id WHERE e.id =
        (SELECT max(id) FROM events WHERE job_id = jobs.id) AND jobs.state IN ('succeeded', 'failed', 'cancelled')
        AND e.kind <> jobs.state""",
        "job {0}: {1}, though the last thing that happened is {2}",
    ),
    (
        """SELECT jobs.id, jobs.state, e.kind FROM jobs JOIN events e ON e.job_id = jobs.id WHERE e.id =
        (SELECT max(id) FROM events WHERE job_id = jobs.id) AND jobs.state IN ('pending', 'running')
        AND e.kind IN ('succeeded', 'failed', 'cancelled')""",
        "job {0}: {1}, though the last thing that happened is {2}",
    ),
)


def check(db: Database, uid: str) -> list[str]:
    """What is inconsistent, one line each."""
    problems = [str(error) for error in unreadable(db)]
    problems += [text.format(*row) for sql, text in _RULES for row in db.all(sql)]
    for table in ("attempts", "decisions", "events"):
        missing = db.all(f"SELECT DISTINCT job_id FROM {table} WHERE job_id NOT IN (SELECT id FROM jobs)")
        problems += [f"job {job}: it has {table}, and is gone" for (job,) in missing]
    known: dict[str, str] = dict(db.all("SELECT name, value FROM meta WHERE name IN ('lost:events', 'lost:decisions')"))
    for table in ("jobs", "events", "decisions"):
        lost = lost_numbers(db, table)
        if lost != int(known.get(f"lost:{table}", 0)):
            problems.append(f"{table}: {lost} of the numbers up to the last one are missing")
    for name, job, number in db.all("SELECT id, job_id, number FROM attempts"):
        if name != f"{uid}-{job}-{number}":
            problems.append(f"attempt {name}: number {number} of job {job} of ledger {uid} has another id")
    return problems


def lost_numbers(db: Database, table: str) -> int:
    """How many rows of a table are missing: they are numbered from 1 without gaps."""
    row = db.one(f"SELECT coalesce(max(id), 0) - count(*) FROM {table}")
    assert row is not None
    return int(row[0])


def unreadable(db: Database) -> list[BadRow]:
    """The rows whose contents can't be read, each with the reason."""
    bad: list[BadRow] = []
    readers: tuple[tuple[str, str, Callable[[Row], object]], ...] = (
        ("jobs", JOB, Decoded().job),
        ("attempts", ATTEMPT, attempt_of),
        ("decisions", DECISION, decision_of),
        ("events", EVENT, event_of),
    )
    for table, columns, read in readers:
        for row in db.all(f"SELECT {columns} FROM {table} ORDER BY id"):
            try:
                read(row)
            except BadRow as error:
                bad.append(error)
    return bad
