"""Columns of jobs, of the ways to run them and of their attempts. Every name and reason is shown harmlessly."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from chipwise.present.columns import Column, record
from chipwise.present.data import to_data
from chipwise.present.numbers import duration, time_interval
from chipwise.present.safe import safe
from chipwise.route.attempt_output import AttemptOutput
from chipwise.route.job import Variant
from chipwise.route.ledger.records import AttemptRow, DecisionRow, Event, JobRow
from chipwise.route.option import Infeasible, Option
from chipwise.units import format_money

NAME, REASON = 40, 100  # characters of a name and of a reason in a table


def money(usd: float) -> str:
    """US dollars, or a dash where there is no end to them."""
    return format_money(usd) if isfinite(usd) else "-"


def job_columns(now: float) -> list[Column[JobRow]]:
    """The columns of a job and where it stands at that moment."""
    return [
        Column("id", lambda j: j.id, "id"),
        Column("name", lambda j: j.job.name, "name", lambda j: safe(j.job.name, NAME), words=True),
        Column("owner", lambda j: j.job.owner, "owner", lambda j: safe(j.job.owner, NAME), words=True, drop=1),
        Column("state", lambda j: j.state, "state", words=True),
        Column("submitted", lambda j: j.submitted, "age", lambda j: duration(now - j.submitted)),
        Column("done", lambda j: j.done, "done", lambda j: f"{j.done:.0%}", drop=3, help="share, as checkpoints hold"),
        Column("spent_usd", lambda j: j.spent, "spent", lambda j: format_money(j.spent), drop=2),
        Column("reason", lambda j: j.reason, "why", lambda j: safe(j.reason, REASON), words=True, under=True),
        Column("deadline", lambda j: j.job.deadline),
        Column("confidence", lambda j: j.job.confidence, help="with which the deadline is to be met"),
        Column("budget_usd", lambda j: j.job.budget),
        Column("priority", lambda j: j.job.priority),
        Column("retries", lambda j: j.job.retries),
        Column("key", lambda j: j.job.key or None),
        Column("restartable", lambda j: j.job.checkpoint.restartable),
        Column("failures", lambda j: j.failures, help="by the job's own fault"),
        Column("failed_at", _failed_at, nested=True),
        Column("not_before", lambda j: j.not_before or None),
        Column("cancelling", lambda j: j.cancel),
        Column("submitter", lambda j: j.submitter or None, help="who submitted it, as proven"),
        Column("team", lambda j: j.team or None, help="of its owner"),
    ]


def _failed_at(job: JobRow) -> dict[str, str] | None:
    return None if job.failed_at is None else dict(zip(("pool", "variant"), job.failed_at, strict=True))


OPTION_COLUMNS: tuple[Column[Option], ...] = (
    Column("pool", lambda o: o.pool, "pool", lambda o: safe(o.pool), words=True),
    Column("variant", lambda o: o.variant, "variant", lambda o: safe(o.variant), words=True),
    Column("chips", lambda o: o.chips, "chips", lambda o: f"{o.chips}" + (f" ({o.topology})" if o.topology else "")),
    Column("topology", lambda o: o.topology),
    Column("layout", lambda o: o.layout),
    Column("duration_seconds", lambda o: o.seconds, "time", lambda o: duration(o.seconds.value)),
    Column("", None, "90 % interval", lambda o: time_interval(o.seconds) if isfinite(o.seconds.high) else "-"),
    Column("usd", lambda o: o.usd, "cost", lambda o: money(o.usd)),
    Column("usd_per_hour", lambda o: o.usd_hour),
    Column("usd_once", lambda o: o.usd_once),
    Column("watts", lambda o: o.watts, "power", lambda o: f"{o.watts / 1000:.3g} kW", drop=1),
    Column("", None, "evidence", lambda o: o.seconds.evidence, words=True, drop=2),
    Column("note", lambda o: o.note, "rests on", lambda o: _basis(o), words=True, under=True),
)


def _basis(option: Option) -> str:
    return safe("; ".join(part for part in (option.note, option.seconds.because) if part))


INFEASIBLE_COLUMNS: tuple[Column[Infeasible], ...] = (
    Column("pool", lambda i: i.pool, "pool", lambda i: safe(i.pool), words=True),
    Column("variant", lambda i: i.variant or None, "variant", lambda i: safe(i.variant) or "-", words=True),
    Column("reason", lambda i: i.reason, "why not", lambda i: _why_not(i), words=True),
    Column("unlock", lambda i: i.unlock),
)


def _why_not(infeasible: Infeasible) -> str:
    return safe(infeasible.reason) + (f"; {safe(infeasible.unlock)}" if infeasible.unlock else "")


def attempt_columns(outputs: Mapping[str, AttemptOutput]) -> list[Column[AttemptRow]]:
    """The columns of an attempt, with what it printed last."""

    def path(attempt: AttemptRow) -> str | None:
        return outputs[attempt.id].path if attempt.id in outputs else None

    def end(attempt: AttemptRow) -> tuple[str, ...] | None:
        return outputs[attempt.id].last if attempt.id in outputs else None

    return [
        Column("id", lambda a: a.id),
        Column("number", lambda a: a.number, "attempt"),
        Column("pool", lambda a: a.pool, "pool", lambda a: safe(a.pool), words=True),
        Column("variant", lambda a: a.variant, "variant", lambda a: safe(a.variant), words=True),
        Column("state", lambda a: a.state, "state", _attempt_state, words=True),
        Column("router", lambda a: a.router),
        Column("backend_id", lambda a: a.backend_id or None),
        Column("intended", lambda a: a.intended),
        Column("submitted", lambda a: a.submitted),
        Column("started", lambda a: a.started),
        Column("ended", lambda a: a.ended, "ran", _ran),
        Column("exit_code", lambda a: a.exit_code, "exit", lambda a: "-" if a.exit_code is None else str(a.exit_code)),
        Column("spent_usd", lambda a: a.spent, "cost", lambda a: format_money(a.spent), drop=2),
        Column("where", lambda a: a.where, "on", lambda a: safe(a.where, NAME), words=True, drop=1),
        Column("reason", lambda a: a.reason, "why", lambda a: safe(a.reason, REASON), words=True, under=True),
        Column("restarts", lambda a: a.restarts, help="by the backend itself"),
        Column("stop", lambda a: a.stop or None),
        Column("output", path),
        Column("output_end", end),
        Column("option", lambda a: record(OPTION_COLUMNS, a.option)),
    ]


def _attempt_state(attempt: AttemptRow) -> str:
    return attempt.state + (f", to stop ({attempt.stop})" if attempt.stop else "")


def _ran(attempt: AttemptRow) -> str:
    if attempt.started is None:
        return "-"
    return duration(attempt.ended - attempt.started) if attempt.ended else "running"


DECISION_COLUMNS: tuple[Column[DecisionRow], ...] = (
    Column("id", lambda d: d.id),
    Column("at", lambda d: d.at),
    Column("policy", lambda d: d.policy),
    Column("router", lambda d: d.router),
    Column("kind", lambda d: d.decision.kind),
    Column("pool", lambda d: d.decision.pool or None),
    Column("variant", lambda d: d.decision.variant or None),
    Column("reason", lambda d: d.decision.reason),
    Column("scores", lambda d: d.decision.scores, nested=True),
)
EVENT_COLUMNS: tuple[Column[Event], ...] = (
    Column("id", lambda e: e.id),
    Column("at", lambda e: e.at),
    Column("attempt", lambda e: e.attempt or None),
    Column("kind", lambda e: e.kind),
    Column("text", lambda e: e.text),
    Column("data", lambda e: e.data, nested=True),
)
VARIANT_COLUMNS: tuple[Column[Variant], ...] = (
    Column("name", lambda v: v.name),
    Column("family", lambda v: v.family),
    Column("chips", lambda v: v.chips),
    Column("on", lambda v: sorted(v.on)),
    Column("program", lambda v: v.program),
    Column("image", lambda v: v.image),
    Column("arguments", lambda v: v.command),
    Column("environment", lambda v: [name for name, _ in v.environment], help="names alone"),
    Column("secrets", lambda v: v.secrets),
    Column("layout", lambda v: v.layout),
    Column("batch", lambda v: v.batch),
    Column("precision", lambda v: v.precision),
    Column("flags", lambda v: v.flags),
)


def feasibility(job: JobRow) -> dict[str, Any]:
    """Where a job can run and where it can't, as JSON has it."""
    return {
        "options": [record(OPTION_COLUMNS, option) for option in job.options],
        "infeasible": [record(INFEASIBLE_COLUMNS, infeasible) for infeasible in job.infeasible],
    }


def job_record(job: JobRow) -> dict[str, Any]:
    """Where a job stands, as JSON has it."""
    return to_data(record(job_columns(job.submitted), job))  # type: ignore[no-any-return]
