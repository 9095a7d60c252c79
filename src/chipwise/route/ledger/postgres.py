"""PostgreSQL as the ledger's database, for routers on several machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from chipwise.errors import MissingCompiler
from chipwise.route.ledger.database import BUSY_S, Database, Row
from chipwise.route.ledger.error import LedgerError, masked

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x63686970  # "chip": the advisory lock of this schema's writers; any number that others do not use will do
CONNECT_S = 10  # longer than a server on the other side of the world takes; shorter than a person's patience


class PostgreSQL(Database):
    """A ledger in PostgreSQL. Writers run one at a time, under an advisory lock that ends with their transaction."""

    identity = "BIGINT PRIMARY KEY"

    def __init__(self, url: str, busy_s: float = BUSY_S) -> None:
        super().__init__()
        self.where, self._url, self._busy_s = masked(url), url, busy_s
        self._link: psycopg.Connection[Row] | None = None
        self._inside = False  # a transaction: it must not go on over another connection
        with self._typed():
            self._connect()

    def _connect(self) -> psycopg.Connection[Row]:
        """The connection; a new one where the server has closed the old, but never inside a transaction."""
        if self._link is None or (self._link.closed and not self._inside):
            self._link = _psycopg().connect(
                self._url, autocommit=True, connect_timeout=CONNECT_S, application_name="chipwise"
            )
            self._link.execute(f"SET lock_timeout = {round(self._busy_s * 1000)}")
            self._link.execute("SET synchronous_commit = on")  # a commit returns once it is on the disk
        return self._link

    @contextmanager
    def _typed(self) -> Iterator[None]:
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            raise LedgerError(self.where, *_problem(error)) from None

    def _begin(self, sql: str) -> psycopg.Connection[Row]:
        try:
            self._connect().execute(sql)
        except _psycopg().OperationalError:
            if self._link is not None and not self._link.closed:
                raise
            self._connect().execute(sql)  # the server was started again since: nothing was under way, so once more
        self._inside = True
        return self._connect()

    def _begin_write(self) -> None:
        self._begin("BEGIN")
        try:
            self._connect().execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        except BaseException:
            self._rollback()
            raise

    def _begin_read(self) -> None:
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _commit(self) -> None:
        self._connect().execute("COMMIT")
        self._inside = False

    def _rollback(self) -> None:
        self._inside = False
        if self._link is not None and not self._link.closed:
            self._link.execute("ROLLBACK")

    def _execute(self, sql: str, values: Sequence[object]) -> list[Row]:
        done = self._connect().execute(_dialect(sql), values)
        return done.fetchall() if done.description else []

    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._connect().cursor() as cursor:
            cursor.executemany(_dialect(sql), rows)

    def tables(self) -> set[str]:
        """Names of the tables there are."""
        return {
            str(name) for (name,) in self.all("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        }

    def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            self._link.close()


@cache
def _dialect(sql: str) -> Any:
    return sql.replace("?", "%s")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingCompiler(
            "A ledger in PostgreSQL", "psycopg is not installed", "pip install 'chipwise[postgres]'"
        ) from None
    return psycopg


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
    if not state or state.startswith(("08", "57P")):
        return (
            f"the server does not answer ({text})",
            "what was committed is kept; whether the last step was, the "
            "ledger says once the server is back: try again then",
        )
    return f"{text} (SQLSTATE {state})", kept
