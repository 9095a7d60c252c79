"""Jobs as plain dictionaries: what `-o json` and `-o csv` print. Documented in docs/json.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from chipwise.cli.records import head

if TYPE_CHECKING:
    from chipwise.cli.jobs_output import Output
    from chipwise.cli.jobs_story import Story
    from chipwise.predict.estimate import Estimate
    from chipwise.route.job import Variant
    from chipwise.route.ledger.records import AttemptRow, DecisionRow, JobRow
    from chipwise.route.option import Infeasible, Option
    from chipwise.route.submit import SubmitResult


def submitted(submission: SubmitResult) -> dict[str, Any]:
    """What was submitted."""
    return {
        **head("jobs submit"),
        "ledger": submission.ledger,
        "policy": submission.policy,
        "policy_source": submission.policy_source,
        "jobs": [
            {**job(one.row), **chances(one.row), "first": one.first_pool, "warnings": list(one.warnings)}
            for one in submission.jobs
        ],
        "assumptions": list(submission.assumptions),
    }


def listed(
    where: str, rows: Sequence[JobRow], totals: Mapping[str, int] | None, command: str = "jobs list"
) -> dict[str, Any]:
    """Jobs."""
    found: dict[str, Any] = {**head(command), "ledger": where, "jobs": [job(row) for row in rows]}
    if totals is not None:
        found["totals"] = dict(totals)
    return found


def flat(rows: Sequence[JobRow]) -> list[dict[str, Any]]:
    """Jobs as rows of a CSV."""
    return [{k: v for k, v in job(row).items() if k != "failed_at"} for row in rows]


def shown(row: JobRow, attempts: Sequence[AttemptRow], outputs: Mapping[str, Output]) -> dict[str, Any]:
    """One job."""
    return {
        **head("jobs show"),
        **job(row),
        **chances(row),
        "variants": [variant(v) for v in row.job.variants],
        "attempts": [attempt(a, outputs.get(a.id)) for a in attempts],
    }


def explained(told: Story) -> dict[str, Any]:
    """The whole story."""
    from chipwise.cli.jobs_story import happened, standing

    return {
        **head("jobs explain"),
        **job(told.row),
        **chances(told.row),
        "variants": [variant(v) for v in told.row.job.variants],
        "attempts": [attempt(a, told.outputs.get(a.id)) for a in told.attempts],
        "decisions": [decision(d) for d in told.decisions],
        "events": [
            {
                "id": e.id,
                "at": e.at,
                "attempt": e.attempt or None,
                "kind": e.kind,
                "text": e.text,
                "data": finite(e.data),
            }
            for e in told.events
        ],
        "happened": happened(told),
        "now": standing(told),
    }


def job(row: JobRow) -> dict[str, Any]:
    """Where a job stands."""
    return {
        "id": row.id,
        "name": row.job.name,
        "owner": row.job.owner,
        "state": row.state,
        "reason": row.reason,
        "submitted": row.submitted,
        "deadline": finite(row.job.deadline),
        "confidence": row.job.confidence,
        "budget_usd": finite(row.job.budget),
        "priority": row.job.priority,
        "retries": row.job.retries,
        "key": row.job.key or None,
        "restartable": row.job.checkpoint.restartable,
        "done": row.done,
        "spent_usd": row.spent,
        "failures": row.failures,
        "failed_at": None if row.failed_at is None else {"pool": row.failed_at[0], "variant": row.failed_at[1]},
        "not_before": row.not_before or None,
        "cancelling": row.cancel,
    }


def chances(row: JobRow) -> dict[str, Any]:
    """Where a job can run and where it can't."""
    return {"options": [option(o) for o in row.options], "unable": [_unable(u) for u in row.unable]}


def variant(v: Variant) -> dict[str, Any]:
    """How a job runs on one family; of its environment the names alone."""
    return {
        "name": v.name,
        "family": v.family,
        "chips": v.chips,
        "on": sorted(v.on),
        "program": v.program,
        "image": v.image,
        "arguments": list(v.command),
        "environment": [name for name, _ in v.environment],
        "secrets": list(v.secrets),
        "layout": v.layout,
        "batch": v.batch,
        "precision": v.precision,
        "flags": list(v.flags),
    }


def option(o: Option) -> dict[str, Any]:
    """What a job would take in a pool."""
    return {
        "pool": o.pool,
        "variant": o.variant,
        "chips": o.chips,
        "topology": o.topology,
        "layout": o.layout,
        "duration_seconds": _estimate(o.seconds),
        "usd": finite(o.usd),
        "usd_per_hour": finite(o.usd_hour),
        "usd_once": finite(o.usd_once),
        "watts": finite(o.watts),
        "note": o.note,
    }


def attempt(a: AttemptRow, output: Output | None) -> dict[str, Any]:
    """One try."""
    return {
        "id": a.id,
        "number": a.number,
        "pool": a.pool,
        "variant": a.variant,
        "state": a.state,
        "router": a.router,
        "backend_id": a.backend_id or None,
        "intended": a.intended,
        "submitted": a.submitted,
        "started": a.started,
        "ended": a.ended,
        "exit_code": a.exit_code,
        "where": a.where,
        "reason": a.reason,
        "restarts": a.restarts,
        "stop": a.stop or None,
        "spent_usd": a.spent,
        "output": output.path if output else None,
        "output_end": list(output.last) if output else None,
        "option": option(a.option),
    }


def decision(d: DecisionRow) -> dict[str, Any]:
    """One decision."""
    return {
        "id": d.id,
        "at": d.at,
        "policy": d.policy,
        "router": d.router,
        "kind": d.decision.kind,
        "pool": d.decision.pool or None,
        "variant": d.decision.variant or None,
        "reason": d.decision.reason,
        "scores": finite(d.decision.scores),
    }


def finite(value: Any) -> Any:
    """A value as JSON has it: what isn't finite is null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    return [finite(v) for v in value] if isinstance(value, (list, tuple)) else value


def _estimate(e: Estimate) -> dict[str, Any]:
    return {
        "value": finite(e.value),
        "low": finite(e.low),
        "high": finite(e.high),
        "evidence": e.evidence,
        "because": e.because,
    }


def _unable(u: Infeasible) -> dict[str, Any]:
    return {"pool": u.pool, "variant": u.variant or None, "reason": u.reason, "unlock": u.unlock}
