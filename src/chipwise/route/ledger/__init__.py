"""The ledger: jobs, decisions, attempts and events, in SQLite or PostgreSQL, or a service in front of it."""

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
