"""Demand as it was and as it will be, as every face shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.errors import Refusal
from chipwise.io.atomic import atomic_write
from chipwise.io.files import parse_yaml
from chipwise.observe.demand.demand_file import Frame, WorkloadDemand, demand_text
from chipwise.observe.demand.records import Expected, Kind, LeftOut, Observed, Skipped, month_name
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import number, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

_UNITS = {Kind.RUNS: "runs/month", Kind.SERVICE: "requests/s"}
_REASONS = {
    LeftOut.NO_WORKLOAD: "they say no workload that other chips could be sized for",
    LeftOut.UNREAD: "how much was asked of it is not known: no output, and no rate of its own",
    LeftOut.OFFLINE: "offline jobs: a plan knows training runs and services",
    LeftOut.MANY: "a plan takes a hundred workloads",
}


def _mean(demand: WorkloadDemand) -> float:
    months = demand.past.months
    shares = sum(month.share for month in months)
    if demand.past.kind is Kind.RUNS:
        return sum(month.amount for month in months) / shares
    return sum(month.amount * month.share for month in months) / shares


def _month(month: Expected) -> str:
    return f"{month.value:.3g} ({month.low:.3g} to {month.high:.3g})"


DEMAND_COLUMNS: tuple[Column[WorkloadDemand], ...] = (
    Column("name", lambda a: a.past.name, "workload", words=True),
    Column("kind", lambda a: a.past.kind.value, help="runs or service"),
    Column("jobs", lambda a: a.past.jobs, "jobs"),
    Column("chip_hours", lambda a: a.past.chip_hours, "chip-hours", lambda a: f"{a.past.chip_hours:,.4g}"),
    Column("months_observed", lambda a: sum(month.share for month in a.past.months), "months", lambda a: _months(a)),
    Column("mean", _mean, "a month", lambda a: f"{_mean(a):.3g} {_UNITS[a.past.kind]}", help="runs, or requests/s"),
    Column("growth", lambda a: a.trend.growth, "growth a month", lambda a: f"{a.trend.growth:+.1%}"),
    Column("growth_low", lambda a: a.trend.growth_low, help="of its 90 % interval"),
    Column(
        "growth_high",
        lambda a: a.trend.growth_high,
        "90 %",
        lambda a: f"{a.trend.growth_low:+.1%} to {a.trend.growth_high:+.1%}",
    ),
    Column(
        "expected",
        lambda a: [
            {"month": month_name(m.index), "value": m.value, "low": m.low, "high": m.high} for m in a.trend.months
        ],
        "at the end",
        lambda a: _month(a.trend.months[-1]),
        nested=True,
        help="by month to come, with the 90 % interval",
    ),
    Column(
        "peak", lambda a: a.past.peak.times if a.past.peak else None, help="load in the peak hours over the day's mean"
    ),
    Column(
        "peak_hours",
        lambda a: a.past.peak.hours if a.past.peak else None,
        "peak",
        lambda a: f"{a.past.peak.times:.2f} x, {a.past.peak.hours} UTC" if a.past.peak else "-",
        words=True,
    ),
    Column("declared", lambda a: a.past.declared, help="the rate is the workload's own: none was read"),
    Column("counted", lambda a: a.past.counted, help="by its servers' counters: they printed nothing"),
    Column(
        "observed",
        lambda a: [{"month": m.name, "share": m.share, "amount": m.amount} for m in a.past.months],
        nested=True,
        help="by month: the share of it that was seen, and runs or requests/s",
    ),
)


def _months(demand: WorkloadDemand) -> str:
    return f"{sum(month.share for month in demand.past.months):.1f}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObservedDemand(Result):
    """What was wanted of chips by workload, and what a plan is to meet."""

    VERB: ClassVar[str] = "observe demand"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in DEMAND_COLUMNS if not column.nested)
    observed: Observed
    demands: Sequence[WorkloadDemand]
    skipped: Sequence[Skipped]
    frame: Frame
    file: Path | None = None  # that was written

    @property
    def text(self) -> str:
        """The demand file."""
        return demand_text(self.demands, self.frame)

    @property
    def planned(self) -> str:
        """The demand file, of jobs that a plan can be made for."""
        if not self.demands:
            raise Refusal("no job says what it runs", "jobs with a workload: a plan sizes other chips for it")
        return self.text

    def write(self, path: Path) -> Path:
        """Write it, for `fleet plan`."""
        atomic_write(self.planned.encode(), path, "to")
        return path

    def contents(self) -> Mapping[str, Any]:
        """What the file holds, for `plan_fleet`."""
        return parse_yaml(self.planned, self.frame.name)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ledger": self.observed.ledger,
            "case": self.frame.case.value,
            "start": month_name(self.frame.first),
            "months": self.frame.months,
            "workloads": [record(DEMAND_COLUMNS, one) for one in self.demands],
            "left_out": [
                {"name": s.name, "reason": s.why.value, "jobs": s.jobs, "chip_hours": s.chip_hours}
                for s in self.skipped
            ],
            "bad_rows": list(self.observed.bad_rows),
            "file": None if self.file is None else str(self.file),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a workload."""
        return [flat(DEMAND_COLUMNS, one) for one in self.demands]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = [Text(self.headline())]
        if self.demands:
            out.append(table(DEMAND_COLUMNS, self.demands))
        return [*out, *(Text(line) for line in self.notes())]

    def headline(self) -> str:
        """Whose demand it is, and when."""
        until = month_name(self.frame.first + self.frame.months - 1)
        head = (
            f"ledger {safe(self.observed.ledger)}: {plural(len(self.demands), 'workload')} that a plan can be made for"
        )
        return f"{head}, {month_name(self.frame.first)} to {until}"

    def notes(self) -> list[str]:
        """What it leaves out, and what it rests on."""
        total = sum(one.past.chip_hours for one in self.demands) + sum(one.chip_hours for one in self.skipped)
        lines = [
            f"Left out: {safe(s.name)}, {plural(s.jobs, 'job')}, {number(s.chip_hours)} chip-hours"
            + (f" ({s.chip_hours / total:.0%} of all)" if total else "")
            + f": {_REASONS[s.why]}"
            for s in sorted(self.skipped, key=lambda s: -s.chip_hours)
        ]
        lines += [
            f"{safe(one.past.name)}: its own rate is taken: no output of its servers is to be had"
            for one in self.demands
            if one.past.declared
        ]
        lines += [
            f"{safe(one.past.name)}: by what its servers counted, where none of their output is to be had"
            for one in self.demands
            if one.past.counted
        ]
        lines += [f"left out: {safe(line)}" for line in self.observed.bad_rows]
        if self.file is not None:
            lines.append(f"Written to {self.file}: review it, then `chipwise fleet plan {self.file}`")
        return lines
