"""Ledgers by their URL: a file of SQLite, PostgreSQL, or the service in front of either."""

from __future__ import annotations

import socket
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.ledger.database import SQLite
from chipwise.route.ledger.disks import shared
from chipwise.route.ledger.ledger import Ledger
from chipwise.route.ledger.remote import RemoteLedger, is_remote
from chipwise.route.ledger.salvage import salvage
from chipwise.route.ledger.view import LedgerView


def open_ledger(url: str = "", create: bool = True) -> Ledger:
    """The ledger at a URL: `postgresql://...`, `sqlite:///PATH`, a path; the user's own file where empty."""
    url = url or default_ledger()
    if is_remote(url):
        raise InputError("ledger", url, "the ledger itself: a path, sqlite:///PATH or postgresql://...")
    if url.startswith(("postgresql://", "postgres://")):
        from chipwise.route.ledger.postgres import PostgreSQL

        return Ledger(PostgreSQL(url))
    path = url.removeprefix("sqlite://") if url.startswith("sqlite:///") else url
    if "://" in path:
        raise InputError("ledger", url.split("://")[0] + "://", "a path, sqlite:///PATH or postgresql://...")
    file = Path(path).expanduser()
    ledger = Ledger(SQLite(file, create))
    try:
        ledger.check_host(socket.gethostname(), shared(file))
    except BaseException:
        ledger.close()
        raise
    return ledger


def salvage_ledger(url: str = "", dry_run: bool = False) -> list[str]:
    """Save what can be read of a ledger whose file is damaged; what was done, nothing where it is not.

    What PostgreSQL keeps is the server's to check and to save.
    """
    url = url or default_ledger()
    if "://" in url and not url.startswith("sqlite:///"):
        return []
    file = Path(url.removeprefix("sqlite://") if url.startswith("sqlite:///") else url).expanduser()
    db = SQLite(file, create=False)
    try:
        damage = db.damage()
    finally:
        db.close()
    if not damage:
        return []
    if dry_run:
        return [f"the file is damaged ({damage[0]}): what can be read of it would be saved to a new one"]
    kept, rows = salvage(file)
    counts = ", ".join(f"{rows.get(table, 0):,} {table}" for table in ("jobs", "attempts", "decisions", "events"))
    return [f"the file was damaged ({damage[0]}): {counts} were saved; the damaged file is kept as {kept}"]


def open_view(url: str = "", create: bool = True) -> LedgerView:
    """The ledger at a URL, or the service in front of one: `unix:///PATH`."""
    return RemoteLedger(url) if is_remote(url) else open_ledger(url, create)


def default_ledger() -> str:
    """The file of the user's own ledger, beside the folders of attempts."""
    from chipwise.io.paths import data_folder

    return str(data_folder() / "ledger.db")
