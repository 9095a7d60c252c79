"""Jobs of a ledger as every face shows them: lists, and one job with its attempts."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import flat, record, table
from chipwise.present.numbers import moment, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.attempt_output import AttemptOutput, output_blocks, read_outputs
from chipwise.route.job_columns import (
    INFEASIBLE_COLUMNS,
    OPTION_COLUMNS,
    REASON,
    VARIANT_COLUMNS,
    attempt_columns,
    feasibility,
    job_columns,
    job_record,
)
from chipwise.route.ledger import LedgerView, open_view
from chipwise.route.ledger.records import OVER, SUCCEEDED, AttemptRow, JobRow
from chipwise.route.names import JOB_STATES
from chipwise.units import format_money


@dataclass(frozen=True, slots=True, repr=False)
class JobList(Result):
    """Jobs of a ledger, and where each stands."""

    VERB: ClassVar[str] = "jobs list"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(c.key for c in job_columns(0.0) if not c.nested)
    ledger: str
    jobs: tuple[JobRow, ...]
    at: float  # seconds since 1970
    totals: Mapping[str, int] | None = None  # all jobs of the ledger, by state
    bad_rows: tuple[str, ...] = ()  # jobs that are left out, as their rows can't be read

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        totals = {} if self.totals is None else {"totals": self.totals}
        bad = {"bad_rows": self.bad_rows} if self.bad_rows else {}
        return {"ledger": self.ledger, "jobs": [job_record(job) for job in self.jobs], **totals, **bad}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job."""
        return [flat(job_columns(self.at), job) for job in self.jobs]

    def blocks(self) -> list[Block]:
        """For people."""
        counts = ", ".join(f"{n:,} {state}" for state, n in (self.totals or {}).items())
        bad = [Text(f"left out: {safe(line)}") for line in self.bad_rows]
        if not self.jobs:
            words = f"no such job; there are {counts}" if counts else "no job"
            return [Text(f"ledger {safe(self.ledger)}: {words}"), *bad]
        title = f"ledger {safe(self.ledger)}" + (f": {counts}" if counts else "")
        return [Text(title), table(job_columns(self.at), self.jobs), *bad]


class WaitedJobs(JobList):
    """Jobs that were waited for."""

    __slots__ = ()
    VERB = "jobs wait"

    @property
    def over(self) -> bool:
        """Whether all are: the time was not up before."""
        return all(job.state in OVER for job in self.jobs)

    @property
    def succeeded(self) -> bool:
        """Whether all have."""
        return all(job.state == SUCCEEDED for job in self.jobs)


class CancelledJobs(JobList):
    """Jobs that were cancelled, or are to be."""

    __slots__ = ()
    VERB = "jobs cancel"


class RetriedJobs(JobList):
    """Jobs that are pending again."""

    __slots__ = ()
    VERB = "jobs retry"


CHANGES: dict[str, type[JobList]] = {"cancel": CancelledJobs, "retry": RetriedJobs}


@dataclass(frozen=True, slots=True, repr=False)
class JobSheet(Result):
    """One job: what it asks for, what it would take in each pool, its attempts."""

    VERB: ClassVar[str] = "jobs show"
    job: JobRow
    attempts: tuple[AttemptRow, ...]
    outputs: Mapping[str, AttemptOutput]  # of attempts that failed or were lost

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return sheet_record(self.job, self.attempts, self.outputs)

    def blocks(self) -> list[Block]:
        """For people."""
        attempts = table(attempt_columns(self.outputs), self.attempts, title="Attempts")
        return [
            *request_blocks(self.job),
            *([attempts] if self.attempts else []),
            *output_blocks(self.attempts, self.outputs),
        ]


def list_jobs(
    ledger: str, state: str | None = None, owner: str | None = None, name: str | None = None, limit: int = 100
) -> JobList:
    """The newest jobs of a ledger: all, or those of a state, an owner or a name."""
    if state is not None and state not in JOB_STATES:
        raise InputError("state", state, f"one of {', '.join(JOB_STATES)}")
    with open_view(ledger, create=False) as book:
        totals = {name: int(count) for name, count in book.totals()["jobs"].items()}
        jobs = tuple(book.jobs(state, owner, name, limit))
        return JobList(book.where, jobs, time.time(), totals, tuple(map(str, book.bad_rows.values())))


def show_job(ledger: str, job: str) -> JobSheet:
    """One job of a ledger."""
    with open_view(ledger, create=False) as book:
        attempts = tuple(book.attempts(job))
        return JobSheet(book.job(job), attempts, read_outputs(book, attempts))


def change_jobs(ledger: str, change: str, jobs: Sequence[str]) -> JobList:
    """Cancel or retry jobs, all or none."""
    now = time.time()
    with open_view(ledger, create=False) as book:
        book.change(change, list(dict.fromkeys(jobs)), now)
        return CHANGES[change](book.where, _rows(book, jobs), now)


def wait_for_jobs(
    ledger: str, jobs: Sequence[str], timeout: float | None = None, report: Callable[[int], None] = lambda over: None
) -> WaitedJobs:
    """The jobs once all of them are over, or after a time-out in seconds; `report` is told how many are."""
    until = None if timeout is None else time.monotonic() + timeout
    with open_view(ledger, create=False) as book:
        rows = _wait(book, jobs, until, report)
        return WaitedJobs(book.where, rows, time.time())


def _wait(
    book: LedgerView, jobs: Sequence[str], until: float | None, report: Callable[[int], None]
) -> tuple[JobRow, ...]:
    pause = 0.1
    while True:
        rows = _rows(book, jobs)
        over = sum(row.state in OVER for row in rows)
        left = None if until is None else until - time.monotonic()
        if over == len(rows) or (left is not None and left <= 0):
            return rows
        report(over)
        time.sleep(pause if left is None else min(pause, left))
        pause = min(2.0, 1.5 * pause)  # jobs last minutes: two seconds late is soon enough, and spares the ledger


def _rows(book: LedgerView, jobs: Sequence[str]) -> tuple[JobRow, ...]:
    return tuple(book.job(job) for job in jobs)


def sheet_record(job: JobRow, attempts: Sequence[AttemptRow], outputs: Mapping[str, AttemptOutput]) -> dict[str, Any]:
    """A job with its variants and attempts, as JSON has it."""
    columns = attempt_columns(outputs)
    return {
        **job_record(job),
        **feasibility(job),
        "variants": [record(VARIANT_COLUMNS, variant) for variant in job.job.variants],
        "attempts": [record(columns, attempt) for attempt in attempts],
    }


def request_blocks(job: JobRow) -> list[Block]:
    """Which job it is, how it stands, what it asks for, and where it can run."""
    owner = f" of {safe(job.job.owner)}" if job.job.owner else ""
    cancelling = ", to be cancelled" if job.cancel else ""
    return [
        Text(f"Job {job.id}, {safe(job.job.name)}{owner}: {job.state}{cancelling}"),
        *([Text(f"  {safe(job.reason)}")] if job.reason else []),
        *(Text(f"  {line}") for line in _request(job)),
        *([table(OPTION_COLUMNS, job.options, title="What it would take")] if job.options else []),
        *([table(INFEASIBLE_COLUMNS, job.infeasible, title="Where it can't run")] if job.infeasible else []),
    ]


def _request(row: JobRow) -> list[str]:
    """What a job asks for, one line each."""
    job = row.job
    lines = [f"submitted {moment(row.submitted)}; {row.done:.0%} done, {format_money(row.spent)} spent"]
    if isfinite(job.deadline):
        lines.append(f"deadline {moment(job.deadline)}, to be met with probability {job.confidence:g}")
    if isfinite(job.budget):
        lines.append(f"budget {format_money(job.budget)}")
    if job.key:
        lines.append(f"key {safe(job.key, REASON)}")
    lines.append(
        f"priority {job.priority:g}; {plural(job.retries, 'retry').replace('retrys', 'retries')}; "
        + ("goes on from its checkpoints" if job.checkpoint.restartable else "starts over when stopped")
    )
    for variant in job.variants:
        command = shlex.join(safe(word) for word in variant.command)
        parts = [f"{variant.chips} x {variant.family}", safe(command, 2 * REASON) if command else "no command"]
        parts += [f"image {safe(variant.image)}"] if variant.image else []
        parts += [f"{name} set" for name, _ in variant.environment]
        parts += [f"{name} from the backend's secrets" for name in variant.secrets]
        lines.append(f"variant {safe(variant.name)}: " + "; ".join(parts))
    return lines
