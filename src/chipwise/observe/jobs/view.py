"""Jobs as they really run, as every face shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

from chipwise.observe.goodput.view import USE_COLUMNS, account_record, use_rows
from chipwise.observe.health.records import Unjudged
from chipwise.observe.health.view import FINDING_COLUMNS
from chipwise.observe.jobs.observation import Observation
from chipwise.observe.records import Severity
from chipwise.observe.serving.expected import ServerLatencies
from chipwise.observe.serving.latency import MEAN, Latency
from chipwise.observe.view import RATIO_COLUMNS
from chipwise.present import plots
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import moment, percent, plural, time_interval
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.ledger.records import AttemptRow
from chipwise.units import format_money, format_seconds

COLUMNS: tuple[Column[Observation], ...] = (
    Column("id", lambda o: o.job.id, "id"),
    Column("name", lambda o: o.job.job.name, "name", lambda o: safe(o.job.job.name, 40), words=True),
    Column("owner", lambda o: o.job.user, "", help="its owner, else who submitted it"),
    Column("state", lambda o: o.job.state, "state", words=True, drop=2),
    Column("pool", lambda o: _attempt(o, "pool"), "pool", lambda o: safe(_attempt(o, "pool") or "–"), words=True),
    Column("attempt", lambda o: _attempt(o, "number"), "attempt", drop=1),
    Column("step", lambda o: o.step, "step", lambda o: _step(o), help="the last that was told"),
    Column("total_steps", lambda o: o.total_steps, "", help="of the whole run"),
    Column("step_seconds", lambda o: o.now, "a step", lambda o: _pace(o), drop=4),
    Column(
        "ratio",
        lambda o: o.held_against.ratio if o.held_against else None,
        "actual / predicted",
        lambda o: _ratio(o),
        drop=7,
    ),
    Column(
        "verdict",
        lambda o: o.held_against.verdict if o.held_against else None,
        "",
        help="as predicted, slower or faster",
    ),
    Column("goodput", lambda o: o.account.goodput, "goodput", lambda o: _share(o.account.goodput), drop=5),
    Column("worst", lambda o: _worst(o), "health", lambda o: _health(o), words=True, help="of its findings"),
    Column(
        "remaining_seconds",
        lambda o: o.remaining,
        "left",
        lambda o: _left(o),
        help="at the pace of now",
        unit="s",
        drop=6,
    ),
    Column(
        "remaining_usd",
        lambda o: o.remaining_usd,
        "costs",
        lambda o: _costs(o),
        help="what is left",
        unit="USD",
        drop=3,
    ),
    Column("problem", lambda o: o.problem or None, "", help="why its output is not to be had"),
)

LATENCY_COLUMNS: tuple[Column[Latency], ...] = (
    Column("figure", lambda row: row.figure, "latency", lambda row: row.figure.upper(), words=True),
    Column("statistic", lambda row: row.statistic, "", words=True, help="mean, p50, p90 or p99"),
    Column("actual", lambda row: row.actual, "actual", lambda row: format_seconds(row.actual), unit="s"),
    Column(
        "actual_low", lambda row: row.low, help="bounds of the bucket that it lies in; of a mean the mean", unit="s"
    ),
    Column(
        "actual_high",
        lambda row: row.high if isfinite(row.high) else None,
        "between",
        lambda row: _bounds(row),
        unit="s",
    ),
    Column("predicted", lambda row: row.predicted, "predicted", lambda row: _predicted(row), unit="s"),
    Column("", None, "90 %", lambda row: time_interval(row.predicted) if row.predicted else "–"),
    Column("ratio", lambda row: row.ratio, "actual / predicted", lambda row: f"{row.ratio:.2f}" if row.ratio else "–"),
    Column("verdict", lambda row: row.verdict, "verdict", lambda row: row.verdict or "–", words=True),
)


def _bounds(row: Latency) -> str:
    if row.statistic == MEAN:
        return "–"
    high = format_seconds(row.high) if isfinite(row.high) else "no bound"
    return f"{format_seconds(row.low)} to {high}"


def _predicted(row: Latency) -> str:
    return format_seconds(row.predicted.value) if row.predicted is not None else "–"


def _latencies(of: ServerLatencies) -> list[Block]:
    hours = f"{moment(of.began)} to {moment(of.ended)}"
    load = "" if of.requests_per_s is None else f" at {of.requests_per_s:.3g} requests/s"
    out: list[Block] = [table(LATENCY_COLUMNS, of.rows, title=f"Latencies from {hours}{load}")]
    return [*out, Text(f"Not predicted: {safe(of.unpredicted)}")] if of.unpredicted else out


def _attempt(observation: Observation, name: str) -> Any:
    return None if observation.attempt is None else getattr(observation.attempt, name)


def _step(o: Observation) -> str:
    if o.step is None:
        return "–"
    return f"{o.step:,}" if o.total_steps is None else f"{o.step:,} of {o.total_steps:,}"


def _pace(o: Observation) -> str:
    return "–" if o.now is None else format_seconds(o.now.value)


def _ratio(o: Observation) -> str:
    ratio = o.held_against.ratio if o.held_against else None
    return "–" if ratio is None else f"{ratio:.2f}"


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share, 1)


def _worst(o: Observation) -> Severity | None:
    return next((finding.severity for finding in o.findings), None)


def _health(o: Observation) -> str:
    if o.log is None:
        return "–"
    worst = _worst(o)
    return "nothing wrong" if worst is None else f"{worst}: {', '.join(dict.fromkeys(f.condition for f in o.findings))}"


def _left(o: Observation) -> str:
    return "–" if o.remaining is None else format_seconds(o.remaining.value)


def _costs(o: Observation) -> str:
    return "–" if o.remaining_usd is None else format_money(o.remaining_usd.value)


@dataclass(frozen=True, slots=True, repr=False)
class JobObservation(Result):
    """One job as it really runs."""

    VERB: ClassVar[str] = "observe job"
    ledger: str
    observation: Observation
    attempts: Sequence[AttemptRow]

    def plot(self, path: str | Path) -> Path:
        """Draw what its steps took, or its windows of serving, as .svg or .png."""
        from chipwise.observe.jobs.plot import draw

        target = Path(path)
        plots.ready(target)
        draw(self.observation, target)
        return target

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        o = self.observation
        ends = None if o.remaining is None else o.at + o.remaining.value
        return {
            "ledger": self.ledger,
            **record(COLUMNS, o),
            "format": o.log.format if o.log is not None else None,
            "ends_at": ends,
            "against": [record(RATIO_COLUMNS, o.ratio)] if o.ratio is not None else [],
            "latencies": [record(LATENCY_COLUMNS, row) for row in o.latencies.rows] if o.latencies else [],
            "requests_per_s": o.latencies.requests_per_s if o.latencies else None,
            "findings": [record(FINDING_COLUMNS, finding) for finding in o.findings],
            "unjudged": list(o.unjudged),
            "time": account_record(o.account),
        }

    def blocks(self) -> list[Block]:
        """For people."""
        o = self.observation
        out: list[Block] = [Text(self._head())]
        if o.problem:
            out.append(Text(safe(o.problem)))
        if o.log is not None and not o.log.steps and o.latencies is None:
            out.append(Text("It has printed no step in a format known; `chipwise jobs logs` shows what it has"))
        if (left := self._left()) is not None:
            out.append(Text(left))
        if o.ratio is not None:
            out.append(table(RATIO_COLUMNS, [o.ratio], title="Against the prediction"))
        if o.latencies is not None:
            out += _latencies(o.latencies)
        if o.findings:
            out.append(table(FINDING_COLUMNS, o.findings, title="Findings"))
        elif o.log is not None and o.log.steps:
            out.append(Text("Nothing is wrong by what it says"))
        if Unjudged.SILENCE in o.unjudged:
            out.append(Text("Not judged: its lines have no time stamps: a hang can't be seen"))
        if o.account.seconds:
            goodput = _share(o.account.goodput)
            out.append(table(USE_COLUMNS, use_rows(o.account), title=f"Where the job's time went: goodput {goodput}"))
        return out

    def _head(self) -> str:
        o = self.observation
        name = f"job {o.job.id} {safe(o.job.job.name)}: {o.job.state}"
        if o.attempt is None:
            return name
        where = f"attempt {o.attempt.number} of {len(self.attempts)} in {safe(o.attempt.pool)}, {o.attempt.state}"
        steps = "" if o.step is None else f"; step {_step(o)}"
        return f"{name}; {where}{steps}"

    def _left(self) -> str | None:
        o = self.observation
        if o.remaining is None or o.remaining_usd is None or o.now is None:
            return None
        return (
            f"A step takes {format_seconds(o.now.value)}, all in all; {format_seconds(o.remaining.value)} are left "
            f"({time_interval(o.remaining)}), to {moment(o.at + o.remaining.value)}, for "
            f"{format_money(o.remaining_usd.value)}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class JobObservations(Result):
    """Jobs as they really run."""

    VERB: ClassVar[str] = "observe jobs"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in COLUMNS)
    ledger: str
    observations: Sequence[Observation]
    state: str | None
    expected: int | None = None  # attempts of which routers were told how long they take; None: they were not

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [record(COLUMNS, o) for o in self.observations]
        return {"ledger": self.ledger, "jobs": rows, "expected_runs": self.expected}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job."""
        return [flat(COLUMNS, o) for o in self.observations]

    def blocks(self) -> list[Block]:
        """For people."""
        where = f"ledger {safe(self.ledger)}"
        if not self.observations:
            return [Text(f"{where}: no {self.state or ''} job".replace("  ", " "))]
        return [
            Text(f"{where}: {plural(len(self.observations), 'job')}"),
            table(COLUMNS, self.observations),
            *(Text(f"job {o.job.id}: {safe(o.problem)}") for o in self.observations if o.problem),
            *self._words(),
        ]

    def _words(self) -> list[Block]:
        if self.expected is None:
            return []
        return [Text(f"routers reckon with the steps of {plural(self.expected, 'run')}")]
