"""The ledger as the rest of chipwise sees it. Every method is one atomic transaction."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping, Sequence
from types import TracebackType

from chipwise.errors import InputError
from chipwise.route.backend import AttemptStatus
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger import attempts as _attempts
from chipwise.route.ledger import backend_dirs as _homes
from chipwise.route.ledger import jobs as _jobs
from chipwise.route.ledger.codec import storable
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.error import LedgerError
from chipwise.route.ledger.records import (
    AttemptEnd,
    AttemptRow,
    BackendRow,
    DecisionRow,
    Event,
    JobRow,
    NewJob,
    RouterRow,
)
from chipwise.route.ledger.rows import (
    ATTEMPT,
    JOB,
    Decoded,
    attempt_of,
    decision_of,
    event_of,
    job_number,
    text_of,
)
from chipwise.route.ledger.schema import SQL_OPEN, SQL_UNDER_WAY, TABLES, VERSION
from chipwise.route.option import Infeasible, Option


class Ledger:
    """Jobs, decisions, attempts and events, kept in one database that several routers may share."""

    def __init__(self, db: Database) -> None:
        self._db, self._decoded = db, Decoded()
        self.where = db.where
        self.uid = _ready(db)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._db.close()

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

    # jobs

    def submit(self, jobs: Sequence[NewJob], now: float) -> list[str]:
        """Write jobs, all or none; their ids. The same key with the same job again: the same id, nothing written."""
        with self._db.write() as db:
            return _jobs.submit(db, jobs, now)

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
        filters = {"state": state, "owner": owner, "name": name}
        conditions = {k: text_of(v) for k, v in filters.items() if v is not None}
        where = " AND ".join(f"{k} = ?" for k in conditions) or "1 = 1"
        rows = self._db.all(
            f"SELECT {JOB} FROM jobs WHERE {where} ORDER BY id DESC LIMIT ?",
            *conditions.values(),
            2**31 if limit is None else limit,
        )
        return [self._decoded.job(row) for row in rows]

    def open_jobs(self, changed_after: float | None = None) -> list[JobRow]:
        """Jobs that wait or have an attempt under way, oldest first.

        With `changed_after` (the latest `changed` a caller has seen): all jobs changed since, those now over included,
        so that a caller who keeps them can drop them. A change of `reason` alone counts as none.
        """
        if changed_after is None:
            rows = self._db.all(f"SELECT {JOB} FROM jobs WHERE state IN {SQL_OPEN} ORDER BY id")
        else:
            # sorted here: told to order by id, SQLite reads all jobs by that instead of the few by when they changed
            rows = self._db.all(f"SELECT {JOB} FROM jobs WHERE changed > ?", changed_after)
            rows = sorted(rows, key=lambda row: int(row[0]))
        return [self._decoded.job(row) for row in rows]

    def ask_cancel(self, job_id: str, now: float) -> str:
        """Cancel a job; its state after: `cancelled`, or `running` until its attempt has been stopped."""
        with self._db.write() as db:
            return _jobs.ask_cancel(db, job_id, now)

    def retry(self, job_id: str, now: float) -> None:
        """Let a job that failed or was cancelled wait again, with all its retries."""
        with self._db.write() as db:
            _jobs.retry(db, job_id, now)

    def change(self, what: str, job_ids: Sequence[str], now: float) -> None:
        """Cancel several jobs ("cancel"), or try them again ("retry"): all of them, or none."""
        step = {"cancel": _jobs.ask_cancel, "retry": _jobs.retry}[what]
        with self._db.write() as db:
            for job_id in job_ids:
                step(db, job_id, now)

    def fail(self, job_id: str, reason: str, now: float) -> None:
        """Give a pending job up, with the reason, until someone tries it again."""
        with self._db.write() as db:
            _jobs.fail(db, job_id, reason, now)

    def revise(self, job_id: str, options: Sequence[Option], infeasible: Sequence[Infeasible], now: float) -> None:
        """Replace what a pending job would take in each pool: pools or prices are others than at its submission."""
        with self._db.write() as db:
            _jobs.revise(db, job_id, options, infeasible, now)

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
        return [
            attempt_of(row)
            for row in self._db.all(
                f"SELECT {ATTEMPT} FROM attempts WHERE {' AND '.join(where)} ORDER BY job_id, number", *values
            )
        ]

    def decide(
        self,
        router: str,
        policy: str,
        decisions: Sequence[Decision],
        now: float,
        lease_s: float,
        capacity: Mapping[str, int],
    ) -> list[AttemptRow]:
        """Carry decisions out as far as they still hold; the attempts that are now intended.

        `capacity`: chips of each pool that attempts of this ledger may hold in all, those under way included; what they
        hold is counted here, inside the transaction, so that two routers never overfill a pool. A start is dropped
        without a word where its job no longer waits, must wait until later, has no such option, the pool is drained
        or not in `capacity`, or has too little of it. A `stop` asks that the job's attempt be stopped ("preempt"). A
        `wait` writes its reason to the job, and a decision when the pool waited for is another than before.
        """
        with self._db.write() as db:
            return _attempts.decide(db, self.uid, router, policy, decisions, now, lease_s, capacity)

    def take(self, router: str, now: float, lease_s: float, pools: Sequence[str] | None = None) -> list[AttemptRow]:
        """Attempts under way that this router looks after from now: its own, and those whose lease ran out.

        `pools`: those that it knows; attempts elsewhere are left to routers that can look after them.
        """
        with self._db.write() as db:
            return _attempts.take(db, router, now, lease_s, pools)

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
        """Ask that an attempt be stopped: "cancel", "preempt" or "move"."""
        with self._db.write() as db:
            _attempts.ask_stop(db, attempt, why, now)

    def over_before(self, attempts: Sequence[str], when: float) -> list[str]:
        """Of these attempts those that ended before a moment, and whose jobs were over by then."""
        with self._db.read() as db:
            return _attempts.over_before(db, attempts, when)

    # the story

    def decisions(self, job_id: str, limit: int | None = None) -> list[DecisionRow]:
        """Decisions about a job, oldest first; the last `limit` of them."""
        rows = self._db.all(
            "SELECT id, at, policy, router, decision FROM decisions WHERE job_id = ? ORDER BY id DESC LIMIT ?",
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
                f"SELECT id, at, job_id, attempt, kind, text, data FROM events WHERE id > ?{only} ORDER BY id LIMIT ?",
                after,
                *values,
                2**31 if limit is None else limit,
            )
        ]

    # routers, backends, pools

    def heartbeat(self, router: str, host: str, pid: int, policy: str, now: float, stopped: bool = False) -> None:
        """A router is alive, or has stopped in good order."""
        with self._db.write() as db:
            self._beat(db, router, host, pid, policy, now, stopped)

    @staticmethod
    def _beat(db: Database, router: str, host: str, pid: int, policy: str, now: float, stopped: bool = False) -> None:
        db.run(
            "INSERT INTO routers (id, host, pid, policy, started, seen, stopped) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, policy = excluded.policy, "
            "seen = excluded.seen, stopped = excluded.stopped",
            router,
            host,
            pid,
            policy,
            now,
            now,
            now if stopped else None,
        )

    def routers(self) -> list[RouterRow]:
        """Routers that have written to this ledger, the last seen first."""
        return [
            RouterRow(*row)
            for row in self._db.all(
                "SELECT id, host, pid, policy, started, seen, stopped FROM routers ORDER BY seen DESC, id"
            )
        ]

    def backend_health(self, name: str, ok: bool, error: str, next_try: float, now: float) -> BackendRow:
        """Note how a backend answered; how it has done so of late. Writes nothing while all stays well."""
        with self._db.write() as db:
            old = db.one("SELECT name, ok, since, failures, error, next_try FROM backends WHERE name = ?", name)
            since = now if old is None or bool(old[1]) != ok else old[2]
            failures = 0 if ok else 1 + (0 if old is None else old[3])
            new = (name, int(ok), since, failures, text_of(error), next_try)
            if new != old:
                db.run(
                    "INSERT INTO backends (name, ok, since, failures, error, next_try) VALUES (?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT (name) DO UPDATE SET ok = excluded.ok, since = excluded.since, "
                    "failures = excluded.failures, error = excluded.error, next_try = excluded.next_try",
                    *new,
                )
            return _backend(new)

    def backends(self) -> list[BackendRow]:
        """How backends have answered of late."""
        return [
            _backend(row)
            for row in self._db.all("SELECT name, ok, since, failures, error, next_try FROM backends ORDER BY name")
        ]

    def settle(
        self,
        folders: Mapping[str, tuple[str, str]],
        router: str,
        host: str,
        pid: int,
        policy: str,
        now: float,
        silent_s: float,
    ) -> None:
        """Note that a router begins, and where attempts lie: of each backend the mark and the path of its folder.

        All routers of a ledger must see the same folders, or one would take the other's attempts for lost and run
        them again. `InputError` where the mark is another than before, while a router lives that has the old one, or
        an attempt is under way.
        """
        with self._db.write() as db:
            _homes.settle(db, folders, now - silent_s)
            self._beat(db, router, host, pid, policy, now)

    def backend_folders(self) -> dict[str, str]:
        """Where attempts lie, by backend, as its routers see it; their folders are in `attempts` there."""
        with self._db.read() as db:
            return _homes.folders_of(db)

    def drain(self, pool: str, on: bool, reason: str, now: float) -> None:
        """Let no job start in a pool, or let them again. What runs there goes on."""
        with self._db.write() as db:
            db.run(
                "INSERT INTO pools (name, drained, reason, since) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET drained = excluded.drained, reason = excluded.reason, since = excluded.since",
                storable(pool),
                int(on),
                text_of(reason),
                now,
            )

    def drained(self) -> dict[str, str]:
        """Pools in which no job is to start, with the reason."""
        return dict(self._db.all("SELECT name, reason FROM pools WHERE drained = 1 ORDER BY name"))

    # the whole

    def totals(self) -> dict[str, dict[str, float]]:
        """Sums for `/metrics`: jobs and attempts by state, chips held by pool, dollars spent by pool."""
        with self._db.read() as db:

            def counted(sql: str) -> dict[str, float]:
                return dict(db.all(sql))

            return {
                "jobs": counted("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state"),
                "attempts": counted("SELECT state, count(*) FROM attempts GROUP BY state ORDER BY state"),
                "chips": counted(
                    f"SELECT pool, CAST(sum(chips) AS BIGINT) FROM attempts WHERE state IN {SQL_UNDER_WAY} "
                    "GROUP BY pool ORDER BY pool"
                ),
                "spent": counted("SELECT pool, sum(spent) FROM attempts GROUP BY pool ORDER BY pool"),
            }

    def check(self) -> list[str]:
        """What is inconsistent in the ledger, one line each; nothing, in a sound one."""
        from chipwise.route.ledger.check import check

        with self._db.read() as db:
            return check(db, self.uid)


def _backend(row: Sequence[object]) -> BackendRow:
    name, ok, *rest = row
    return BackendRow(str(name), bool(ok), *rest)  # type: ignore[arg-type]


def _ready(db: Database) -> str:
    """Make the tables where there are none; the ledger's own name."""
    if "meta" not in db.tables():
        with db.write():
            tables = db.tables()  # another process may have been first
            if not tables:
                for sql in TABLES:
                    db.run(sql.replace("{id}", db.identity))
                letters = string.ascii_lowercase
                uid = secrets.choice(letters) + "".join(secrets.choice(letters + string.digits) for _ in range(9))
                db.many("INSERT INTO meta (name, value) VALUES (?, ?)", [("uid", uid), ("version", str(VERSION))])
            elif "meta" not in tables:
                raise LedgerError(db.where, "it holds tables of something else", "it was left as it is; name another")
    meta: dict[str, str] = dict(db.all("SELECT name, value FROM meta"))
    if meta.get("version") != str(VERSION):
        raise LedgerError(
            db.where,
            f"it is of version {meta.get('version', 'unknown')}, this chipwise reads {VERSION}",
            "it was left as it is; use the chipwise that made it, or start a new ledger",
        )
    return str(meta["uid"])
