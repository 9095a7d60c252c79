"""PostgreSQL as the ledger's database, for routers on several machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from chipwise.route.ledger.connection import PATIENT_S, allow, connect, psycopg_module, weak_tls
from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.error import LedgerError, masked

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x63686970  # "chip": the advisory lock of this schema's writers; any number that others do not use will do
FEW = 4  # rows of one statement that are sent with others: more go through the library's pipeline
OFTEN = 5  # times that a statement is sent in full before the server is asked to keep its plan
MOST_KEPT = 100  # plans of a connection; statements that differ in how many ids they name are many
BUSY_S = 20.0  # a writer waits this long for another; with what is added for silence it stays within a lease


# What makes a commit wait for the disk, outside the writers' lock: the log is one, and is kept in its order.
_FLUSH = "SELECT pg_logical_emit_message(true, 'chipwise', '')"
_MAY_FLUSH = "SELECT has_function_privilege('pg_logical_emit_message(boolean, text, text)', 'execute')"


_HASHES = 110_000  # the first version with sha256()


class PostgreSQL(Database):
    """A ledger in PostgreSQL. Writers run one at a time, under an advisory lock that ends with their transaction.

    Commits are grouped: a transaction ends in the server's memory, where the next writer finds it, and its caller is
    told once the log is on the disk up to there, with whatever others have written meanwhile. Nothing that a caller was
    told is lost, nor anything that rests on it: what comes later is later in the log. What another has read in between
    a crash may take back; whoever keeps what was read looks at `epoch`.

    Statements that give no rows are sent with the next query of their transaction, or with its end: the writers' lock
    is held for as many messages as there are questions, and each message costs more than what it says. The server
    keeps the plans of those that are sent often: to plan them costs it more than to carry them out.
    """

    _grouped = True  # where the server lets us; else a commit waits for the disk with the lock

    identity = "BIGINT PRIMARY KEY"

    def __init__(self, url: str, busy_s: float = BUSY_S, noun: str = "ledger") -> None:
        """`noun` is what its users call it in messages."""
        super().__init__()
        self.where, self._url, self._busy_s, self._noun = masked(url), url, busy_s, noun
        self._link: psycopg.Connection[Row] | None = None
        self._inside = False  # a transaction: it must not go on over another connection
        self._writing = False
        self._opening = ""  # of a transaction for writing, until its first message
        self._unsent: list[str] = []  # statements of the transaction
        self._uses: dict[str, int] = {}  # of statements, in transactions for writing
        self._plans: dict[str, str] = {}  # names of those whose plan the server keeps; empty: it can't
        with self._typed():
            self.warning = weak_tls(url)
            self._connect()

    def _connect(self) -> psycopg.Connection[Row]:
        """The connection; a new one where the server has closed the old, but never inside a transaction."""
        if self._link is None or (self._link.closed and not self._inside):
            self._link = connect(self._url, self._busy_s, self.hurried)
            self._flushes = self._grouped and bool(self._link.execute(_MAY_FLUSH).fetchone()[0])  # type: ignore[index]
            self.makes_hashes = self._link.info.server_version >= _HASHES
            self._cursor = self._link.cursor()
            self._uses, self._plans = {}, {}
            self.epoch += 1
        return self._link

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Let statements take minutes: those that go through the whole ledger."""
        with self._lock, self._typed():
            link = self._connect()
            usual = allow(link, PATIENT_S)
        try:
            yield
        finally:
            if not link.closed:
                with self._typed():
                    allow(link, usual)

    @contextmanager
    def _typed(self) -> Iterator[None]:
        psycopg = psycopg_module()
        try:
            yield
        except psycopg.Error as error:
            raise LedgerError(
                self.where, *_problem(error), temporary=_passing(error), values=_of_values(error), noun=self._noun
            ) from None

    def at_once(self, statements: Sequence[tuple[str, Sequence[object]]]) -> list[Row]:
        """All of the transaction in one message: the writers' lock waits for no answer of ours.

        A message that may have been carried out is never sent again: a server that has closed the connection since is
        noticed before, one that goes away meanwhile is told of as at the end of any transaction.
        """
        with self._lock, self._typed():
            self._begin_write()
            bound = [self._bound(sql, values) for sql, values in statements]
            end = ["COMMIT", _FLUSH] if self._flushes else ["COMMIT"]
            opening, self._opening = self._opening, ""
            try:
                return self._sent("; ".join([opening, *bound, *end]), len(end))
            except BaseException:
                with suppress(Exception):  # the first error is the one to tell
                    self._rollback()
                raise
            finally:
                self._writing = False

    def _begin(self, sql: str) -> list[Row]:
        try:
            rows = self._sent(sql)
        except psycopg_module().OperationalError:
            if not self._was_closed():
                raise
            rows = self._sent(sql)  # the server was started again since: nothing was under way
        self._inside = True
        return rows

    def _was_closed(self) -> bool:
        """Whether the server has closed the connection; of a silence people are told."""
        return self._link is None or (self._link.closed and not getattr(self._link, "silent", False))

    def _sent(self, message: str, after: int = 0) -> list[Row]:
        """Send statements that hold their values; the rows of the last, or of one that so many others come `after`."""
        link: Any = self._connect()
        return link.exchange(message, after)  # type: ignore[no-any-return]

    def _begin_write(self) -> None:
        self._connect()
        self._link.notice_end()  # type: ignore[union-attr]
        self._connect()
        self._keep_plans()
        late = "SET LOCAL synchronous_commit = off; " if self._flushes else ""
        self._writing, self._unsent = True, []
        self._opening = f"BEGIN; {late}SELECT pg_advisory_xact_lock({_LOCK})"

    def _keep_plans(self) -> None:
        """Ask the server to keep the plans of what is sent often; between transactions, none of which it can spoil."""
        due = [sql for sql, uses in self._uses.items() if uses >= OFTEN and sql not in self._plans]
        for sql in due[: MOST_KEPT - len(self._plans)]:
            first, *others = sql.split("?")
            name = f"chipwise_{len(self._plans)}"
            text = first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))
            try:
                self._sent(f"PREPARE {name} AS {text}")
                self._plans[sql] = name
            except psycopg_module().ProgrammingError:  # types that it can't tell without the values
                self._plans[sql] = ""
            except psycopg_module().OperationalError:
                if not self._was_closed():
                    raise
                return  # the next connection has none of its own yet

    def _begin_read(self) -> None:
        self._writing = False
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _commit(self) -> None:
        if not self._writing:
            self._sent("COMMIT")
        else:
            if self._opening:  # apart: it may be sent again over another connection, the rest may not
                self._message()
            self._unsent += ["COMMIT", _FLUSH] if self._flushes else ["COMMIT"]
            self._message()
        self._inside = self._writing = False

    def _rollback(self) -> None:
        self._inside = self._writing = False
        self._opening, self._unsent = "", []
        if self._link is not None and not self._link.closed:
            self._link.execute("ROLLBACK")

    def _execute(self, sql: str, values: Sequence[object]) -> list[Row]:
        if self._writing:
            return self._message(self._bound(sql, values))
        self._connect()
        done = self._cursor.execute(_dialect(sql), values or None)
        return done.fetchall() if done.description else []

    def _write(self, sql: str, values: Sequence[object]) -> None:
        if self._writing:
            self._unsent.append(self._bound(sql, values))
        else:
            self._execute(sql, values)

    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        if self._writing and len(rows) <= FEW:
            self._unsent += [self._bound(sql, values) for values in rows]
            return
        if self._writing:
            self._message()
        self._connect()
        self._cursor.executemany(_dialect(sql), rows)

    def _bound(self, sql: str, values: Sequence[object]) -> str:
        """A statement with its values in it."""
        self._connect()
        if not values:
            return sql
        if sql in self._uses or len(self._uses) < MOST_KEPT:
            self._uses[sql] = self._uses.get(sql, 0) + 1
        link: Any = self._link
        texts, plan = link.literals(values), self._plans.get(sql)
        if plan:
            return f"EXECUTE {plan} ({','.join(texts)})"
        first, *others = sql.split("?")
        return first + "".join([text + part for text, part in zip(texts, others, strict=True)])

    def _message(self, question: str = "") -> list[Row]:
        """Send what is to be sent, then a query; its rows."""
        statements = [*self._unsent, *([question] if question else [])]
        self._unsent = []
        if self._opening:  # before the first answer nothing is under way
            opening, self._opening = self._opening, ""
            return self._begin("; ".join([opening, *statements]))
        return self._sent("; ".join(statements)) if statements else []

    def tables(self) -> set[str]:
        """Names of the tables there are."""
        return {
            str(name) for (name,) in self.all("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        }

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns."""
        rows = self.all(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND table_name = ?",
            table,
        )
        return {str(name) for (name,) in rows}

    def indexes(self) -> list[str]:
        """Names of the indexes that were made by name."""
        rows = self.all(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE c.relnamespace = current_schema()::regnamespace "
            "AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid)"
        )
        return [str(name) for (name,) in rows]

    def append_only(self, table: str) -> Sequence[str]:
        """A trigger that refuses."""
        return [
            f"CREATE OR REPLACE FUNCTION {table}_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"RAISE EXCEPTION 'rows of {table} are never changed or removed'; END $$",
            f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_kept()",
        ]

    def damage(self) -> list[str]:
        """Nothing: the server checks its pages itself, as it reads them."""
        return []

    def others_can_replace(self) -> str:
        """Nothing: who may write is the server's to say."""
        return ""

    def backup(self, suffix: str) -> str:
        """None: the server's own backups are what there is."""
        return ""

    def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            self._link.close()


@cache
def _dialect(sql: str) -> Any:
    return sql.replace("?", "%s")


def _passing(error: Any) -> bool:
    """Whether the same step may succeed later: the server is away, silent, full, locked or late."""
    state = error.sqlstate or ""
    return not state or state.startswith(("08", "53", "57", "40")) or state in ("55P03", "25P03")


def _of_values(error: Any) -> bool:
    """Whether a value is what no column holds: data exceptions, class 22 of SQLSTATE."""
    return (error.sqlstate or "").startswith("22")


def _problem(error: Any) -> tuple[str, str]:
    """An error of PostgreSQL's: the problem, then what holds and what to do."""
    text = " ".join(str(error).split())
    state = error.sqlstate or ""
    kept = "nothing was written and nothing is lost"
    if state == "55P03":
        return "another process has held it locked for too long", f"{kept}; try again, or end the process that holds it"
    if state.startswith("53"):
        return f"the server has no room left ({text})", f"{kept}; make room and try again"
    if state.startswith(("28", "3D")):
        return text, "see the user, the password and the database in the URL"
    if not state and re.search(r"\bSSL\b|certificate", text):
        return (
            f"its server is not who it should be, or does not speak TLS ({text})",
            "see the host, sslrootcert and sslmode in the URL; verify-full is the default off this machine",
        )
    if state in ("57014", "25P03"):
        return f"the server gave up a step that took too long ({text})", f"{kept}; try again"
    if not state or state.startswith(("08", "57P")):
        return (
            f"the server does not answer ({text})",
            "what was committed is kept; whether the last step was, it says once the server is back: try again then",
        )
    return f"{text} (SQLSTATE {state})", kept
