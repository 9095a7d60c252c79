"""The whole story of a job in plain words: what was predicted, decided, tried, and why it stands as it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from chipwise.cli.jobs_blocks import asked, headed, lasted, options, safe, unable
from chipwise.cli.jobs_output import Output, outputs
from chipwise.cli.jobs_output import blocks as printed
from chipwise.present.blocks import Block, Text
from chipwise.present.numbers import plural
from chipwise.route.ledger.liveness import liveness
from chipwise.route.ledger.records import CANCELLED, FAILED, PENDING, RUNNING, SUCCEEDED
from chipwise.units import format_money

if TYPE_CHECKING:
    from chipwise.route.ledger import Ledger
    from chipwise.route.ledger.records import AttemptRow, BackendRow, DecisionRow, Event, JobRow, RouterRow

LATEST = 50  # decisions shown; a job that waits for weeks has more, and the latest matter
PLAIN = frozenset({"decided", "intended", "succeeded", "pending"})  # said by what stands beside them


@dataclass(frozen=True, slots=True)
class Story:
    """All that the ledger knows of a job, at one moment."""

    now: float
    row: JobRow
    attempts: Sequence[AttemptRow]
    decisions: Sequence[DecisionRow]
    events: Sequence[Event]
    routers: Sequence[RouterRow]
    backends: Sequence[BackendRow]
    drained: Mapping[str, str]
    outputs: Mapping[str, Output]


def read(book: Ledger, job_id: str, now: float) -> Story:
    """The story of a job."""
    attempts = book.attempts(job_id)
    return Story(
        now,
        book.job(job_id),
        attempts,
        book.decisions(job_id, LATEST),
        book.events(job_id),
        book.routers(),
        book.backends(),
        book.drained(),
        outputs(book, attempts),
    )


def blocks(told: Story) -> list[Block]:
    """The story for people."""
    return [
        *headed(told.row),
        *(Text(line) for line in asked(told.row)),
        *options(told.row.options),
        *unable(told.row.unable),
        Text("What happened", heading=True),
        *(Text(f"  {line}") for line in happened(told)),
        *printed(told.attempts, told.outputs),
        Text("Now", heading=True),
        *(Text(f"  {line}") for line in standing(told)),
    ]


def happened(told: Story) -> list[str]:
    """What happened, in order; times count from the submission."""
    by_id = {d.id: d for d in told.decisions}
    attempts = {a.id: a for a in told.attempts}
    lines, last = [], None
    for event in told.events:
        at = f"+{lasted(event.at - told.row.submitted)}"
        attempt = attempts.get(event.attempt)
        if event.kind == "decided":
            found = by_id.get(event.data.get("decision", 0))
            lines += [f"{at}: {line}" if i == 0 else f"  {line}" for i, line in enumerate(_decided(found))]
        elif event.kind == "intended" and attempt is not None:
            lines.append(f"{at}: {_begun(attempt, last)}")
            last = attempt
        elif event.kind == "ended" and attempt is not None:
            lines.append(f"{at}: {_ended(attempt)}")
        elif event.kind == "submitted" and not event.attempt:
            lines.append(f"{at}: submitted")
        elif event.kind not in PLAIN:
            who = f"attempt {attempt.number}: " if attempt is not None else ""
            lines.append(f"{at}: {who}{safe(event.kind)}" + (f": {safe(event.text)}" if event.text else ""))
    return lines


def _decided(found: DecisionRow | None) -> list[str]:
    if found is None:
        return ["decided (not among the latest decisions)"]
    decision = found.decision
    what = {
        "start": f"start in {decision.pool} as {decision.variant}",
        "stop": "stop it",
        "wait": f"wait for {decision.pool}" if decision.pool else "wait",
    }.get(decision.kind, decision.kind)
    first = f"policy {safe(found.policy)}, router {safe(found.router)}: {safe(what)}"
    return [
        first + (f": {safe(decision.reason)}" if decision.reason else ""),
        *(f"compared: {line}" for line in compared(decision.scores)),
    ]


def compared(scores: Mapping[str, Any]) -> list[str]:
    """What a policy compared, pool by pool."""
    lines = []
    for pool, found in scores.items():
        if not isinstance(found, Mapping):
            lines.append(f"{safe(pool)}: {safe(str(found))}")
            continue
        score = found.get("score")
        parts = ["not wanted" if score is None or not isfinite(score) else f"score {score:.4g}"]
        if isinstance(found.get("seconds"), (int, float)):
            parts.append(f"takes {lasted(found['seconds'])}")
        if isinstance(found.get("usd"), (int, float)) and isfinite(found["usd"]):
            parts.append(f"costs {format_money(found['usd'])}")
        if found.get("start") is None:
            parts.append("start unknown")
        if found.get("last_failed"):
            parts.append("failed there last")
        lines.append(f"{safe(pool)}: {', '.join(parts)}")
    return lines


def _begun(attempt: AttemptRow, last: AttemptRow | None) -> str:
    o = attempt.option
    chips = plural(o.chips, "chip") + (f" as {o.topology}" if o.topology else "")
    chips += f", {o.layout}" if o.layout else ""
    words = f"attempt {attempt.number} in {safe(attempt.pool)}, variant {safe(attempt.variant)} ({safe(chips)})"
    if last is not None and (last.pool, last.variant) != (attempt.pool, attempt.variant):
        ended = "failed" if last.state == "failed" else f"was {last.state}"
        words += f"; fallback from {safe(last.pool)}, variant {safe(last.variant)}, which {ended}"
    return words


def _ended(attempt: AttemptRow) -> str:
    words = f"attempt {attempt.number} in {safe(attempt.pool)} ended: {attempt.state}"
    if attempt.exit_code is not None:
        words += f", exit status {attempt.exit_code}"
    if attempt.started is not None and attempt.ended is not None:
        words += f", after {lasted(attempt.ended - attempt.started)}"
    if attempt.spent:
        words += f", {format_money(attempt.spent)}"
    return words + (f": {safe(attempt.reason)}" if attempt.reason else "")


def standing(told: Story) -> list[str]:
    """Why the job stands as it does."""
    row = told.row
    if row.state == SUCCEEDED:
        tries = len(told.attempts)
        where = next((a for a in told.attempts if a.state == "succeeded"), None)
        return [
            f"succeeded, at attempt {tries}"
            + (f" in {safe(where.pool)} as {safe(where.variant)}" if where else "")
            + f"; {format_money(row.spent)} in all"
        ]
    if row.state == FAILED:
        return [f"failed: {safe(row.reason)}", f"`chipwise jobs retry {row.id}` queues it again"]
    if row.state == CANCELLED:
        return [safe(row.reason or "cancelled"), f"`chipwise jobs retry {row.id}` queues it again"]
    lines = []
    if row.state == RUNNING:
        lines += [
            f"attempt {a.number} is {a.state} in {safe(a.pool)}"
            + (f", on {safe(a.where)}" if a.where else "")
            + (f"; it is to stop ({a.stop})" if a.stop else "")
            for a in told.attempts
            if a.ended is None
        ]
    if row.state == PENDING:
        lines.append(safe(row.reason) if ": waits" in row.reason else f"waits: {safe(row.reason)}")
        if row.not_before > told.now:
            lines.append(f"is not tried again for {lasted(row.not_before - told.now)}")
        if row.failed_at is not None:
            lines.append(f"failed last in {safe(row.failed_at[0])} as {safe(row.failed_at[1])}: others come first")
        lines += [
            f"pool {safe(pool)} is drained: {safe(reason)}"
            for pool, reason in told.drained.items()
            if any(o.pool == pool for o in row.options)
        ]
    return lines + _around(told)


def _around(told: Story) -> list[str]:
    """What holds every job up: routers and backends that do not answer."""
    lines = [f"backend {safe(e.name)} does not answer: {safe(e.error)}" for e in told.backends if not e.ok]
    if any(liveness(router, told.now) == "alive" for router in told.routers):
        return lines
    if not told.routers:
        return [*lines, "no router has run on this ledger: `chipwise router run` starts one"]
    ago = lasted(told.now - max(r.seen for r in told.routers))
    return [*lines, f"no router runs: the last was seen {ago} ago; `chipwise router run` starts one"]
