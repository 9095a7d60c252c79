"""Simulations as plain dictionaries: what `-o json`, `-o csv` and `--jobs-out` print."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from chipwise.cli.records import head

if TYPE_CHECKING:
    from chipwise.route.simulate.measures import Measures
    from chipwise.route.simulate.outcome import Outcome
    from chipwise.route.simulate.run import Simulation

FIGURES = (
    "avg_jct_s",
    "median_jct_s",
    "p99_jct_s",
    "makespan_s",
    "cost_usd",
    "completed",
    "refused",
    "cpu_s",
    "jobs",
    "avg_wait_s",
    "energy_kwh",
    "utilisation",
    "deadlines",
    "deadline_misses",
    "fairness",
    "worst_slowdown",
    "avg_slowdown",
    "worst_owner",
    "worst_owner_slowdown",
    "preemptions",
    "interruptions",
    "node_failures",
    "lost_chip_s",
    "decisions",
)


def figures(measures: Measures) -> dict[str, Any]:
    """The figures of one policy; whatever is not a number is null."""
    out: dict[str, Any] = {"policy": measures.policy}
    for name in FIGURES:
        value = getattr(measures, name)
        out[name] = value if not isinstance(value, float) or isfinite(value) else None
    return out


def record(simulation: Simulation) -> dict[str, Any]:
    """Everything, for `-o json`."""
    return {
        **head("simulate"),
        "trace": {
            "name": simulation.name,
            "kind": simulation.kind,
            "jobs": simulation.jobs,
            "span_s": simulation.span_s,
        },
        "seed": simulation.seed,
        "policies": {m.policy: _policy(m, simulation) for m in simulation.measures},
        "assumptions": list(simulation.assumptions),
    }


def _policy(measures: Measures, simulation: Simulation) -> dict[str, Any]:
    return {
        **figures(measures),
        "pools": [
            {
                "pool": p.pool,
                "chip": p.chip,
                "chips": p.chips,
                "utilisation": p.utilisation,
                "busy_chip_s": p.busy_chip_s,
                "usd": p.usd,
                "runs": p.runs,
            }
            for p in measures.pools
        ],
        "refused_jobs": [{"job": job, "reason": reason} for job, reason in simulation.refusals(measures.policy)],
    }


def rows(simulation: Simulation) -> list[dict[str, Any]]:
    """A row for every policy, for `-o csv`."""
    out = []
    for measures in simulation.measures:
        row = {name: "" if value is None else value for name, value in figures(measures).items()}
        row |= {f"utilisation_{p.pool}": p.utilisation for p in measures.pools}
        out.append(row)
    return out


def job_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for every job under every policy, for `--jobs-out`."""
    out = []
    for outcome in outcomes:
        usd = [0.0] * len(outcome.fates)
        where: list[list[str]] = [[] for _ in outcome.fates]
        for run in outcome.runs:
            usd[run.job] += run.usd
            where[run.job].append(run.pool)
        for i, fate in enumerate(outcome.fates):
            out.append(
                {
                    "policy": outcome.policy,
                    "job": fate.id,
                    "owner": fate.owner,
                    "arrival_s": fate.arrival,
                    "first_start_s": _blank(fate.first),
                    "end_s": _blank(fate.end),
                    "jct_s": _blank(fate.jct),
                    "deadline_s": "" if fate.deadline == inf else fate.deadline,
                    "missed": fate.missed,
                    "pools": ">".join(where[i]),
                    "runs": len(where[i]),
                    "cost_usd": usd[i],
                    "refused": fate.refused,
                }
            )
    return out


def _blank(value: float | None) -> float | str:
    return "" if value is None else value
