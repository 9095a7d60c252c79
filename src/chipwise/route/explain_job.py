"""The explanation of a job's state: what was predicted, decided and tried, from the ledger alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

from chipwise.present.blocks import Block, section
from chipwise.present.columns import record
from chipwise.present.numbers import duration, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.attempt_output import AttemptOutput, output_blocks, read_outputs
from chipwise.route.job_columns import DECISION_COLUMNS, EVENT_COLUMNS
from chipwise.route.job_view import request_blocks, sheet_record
from chipwise.route.ledger import open_view
from chipwise.route.ledger.liveness import liveness
from chipwise.route.ledger.records import (
    CANCELLED,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    AttemptRow,
    BackendRow,
    DecisionRow,
    Event,
    JobRow,
    NodeRow,
    RouterRow,
)
from chipwise.units import format_money

LATEST = 50  # decisions shown; a job that waits for weeks has more, and the latest matter
PLAIN = frozenset({"decided", "intended", "succeeded", "pending"})  # shown by the lines beside them


@dataclass(frozen=True, slots=True, repr=False)
class JobExplanation(Result):
    """All that the ledger knows of a job, at one moment."""

    VERB: ClassVar[str] = "jobs explain"
    at: float  # seconds since 1970
    job: JobRow
    attempts: tuple[AttemptRow, ...]
    decisions: tuple[DecisionRow, ...]
    events: tuple[Event, ...]
    routers: tuple[RouterRow, ...]
    backends: tuple[BackendRow, ...]
    drained: Mapping[str, str]
    nodes: tuple[NodeRow, ...]
    outputs: Mapping[str, AttemptOutput]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **sheet_record(self.job, self.attempts, self.outputs),
            "decisions": [record(DECISION_COLUMNS, decision) for decision in self.decisions],
            "events": [record(EVENT_COLUMNS, event) for event in self.events],
            "happened": history(self),
            "now": current_state(self),
        }

    def blocks(self) -> list[Block]:
        """For people."""
        return [
            *request_blocks(self.job),
            *section("What happened", history(self)),
            *output_blocks(self.attempts, self.outputs),
            *section("Now", current_state(self)),
        ]


def explain_job(ledger: str, job: str) -> JobExplanation:
    """The whole story of a job: predictions, every decision with its reason, every attempt, why it is pending now."""
    with open_view(ledger, create=False) as book:
        attempts = tuple(book.attempts(job))
        return JobExplanation(
            time.time(),
            book.job(job),
            attempts,
            tuple(book.decisions(job, LATEST)),
            tuple(book.events(job)),
            tuple(book.routers()),
            tuple(book.backends()),
            book.drained(),
            tuple(row for row in book.nodes() if row.drained),
            read_outputs(book, attempts),
        )


def history(explanation: JobExplanation) -> list[str]:
    """What happened, in order; times count from the submission."""
    decisions = {d.id: d for d in explanation.decisions}
    attempts = {a.id: a for a in explanation.attempts}
    lines, last = [], None
    for event in explanation.events:
        when = f"+{duration(event.at - explanation.job.submitted)}"
        attempt = attempts.get(event.attempt)
        if event.kind == "decided":
            decision = decisions.get(event.data.get("decision", 0))
            lines += [f"{when}: {line}" if i == 0 else f"  {line}" for i, line in enumerate(_decision_lines(decision))]
        elif event.kind == "intended" and attempt is not None:
            lines.append(f"{when}: {_begin(attempt, last)}")
            last = attempt
        elif event.kind == "ended" and attempt is not None:
            lines.append(f"{when}: {_end(attempt)}")
        elif event.kind == "submitted" and not event.attempt:
            lines.append(f"{when}: submitted")
        elif event.kind not in PLAIN:
            who = f"attempt {attempt.number}: " if attempt is not None else ""
            lines.append(f"{when}: {who}{safe(event.kind)}" + (f": {safe(event.text)}" if event.text else ""))
    return lines


def _decision_lines(row: DecisionRow | None) -> list[str]:
    if row is None:
        return ["decided (not among the latest decisions)"]
    decision = row.decision
    what = {
        "start": f"start in {decision.pool} as {decision.variant}",
        "stop": "stop it",
        "wait": f"wait for {decision.pool}" if decision.pool else "wait",
    }.get(decision.kind, decision.kind)
    first = f"policy {safe(row.policy)}, router {safe(row.router)}: {safe(what)}"
    return [
        first + (f": {safe(decision.reason)}" if decision.reason else ""),
        *(f"compared: {line}" for line in _score_lines(decision.scores)),
    ]


def _score_lines(scores: Mapping[str, Any]) -> list[str]:
    """What a policy compared, pool by pool."""
    lines = []
    for pool, facts in scores.items():
        if not isinstance(facts, Mapping):
            lines.append(f"{safe(pool)}: {safe(str(facts))}")
            continue
        score = facts.get("score")
        parts = ["not wanted" if score is None or not isfinite(score) else f"score {score:.4g}"]
        if isinstance(facts.get("seconds"), (int, float)):
            parts.append(f"takes {duration(facts['seconds'])}")
        if isinstance(facts.get("usd"), (int, float)) and isfinite(facts["usd"]):
            parts.append(f"costs {format_money(facts['usd'])}")
        if facts.get("start") is None:
            parts.append("start unknown")
        if facts.get("last_failed"):
            parts.append("failed there last")
        lines.append(f"{safe(pool)}: {', '.join(parts)}")
    return lines


def _begin(attempt: AttemptRow, last: AttemptRow | None) -> str:
    option = attempt.option
    chips = plural(option.chips, "chip") + (f" as {option.topology}" if option.topology else "")
    chips += f", {option.layout}" if option.layout else ""
    words = f"attempt {attempt.number} in {safe(attempt.pool)}, variant {safe(attempt.variant)} ({safe(chips)})"
    if last is not None and (last.pool, last.variant) != (attempt.pool, attempt.variant):
        ended = "failed" if last.state == "failed" else f"was {last.state}"
        words += f"; fallback from {safe(last.pool)}, variant {safe(last.variant)}, which {ended}"
    return words


def _end(attempt: AttemptRow) -> str:
    words = f"attempt {attempt.number} in {safe(attempt.pool)} ended: {attempt.state}"
    if attempt.exit_code is not None:
        words += f", exit status {attempt.exit_code}"
    if attempt.started is not None and attempt.ended is not None:
        words += f", after {duration(attempt.ended - attempt.started)}"
    if attempt.spent:
        words += f", {format_money(attempt.spent)}"
    return words + (f": {safe(attempt.reason)}" if attempt.reason else "")


def current_state(explanation: JobExplanation) -> list[str]:
    """Why the job is in its state."""
    job = explanation.job
    if job.state == SUCCEEDED:
        tries = len(explanation.attempts)
        best = next((a for a in explanation.attempts if a.state == "succeeded"), None)
        return [
            f"succeeded, at attempt {tries}"
            + (f" in {safe(best.pool)} as {safe(best.variant)}" if best else "")
            + f"; {format_money(job.spent)} in all"
        ]
    if job.state == FAILED:
        return [f"failed: {safe(job.reason)}", f"`chipwise jobs retry {job.id}` queues it again"]
    if job.state == CANCELLED:
        return [safe(job.reason or "cancelled"), f"`chipwise jobs retry {job.id}` queues it again"]
    lines = _running(explanation) if job.state == RUNNING else []
    lines += _pending(explanation) if job.state == PENDING else []
    return lines + _cluster(explanation)


def _running(explanation: JobExplanation) -> list[str]:
    return [
        f"attempt {a.number} is {a.state} in {safe(a.pool)}"
        + (f", on {safe(a.where)}" if a.where else "")
        + (f"; it is to stop ({a.stop})" if a.stop else "")
        + _expected(a, explanation.at)
        for a in explanation.attempts
        if a.ended is None
    ]


def _expected(attempt: AttemptRow, now: float) -> str:
    """What is left by what its steps took, if somebody has told, and what was predicted of all of it."""
    expected = attempt.expected
    if expected is None or attempt.started is None:
        return ""
    left, low, high = (
        duration(max(0.0, attempt.started + end - now)) for end in (expected.value, expected.low, expected.high)
    )
    predicted = attempt.option.seconds.value
    cost = format_money(attempt.option.usd_hour * expected.value / 3600 + attempt.option.usd_once)
    instead = f", not {duration(predicted)} as predicted" if isfinite(predicted) and predicted > 0 else ""
    whole = f"{duration(expected.value)} and {cost} in all{instead}"
    return f"; by its steps {left} are left ({low} to {high}): {whole}"


def _pending(explanation: JobExplanation) -> list[str]:
    job = explanation.job
    lines = [safe(job.reason) if ": waits" in job.reason else f"waits: {safe(job.reason)}"]
    if job.not_before > explanation.at:
        lines.append(f"is not tried again for {duration(job.not_before - explanation.at)}")
    if job.failed_at is not None:
        lines.append(f"failed last in {safe(job.failed_at[0])} as {safe(job.failed_at[1])}: others come first")
    pools = {option.pool for option in job.options}
    drained = ((pool, reason) for pool, reason in explanation.drained.items() if pool in pools)
    nodes = (row for row in explanation.nodes if row.pool in pools)
    return [
        *lines,
        *(f"pool {safe(pool)} is drained: {safe(reason)}" for pool, reason in drained),
        *(f"node {safe(row.node)} of {safe(row.pool)} is drained: {safe(row.reason)}" for row in nodes),
    ]


def _cluster(explanation: JobExplanation) -> list[str]:
    """What holds every job up: routers and backends that do not answer."""
    lines = [f"backend {safe(e.name)} does not answer: {safe(e.error)}" for e in explanation.backends if not e.ok]
    routers = explanation.routers
    if any(liveness(router, explanation.at) == "alive" for router in routers):
        return lines
    if not routers:
        return [*lines, "no router has run on this ledger: `chipwise router run` starts one"]
    ago = duration(explanation.at - max(router.seen for router in routers))
    return [*lines, f"no router runs: the last was seen {ago} ago; `chipwise router run` starts one"]
