"""What a ledger tells of its use: sums, quotas, the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.route.access import Quotas, Usage
from chipwise.route.ledger import audit as _audit
from chipwise.route.ledger import usage as _usage
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.audit import AuditRow, Head, Verified
from chipwise.route.ledger.database import Database


class Accounting:
    """The part of a ledger that counts and vouches."""

    _db: Database

    def totals(self, owner: str | None = None) -> dict[str, dict[str, float]]:
        """Sums for `/metrics`: jobs and attempts by state, chips held by pool, dollars spent by pool; of all jobs, or
        those of an owner."""
        with self._db.read() as db:
            return _usage.totals(db, owner)

    def usage(self, quotas: Quotas, now: float, under_way: bool = True) -> dict[str, Usage]:
        """What users and teams with quotas have used this month, and hold now where `under_way` counts.

        By `user NAME` and `team NAME`.
        """
        with self._db.read() as db:
            return _usage.usage(db, quotas, now, under_way)

    def audit_entries(self, chain: str | None = None, job: int | None = None, limit: int = 100) -> list[AuditRow]:
        """The latest entries of the audit log, newest first."""
        return _audit.entries(self._db, chain, job, limit)

    def verify_audit(self, kept: Mapping[str, Head] | None = None) -> Verified:
        """The heads of the audit log's chains, and what is wrong with it; `kept`: heads of before, by chain."""
        with self._db.read() as db:
            return _audit.verify(db, kept)

    def note_command(self, actor: Actor, command: str, detail: str, now: float) -> None:
        """Write to the audit log what somebody did, or was refused."""
        with self._db.write() as db:
            _audit.append(db, actor, command, detail, now)
