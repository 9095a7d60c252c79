"""What can be read of a damaged SQLite file, in a new file. The damaged one is kept."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from chipwise.route.ledger.error import LedgerError

_MOST_FAILURES = 200_000  # queries that meet a damaged page, of one table: beyond, the rest of it is out of reach
_FURTHEST = 10_000_000  # rows of a table, where its last one can't be read


def salvage(path: Path) -> tuple[str, dict[str, int]]:
    """Replace a damaged file by one with every row that can be read; where the damaged one is kept, rows by table."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.repair")
    kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(draft)) as new:
            copied = _copied(old, new)
            if not copied.get("jobs"):
                raise LedgerError(str(path), "no job can be read from it", "it was left as it is; restore a backup")
        _keep_beside(path, kept)
        draft.replace(path)
    except sqlite3.Error as error:
        raise LedgerError(
            str(path), f"its tables can't be found ({error})", "it was left as it is; restore a backup"
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return str(kept), copied


def _keep_beside(path: Path, kept: Path) -> None:
    """Move a file and the logs beside it: a log that stays would be taken for the new file's."""
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{kept}{suffix}")


def _copied(old: sqlite3.Connection, new: sqlite3.Connection) -> dict[str, int]:
    old.text_factory = lambda data: data.decode("utf-8", "replace")
    entries = old.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    rows: dict[str, int] = {}
    for kind, name, sql in entries:
        if kind == "table" and not name.startswith("sqlite_"):
            new.execute(sql)
            rows[name] = _copy_table(old, new, name)
    for kind, _, sql in entries:
        if kind != "table":
            with suppress(sqlite3.IntegrityError):  # two rows where the index wants one: `check` says which
                new.execute(sql)
    new.commit()
    return rows


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    columns = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
    places = ", ".join("?" * len(columns))
    count = 0
    for row in _rows(old, table, ", ".join(columns)):
        count += new.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})", row).rowcount
    return count


def _rows(db: sqlite3.Connection, table: str, columns: str) -> Iterator[Any]:
    """The rows of a table that can be read: ranges that meet a damaged page are halved until they don't."""
    try:
        (last,) = db.execute(f"SELECT max(rowid) FROM {table} NOT INDEXED").fetchone()
    except sqlite3.Error:
        last = _FURTHEST
    ranges, failures = [(1, last or 0)], 0
    while ranges and failures < _MOST_FAILURES:
        first, end = ranges.pop()
        if first > end:
            continue
        try:
            found = db.execute(
                f"SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (first, end)
            ).fetchall()
        except sqlite3.Error:
            failures += 1
            if first < end:
                middle = (first + end) // 2
                ranges += [(middle + 1, end), (first, middle)]
            continue
        yield from found
