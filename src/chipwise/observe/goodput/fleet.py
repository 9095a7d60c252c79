"""Goodput of a ledger's jobs, by job, pool, team, owner or month."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from chipwise.errors import InputError, Refusal
from chipwise.observe.goodput.from_ledger import Spent, spent_by
from chipwise.observe.goodput.records import Account, Use
from chipwise.observe.goodput.view import FleetGoodput, Group
from chipwise.observe.log import Log, read_lines
from chipwise.route.access.quota import month_of, within
from chipwise.route.job_log import log_lines
from chipwise.route.ledger import open_view
from chipwise.route.ledger.records import AttemptRow


class By(StrEnum):
    """What jobs are counted together by."""

    JOB = "job"
    POOL = "pool"
    TEAM = "team"
    OWNER = "owner"
    MONTH = "month"


@dataclass(slots=True)
class _Sum:
    account: Account = field(default_factory=Account)
    jobs: set[str] = field(default_factory=set)
    attempts: set[str] = field(default_factory=set)

    def add(self, spent: Spent, share: float) -> None:
        seconds = {use: amount * share for use, amount in spent.seconds.items()}
        self.account.add_account(seconds, spent.chips, spent.usd_per_s)
        self.jobs.add(spent.job.id)
        if spent.attempt is not None:
            self.attempts.add(spent.attempt.id)


def fleet_goodput(ledger: str, by: By = By.POOL, month: str | None = None, logs: bool = False) -> FleetGoodput:
    """Where the time of a ledger's jobs went, in a month (UTC) or ever; `logs` reads what attempts printed."""
    span = None if month is None else _month(month)
    groups: dict[str, _Sum] = {}
    total, read, absent = _Sum(), set[str](), set[str]()
    with open_view(ledger, create=False) as book:
        jobs = sorted(book.jobs(), key=lambda job: int(job.id))
        reader = (lambda attempt: attempt_log(ledger, attempt)) if logs else None
        for spent in spent_by(book, jobs, time.time(), reader):
            counted = False
            for began, ended in [span] if span is not None else _months(spent) if by is By.MONTH else [(0.0, 1e18)]:
                share = within(spent.began, spent.ended, began, ended)
                if share > 0.0:
                    groups.setdefault(_key(spent, by, began), _Sum()).add(spent, share)
                    total.add(spent, share)
                    counted = True
            if logs and counted and spent.attempt is not None and Use.WAITING not in spent.seconds:
                (read if spent.from_log else absent).add(spent.attempt.id)
        where = book.where
        bad = tuple(f"{what}: {error}" for what, error in book.bad_rows.items())
    return FleetGoodput(
        ledger=where,
        by=by.value,
        groups=[
            Group(name=name, jobs=len(one.jobs), attempts=len(one.attempts), account=one.account)
            for name, one in (sorted(groups.items()) if by is By.MONTH else groups.items())
        ],
        total=total.account,
        jobs=len(total.jobs),
        attempts=len(total.attempts),
        logs_read=len(read),
        logs_absent=len(absent),
        bad_rows=bad,
    )


def attempt_log(ledger: str, attempt: AttemptRow) -> Log | None:
    """What an attempt printed, read; None where no output of it is to be had."""
    try:
        return read_lines(log_lines(ledger, attempt.job_id, attempt.number))
    except Refusal:  # its folder was removed, or its backend keeps it elsewhere
        return None


def _key(spent: Spent, by: By, began: float) -> str:
    job = spent.job
    if by is By.JOB:
        return f"{job.id} {job.job.name}"
    if by is By.MONTH:
        return datetime.fromtimestamp(began, UTC).strftime("%Y-%m")
    return {By.POOL: spent.pool, By.TEAM: job.team, By.OWNER: job.user}[by] or "none"


def _months(spent: Spent) -> Iterator[tuple[float, float]]:
    """The months in which time went by."""
    month = month_of(spent.began)
    yield month
    while month[1] < spent.ended:
        month = month_of(month[1])
        yield month


def _month(text: str) -> tuple[float, float]:
    try:
        return month_of(datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise InputError("month", text, "a month such as 2026-11") from None
