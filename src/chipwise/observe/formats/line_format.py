"""A format of which every line says what a step or a window was: where such a line begins, and what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from chipwise.observe.numbers import NUMBER, number, whole
from chipwise.observe.records import ServingWindow, Step

_RANK = re.compile(r"\[(?:default)?(?:rank)?(\d{1,5})\]:|\b[rR]ank[ :=]?(\d{1,5})\b")
_SUFFIXED = rf"{NUMBER}(?:[kKMGBT](?![A-Za-z]))?"
SHARE = 0.01  # of a percentage


def value(key: str, end: str = "") -> str:
    """A pattern: a number after its key, with what may stand between them."""
    return rf"(?:{key})\s*[:=]?\s*['\"]?({_SUFFIXED}){end}"


@dataclass(frozen=True, slots=True)
class Field:
    """What a pattern finds, in the units of a record."""

    name: str
    pattern: re.Pattern[str]
    scale: float = 1.0
    word: str = ""  # without which, in any case, the pattern finds nothing: looked for first, which is much cheaper


_WORDS = {"tflops_per_device": "flop", "mfu": "mfu", "loss": "loss"}  # of every pattern of these names


def fields(*rows: tuple[str, str] | tuple[str, str, float]) -> tuple[Field, ...]:
    """Fields from names, patterns and scales; the first pattern of a name that is found counts."""
    return tuple(
        Field(row[0], re.compile(row[1]), row[2] if len(row) > 2 else 1.0, _WORDS.get(row[0], "")) for row in rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """A format: `marks` are words of which a line has one, `start` is where what it says begins.

    `needs` are the fields without which a line is not what it looks like: the format has changed, or the line is cut.
    """

    name: str
    marks: tuple[str, ...]
    start: re.Pattern[str]
    fields: tuple[Field, ...]
    needs: tuple[tuple[str, ...], ...] = ()  # one of each
    serving: bool = False
    engine: re.Pattern[str] | None = None  # in what stands before a part: its groups name who printed it
    general: bool = False  # takes lines of many programs: only where no other format does

    def parts(self, line: str) -> Iterator[tuple[str, str]]:
        """The parts of a line of this format that begin where it begins, each with what stands before it.

        Several writers may share one line.
        """
        starts = [match.start() for match in self.start.finditer(line)]
        before = 0
        for at, end in pairwise([*starts, len(line)]):
            yield line[before:at], line[at:end]
            before = at

    def engine_of(self, before: str) -> str:
        """Who printed a part, by what stands before it; empty where it does not say."""
        matches = list(self.engine.finditer(before)) if self.engine is not None else []
        return "/".join(filter(None, matches[-1].groups())) if matches else ""

    def values(self, part: str) -> dict[str, float]:
        """What a part says."""
        out: dict[str, float] = {}
        lower = part.lower()
        for one in self.fields:
            if one.name in out or one.word not in lower:
                continue
            match = one.pattern.search(part)
            text = next((group for group in match.groups() if group), None) if match else None
            amount = number(text) if text else None
            if amount is not None:
                out[one.name] = amount * one.scale
        return out


@dataclass(slots=True)
class Findings:
    """What a reader has found so far."""

    steps: list[Step] = field(default_factory=list)
    serving: list[ServingWindow] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    unread: int = 0  # lines that look like the format's and lack what they need

    def __len__(self) -> int:
        return len(self.steps) + len(self.serving) + len(self.metrics)


def rank_of(line: str) -> str:
    """The rank that a line says it is from, or "".

    >>> rank_of("[rank3]:[titan] 2026-05-18 - root - INFO - step: 14"), rank_of("[Rank 0] step=40"), rank_of("step: 1")
    ('3', '0', '')
    """
    match = _RANK.search(line[:200])
    return (match[1] or match[2]) if match else ""


class LineReader:
    """Reads lines of one format."""

    def __init__(self, format: LineFormat) -> None:
        self.name, self.format, self.findings = format.name, format, Findings()

    def read(self, line: str) -> bool:
        """Take what a line says; whether it is one of this format."""
        for mark in self.format.marks:  # nearly every line has none of a format's: no generators for those
            if mark in line:
                break
        else:
            return False
        is_read = False
        for before, part in self.format.parts(line):
            values = self.format.values(part)
            if not all(any(name in values for name in names) for names in self.format.needs):
                self.findings.unread += not self.format.general
                continue
            is_read = True
            if self.format.serving:
                self.findings.serving.append(ServingWindow(**values, engine=self.format.engine_of(before)))
            else:
                self.findings.steps.append(step_from(values, rank_of(line)))
        return is_read


def step_from(values: Mapping[str, float], rank: str = "") -> Step:
    """A step of the values that a line gives."""
    rest: dict[str, Any] = {name: amount for name, amount in values.items() if name != "step"}
    number_of = values.get("step")
    step = Step(step=None if number_of is None else whole(repr(number_of)), rank=rank)
    for name, amount in rest.items():
        setattr(step, name, amount)
    return step
