"""The audit log as the verbs show it: its latest entries, and whether it is as it was written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.io.files import read_text
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import moment, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.audit import DECIDED, SUBMITTED, AuditRow, Head
from chipwise.route.ledger.rows import job_number

DETAIL = 80  # characters of a detail in a table
MOST_BYTES = 10_000_000  # of a file of heads


def _shown(row: AuditRow) -> str:
    """A detail for people: of jobs and decisions their numbers, without the digest over them."""
    if row.command not in (DECIDED, SUBMITTED):
        return row.detail
    try:
        [(what, (first, last))] = [(key, value) for key, value in json.loads(row.detail).items() if key != "sha256"]
    except (ValueError, TypeError, AttributeError):
        return row.detail
    return f"{what} {first} to {last}" if first != last else f"{str(what)[:-1]} {first}"


AUDIT_COLUMNS: tuple[Column[AuditRow], ...] = (
    Column("chain", lambda r: r.chain, "chain", lambda r: safe(r.chain), words=True),
    Column("number", lambda r: r.number, "entry"),
    Column("at", lambda r: r.at, "at", lambda r: moment(r.at), words=True),
    Column("who", lambda r: r.who, "who", lambda r: safe(r.who), words=True),
    Column("role", lambda r: r.role, "role", lambda r: safe(r.role), words=True),
    Column("command", lambda r: r.command, "command", lambda r: safe(r.command), words=True),
    Column("job", lambda r: r.job_id, "job", lambda r: "-" if r.job_id is None else str(r.job_id)),
    Column("detail", lambda r: r.detail, "detail", lambda r: safe(_shown(r), DETAIL), words=True, under=True),
    Column("previous", lambda r: r.previous),
    Column("hash", lambda r: r.hash),
)
HEAD_COLUMNS: tuple[Column[Head], ...] = (
    Column("chain", lambda h: h.chain, "chain", lambda h: safe(h.chain), words=True),
    Column("number", lambda h: h.number, "entries"),
    Column("hash", lambda h: h.hash, "head", words=True),
)


@dataclass(frozen=True, slots=True, repr=False)
class AuditList(Result):
    """Entries of the audit log, newest first."""

    VERB: ClassVar[str] = "audit list"
    ledger: str
    entries: tuple[AuditRow, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"ledger": self.ledger, "entries": [record(AUDIT_COLUMNS, entry) for entry in self.entries]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row an entry."""
        return [flat(AUDIT_COLUMNS, entry) for entry in self.entries]

    def blocks(self) -> list[Block]:
        """For people."""
        if not self.entries:
            return [Text(f"ledger {safe(self.ledger)}: no such entry in the audit log")]
        return [Text(f"ledger {safe(self.ledger)}"), table(AUDIT_COLUMNS, self.entries)]


@dataclass(frozen=True, slots=True, repr=False)
class AuditVerification(Result):
    """Whether the audit log is as it was written, and the heads of its chains to keep elsewhere."""

    VERB: ClassVar[str] = "audit verify"
    ledger: str
    heads: tuple[Head, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether it is."""
        return not self.problems

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ledger": self.ledger,
            "sound": self.sound,
            "heads": [record(HEAD_COLUMNS, head) for head in self.heads],
            "problems": self.problems,
            "notes": self.notes,
        }

    def blocks(self) -> list[Block]:
        """For people."""
        count = sum(head.number for head in self.heads)
        words = f"{plural(count, 'entry').replace('entrys', 'entries')} in {plural(len(self.heads), 'chain')}"
        return [
            Text(f"ledger {safe(self.ledger)}: {words}"),
            *([table(HEAD_COLUMNS, self.heads)] if self.heads else []),
            *(Text(f"Replaced: {safe(line)}") for line in self.notes),
            *(Text(f"NOT as it was written: {safe(line)}") for line in self.problems),
            Text("exit status 1" if self.problems else "Every entry is as it was written."),
        ]


def list_audit(ledger: str = "", chain: str | None = None, job: str | None = None, limit: int = 100) -> AuditList:
    """The latest entries of a ledger's audit log: all, or those of a chain or about a job."""
    with open_ledger(ledger, create=False) as book:
        number = None if job is None else job_number(job)
        return AuditList(book.where, tuple(book.audit_entries(chain, number, limit)))


def verify_audit(ledger: str = "", heads: str | Path | None = None) -> AuditVerification:
    """Compute a ledger's audit log again; `heads`: a file that `audit verify -o json` wrote before."""
    kept = None if heads is None else _read_heads(Path(heads))
    with open_ledger(ledger, create=False) as book:
        found = book.verify_audit(kept)
        return AuditVerification(book.where, found.heads, found.problems, found.notes)


def _read_heads(path: Path) -> dict[str, Head]:
    text = read_text(path, MOST_BYTES)
    try:
        heads = [Head(str(one["chain"]), int(one["number"]), str(one["hash"])) for one in json.loads(text)["heads"]]
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        raise InputError("heads", str(path), "a file that `chipwise audit verify -o json` wrote") from None
    return {head.chain: head for head in heads}
