"""From rows of the tables to records, and the events that every change leaves."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from math import inf, nextafter
from typing import Any

from chipwise.errors import InputError
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job
from chipwise.route.ledger.codec import decode, encode, storable
from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.records import AttemptRow, DecisionRow, Event, JobRow
from chipwise.route.option import Infeasible, Option

JOB = (
    "id, state, submitted, done, spent, reason, failures, failed_at, not_before, cancel, changed, "
    "job, options, infeasible"
)
ATTEMPT = (
    "id, job_id, number, plan, state, router, lease, backend_id, intended, submitted, started, "
    "ended, exit_code, place, reason, restarts, stop, spent"
)
LONGEST = 10_000  # characters of a reason or an event: a backend's words can be a whole log
_Parts = tuple[Job, tuple[Option, ...], tuple[Infeasible, ...]]
_ALIKE = 4096  # texts of options that are kept decoded: jobs of one kind have the same
_KEPT = 50_000  # jobs whose unchanging parts are kept decoded


class Decoded:
    """Jobs with their options, decoded once: those of most jobs never change."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str, str], _Parts] = OrderedDict()

    def job(self, row: Row) -> JobRow:
        """The record of a row selected as JOB."""
        number, state, submitted, done, spent, reason, failures, failed_at, not_before, cancel, changed, *texts = row
        job, options, infeasible = self._parts(number, *texts)
        failed = None if failed_at is None else decode(tuple[str, str], failed_at)
        return JobRow(
            str(number),
            job,
            state,
            submitted,
            options,
            infeasible,
            done,
            spent,
            reason,
            failures,
            failed,
            not_before,
            bool(cancel),
            changed,
        )

    def _parts(self, number: int, job: str, options: str, infeasible: str) -> _Parts:
        key = (number, options, infeasible)
        parts = self._kept.get(key)
        if parts is None:
            parts = (decode(Job, job), _options(options), _infeasible(infeasible))
            self._kept[key] = parts
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return parts


@lru_cache(_ALIKE)
def _options(text: str) -> tuple[Option, ...]:
    return decode(tuple[Option, ...], text)


@lru_cache(_ALIKE)
def _infeasible(text: str) -> tuple[Infeasible, ...]:
    return decode(tuple[Infeasible, ...], text)


def attempt_of(row: Row) -> AttemptRow:
    """The record of a row selected as ATTEMPT."""
    name, job, number, plan, *rest = row
    option = decode(Option, plan)
    return AttemptRow(name, str(job), number, option.pool, option.variant, option, *rest)


def decision_of(row: Row) -> DecisionRow:
    """The record of a row (id, at, policy, router, decision)."""
    number, when, policy, router, decision = row
    return DecisionRow(number, when, policy, router, decode(Decision, decision))


def event_of(row: Row) -> Event:
    """The record of a row (id, at, job_id, attempt, kind, text, data)."""
    number, when, job, attempt, kind, text, data = row
    return Event(number, when, str(job), attempt, kind, text, decode(dict[str, Any], data))


def job_number(job_id: str) -> int:
    """The number that an id of a job is, or an error that says what ids are."""
    if not (job_id.isascii() and job_id.isdigit() and len(job_id) < 19):
        raise InputError("job", job_id, "the number of a job, as `chipwise jobs list` shows it")
    return int(job_id)


def text_of(text: str) -> str:
    """A text as it is stored: every character storable, and no longer than a person may read."""
    text = storable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... (cut short)"


def note(db: Database, when: float, job: int, kind: str, text: str = "", attempt: str = "", **data: object) -> None:
    """Write an event."""
    notes(db, [(when, job, attempt, kind, text, data)])


def notes(db: Database, events: list[tuple[float, int, str, str, str, dict[str, Any]]]) -> None:
    """Write events: time, job, attempt, kind, text, data."""
    if events:
        last = next_id(db, "events")
        db.many(
            "INSERT INTO events (id, at, job_id, attempt, kind, text, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (last + i, when, job, attempt, kind, text_of(text), encode(data, dict[str, Any]))
                for i, (when, job, attempt, kind, text, data) in enumerate(events)
            ],
        )


def next_id(db: Database, table: str) -> int:
    """The next number of a table. Writers run one at a time, so that numbers have no gaps and follow commits."""
    row = db.one(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")
    assert row is not None
    return int(row[0])


def stamp(db: Database, now: float) -> float:
    """When a job changes: now, but after every change before, so that `changed` orders commits on any clock."""
    row = db.one("SELECT max(changed) FROM jobs")
    last = row[0] if row and row[0] is not None else 0.0
    return max(now, nextafter(last, inf))
