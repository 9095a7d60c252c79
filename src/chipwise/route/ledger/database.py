"""What the ledger needs of a database, and SQLite as one: whole transactions, one writer at a time, typed errors."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from chipwise.route.ledger.error import LedgerError

BUSY_S = 30.0  # a writer waits this long for another: a thousand submissions in one transaction take about 0.1 s
Row = tuple[Any, ...]


class Database(ABC):
    """One connection, used by one thread at a time. All that is written in a transaction is kept, or none of it."""

    where: str  # for messages; passwords masked
    identity: str  # the column type of a whole number that is the primary key

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def write(self) -> Iterator[Database]:
        """A transaction that no other writer, of this process or any other, runs beside."""
        with self._transaction(self._begin_write):
            yield self

    @contextmanager
    def read(self) -> Iterator[Database]:
        """A transaction that sees the ledger as it is at one moment."""
        with self._transaction(self._begin_read):
            yield self

    def all(self, sql: str, *values: object) -> list[Row]:
        """The rows of a query."""
        with self._lock, self._typed():
            return self._execute(sql, values)

    def one(self, sql: str, *values: object) -> Row | None:
        """The first row of a query."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def run(self, sql: str, *values: object) -> None:
        """Execute a statement."""
        with self._typed():
            self._execute(sql, values)

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute a statement once a row."""
        if rows:
            with self._typed():
                self._execute_many(sql, rows)

    @contextmanager
    def _transaction(self, begin: Any) -> Iterator[None]:
        with self._lock:
            with self._typed():
                begin()
            try:
                yield
            except BaseException:
                with suppress(Exception):  # the first error is the one to tell; an open transaction dies with its link
                    self._rollback()
                raise
            try:
                with self._typed():
                    self._commit()
            except BaseException:
                with suppress(Exception):
                    self._rollback()
                raise

    @abstractmethod
    def _typed(self) -> Any:
        """A context in which the database's own errors become ours."""

    @abstractmethod
    def _begin_write(self) -> None: ...

    @abstractmethod
    def _begin_read(self) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _rollback(self) -> None: ...

    @abstractmethod
    def _execute(self, sql: str, values: Sequence[object]) -> list[Row]: ...

    @abstractmethod
    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None: ...

    @abstractmethod
    def tables(self) -> set[str]:
        """Names of the tables there are."""

    @abstractmethod
    def close(self) -> None:
        """End the connection. Nothing is lost: what was written is committed."""


class SQLite(Database):
    """A ledger in one file of this machine.

    Write-ahead log, so that readers never wait for the writer. ``synchronous = FULL``: a commit returns once it is on
    the disk. With NORMAL the last commits before a power cut may be gone although their callers were told otherwise,
    and a job that a user was told is submitted would be lost; the price is one fsync a commit, and jobs may be
    submitted many a commit.
    """

    identity = "INTEGER PRIMARY KEY"

    def __init__(self, path: Path, create: bool, busy_s: float = BUSY_S) -> None:
        super().__init__()
        self.where = str(path)
        with self._typed():
            if create:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                # jobs have environments: their file is their owner's alone, and so are the log files SQLite adds
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            elif not path.exists():
                raise LedgerError(
                    self.where,
                    "there is none",
                    "`chipwise jobs submit` or `chipwise router run` makes one; CHIPWISE_LEDGER names another",
                    missing=True,
                )
            self._link = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
            try:
                mode = self._logged(busy_s)
                if mode != "wal":
                    raise LedgerError(
                        self.where,
                        f"its file system has no write-ahead log (SQLite stays with {mode})",
                        "name a file on a disk of this machine, or use PostgreSQL",
                    )
                for pragma in ("synchronous = FULL", "foreign_keys = ON"):
                    self._link.execute(f"PRAGMA {pragma}")
            except BaseException:
                self._link.close()
                raise

    def _logged(self, busy_s: float) -> str:
        """Ask for the write-ahead log; the mode it has then. SQLite itself does not wait for others that make it."""
        until = time.monotonic() + busy_s
        while True:
            try:
                (mode,) = self._link.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if not (error.sqlite_errorname or "").startswith("SQLITE_BUSY") or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return str(mode)

    @contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(self.where, *_problem(error)) from None

    def _begin_write(self) -> None:
        self._link.execute("BEGIN IMMEDIATE")

    def _begin_read(self) -> None:
        self._link.execute("BEGIN")

    def _commit(self) -> None:
        self._link.execute("COMMIT")

    def _rollback(self) -> None:
        if self._link.in_transaction:
            self._link.execute("ROLLBACK")

    def _execute(self, sql: str, values: Sequence[object]) -> list[Row]:
        return self._link.execute(sql, values).fetchall()

    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._link.executemany(sql, rows)

    def tables(self) -> set[str]:
        """Names of the tables there are."""
        return {str(name) for (name,) in self.all("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def close(self) -> None:
        """End the connection."""
        self._link.close()


_KEPT = "nothing was written and nothing is lost"


def _problem(error: Exception) -> tuple[str, str]:
    """An error of SQLite's or the system's: the problem, then what holds and what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    text = getattr(error, "strerror", None) or str(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            "another process has held it locked for too long",
            f"{_KEPT}; try again, or end the process that holds it",
        )
    if name.startswith("SQLITE_FULL") or "No space left" in text or "File too large" in text:
        return "the disk is full", f"{_KEPT}; make room and try again"
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return (
            f"it is damaged or no ledger ({text})",
            "it was left as it is; restore a copy, or rescue its rows with `sqlite3 FILE .recover`",
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")) or isinstance(
        error, OSError
    ):
        return (
            f"it can't be opened for writing ({text})",
            f"{_KEPT}; make the file and its folder writable, or name another ledger",
        )
    if name.startswith("SQLITE_IOERR"):
        return f"the disk failed or is full ({name}: {text})", (
            "what was committed is kept; look at the disk, then try again"
        )
    return f"{text} ({name or type(error).__name__})", f"{_KEPT}; see the message"
