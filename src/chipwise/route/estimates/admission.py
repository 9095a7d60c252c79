"""Admission control: a job is refused with the reason per pool, or admitted with warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

from chipwise.errors import Refusal
from chipwise.route.job import Job
from chipwise.route.option import Infeasible, Option
from chipwise.units import format_money, format_seconds


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that may be written down, with the ways to run it."""

    job: Job
    options: tuple[Option, ...]
    infeasible: tuple[Infeasible, ...]
    warnings: tuple[str, ...] = ()


def admit(job: Job, options: Sequence[Option], infeasible: Sequence[Infeasible], now: float) -> Admitted:
    """A job that can run somewhere; a `Refusal` with the reason per pool for one that can't.

    One that no pool runs within its budget is refused too. One that no pool finishes by its deadline is admitted with
    a warning: late may be better than never, and pools change.
    """
    if not options:
        raise Refusal(f"{job.name} can't run in any pool: {_reasons(infeasible)}")
    cheapest = min(options, key=lambda option: option.usd)
    if cheapest.usd > job.budget:
        raise Refusal(
            f"{job.name} costs more than its budget of {format_money(job.budget)} in every pool; the least "
            f"is {format_money(cheapest.usd)} in {cheapest.pool}",
            "a larger budget, or fewer constraints",
        )
    return Admitted(job, tuple(options), tuple(infeasible), tuple(_warnings(job, options, now)))


def _reasons(infeasible: Sequence[Infeasible]) -> str:
    """The reasons, pool by pool."""
    by_pool: dict[str, list[str]] = {}
    for u in infeasible:
        who = f"{u.variant}: " if u.variant else ""
        by_pool.setdefault(u.pool, []).append(f"{who}{u.reason}" + (f" ({u.unlock})" if u.unlock else ""))
    return "; ".join(f"{pool}: {', '.join(reasons)}" for pool, reasons in by_pool.items()) or "there are no pools"


def _warnings(job: Job, options: Sequence[Option], now: float) -> list[str]:
    out = []
    if job.deadline < inf:
        fastest = min(options, key=lambda option: option.seconds.high)
        end = datetime.fromtimestamp(job.deadline, UTC).strftime("%Y-%m-%d %H:%M UTC")
        if now + fastest.seconds.value > job.deadline:
            out.append(
                f"no pool finishes it by {end}: the fastest, {fastest.pool}, takes "
                f"{format_seconds(fastest.seconds.value)} from now"
            )
        elif now + fastest.seconds.high > job.deadline:
            out.append(
                f"the deadline {end} may be missed even in {fastest.pool}, which takes up to "
                f"{format_seconds(fastest.seconds.high)}"
            )
    return out
