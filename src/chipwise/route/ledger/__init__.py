"""The ledger: jobs, decisions, attempts and events, in SQLite or PostgreSQL, or a service in front of it.

What it exports is loaded at its first use: the store of telemetry needs its databases, and none of its jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.lazy import lazily

if TYPE_CHECKING:
    from chipwise.route.ledger.error import BadRow, Conflict, LedgerError, masked
    from chipwise.route.ledger.ledger import Ledger
    from chipwise.route.ledger.opening import default_ledger, open_ledger, open_view, salvage_ledger
    from chipwise.route.ledger.records import NewJob
    from chipwise.route.ledger.remote import RemoteLedger, is_remote
    from chipwise.route.ledger.view import LedgerView

__all__ = [
    "BadRow",
    "Conflict",
    "Ledger",
    "LedgerError",
    "LedgerView",
    "NewJob",
    "RemoteLedger",
    "default_ledger",
    "is_remote",
    "masked",
    "open_ledger",
    "open_view",
    "salvage_ledger",
]
_HOMES = {
    **dict.fromkeys(("BadRow", "Conflict", "LedgerError", "masked"), "error"),
    **dict.fromkeys(("default_ledger", "open_ledger", "open_view", "salvage_ledger"), "opening"),
    **dict.fromkeys(("RemoteLedger", "is_remote"), "remote"),
    "Ledger": "ledger",
    "LedgerView": "view",
    "NewJob": "records",
}
__getattr__ = lazily(__name__, _HOMES)
