"""Jobs of a ledger as they really run, one or all under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from chipwise.errors import ChipwiseError, InputError, Refusal
from chipwise.observe.jobs.observation import Observation, observe_job
from chipwise.observe.jobs.view import JobObservation, JobObservations
from chipwise.observe.log import Log, read_lines
from chipwise.observe.serving.expected import Servers
from chipwise.predict.estimate import Estimate
from chipwise.route.attempt_log import attempt_of
from chipwise.route.job_log import log_lines
from chipwise.route.ledger import LedgerView, is_remote, open_ledger, open_view
from chipwise.route.ledger.records import RUNNING, AttemptRow, JobRow

ServersOf = Callable[[LedgerView], Servers]


def look_at_job(
    ledger: str, job_id: str, attempt: int | None = None, servers: ServersOf | None = None
) -> JobObservation:
    """One job: its newest attempt, or the one of a number; `servers` have the latencies of one that serves."""
    with open_view(ledger, create=False) as book:
        job = book.job(job_id)
        attempts = book.attempts(job_id)
        chosen = attempt_of(job, attempts, attempt)
        observation = _with_latencies(_observed(ledger, book, job, attempts, chosen), servers and servers(book))
        return JobObservation(book.where, observation, tuple(attempts))


def look_at_jobs(
    ledger: str,
    state: str | None = RUNNING,
    owner: str | None = None,
    limit: int | None = None,
    tell: bool = False,
    servers: ServersOf | None = None,
) -> JobObservations:
    """Jobs in a state, the newest first: each by its newest attempt. One that can't be observed says why.

    `tell`: routers reckon with what those under way take by their steps.
    """
    rows: list[Observation] = []
    with open_view(ledger, create=False) as book:
        theirs = servers and servers(book)
        for job in book.jobs(state, owner, None, limit):
            attempts = book.attempts(job.id)
            observation = _observed(ledger, book, job, attempts, attempts[-1] if attempts else None)
            rows.append(_with_latencies(observation, theirs))
        return JobObservations(book.where, tuple(rows), state, tell_routers(ledger, rows) if tell else None)


def _with_latencies(observation: Observation, servers: Servers | None) -> Observation:
    if servers is None or observation.attempt is None:
        return observation
    return replace(observation, latencies=servers.latencies(observation.job, observation.attempt, observation.at))


def expectations(observations: Iterable[Observation]) -> dict[str, Estimate]:
    """How long attempts under way take from start to end, by their steps: those of which they tell."""
    expected = {}
    for one in observations:
        if one.remaining is not None and one.attempt is not None and one.attempt.started is not None:
            passed = max(0.0, one.at - one.attempt.started)
            left = one.remaining
            expected[one.attempt.id] = replace(
                left, value=left.value + passed, low=left.low + passed, high=left.high + passed
            )
    return expected


def tell_routers(ledger: str, observations: Iterable[Observation]) -> int:
    """Let routers reckon with what attempts under way take by their steps; how many they are."""
    if is_remote(ledger):
        raise InputError("ledger", ledger, "the ledger itself, beside --tell: its service tells routers nothing")
    with open_ledger(ledger, create=False) as book:
        return book.expect(expectations(observations), time.time())


def _observed(
    ledger: str, book: LedgerView, job: JobRow, attempts: list[AttemptRow], chosen: AttemptRow | None
) -> Observation:
    logs: dict[int, Log] = {}
    problem = ""
    for attempt in attempts:
        try:
            logs[attempt.number] = read_lines(log_lines(ledger, job.id, attempt.number))
        except Refusal as refusal:
            problem = str(refusal) if attempt is chosen else problem
    try:
        observation = observe_job(book, job, chosen, logs, time.time())
    except ChipwiseError as error:  # a workload that this release can't read: the steps are there all the same
        observation = observe_job(book, replace(job, job=replace(job.job, workload="")), chosen, logs, time.time())
        problem = problem or f"its workload can't be read: {error}"
    return replace(observation, problem=problem)
