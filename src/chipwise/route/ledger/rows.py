"""From rows of the tables to records, and the events that every change leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from math import inf, isfinite, isnan, nextafter
from operator import attrgetter
from typing import Any

from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job
from chipwise.route.ledger.codec import decode, encode, storable
from chipwise.route.ledger.database import Database, Row
from chipwise.route.ledger.error import BadRow
from chipwise.route.ledger.records import OVER, AttemptRow, DecisionRow, Event, JobRow
from chipwise.route.option import Infeasible, Option

JOB = (
    "id, state, submitted, done, spent, reason, failures, failed_at, not_before, cancel, changed, "
    "submitter, team, job, options, infeasible"
)
ATTEMPT = (
    "id, job_id, number, plan, state, router, lease, backend_id, intended, submitted, started, "
    "ended, exit_code, place, reason, restarts, stop, spent, digest, seen, expected"
)
DECISION = "id, at, policy, router, decision"
EVENT = "id, at, job_id, attempt, kind, text, data"
LONGEST = 10_000  # characters of a reason or an event: a backend's words can be a whole log
_Parts = tuple[Job, tuple[Option, ...], tuple[Infeasible, ...]]
_ALIKE = 4096  # texts of options that are kept decoded: jobs of one kind have the same
# what reading a damaged record raises
_UNREADABLE = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_NAMED = re.compile(r'\{"name":("(?:[^"\\]|\\.)*")')  # how the text of a job begins
_AFTER_NAME = attrgetter(*(field.name for field in fields(Job)[1:]))
_KEPT = 50_000  # jobs whose unchanging parts are kept decoded


class Decoded:
    """Jobs with their options, decoded once: those of most jobs never change. Jobs that are over are not kept."""

    def __init__(self) -> None:
        self._kept: dict[int, _Parts] = {}

    def job(self, row: Row) -> JobRow:
        """The record of a row selected as JOB."""
        (
            number, state, submitted, done, spent, reason, failures, failed_at, not_before, cancel, changed,
            submitter, team, text, options, infeasible,
        ) = row  # fmt: skip
        try:  # no context manager, no call more than needed: a first pass reads every open job
            if not isfinite(submitted + done + spent + failures + not_before + changed):
                _check_finite(submitted, done, spent, failures, not_before, changed)
            job, ways, obstacles = self._parts(number, state in OVER, text, options, infeasible)
            failed = None if failed_at is None else decode(tuple[str, str], failed_at)
        except _UNREADABLE as error:
            raise BadRow("job", number, f"{type(error).__name__}: {error}") from None
        return JobRow(
            str(number),
            job,
            state,
            submitted,
            ways,
            obstacles,
            done,
            spent,
            reason,
            failures,
            failed,
            not_before,
            bool(cancel),
            changed,
            submitter,
            team,
        )

    def _parts(self, number: int, over: bool, job: str, options: str, infeasible: str) -> _Parts:
        ways, obstacles = _options(options), _infeasible(infeasible)
        parts = self._kept.pop(number, None) if over else self._kept.get(number)
        if over:  # a router sees it once more, and then no more
            return parts or (_job(job), ways, obstacles)
        if parts is None or parts[1] is not ways or parts[2] is not obstacles:
            if len(self._kept) == _KEPT:
                self._kept.clear()
            parts = self._kept[number] = (_job(job), ways, obstacles)
        return parts


@contextmanager
def _whole(kind: str, row_id: object) -> Iterator[None]:
    """Take whatever goes wrong as this row's own fault: it is read from text that other programs may have written."""
    try:
        yield
    except _UNREADABLE as error:
        raise BadRow(kind, row_id, f"{type(error).__name__}: {error}") from None


def _check_finite(*numbers: Any) -> None:
    """Refuse what is no finite number: SQLite stores any value in any column."""
    for number in numbers:
        if not isfinite(number):
            raise ValueError(f"{number} where a finite number belongs")


def _job(text: str) -> Job:
    """A job of which many may differ in their names alone: what comes after the name is decoded once."""
    named = _NAMED.match(text)
    if named is None:
        return _sound(decode(Job, text))
    name, alike = named[1], _nameless(text[named.end() :])
    return Job(json.loads(name) if "\\" in name else name[1:-1], *alike)


@lru_cache(_ALIKE)
def _nameless(rest: str) -> tuple[Any, ...]:
    return _AFTER_NAME(_sound(decode(Job, f'{{"name":""{rest}')))


def _sound(job: Job) -> Job:
    """A job that arrays can hold, as `_checked` has it for options."""
    _check_finite(job.priority, job.confidence, job.retries)
    if isnan(job.deadline) or isnan(job.budget):
        raise ValueError("a deadline or budget that is no number")
    for variant in job.variants:
        _check_finite(variant.chips)
    return job


@lru_cache(_ALIKE)
def _options(text: str) -> tuple[Option, ...]:
    return tuple(_checked(option) for option in decode(tuple[Option, ...], text))


def _checked(option: Option) -> Option:
    """An option that arrays can hold: one that they can't would stop the scheduling of all jobs."""
    _check_finite(option.chips, option.seconds.value, option.usd_hour, option.watts, option.usd_once)
    if option.chips < 1 or not (isinstance(option.pool, str) and isinstance(option.variant, str)):
        raise ValueError(f"an option of {option.chips} chips in pool {option.pool!r} as variant {option.variant!r}")
    return option


@lru_cache(_ALIKE)
def _infeasible(text: str) -> tuple[Infeasible, ...]:
    return decode(tuple[Infeasible, ...], text)


def options_of(job_id: str, text: str) -> tuple[Option, ...]:
    """The options of a job."""
    with _whole("job", job_id):
        return _options(text)


def attempt_of(row: Row) -> AttemptRow:
    """The record of a row selected as ATTEMPT."""
    name, job, number, plan, state, router, lease, backend_id, intended, *rest, seen, steps = row
    with _whole("attempt", name):
        option = _plan(plan)
        if not all(isinstance(word, str) for word in (name, state, router, backend_id)):
            raise ValueError("a blob or a number in place of words")
        expected = decode(Estimate, steps) if steps else None
        if expected is not None:
            _check_finite(expected.value, expected.low, expected.high)
        _check_finite(number, lease, intended, seen, *(moment for moment in rest[:3] if moment is not None))
    rest += [seen, expected]
    return AttemptRow(
        name, str(job), number, option.pool, option.variant, option, state, router, lease, backend_id, intended, *rest
    )


@lru_cache(_ALIKE)
def _plan(text: str) -> Option:
    return _checked(decode(Option, text))


def decision_of(row: Row) -> DecisionRow:
    """The record of a row (id, at, policy, router, decision)."""
    number, when, policy, router, decision = row
    with _whole("decision", number):
        return DecisionRow(number, when, policy, router, decode(Decision, decision))


def event_of(row: Row) -> Event:
    """The record of a row (id, at, job_id, attempt, kind, text, data)."""
    number, when, job, attempt, kind, text, data = row
    with _whole("event", number):
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


def notes(
    db: Database, events: list[tuple[float, int, str, str, str, dict[str, Any]]], first: int | None = None
) -> None:
    """Write events: time, job, attempt, kind, text, data. `first`: their first number, where it is known."""
    if events:
        last = next_id(db, "events") if first is None else first
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


def heads(db: Database, now: float, chain: str) -> tuple[int, int, float, tuple[int, str] | None]:
    """In one query: the next numbers of jobs and events, when a job changes (`stamp`), the last entry of a chain."""
    last = "FROM audit WHERE chain = ? ORDER BY number DESC LIMIT 1"
    row = db.one(
        "SELECT (SELECT max(id) FROM jobs), (SELECT max(id) FROM events), "
        f"(SELECT max(changed) FROM jobs WHERE changed < 1e300), (SELECT number {last}), (SELECT hash {last})",
        storable(chain),
        storable(chain),
    )
    assert row is not None
    job, event, changed, number, digest = row
    entry = None if number is None else (int(number), str(digest))
    return (job or 0) + 1, (event or 0) + 1, max(now, nextafter(changed or 0.0, inf)), entry


def stamp(db: Database, now: float) -> float:
    """When a job changes: now, but after every change before, so that `changed` orders commits on any clock."""
    row = db.one("SELECT max(changed) FROM jobs WHERE changed < 1e300")  # SQLite puts texts after all numbers
    last = row[0] if row and row[0] is not None else 0.0
    return max(now, nextafter(last, inf))
