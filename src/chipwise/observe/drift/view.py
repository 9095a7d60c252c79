"""Since when runs take another time, and what changed then, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from chipwise.observe.drift.groups import FEWEST_RUNS, Drift, Group, LabelChange
from chipwise.observe.learn.runs import Candidate
from chipwise.observe.learn.view import LEFT_OUT
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe


def _day(at: float) -> str | None:
    return datetime.fromtimestamp(at, UTC).date().isoformat() if at else None


def _labels(drift: Drift, group: Group) -> str:
    if drift.labels:
        return ", ".join(safe(f"{one.label} {one.before} to {one.after}") for one in drift.labels)
    return "none of its labels" if group.labels else "runs tell no labels"


@dataclass(frozen=True, slots=True)
class DriftRow:
    """A change of a group."""

    group: Group
    drift: Drift


LABEL_COLUMNS: tuple[Column[LabelChange], ...] = (
    Column("label", lambda one: one.label),
    Column("before", lambda one: one.before),
    Column("after", lambda one: one.after),
)
DRIFT_COLUMNS: tuple[Column[DriftRow], ...] = (
    Column("chip", lambda r: r.group.chip, "chip", words=True),
    Column("stack", lambda r: r.group.stack, "stack", words=True),
    Column("program", lambda r: r.group.program, "program", words=True, help="family of models and precision"),
    Column("since", lambda r: _day(r.drift.run.at), "since", lambda r: _day(r.drift.run.at) or "–", words=True),
    Column("run", lambda r: r.drift.run.name, "run", lambda r: safe(r.drift.run.name), words=True),
    Column("ratio", lambda r: r.drift.ratio, "times as long", lambda r: f"{r.drift.ratio:.2f}", help="as before"),
    Column("before", lambda r: r.drift.before, "before", lambda r: f"{r.drift.before:.2f}", help="over predicted"),
    Column("after", lambda r: r.drift.after, "since then", lambda r: f"{r.drift.after:.2f}", help="over predicted"),
    Column("called_run", lambda r: r.drift.called.name, help="the run by which it was certain"),
    Column(
        "runs_until_called",
        lambda r: r.drift.change.called - r.drift.change.place,
        "certain after",
        lambda r: plural(r.drift.change.called - r.drift.change.place, "run"),
    ),
    Column(
        "labels",
        lambda r: [record(LABEL_COLUMNS, one) for one in r.drift.labels],
        "what changed then",
        lambda r: _labels(r.drift, r.group),
        words=True,
        nested=True,
    ),
)
GROUP_COLUMNS: tuple[Column[Group], ...] = (
    Column("chip", lambda g: g.chip, "chip", words=True),
    Column("stack", lambda g: g.stack, "stack", words=True),
    Column("program", lambda g: g.program, "program", words=True),
    Column("runs", lambda g: len(g.runs), "runs"),
    Column("began", lambda g: _day(g.runs[0].at), "from", lambda g: _day(g.runs[0].at) or "–", words=True),
    Column("ended", lambda g: _day(g.runs[-1].at), "to", lambda g: _day(g.runs[-1].at) or "–", words=True),
    Column("level", lambda g: g.level, "over predicted", lambda g: f"{g.level:.2f}", help="since the last change"),
    Column("judged", lambda g: g.judged, help=f"it has {FEWEST_RUNS} runs or more"),
    Column("labels", lambda g: list(g.labels), "labels", lambda g: safe(", ".join(g.labels)) or "–", nested=True),
    Column("", None, "verdict", lambda g: _verdict(g), words=True),
)


def _verdict(group: Group) -> str:
    if not group.judged:
        return f"not judged: {FEWEST_RUNS} runs are needed"
    return f"changed {plural(len(group.drifts), 'time')}" if group.drifts else "no change"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Drifts(Result):
    """What changed in the times of runs."""

    VERB: ClassVar[str] = "observe drift"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in DRIFT_COLUMNS if not column.nested)
    groups: Sequence[Group]
    left_out: Sequence[Candidate]  # runs that say nothing of the chip

    @property
    def rows(self) -> list[DriftRow]:
        """Every change of every group."""
        return [DriftRow(group, drift) for group in self.groups for drift in group.drifts]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "changes": [record(DRIFT_COLUMNS, row) for row in self.rows],
            "groups": [record(GROUP_COLUMNS, group) for group in self.groups],
            "left_out": [{"run": one.name, "reason": one.left_out, "detail": one.detail} for one in self.left_out],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a change."""
        return [flat(DRIFT_COLUMNS, row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = []
        if self.rows:
            out.append(table(DRIFT_COLUMNS, self.rows, title="Runs that take another time than before"))
        if self.groups:
            out.append(table(GROUP_COLUMNS, self.groups, title="Groups"))
        else:
            out.append(Text("No run says what a step took"))
        out += [
            Text(f"Left out: {safe(one.name)}: {LEFT_OUT[one.left_out or '']}: {safe(one.detail)}")
            for one in self.left_out
        ]
        return out
