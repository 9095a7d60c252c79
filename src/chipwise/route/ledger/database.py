"""What the ledger needs of a database, and SQLite as one: whole transactions, one writer at a time, typed errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from chipwise.io.owner import others_can_replace
from chipwise.route.ledger.error import LedgerError

BUSY_S = 30.0  # a writer waits this long for another: a thousand submissions in one transaction take about 0.1 s
Row = tuple[Any, ...]


class Database(ABC):
    """One connection, used by one thread at a time. All that is written in a transaction is kept, or none of it."""

    where: str  # for messages; passwords masked
    identity: str  # the column type of a whole number that is the primary key
    epoch = 0  # another after each new connection: what was read over the last may have been taken back by a crash
    warning = ""  # about the way to it, in one line

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.told_to_stop: Callable[[], bool] = lambda: False  # whose answer cuts waits short

    def hurried(self) -> bool:
        """Whether waits are to be short: the process has been told to stop."""
        return self.told_to_stop()

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
        """Execute a statement; inside a transaction its error may come with the next query or the end."""
        with self._typed():
            self._write(sql, values)

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute a statement once a row."""
        if rows:
            with self._typed():
                self._execute_many(sql, rows)

    makes_hashes = False  # sha256() in SQL, and `at_once` in one message

    def at_once(self, statements: Sequence[tuple[str, Sequence[object]]]) -> list[Row]:
        """A transaction for writing, all of which is known beforehand; the rows that its last statement gives."""
        with self.write():
            for sql, values in statements[:-1]:
                self.run(sql, *values)
            sql, values = statements[-1]
            return self.all(sql, *values)

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

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Let statements take minutes: those that go through the whole ledger."""
        yield

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

    def _write(self, sql: str, values: Sequence[object]) -> None:
        """Execute a statement that gives no rows."""
        self._execute(sql, values)

    @abstractmethod
    def _execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None: ...

    @abstractmethod
    def tables(self) -> set[str]:
        """Names of the tables there are."""

    @abstractmethod
    def columns(self, table: str) -> set[str]:
        """Names of a table's columns."""

    @abstractmethod
    def indexes(self) -> list[str]:
        """Names of the indexes that were made by name, those of keys left out."""

    @abstractmethod
    def append_only(self, table: str) -> Sequence[str]:
        """Statements after which rows of a table can be added, and neither changed nor removed."""

    @abstractmethod
    def damage(self) -> list[str]:
        """What the database itself finds broken in its files, one line each."""

    @abstractmethod
    def others_can_replace(self) -> str:
        """Why others could change the ledger without this database's word, in words; empty where they could not."""

    @abstractmethod
    def backup(self, suffix: str) -> str:
        """Copy the whole ledger beside it; where to. Empty where the server's own backups are what there is."""

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

    def __init__(self, path: Path, create: bool, busy_s: float = BUSY_S, noun: str = "ledger") -> None:
        """`noun` is what its users call it in messages."""
        super().__init__()
        self.where, self._noun = str(path), noun
        with self._typed():
            if create:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                _create_private(path)
            elif not path.exists():
                raise LedgerError(
                    self.where,
                    "there is none",
                    "`chipwise jobs submit` or `chipwise router run` makes one; CHIPWISE_LEDGER names another",
                    missing=True,
                )
            if not path.is_file():
                raise LedgerError(
                    self.where,
                    "it is a folder, a pipe or a device",
                    "name a file, or one that is to be made",
                    noun=noun,
                )
            self._link = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
            try:
                mode = self._logged(busy_s)
                if mode != "wal":
                    raise LedgerError(
                        self.where,
                        f"its file system has no write-ahead log (SQLite stays with {mode})",
                        "name a file on a disk of this machine, or use PostgreSQL",
                        noun=noun,
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
            raise LedgerError(self.where, *_problem(error), temporary=_passing(error), noun=self._noun) from None

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

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns."""
        return {str(name) for (name,) in self.all("SELECT name FROM pragma_table_info(?)", table)}

    def indexes(self) -> list[str]:
        """Names of the indexes that were made by name."""
        return [
            str(name) for (name,) in self.all("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        ]

    def append_only(self, table: str) -> Sequence[str]:
        """Triggers that refuse."""
        return [  # a table that was renamed keeps its own, under these names
            *(f"DROP TRIGGER IF EXISTS {table}_no_{step}" for step in ("update", "delete", "replace")),
            *(
                f"CREATE TRIGGER {table}_no_{step} BEFORE {step} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed or removed'); END"
                for step in ("update", "delete")
            ),
            # INSERT OR REPLACE removes a row without a word to the triggers above
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE chain = NEW.chain AND number = NEW.number) "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed or removed'); END",
        ]

    def damage(self) -> list[str]:
        """What SQLite's own check finds: pages, order of rows, values of columns; not whether indexes match."""
        try:
            lines = [str(line) for (line,) in self.all("PRAGMA quick_check(20)")]
        except LedgerError as error:
            return [str(error)]
        return [] if lines == ["ok"] else lines

    def others_can_replace(self) -> str:
        """By the owner and the mode of the file, and of the folders above it."""
        return others_can_replace(Path(self.where))

    def backup(self, suffix: str) -> str:
        """Copy the file, as one transaction sees it."""
        path = Path(self.where + suffix)
        with self._typed():
            path.unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._link.execute("VACUUM INTO ?", (str(path),))
        return str(path)

    def close(self) -> None:
        """End the connection."""
        self._link.close()


def _create_private(path: Path) -> None:
    """Make a ledger's file where there is none: jobs have environments, so it and the log files beside it are its
    owner's alone.

    A file that is there is not opened: to close it again would drop every lock that this process has on it (POSIX, as
    fcntl(2) says), and with them those of the process's other connections. Somebody else who then closes theirs takes
    them for gone and removes the log under them (sqlite.org/howtocorrupt.html, 2.2).
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        path.stat()  # a link to nowhere is an error: SQLite would make its target, for all to read


_KEPT = "nothing was written and nothing is lost"


def _passing(error: Exception) -> bool:
    """Whether the same step may succeed later: others let go of locks, and people free space on disks."""
    name = getattr(error, "sqlite_errorname", "") or ""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return full or name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR"))


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
            f"it is damaged or no database ({text})",
            "it was left as it is; restore a copy, or rescue its rows with `sqlite3 FILE .recover`",
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")) or isinstance(
        error, OSError
    ):
        return (
            f"it can't be opened for writing ({text})",
            f"{_KEPT}; make the file and its folder writable, or name another file",
        )
    if name.startswith("SQLITE_IOERR"):
        return f"the disk failed or is full ({name}: {text})", (
            "what was committed is kept; look at the disk, then try again"
        )
    return f"{text} ({name or type(error).__name__})", f"{_KEPT}; see the message"
