"""Checks of programs, a branch against its base, and workflows that were written, as every face shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.deploy.ci.comment import comment_text
from chipwise.deploy.ci.judge import Comparison
from chipwise.deploy.ci.results import CALLS, SCHEMA, Answer, TargetResult
from chipwise.io.atomic import atomic_write
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import format_bytes, format_money, format_seconds

RESULT_COLUMNS: tuple[Column[TargetResult], ...] = (
    Column("check", lambda r: r.check, "program", lambda r: safe(r.check, 60), words=True),
    Column("program", lambda r: r.program, help="as the checks file has it"),
    Column("target", lambda r: r.target, "target", lambda r: safe(r.target, 40), words=True),
    Column("answer", lambda r: r.answer, "answer", words=True),
    Column("seconds", lambda r: r.seconds, "a step", lambda r: _shown(r.seconds, format_seconds), unit="s"),
    Column("seconds_low", lambda r: r.seconds_low, help="of the 90 % interval", unit="s"),
    Column("seconds_high", lambda r: r.seconds_high, help="of the 90 % interval", unit="s"),
    Column(
        "memory_bytes", lambda r: r.memory_bytes, "memory of a device", lambda r: _shown(r.memory_bytes, format_bytes)
    ),
    Column("usable_bytes", lambda r: r.usable_bytes, help="what programs may allocate of a device"),
    Column(
        "usd",
        lambda r: r.usd,
        f"{CALLS:,} steps cost",
        lambda r: _shown(r.usd, format_money),
        help="at the cheapest listed offer",
        unit="USD",
    ),
    Column("problem", lambda r: r.problem or None, help="why there is no answer"),
    Column("versions", lambda r: dict(r.versions), nested=True, help="of compilers"),
)
COMPARISON_COLUMNS: tuple[Column[Comparison], ...] = (
    Column("check", lambda c: c.result.check, "program", lambda c: safe(c.result.check, 60), words=True),
    Column("target", lambda c: c.result.target, "target", lambda c: safe(c.result.target, 40), words=True),
    Column("verdict", lambda c: c.verdict, "verdict", words=True),
    Column("fails", lambda c: c.fails, help="whether the branch fails for it"),
    Column("base_seconds", lambda c: c.base.seconds if c.base else None, unit="s"),
    Column(
        "head_seconds",
        lambda c: c.head.seconds if c.head else None,
        "a step",
        lambda c: _shown(c.head.seconds if c.head else None, format_seconds),
        unit="s",
    ),
    Column("time_change", lambda c: c.slower, "time", lambda c: _change(c.slower), help="a share of the base's"),
    Column("memory_change", lambda c: c.larger, "memory", lambda c: _change(c.larger), help="a share of the base's"),
    Column("cost_change", lambda c: c.dearer, "cost", lambda c: _change(c.dearer), help="a share of the base's"),
    Column("problem", lambda c: (c.head.problem if c.head else "") or None, help="why there is no answer"),
)


def _shown(value: float | None, show: Any) -> str:
    return "–" if value is None else str(show(value))


def _change(share: float | None) -> str:
    return "–" if share is None else f"{share:+.1%}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledChecks(Result):
    """Every program of a checks file on every target."""

    VERB: ClassVar[str] = "deploy compile"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in RESULT_COLUMNS if not column.nested)
    checks: str
    results: Sequence[TargetResult]

    @property
    def ok(self) -> bool:
        """Whether every one compiles and fits."""
        return all(result.answer is Answer.OK for result in self.results)

    def record(self) -> dict[str, Any]:
        """As JSON has it, and `deploy comment` reads it."""
        rows = [record(RESULT_COLUMNS, result) for result in self.results]
        return {"schema": SCHEMA, "checks": self.checks, "ok": self.ok, "rows": rows}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a program and target."""
        return [flat(RESULT_COLUMNS, result) for result in self.results]

    def blocks(self) -> list[Block]:
        """For people."""
        bad = [result for result in self.results if result.answer is not Answer.OK]
        targets = plural(len(self.results), "target")
        head = f"{targets} compile and fit" if not bad else f"{len(bad)} of {targets} fail"
        return [
            Text(f"{safe(self.checks)}: {head}"),
            table(RESULT_COLUMNS, self.results),
            *(Text(f"{safe(r.check)} on {safe(r.target)}: {safe(r.problem)}") for r in bad if r.problem),
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BranchComparison(Result):
    """A branch against its base, and the comment that says so."""

    VERB: ClassVar[str] = "deploy comment"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in COMPARISON_COLUMNS)
    rows: Sequence[Comparison]
    limit: float

    @property
    def ok(self) -> bool:
        """Whether the branch may be merged."""
        return not any(row.fails for row in self.rows)

    @property
    def comment(self) -> str:
        """In Markdown."""
        return comment_text(self.rows, self.limit)

    def write(self, path: Path) -> Path:
        """Write the comment."""
        atomic_write(self.comment.encode(), path)
        return path

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [record(COMPARISON_COLUMNS, row) for row in self.rows]
        return {"ok": self.ok, "limit": self.limit, "rows": rows, "comment": self.comment}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a program and target."""
        return [flat(COMPARISON_COLUMNS, row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """For people."""
        bad = sum(row.fails for row in self.rows)
        head = f"{bad} of {plural(len(self.rows), 'target')} fail" if bad else "nothing fails"
        return [Text(f"{head}; the limit is {self.limit:.1%} slower"), table(COMPARISON_COLUMNS, self.rows)]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WrittenWorkflows(Result):
    """Workflow files that were written."""

    VERB: ClassVar[str] = "deploy ci"
    checks: str
    targets: int
    limit: float
    install: str
    files: Sequence[Path]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "checks": self.checks,
            "targets": self.targets,
            "limit": self.limit,
            "install": self.install,
            "files": [str(path) for path in self.files],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a file."""
        return [{"file": str(path)} for path in self.files]

    def blocks(self) -> list[Block]:
        """For people."""
        return [
            Text(
                f"{safe(self.checks)}: {plural(self.targets, 'target')}, failing where one is {self.limit:.1%} slower"
            ),
            *(Text(f"written: {safe(str(path))}") for path in self.files),
            Text(f"They install with: {self.install}"),
        ]
