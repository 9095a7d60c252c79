"""Jobs for people: lists, one job, what was submitted. Every name and reason is shown on one line, harmlessly."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, time_interval
from chipwise.units import format_money, format_seconds

if TYPE_CHECKING:
    from chipwise.route.ledger.records import AttemptRow, JobRow
    from chipwise.route.option import Infeasible, Option
    from chipwise.route.submit import SubmitResult

NAME, REASON = 40, 100  # characters of a name and of a reason in a table


def safe(text: str, most: int = 0) -> str:
    """A text of anyone's on one line: what a terminal might obey, and what can't be printed, written as escapes.

    >>> safe("a\\x1b[31m\\nb"), safe("long name", 6)
    ('a\\\\x1b[31m\\\\nb', 'lon...')
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
    return shown if not most or len(shown) <= most else shown[: most - 3] + "..."


def moment(seconds: float) -> str:
    """A moment in UTC; a dash where there is none.

    >>> moment(0.0), moment(float("inf"))
    ('1970-01-01 00:00:00 UTC', '-')
    """
    if not isfinite(seconds) or abs(seconds) > 1e11:  # past the year 5000
        return "-"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def lasted(seconds: float) -> str:
    """A duration that may be negative by clocks that differ, or endless."""
    return format_seconds(max(seconds, 0.0)) if isfinite(seconds) else "-"


def listed(where: str, rows: Sequence[JobRow], totals: Mapping[str, int] | None, now: float) -> list[Block]:
    """Jobs, one a row."""
    if not rows:
        words = "no job" if not totals else f"no such job; there are {counted(totals)}"
        return [Text(f"ledger {safe(where)}: {words}")]
    table = Table(
        ["id", "name", "owner", "state", "age", "done", "spent", "why"],
        [
            [
                row.id,
                safe(row.job.name, NAME),
                safe(row.job.owner, NAME),
                row.state,
                lasted(now - row.submitted),
                f"{row.done:.0%}",
                format_money(row.spent),
                safe(row.reason, REASON),
            ]
            for row in rows
        ],
        frozenset({"name", "owner", "state", "why"}),
        under=("why",),
        drop=("owner", "spent", "done"),
    )
    return [Text(f"ledger {safe(where)}" + (f": {counted(totals)}" if totals else "")), table]


def counted(totals: Mapping[str, int]) -> str:
    """How many jobs are in which state."""
    return ", ".join(f"{n:,} {state}" for state, n in totals.items())


def submitted(submission: SubmitResult) -> list[Block]:
    """What was submitted, and where it would go."""
    rows = []
    for job in submission.jobs:
        row, first = job.row, job.first_pool
        option = next((o for o in row.options if o.pool == first), None)
        rows.append(
            [
                row.id,
                safe(row.job.name, NAME),
                row.state,
                plural(len({o.pool for o in row.options}), "pool"),
                first or "-",
                "-" if option is None else lasted(option.seconds.value),
                "-" if option is None or not isfinite(option.usd) else format_money(option.usd),
            ]
        )
    blocks: list[Block] = [
        Text(f"ledger {safe(submission.ledger)}"),
        Table(
            ["id", "name", "state", "can run in", "first", "time", "cost"],
            rows,
            frozenset({"name", "state", "can run in", "first"}),
        ),
        Text(f"first: by policy {safe(submission.policy)} ({safe(submission.policy_source)}), if every pool were free"),
        *(Text(f"warning: job {job.row.id}: {safe(line)}") for job in submission.jobs for line in job.warnings),
        *(Text(f"assumed: {safe(line)}") for line in submission.assumptions),
    ]
    return blocks


def shown(row: JobRow, attempts: Sequence[AttemptRow], now: float) -> list[Block]:
    """One job."""
    return [
        *headed(row),
        *(Text(line) for line in asked(row)),
        *options(row.options),
        *unable(row.unable),
        *tried(attempts),
    ]


def headed(row: JobRow) -> list[Block]:
    """Which job it is and how it stands."""
    owner = f" of {safe(row.job.owner)}" if row.job.owner else ""
    words = f"Job {row.id}, {safe(row.job.name)}{owner}: {row.state}" + (", to be cancelled" if row.cancel else "")
    return [Text(words), *([Text(f"  {safe(row.reason)}")] if row.reason else [])]


def asked(row: JobRow) -> list[str]:
    """What a job asks for, one line each."""
    job = row.job
    lines = [f"  submitted {moment(row.submitted)}; {row.done:.0%} done, {format_money(row.spent)} spent"]
    if isfinite(job.deadline):
        lines.append(f"  deadline {moment(job.deadline)}, to be met with probability {job.confidence:g}")
    if isfinite(job.budget):
        lines.append(f"  budget {format_money(job.budget)}")
    if job.key:
        lines.append(f"  key {safe(job.key, REASON)}")
    lines.append(
        f"  priority {job.priority:g}; {plural(job.retries, 'retry').replace('retrys', 'retries')}; "
        + ("goes on from its checkpoints" if job.checkpoint.restartable else "starts over when stopped")
    )
    for variant in job.variants:
        command = shlex.join(safe(word) for word in variant.command)
        parts = [f"{variant.chips} x {variant.family}", safe(command, 2 * REASON) if command else "no command"]
        parts += [f"image {safe(variant.image)}"] if variant.image else []
        parts += [f"{name} set" for name, _ in variant.environment]
        parts += [f"{name} from the backend's secrets" for name in variant.secrets]
        lines.append(f"  variant {safe(variant.name)}: " + "; ".join(parts))
    return lines


def options(found: Sequence[Option]) -> list[Block]:
    """What a job would take in each pool."""
    rows = [
        [
            safe(o.pool),
            safe(o.variant),
            f"{o.chips}" + (f" ({o.topology})" if o.topology else ""),
            lasted(o.seconds.value),
            time_interval(o.seconds) if isfinite(o.seconds.high) else "-",
            format_money(o.usd) if isfinite(o.usd) else "-",
            f"{o.watts / 1000:.3g} kW",
            o.seconds.evidence,
            safe("; ".join(part for part in (o.note, o.seconds.because) if part)),
        ]
        for o in found
    ]
    return (
        [
            Table(
                ["pool", "variant", "chips", "time", "90 % interval", "cost", "power", "evidence", "rests on"],
                rows,
                frozenset({"pool", "variant", "evidence", "rests on"}),
                title="What it would take",
                under=("rests on",),
                drop=("power", "evidence"),
            )
        ]
        if rows
        else []
    )


def unable(found: Sequence[Infeasible]) -> list[Block]:
    """Where a job can't run."""
    rows = [
        [safe(u.pool), safe(u.variant) or "-", safe(u.reason) + (f"; {safe(u.unlock)}" if u.unlock else "")]
        for u in found
    ]
    return (
        [
            Table(
                ["pool", "variant", "why not"],
                rows,
                frozenset({"pool", "variant", "why not"}),
                title="Where it can't run",
            )
        ]
        if rows
        else []
    )


def tried(attempts: Sequence[AttemptRow]) -> list[Block]:
    """The attempts at a job."""
    rows = [
        [
            str(a.number),
            safe(a.pool),
            safe(a.variant),
            a.state + (f", to stop ({a.stop})" if a.stop else ""),
            "-" if a.started is None else lasted((a.ended or a.started) - a.started) if a.ended else "running",
            "-" if a.exit_code is None else str(a.exit_code),
            format_money(a.spent),
            safe(a.where, NAME),
            safe(a.reason, REASON),
        ]
        for a in attempts
    ]
    return (
        [
            Table(
                ["attempt", "pool", "variant", "state", "ran", "exit", "cost", "on", "why"],
                rows,
                frozenset({"pool", "variant", "state", "on", "why"}),
                title="Attempts",
                under=("why",),
                drop=("on", "cost"),
            )
        ]
        if rows
        else []
    )
