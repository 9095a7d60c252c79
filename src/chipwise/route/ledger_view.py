"""A ledger checked and repaired, as results."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.ledger import Ledger, open_ledger, salvage_ledger
from chipwise.route.ledger.liveness import SILENT_S, liveness
from chipwise.route.ledger.schema import VERSION


@dataclass(frozen=True, slots=True, repr=False)
class LedgerCheck(Result):
    """What is wrong in a ledger."""

    VERB: ClassVar[str] = "ledger check"
    ledger: str
    version: int
    migrated: str  # from which version it was brought to this one, and when; empty if it was not
    jobs: int
    damage: tuple[str, ...]  # of its file, as the database finds it
    problems: tuple[str, ...]  # rows that can't be read, or contradict others

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damage and not self.problems

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ledger": self.ledger,
            "version": self.version,
            "migrated": self.migrated or None,
            "jobs": self.jobs,
            "sound": self.sound,
            "damage": self.damage,
            "problems": self.problems,
        }

    def blocks(self) -> list[Block]:
        """For people."""
        migrated = f", migrated {safe(self.migrated)}" if self.migrated else ""
        verdict = "sound" if self.sound else "NOT sound; `chipwise ledger repair --dry-run` says what would be done"
        return [
            Text(f"ledger {safe(self.ledger)}: version {self.version}{migrated}, {plural(self.jobs, 'job')}"),
            *(Text(f"  damaged: {safe(line)}") for line in self.damage),
            *(Text(f"  {safe(line)}") for line in self.problems),
            Text(f"The ledger is {verdict}."),
        ]


@dataclass(frozen=True, slots=True, repr=False)
class LedgerRepair(Result):
    """What was done to a ledger, and what is still wrong in it."""

    VERB: ClassVar[str] = "ledger repair"
    ledger: str
    dry_run: bool
    done: tuple[str, ...]
    left: tuple[str, ...]  # what is wrong after it; of a dry run what is wrong now

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"ledger": self.ledger, "dry_run": self.dry_run, "done": self.done, "left": self.left}

    def blocks(self) -> list[Block]:
        """For people."""
        if self.dry_run:
            verdict = "This would be done; nothing was written." if self.done else "Nothing would be done."
        elif self.left:
            verdict = "What is above is left as it is: it needs a person."
        else:
            verdict = "The ledger is sound." if self.done else "The ledger was sound; nothing was done."
        left = () if self.dry_run else self.left
        return [
            Text(f"ledger {safe(self.ledger)}"),
            *(Text(f"  {safe(line)}") for line in self.done),
            *(Text(f"  still wrong: {safe(line)}") for line in left),
            Text(verdict),
        ]


def check_ledger(ledger: str = "") -> LedgerCheck:
    """What is wrong in a ledger: damage to its file, rows that can't be read, rows that contradict others."""
    with open_ledger(ledger, create=False) as book:
        damage = tuple(book.damage())
        jobs = sum(book.totals()["jobs"].values()) if not damage else 0
        problems = () if damage else tuple(book.check())
        return LedgerCheck(book.where, VERSION, book.migrated(), int(jobs), damage, problems)


def repair_ledger(ledger: str = "", dry_run: bool = False) -> LedgerRepair:
    """Repair a ledger that no router works with. What is replaced is kept: rows in the ledger, files beside it."""
    saved = salvage_ledger(ledger, dry_run)
    if saved and dry_run:
        return LedgerRepair(ledger, True, tuple(saved), tuple(saved))
    with open_ledger(ledger, create=False) as book:
        _check_idle(book)
        before = book.check()
        done = book.repair(time.time(), dry_run) if before else []
        return LedgerRepair(book.where, dry_run, (*saved, *done), tuple(before if dry_run else book.check()))


def _check_idle(book: Ledger) -> None:
    now = time.time()
    alive = next((row for row in book.routers() if liveness(row, now) == "alive"), None)
    if alive is not None:
        raise InputError(
            "ledger",
            book.where,
            f"a ledger that no router works with: stop {alive.id} first (one that was killed counts as alive for "
            f"{SILENT_S:.0f} s)",
        )
