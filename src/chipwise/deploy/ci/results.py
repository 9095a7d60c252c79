"""What compilers made of programs, one row a program and target, as plain data that files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile
from chipwise.io.files import read_json

SCHEMA = 1
CALLS = 1000  # of a step: what a cost is of


class Answer(StrEnum):
    """What came of a program on a target."""

    OK = "ok"
    DOES_NOT_FIT = "does not fit"
    DOES_NOT_COMPILE = "does not compile"
    UNREADABLE = "unreadable"  # the program is not there, or can't be read
    NOT_TRIED = "not tried"  # the target's compiler is missing where it ran


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """A program on a target; figures are None where there is no answer."""

    check: str  # its name in the checks file
    program: str
    target: str  # such as v5e:4x4; empty where the check could not be read at all
    answer: Answer
    seconds: float | None = None  # of one call
    seconds_low: float | None = None
    seconds_high: float | None = None
    memory_bytes: float | None = None  # of a device
    usable_bytes: float | None = None
    usd: float | None = None  # of a thousand calls, on demand where that is listed
    problem: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)  # of compilers

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.check, self.target


FIGURES = ("seconds", "seconds_low", "seconds_high", "memory_bytes", "usable_bytes", "usd")


def results_in(path: Path) -> list[TargetResult]:
    """The rows of a file that `deploy compile -o json` wrote."""
    document = read_json(path)
    rows = document.get("rows")
    if document.get("schema") != SCHEMA or not isinstance(rows, list):
        raise BrokenFile("file", str(path), "what `chipwise deploy compile -o json` wrote")
    results = [_result(row, path, place) for place, row in enumerate(rows)]
    keys = [result.key for result in results]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise BrokenFile("rows", " on ".join(twice), "each program and target once")
    return results


def _result(row: Any, path: Path, place: int) -> TargetResult:
    where = f"{path} rows.{place}"
    if not isinstance(row, dict):
        raise BrokenFile(where, str(row)[:80], "a row of a check")
    for name in ("check", "program", "target"):
        if not isinstance(row.get(name), str):
            raise BrokenFile(f"{where}.{name}", str(row.get(name))[:80], "text")
    for name in FIGURES:
        value = row.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
        if value is not None and not number:
            raise BrokenFile(f"{where}.{name}", str(value)[:80], "a number of 0 or more, or null")
    if row.get("answer") not in list(Answer):
        raise BrokenFile(f"{where}.answer", str(row.get("answer"))[:80], f"one of {', '.join(Answer)}")
    versions = row.get("versions") or {}
    if not isinstance(versions, dict):
        raise BrokenFile(f"{where}.versions", str(versions)[:80], "names and versions")
    return TargetResult(
        check=row["check"],
        program=row["program"],
        target=row["target"],
        answer=Answer(row["answer"]),
        problem=str(row.get("problem") or ""),
        versions={str(name): str(version) for name, version in versions.items()},
        **{name: row.get(name) for name in FIGURES},
    )


def compilers(results: Sequence[TargetResult]) -> dict[str, str]:
    """The versions behind all rows together."""
    return {name: version for result in results for name, version in sorted(result.versions.items())}
