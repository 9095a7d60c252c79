"""Ledgers by their URL: a file of SQLite, or PostgreSQL."""

from __future__ import annotations

import socket
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.ledger.database import SQLite
from chipwise.route.ledger.disks import shared
from chipwise.route.ledger.ledger import Ledger


def open_ledger(url: str = "", create: bool = True) -> Ledger:
    """The ledger at a URL: `postgresql://...`, `sqlite:///PATH`, a path; the user's own file where empty."""
    url = url or default_ledger()
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


def default_ledger() -> str:
    """The file of the user's own ledger, beside the folders of attempts."""
    from chipwise.io.paths import data_folder

    return str(data_folder() / "ledger.db")
