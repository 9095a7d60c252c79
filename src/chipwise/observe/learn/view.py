"""What runs change of predictions, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog.telemetry_files import Telemetry, TelemetryGroup
from chipwise.observe.learn.lesson import GroupChange, Lesson, RunChange
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.units import format_seconds

LEFT_OUT = {
    "sick": "sick", "few_steps": "too few steps", "no_time": "tells no time", "unpredicted": "can't be predicted",
    "outlier": "an outlier", "few_runs": "too few runs",
}  # fmt: skip


def _times(group: TelemetryGroup | None) -> str:
    return "–" if group is None else f"{group.factor:.2f}"


def _interval(group: TelemetryGroup) -> str:
    return f"{exp(group.low):.2f} to {exp(group.high):.2f}"


def _group_columns() -> tuple[Column[TelemetryGroup], ...]:
    return (
        Column("chip", lambda g: g.chip, "chip", words=True),
        Column("stack", lambda g: g.stack, "stack", words=True),
        Column("program", lambda g: g.program, "program", words=True, help="family of models and precision"),
        Column("runs", lambda g: g.runs, "runs"),
        Column("steps", lambda g: g.steps, "steps", lambda g: f"{g.steps:,}"),
        Column("factor", lambda g: g.factor, "factor", lambda g: _times(g), help="times as long as published says"),
        Column("low", lambda g: exp(g.low), "", help="of the next run's: the low end of the 90 % interval"),
        Column("high", lambda g: exp(g.high), "90 %", lambda g: _interval(g), help="of the next run's factor"),
        Column("base", lambda g: g.base, "", help="the calibration that runs were held against"),
        Column("date", lambda g: g.date, "to", words=True, help="of the newest run"),
    )


GROUP_COLUMNS = _group_columns()
CHANGE_COLUMNS: tuple[Column[GroupChange], ...] = (
    *(column.within(lambda c: c.after) for column in GROUP_COLUMNS[:5]),
    Column("before", lambda c: None if c.before is None else c.before.factor, "before", lambda c: _times(c.before)),
    *(column.within(lambda c: c.after) for column in GROUP_COLUMNS[5:]),
)
RUN_COLUMNS: tuple[Column[RunChange], ...] = (
    Column("name", lambda r: r.candidate.name, "run", words=True, help="a file, or an attempt of a job"),
    Column("on", lambda r: r.candidate.on, "on", words=True),
    Column("observed_seconds", lambda r: r.observed, "took", lambda r: _seconds(r.observed), unit="s"),
    Column("before_seconds", lambda r: r.before, "predicted", lambda r: _seconds(r.before), help="today", unit="s"),
    Column("after_seconds", lambda r: r.after, "would be", lambda r: _seconds(r.after), help="once accepted", unit="s"),
    Column("held", lambda r: r.held, "", help="it lies in the interval that was accepted before"),
    Column("left_out", lambda r: r.candidate.left_out, "left out", lambda r: _left_out(r), words=True),
    Column("detail", lambda r: r.candidate.detail or None, "", help="why it is left out"),
)


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else format_seconds(seconds)


def _left_out(r: RunChange) -> str:
    return "–" if r.candidate.left_out is None else f"{LEFT_OUT[r.candidate.left_out]}: {r.candidate.detail}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TelemetryLesson(Result):
    """What runs would change of predictions, or have changed."""

    VERB: ClassVar[str] = "calibrate telemetry"
    lesson: Lesson
    accepted: Path | None = None  # the file that was written

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "accepted": None if self.accepted is None else str(self.accepted),
            "groups": [record(CHANGE_COLUMNS, change) for change in self.lesson.groups],
            "runs": [record(RUN_COLUMNS, run) for run in self.lesson.runs],
            **dict(zip(("held", "tested"), self._held(), strict=True)),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a run."""
        return [flat(RUN_COLUMNS, run) for run in self.lesson.runs]

    def _held(self) -> tuple[int, int]:
        """Of how many new runs the accepted interval held how many."""
        tested = [run.held for run in self.lesson.runs if run.held is not None]
        return sum(tested), len(tested)

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = [table(RUN_COLUMNS, self.lesson.runs, title="Runs")] if self.lesson.runs else []
        if self.lesson.groups:
            out.append(table(CHANGE_COLUMNS, self.lesson.groups, title="What they say"))
        held, tested = self._held()
        if tested:
            out.append(Text(f"The intervals accepted before held {held} of {plural(tested, 'new run')}"))
        if self.accepted is not None:
            out.append(Text(f"Accepted: predictions count it from now on; kept in {self.accepted}"))
        elif self.lesson.changed:
            out.append(Text("Nothing has changed yet: --accept makes predictions of such programs on these chips so"))
        else:
            out.append(Text("There is nothing to accept"))
        return out


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AcceptedTelemetry(Result):
    """What was accepted, or what counts after something was taken back."""

    VERB: ClassVar[str] = "calibrate telemetry"
    telemetry: Telemetry
    reverted: Path | None = None

    @property
    def groups(self) -> Sequence[TelemetryGroup]:
        """What counts."""
        return [group for _, group in sorted(self.telemetry.groups.items())]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "file": None if self.telemetry.path is None else str(self.telemetry.path),
            "reverted": None if self.reverted is None else str(self.reverted),
            "groups": [record(GROUP_COLUMNS, group) for group in self.groups],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a group."""
        return [flat(GROUP_COLUMNS, group) for group in self.groups]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = [] if self.reverted is None else [Text(f"Taken back: {self.reverted}")]
        if not self.groups:
            return [*out, Text("Nothing observed counts: predictions rest on what is published and measured")]
        return [
            *out,
            table(GROUP_COLUMNS, self.groups, title=f"Accepted on {self.telemetry.date}: {self.telemetry.path}"),
        ]
