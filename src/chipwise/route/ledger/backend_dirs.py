"""The folder of attempts of each backend, which every router of the ledger must see."""

from __future__ import annotations

import json
from collections.abc import Mapping

from chipwise.errors import InputError
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.schema import SQL_UNDER_WAY

_HOME = "home:"  # begins the names in `meta`


def settle(db: Database, folders: Mapping[str, tuple[str, str]], silent: float) -> None:
    """Keep the mark and the path of each backend's folder; refuse others while what lies in the old ones matters.

    `silent`: routers without a heartbeat since then count as dead.
    """
    for backend, (mark, path) in folders.items():
        name = _HOME + backend
        row = db.one("SELECT value FROM meta WHERE name = ?", name)
        before = json.loads(row[0]) if row is not None else None
        if before is not None and before["mark"] != mark:
            _movable(db, backend, before["path"], path, silent)
        if before != {"mark": mark, "path": path}:
            db.run(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                name,
                json.dumps({"mark": mark, "path": path}),
            )


def folders_of(db: Database) -> dict[str, str]:
    """The folder of each backend, as a router last reported it."""
    rows = db.all("SELECT name, value FROM meta")
    return {name.removeprefix(_HOME): json.loads(value)["path"] for name, value in rows if name.startswith(_HOME)}


def _movable(db: Database, backend: str, before: str, path: str, silent: float) -> None:
    alive = db.one("SELECT id FROM routers WHERE stopped IS NULL AND seen > ? ORDER BY seen DESC LIMIT 1", silent)
    under_way = db.one(f"SELECT count(*) FROM attempts WHERE state IN {SQL_UNDER_WAY}")
    assert under_way is not None
    why = f"router {alive[0]} works with it" if alive else f"{under_way[0]} attempts are under way in it"
    if alive or under_way[0]:
        raise InputError(
            "folder", path, f"the folder in which this ledger keeps what runs on {backend}, {before}: {why}"
        )
