"""The ledger as the rest of chipwise sees it. Every method is one atomic transaction."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from chipwise.errors import InputError
from chipwise.io.closing import Closing
from chipwise.predict.estimate import Estimate
from chipwise.route.access import Quotas
from chipwise.route.backend import AttemptStatus
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger import attempts as _attempts
from chipwise.route.ledger import audit as _audit
from chipwise.route.ledger import jobs as _jobs
from chipwise.route.ledger import usage as _usage
from chipwise.route.ledger.accounting import Accounting
from chipwise.route.ledger.actor import Actor, os_actor
from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.error import BadRow, LedgerError
from chipwise.route.ledger.liveness import SILENT_S
from chipwise.route.ledger.migrations import create, migrate
from chipwise.route.ledger.records import (
    INTENDED,
    AttemptEnd,
    AttemptRow,
    DecisionRow,
    Event,
    JobRow,
    NewJob,
)
from chipwise.route.ledger.registry import Registry
from chipwise.route.ledger.rows import (
    ATTEMPT,
    DECISION,
    EVENT,
    JOB,
    Decoded,
    attempt_of,
    decision_of,
    event_of,
    job_number,
    next_id,
    text_of,
)
from chipwise.route.ledger.schema import SQL_OPEN, SQL_UNDER_WAY, SQL_USER, VERSION
from chipwise.route.option import Infeasible, Option

T = TypeVar("T")


class Ledger(Closing, Accounting, Registry):
    """Jobs, decisions, attempts and events, kept in one database that several routers may share."""

    def __init__(self, db: Database) -> None:
        self._db, self._decoded = db, Decoded()
        self.where = db.where
        self.bad_rows: dict[str, BadRow] = {}  # "job 7": rows left out of lists, as they can't be read
        self.actor = os_actor()  # who writes, unless a command is somebody else's
        try:
            self.uid = _ready(db)
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    @property
    def epoch(self) -> int:
        """Changes when the database was reached again: what was read before is to be read again."""
        return self._db.epoch

    @property
    def warning(self) -> str:
        """What is weak about the way to the database; empty where nothing is."""
        return self._db.warning

    def hurry_when(self, told_to_stop: Callable[[], bool]) -> None:
        """Don't wait long for a silent database once that is so."""
        self._db.told_to_stop = told_to_stop

    def check_host(self, host: str, network: str) -> None:
        """Keep a ledger in a file on a network file system to the machine that made it: between machines SQLite's
        log is not safe, and nobody would notice until rows are gone."""
        if not network:
            return
        with self._db.write() as db:
            row = db.one("SELECT value FROM meta WHERE name = 'host'")
            if row is None:
                db.run("INSERT INTO meta (name, value) VALUES ('host', ?)", host)
            elif row[0] != host:
                raise LedgerError(
                    self.where,
                    f"it lies on a network file system ({network}) and is used on "
                    f"{row[0]}; SQLite can't be shared between machines",
                    f"run this on {row[0]}, copy it to a disk of this machine, or use PostgreSQL",
                )

    def check_sound(self) -> None:
        """Refuse a ledger whose file is damaged, or that others could change or replace. Takes a look at all of it."""
        damage = self._db.damage()
        if damage:
            raise LedgerError(
                self.where,
                f"it is damaged ({damage[0]})",
                "nothing was written; `chipwise ledger repair` saves what can be read",
            )
        others = self._db.others_can_replace()
        if others:
            raise LedgerError(
                self.where,
                f"other users could change it: {others}",
                "nothing was written; keep it in a folder that only you can write",
            )

    # jobs

    def submit(
        self, jobs: Sequence[NewJob], now: float, actor: Actor | None = None, quotas: Quotas | None = None
    ) -> list[str]:
        """Write jobs, all or none; their ids. The same key with the same job again: the same id, nothing written.

        `quotas`: none may be exceeded by what the jobs take at least; an `InputError` names the one that would be.
        """
        actor, prepared = actor or self.actor, _jobs.prepare(jobs)  # before the lock that all writers wait for
        counted = quotas is not None and quotas.limited
        if self._db.makes_hashes and len(prepared) == 1 and prepared[0].key is None and not counted:
            return [_jobs.submit_one(self._db, prepared[0], now, actor, self.uid)]
        with self._db.write() as db:
            if quotas is not None and counted:
                new = [job for job, row in zip(jobs, prepared, strict=True) if not _jobs.known(db, row)]
                _usage.check(db, new, quotas, actor.who, now)
            return _jobs.submit(db, prepared, now, actor)

    def job(self, job_id: str) -> JobRow:
        """One job."""
        row = self._db.one(f"SELECT {JOB} FROM jobs WHERE id = ?", job_number(job_id))
        if row is None:
            raise InputError("job", job_id, "the number of a job, as `chipwise jobs list` shows it")
        return self._decoded.job(row)

    def jobs(
        self, state: str | None = None, owner: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[JobRow]:
        """Jobs, newest first."""
        filters = {"state": state, SQL_USER: owner, "name": name}
        conditions = {k: text_of(v) for k, v in filters.items() if v is not None}
        where = " AND ".join(f"{k} = ?" for k in conditions) or "1 = 1"
        rows = self._db.all(
            f"SELECT {JOB} FROM jobs WHERE {where} ORDER BY id DESC LIMIT ?",
            *conditions.values(),
            2**31 if limit is None else limit,
        )
        return self._readable("job", rows, self._decoded.job)

    def open_jobs(self, changed_after: float | None = None) -> list[JobRow]:
        """Jobs that wait or have an attempt under way, oldest first.

        With `changed_after` (the latest `changed` a caller has seen): all jobs changed since, those now over included,
        so that a caller who keeps them can drop them. A change of `reason` alone counts as none.
        """
        if changed_after is None:
            rows = self._db.all(f"SELECT {JOB} FROM jobs WHERE state IN {SQL_OPEN} ORDER BY id")
        else:
            # sorted here: told to order by id, SQLite reads all jobs by that instead of the few by when they changed
            rows = self._db.all(f"SELECT {JOB} FROM jobs WHERE changed > ? AND changed < 1e300", changed_after)
            rows = sorted(rows, key=lambda row: int(row[0]))
        return self._readable("job", rows, self._decoded.job)

    def _readable(self, kind: str, rows: Sequence[Row], read: Callable[[Row], T]) -> list[T]:
        """The records of rows; those that can't be read are left out, and kept in `bad_rows`."""
        records = []
        for row in rows:
            try:
                records.append(read(row))
                if self.bad_rows:
                    self.bad_rows.pop(f"{kind} {row[0]}", None)
            except BadRow as error:
                self.bad_rows[f"{kind} {row[0]}"] = error
        return records

    def ask_cancel(self, job_id: str, now: float) -> str:
        """Cancel a job; its state after: `cancelled`, or `running` until its attempt has been stopped."""
        with self._db.write() as db:
            state = _jobs.ask_cancel(db, job_id, now)
            _audit.append(db, self.actor, "cancel", "", now, job_number(job_id))
            return state

    def retry(self, job_id: str, now: float) -> None:
        """Let a job that failed or was cancelled wait again, with all its retries."""
        self.change("retry", [job_id], now)

    def change(self, what: str, job_ids: Sequence[str], now: float, actor: Actor | None = None) -> None:
        """Cancel several jobs ("cancel"), or try them again ("retry"): all of them, or none."""
        step = {"cancel": _jobs.ask_cancel, "retry": _jobs.retry}[what]
        with self._db.write() as db:
            for job_id in job_ids:
                step(db, job_id, now)
                _audit.append(db, actor or self.actor, what, "", now, job_number(job_id))

    def fail(self, job_id: str, reason: str, now: float) -> None:
        """Give a pending job up, with the reason, until someone tries it again."""
        with self._db.write() as db:
            _jobs.fail(db, job_id, reason, now)
            _audit.append(db, self.actor, "fail", reason, now, job_number(job_id))

    def revise(self, job_id: str, options: Sequence[Option], infeasible: Sequence[Infeasible], now: float) -> None:
        """Replace what a pending job would take in each pool: pools or prices are others than at its submission."""
        with self._db.write() as db:
            _jobs.revise(db, job_id, options, infeasible, now)
            pools = ", ".join(dict.fromkeys(option.pool for option in options))
            _audit.append(db, self.actor, "estimate", f"can run in {pools}", now, job_number(job_id))

    # attempts

    def attempt(self, attempt: str) -> AttemptRow:
        """One attempt; `Conflict` where the ledger has none of that id."""
        return _attempts.one(self._db, attempt)

    def attempts(self, job_id: str | None = None, under_way: bool = False) -> list[AttemptRow]:
        """Attempts, in the order of jobs and numbers."""
        where, values = ["1 = 1"], []
        if job_id is not None:
            where.append("job_id = ?")
            values.append(job_number(job_id))
        if under_way:
            where.append(f"state IN {SQL_UNDER_WAY}")
        rows = self._db.all(
            f"SELECT {ATTEMPT} FROM attempts WHERE {' AND '.join(where)} ORDER BY job_id, number", *values
        )
        return self._readable("attempt", rows, attempt_of)

    def decide(
        self,
        router: str,
        policy: str,
        decisions: Sequence[Decision],
        now: float,
        lease_s: float,
        capacity: Mapping[str, int],
        quotas: Quotas | None = None,
    ) -> list[AttemptRow]:
        """Carry decisions out as far as they still hold; the attempts that are now intended.

        `capacity`: chips of each pool that attempts of this ledger may hold in all, those under way included; what they
        hold is counted here, inside the transaction, so that two routers never overfill a pool. A start is dropped
        without a word where its job no longer waits, must wait until later, has no such option, the pool is drained
        or not in `capacity`, or has too little of it, or a quota would be exceeded by what another router has started
        meanwhile. A `stop` asks that the job's attempt be stopped ("preempt"). A `wait` writes
        its reason to the job, and a decision when the pool waited for is another than before.
        """
        with self._db.write() as db:
            if quotas is not None and quotas.limited:
                others = "SELECT 1 FROM routers WHERE id <> ? AND (stopped IS NULL OR stopped > ?) AND seen > ? LIMIT 1"
                alone = db.one(others, router, now - SILENT_S, now - SILENT_S) is None
                decisions = _usage.within_quotas(db, decisions, quotas, now, alone)
            first = next_id(db, "decisions")
            begun = _attempts.decide(db, self.uid, router, policy, decisions, now, lease_s, capacity)
            if (after := next_id(db, "decisions")) > first:
                actor = replace(self.actor, chain=f"router {router}")
                _audit.append(db, actor, _audit.DECIDED, _audit.decisions_detail(db, first, after - 1), now)
            return begun

    def take(
        self, router: str, now: float, lease_s: float, pools: Sequence[str] | None = None, seen_s: float = 0.0
    ) -> list[AttemptRow]:
        """Attempts under way that this router looks after from now: its own, and those whose lease ran out.

        `pools`: those that it knows; attempts elsewhere are left to routers that can look after them. `seen_s`: for
        how long its own have run since it last asked, as it saw the time pass.
        """
        with self._db.write() as db:
            rows = _attempts.take(db, router, now, lease_s, pools, seen_s)
        return [
            replace(
                old,
                router=router,
                lease=now + lease_s,
                seen=old.seen + _attempts.seen_more(old.state, old.router, router, seen_s),
            )
            for old in self._readable("attempt", rows, attempt_of)
        ]

    def record_digests(self, digests: Mapping[str, str]) -> None:
        """Keep the digests of what is to be launched, before it can be: by attempt, of those still intended."""
        if digests:
            with self._db.write() as db:
                db.many(
                    f"UPDATE attempts SET digest = ? WHERE id = ? AND state = '{INTENDED}'",
                    [(digest, attempt) for attempt, digest in digests.items()],
                )

    def mark_submitted(self, attempt: str, backend_id: str, now: float) -> None:
        """The backend has taken an attempt. `Conflict` where the ledger has ended it meanwhile: cancel it there."""
        with self._db.write() as db:
            _attempts.mark_submitted(db, attempt, backend_id, now)

    def observe(self, attempt: str, status: AttemptStatus, now: float) -> None:
        """What the backend shows of an attempt that is pending or running there. Writes nothing if nothing changed."""
        with self._db.write() as db:
            _attempts.observe(db, attempt, status, now)

    def end(self, attempt: str, how: AttemptEnd, now: float) -> bool:
        """End an attempt and give its job its next state, in one; False where it had ended so before.

        A job whose owner asked for its end becomes `cancelled` whatever `how.next` says, unless the attempt succeeded.
        The share of the job's work that checkpoints hold never falls.
        """
        with self._db.write() as db:
            return _attempts.end(db, attempt, how, now)

    def ask_stop(self, attempt: str, why: str, now: float) -> None:
        """Ask that an attempt be stopped: "cancel", "preempt", "move" or "budget"."""
        with self._db.write() as db:
            number = _attempts.ask_stop(db, attempt, why, now)
            if number is not None:
                _audit.append(db, self.actor, "stop", f"{attempt}: {why}", now, number)

    def expect(self, expected: Mapping[str, Estimate], now: float) -> int:
        """Tell routers how long attempts under way take by their steps, from start to end; how many still are."""
        with self._db.write() as db:
            return _attempts.expect(db, expected, now)

    def over_before(self, attempts: Sequence[str], when: float) -> list[str]:
        """Of these attempts those that ended before a moment, and whose jobs were over by then."""
        with self._db.read() as db:
            return _attempts.over_before(db, attempts, when)

    # the story

    def decisions(self, job_id: str, limit: int | None = None) -> list[DecisionRow]:
        """Decisions about a job, oldest first; the last `limit` of them."""
        rows = self._db.all(
            f"SELECT {DECISION} FROM decisions WHERE job_id = ? ORDER BY id DESC LIMIT ?",
            job_number(job_id),
            2**31 if limit is None else limit,
        )
        return [decision_of(row) for row in reversed(rows)]

    def events(self, job_id: str | None = None, after: int = 0, limit: int | None = None) -> list[Event]:
        """Events after one, oldest first."""
        only, values = ("", []) if job_id is None else (" AND job_id = ?", [job_number(job_id)])
        return [
            event_of(row)
            for row in self._db.all(
                f"SELECT {EVENT} FROM events WHERE id > ?{only} ORDER BY id LIMIT ?",
                after,
                *values,
                2**31 if limit is None else limit,
            )
        ]

    # the whole

    def check(self) -> list[str]:
        """What is inconsistent in the ledger, one line each; nothing, in a sound one."""
        from chipwise.route.ledger.check import check

        with self._db.patient(), self._db.read() as db:
            return check(db, self.uid)

    def damage(self) -> list[str]:
        """What the database itself finds broken in its files, one line each."""
        return self._db.damage()

    def migrated(self) -> str:
        """From which version it was brought to this one, when, and where the old one is; empty if it was not."""
        row = self._db.one("SELECT value FROM meta WHERE name = 'migrated'")
        return "" if row is None else str(row[0])

    def repair(self, now: float, dry_run: bool = False) -> list[str]:
        """Set aside what can't be read, and let rows follow from others where they contradict; what was done.

        All of it or nothing; with `dry_run` nothing.
        """
        from chipwise.route.ledger.repair import repair

        lines: list[str] = []
        try:
            with self._db.patient(), self._db.write() as db:
                lines, replaced = repair(db, now)
                if dry_run:
                    raise _Undone
                if lines:
                    _audit.append(db, self.actor, "repair", "; ".join(lines), now)
                _audit.append_replaced(db, self.actor, replaced, now)
        except _Undone:
            pass
        return lines


class _Undone(Exception):
    """A transaction that was only tried."""


def _ready(db: Database) -> str:
    """Make the tables where there are none, and bring those of an older version to this one; the ledger's own name."""
    if "meta" not in db.tables():
        with db.write():
            tables = db.tables()  # another process may have been first
            if not tables:
                create(db)
                letters = string.ascii_lowercase
                uid = secrets.choice(letters) + "".join(secrets.choice(letters + string.digits) for _ in range(9))
                db.many("INSERT INTO meta (name, value) VALUES (?, ?)", [("uid", uid), ("version", str(VERSION))])
            elif "meta" not in tables:
                raise LedgerError(db.where, "it holds tables of something else", "it was left as it is; name another")
    migrate(db)
    meta: dict[str, str] = dict(db.all("SELECT name, value FROM meta"))
    return str(meta["uid"])
