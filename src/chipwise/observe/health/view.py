"""What is wrong with a run, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.health.records import Condition, Cost, Finding, Unjudged
from chipwise.observe.log import Log
from chipwise.observe.records import Severity
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import number, plural
from chipwise.present.result import Result
from chipwise.units import format_money, format_seconds

COST_COLUMNS: tuple[Column[Cost], ...] = (
    Column("cost_seconds", lambda c: c.seconds, "", help="lost so far", unit="s"),
    Column("cost_chip_hours", lambda c: c.chip_hours, "", help="the same of all chips"),
    Column("cost_usd", lambda c: c.usd, "", help="the same at the price of the chips", unit="USD"),
)
FINDING_COLUMNS: tuple[Column[Finding], ...] = (
    Column("severity", lambda f: f.severity, "severity", words=True, help="critical, warning or notice"),
    Column("condition", lambda f: f.condition, "finding", lambda f: _name(f), words=True, help="what is wrong"),
    Column("fault", lambda f: f.fault, "", help="of a fault, its class"),
    Column("where", lambda f: f.where or None, "where", lambda f: f.where or "–", words=True, help="device or rank"),
    Column("step", lambda f: f.step, "since step", lambda f: _since(f), help="the first that shows it"),
    Column("until_step", lambda f: f.until_step, "", help="the last, where it is over"),
    Column("called_step", lambda f: f.called_step, "", help="the step at which it was certain"),
    Column("ratio", lambda f: f.ratio, "", help="times as slow"),
    Column("xid", lambda f: f.xid, "", help="NVIDIA's number"),
    Column("line_number", lambda f: f.line, "", help="of the log, from 1"),
    *(column.within(lambda f: f.cost) for column in COST_COLUMNS),
    Column("", None, "has cost", lambda f: summarize(f.cost), words=True),
    Column("evidence", lambda f: f.evidence, "evidence", words=True, under=True),
    Column("action", lambda f: f.action, "what to do", words=True, under=True),
)
_UNJUDGED = {
    Unjudged.SILENCE: "its lines have no time stamps: a hang can't be seen",
    Unjudged.PREDICTION: "without --against WORKLOAD nobody sees whether it was slow from its first step",
    Unjudged.CHANGE: "it has too few steps for a slow-down to be told from noise",
    Unjudged.RANKS: "no line says what each rank's own part of a step took: no straggler can be named",
}
_NAMES = {Condition.SLOW: "slow from its first step", Condition.SLOWED: "slowed down"}


def _name(finding: Finding) -> str:
    if finding.condition is Condition.FAULT and finding.fault is not None:
        return f"{finding.fault} fault"
    return _NAMES.get(finding.condition, str(finding.condition))


def _since(finding: Finding) -> str:
    if finding.step is None:
        return "–"
    return f"{finding.step:,}" if finding.until_step is None else f"{finding.step:,} to {finding.until_step:,}"


def summarize(cost: Cost | None) -> str:
    """What something has cost, in words.

    >>> summarize(Cost(7200.0, 8, 4.0)), summarize(None)
    ('2.00 h, 16 chip-hours, $64.00', '–')
    """
    if cost is None:
        return "–"
    parts = [format_seconds(cost.seconds)]
    if cost.chip_hours is not None:
        parts.append(f"{number(cost.chip_hours)} chip-hours")
    if cost.usd is not None:
        parts.append(format_money(cost.usd))
    return ", ".join(parts)


@dataclass(frozen=True, slots=True, repr=False)
class HealthReport(Result):
    """What is wrong with a run, the gravest first."""

    VERB: ClassVar[str] = "observe health"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in FINDING_COLUMNS if column.key)
    source: str
    log: Log
    findings: Sequence[Finding]
    unjudged: Sequence[Unjudged] = ()

    @property
    def worst(self) -> Severity | None:
        """How grave the gravest finding is; None where nothing is wrong."""
        return next((finding.severity for finding in self.findings), None)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "source": self.source,
            "format": self.log.format,
            "steps": len(self.log.steps),
            "worst": self.worst,
            "findings": [record(FINDING_COLUMNS, finding) for finding in self.findings],
            "unjudged": list(self.unjudged),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the findings."""
        return [flat(FINDING_COLUMNS, finding) for finding in self.findings]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = [Text(self._head())]
        if self.findings:
            out.append(table(FINDING_COLUMNS, self.findings, title="Findings"))
        out += [Text(f"Not judged: {_UNJUDGED[what]}") for what in self.unjudged]
        return out

    def _head(self) -> str:
        log = self.log
        what = f"{self.source}: {log.format or 'no format known'}, {plural(len(log.steps), 'step')}"
        if not self.findings and log.format is None:
            return f"{what}; nothing that can be judged"
        if not self.findings:
            return f"{what}; nothing is wrong by what it says"
        counts = [
            f"{count} {severity}"
            for severity in Severity
            if (count := sum(finding.severity is severity for finding in self.findings))
        ]
        return f"{what}; {plural(len(self.findings), 'finding')}: {', '.join(counts)}"
