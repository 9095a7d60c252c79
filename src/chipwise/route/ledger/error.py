"""What goes wrong with a ledger, in one line each, with passwords masked."""

from __future__ import annotations

import re

from chipwise.errors import ChipwiseError

_LONGEST = 300  # characters of what is wrong with a row: it may quote the row


class LedgerError(ChipwiseError):
    """The ledger can't be read or written: why, what has become of the records, what to do."""

    def __init__(
        self,
        where: str,
        problem: str,
        remedy: str,
        missing: bool = False,
        temporary: bool = False,
        values: bool = False,
        noun: str = "ledger",
    ) -> None:
        self.where, self.problem, self.remedy = masked(where), masked(problem), remedy
        self.missing = missing  # there is none yet
        self.temporary = temporary  # the same step may succeed later
        self.values = values  # no column holds a value of the step: it concerns that step alone
        super().__init__(" ".join(f"{noun} {self.where}: {self.problem}; {remedy}".split()))


class BadRow(ChipwiseError):
    """A row of the ledger that can't be read. It concerns that row alone."""

    def __init__(self, kind: str, row_id: object, problem: str) -> None:
        self.kind, self.id = kind, str(row_id)
        problem = " ".join(problem.split())[:_LONGEST]
        super().__init__(
            f"{kind} {row_id}: its row in the ledger can't be read ({problem}); `chipwise ledger repair` sets it aside"
        )


class Conflict(ChipwiseError):
    """The ledger has moved on: what was asked for is no longer, or never was, a legal step. Nothing was written."""


def masked(text: str) -> str:
    """A URL, or a text with one in it, without its password.

    >>> masked("postgresql://ann:hunter2@db/chipwise?password=x&sslmode=require")
    'postgresql://ann:***@db/chipwise?password=***&sslmode=require'
    >>> masked('connection to "host=db password=hunter2 user=ann" failed')
    'connection to "host=db password=*** user=ann" failed'
    """
    text = re.sub(r"(\w+://[^\s/:@]*):[^\s]*@(?=[^@\s]*(?:\s|$))", r"\1:***@", text)
    return re.sub(r"(?i)\b(\w*password|passfile|sslkey)=('[^']*'|[^\s&'\"]*)", r"\1=***", text)
