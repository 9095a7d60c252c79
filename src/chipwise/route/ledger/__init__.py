"""The ledger: jobs, decisions, attempts and events, in SQLite or PostgreSQL."""

from chipwise.route.ledger.error import Conflict, LedgerError, masked
from chipwise.route.ledger.ledger import Ledger
from chipwise.route.ledger.opening import default_ledger, open_ledger
from chipwise.route.ledger.records import NewJob

__all__ = ["Conflict", "Ledger", "LedgerError", "NewJob", "default_ledger", "masked", "open_ledger"]
