"""Migrations: a ledger of an older version becomes one of this version, in one transaction.

The old tables are renamed, today's are made, and every row is copied with what its version wrote otherwise. So a
migrated ledger has the very tables of a new one, and a migration that is cut short has changed nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from chipwise.route.ledger import audit
from chipwise.route.ledger.actor import os_actor
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.error import LedgerError
from chipwise.route.ledger.liveness import SILENT_S
from chipwise.route.ledger.schema import APPEND_ONLY, TABLES, VERSION

_OLD = "old_"  # begins the names of the tables that are copied from
# in the order in which rows may be written: what is referred to comes first
_ORDER = (
    "meta",
    "jobs",
    "attempts",
    "decisions",
    "events",
    "routers",
    "backends",
    "pools",
    "nodes",
    "quarantine",
    "audit",
)


@dataclass(frozen=True, slots=True)
class _Version:
    """How rows of a version are read as rows of today."""

    tables: Mapping[str, str] = field(default_factory=dict)  # today's name -> the name then, where it was another
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # table -> column -> an expression over its


def _renamed(column: str, names: Mapping[str, str]) -> str:
    cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in names.items())
    return f"CASE {column} {cases} ELSE {column} END"


_JOB_1 = {"waiting": "pending", "active": "running", "done": "succeeded", "parked": "failed"}
_EVENT_1 = {**_JOB_1, "handed over": "submitted", "estimated anew": "estimated again"}
_VERSIONS: Mapping[int, _Version] = {
    1: _Version(
        {"backends": "engines"},
        {
            "jobs": {"state": _renamed("state", _JOB_1), "infeasible": "unable"},
            "attempts": {"state": _renamed("state", {"done": "succeeded"}), "backend_id": "engine_id"},
            "events": {
                "kind": _renamed("kind", _EVENT_1),
                "text": "CASE WHEN kind = 'ended' AND (text = 'done' OR substr(text, 1, 6) = 'done: ') "
                "THEN 'succeeded' || substr(text, 5) ELSE text END",
                "data": "CASE WHEN kind = 'ended' "
                """THEN replace(data, '"state":"done"', '"state":"succeeded"') ELSE data END""",
            },
        },
    ),
    2: _Version(),
    3: _Version(),
}


def create(db: Database) -> None:
    """Make today's tables, empty."""
    for sql in TABLES:
        db.run(sql.replace("{id}", db.identity))
    for table in APPEND_ONLY:
        for sql in db.append_only(table):
            db.run(sql)


def migrate(db: Database) -> None:
    """Bring a ledger of an older version to this one; do nothing to one of this version. Refuse all others."""
    version = _version(db)
    if version == VERSION:
        return
    if version is None or version not in _VERSIONS:
        known = ", ".join(map(str, (*_VERSIONS, VERSION)))
        raise LedgerError(
            db.where,
            f"it is of version {'unknown' if version is None else version}, this chipwise reads {known}",
            "it was left as it is; use the chipwise that made it, or start a new ledger",
        )
    _check_idle(db, version)
    copy = db.backup(f".version-{version}")
    with db.patient(), db.write():
        if _version(db) == VERSION:  # another process was first
            return
        _check_idle(db, version)
        _copy(db, _VERSIONS[version])
        now = time.time()
        kept = f"; the old one is kept as {copy}" if copy else ""
        note = f"from version {version} on {datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC{kept}"
        db.run("UPDATE meta SET value = ? WHERE name = 'version'", str(VERSION))
        audit.append(db, os_actor(), "migrate", f"version {version} to {VERSION}", now)
        db.run(
            "INSERT INTO meta (name, value) VALUES ('migrated', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            note,
        )


def _version(db: Database) -> int | None:
    row = db.one("SELECT value FROM meta WHERE name = 'version'")
    return int(row[0]) if row is not None and row[0].isascii() and row[0].isdigit() else None


def _check_idle(db: Database, version: int) -> None:
    """Refuse while a router of the old version works: it could not read what it would find."""
    alive = db.one(
        "SELECT id FROM routers WHERE stopped IS NULL AND seen > ? ORDER BY seen DESC LIMIT 1", time.time() - SILENT_S
    )
    if alive is not None:
        raise LedgerError(
            db.where,
            f"it is of version {version}, and router {alive[0]} of that version works with it",
            f"it was left as it is; stop that router (one that was killed counts as alive for {SILENT_S:.0f} s), "
            "and try again",
        )


def _copy(db: Database, old: _Version) -> None:
    before = db.tables()
    then = {table: old.tables.get(table, table) for table in _ORDER}
    then = {table: name if name in before else table for table, name in then.items()}  # renamed within a version
    for name in db.indexes():
        db.run(f"DROP INDEX {name}")
    moved = {table: name for table, name in then.items() if name in before}
    for name in moved.values():
        db.run(f"ALTER TABLE {name} RENAME TO {_OLD}{name}")
    create(db)
    for table, name in moved.items():
        had = db.columns(_OLD + name)
        changed = {
            column: expression
            for column, expression in old.values.get(table, {}).items()
            if " " in expression or expression in had
        }
        columns = sorted(db.columns(table) & (had | changed.keys()))
        source = ", ".join(changed.get(column, column) for column in columns)
        db.run(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {source} FROM {_OLD}{name}")
    for name in reversed(moved.values()):
        db.run(f"DROP TABLE {_OLD}{name}")
