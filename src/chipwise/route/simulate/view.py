"""A simulation as every face shows it: policies side by side with the best of each column marked, pools, refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import percent
from chipwise.present.result import Result
from chipwise.route.simulate.measures import Measures, PoolMeasures
from chipwise.route.simulate.outcome import Fate, Outcome
from chipwise.units import format_money, format_seconds

MARK = "*"
SHOWN_REASONS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a policy: its `key` in `Measures` and JSON and, where it is in the table, how it is shown there.

    `best` picks the best of all policies; where they completed different numbers of jobs, among those alone that
    completed the most, unless the figure is comparable `always`. A policy without `applies` has none.
    """

    key: str
    header: str = ""
    show: Callable[[float], str] = str
    best: Callable[..., float] | None = None
    always: bool = False
    drop: int = 0
    applies: Callable[[Measures], bool] = lambda m: True

    def value(self, measures: Measures) -> float | None:
        """The figure as people see it."""
        figure: float | None = getattr(measures, self.key)
        return figure if self.applies(measures) else None


def _integer(value: float) -> str:
    return f"{value:,.0f}"


FIGURES = (
    Figure("avg_jct_s", "avg JCT", format_seconds, min),
    Figure("median_jct_s", "median", format_seconds, min, drop=2),
    Figure("p99_jct_s", "p99", format_seconds, min, drop=6),
    Figure("makespan_s", "makespan", format_seconds, min, drop=9),
    Figure("cost_usd", "cost", format_money, min),
    Figure("energy_kwh", "kWh", _integer, min, drop=5),
    Figure("utilization", "in use", percent, drop=8),
    Figure("deadline_misses", "missed", _integer, min, always=True, applies=lambda m: m.deadlines > 0),
    Figure("fairness", "fairness", "{:.2f}".format, max, drop=7),
    Figure("preemptions", "preempted", _integer, drop=3),
    Figure("completed", "done", _integer, max, always=True),
    Figure("refused", "refused", _integer, min, always=True, drop=4),
    Figure("cpu_s", "CPU s", "{:.2f}".format, drop=1),
    *map(
        Figure,
        (
            "jobs",
            "avg_wait_s",
            "deadlines",
            "worst_slowdown",
            "avg_slowdown",
            "worst_owner",
            "worst_owner_slowdown",
            "interruptions",
            "node_failures",
            "lost_chip_s",
            "decisions",
        ),
    ),
)
POOL_COLUMNS: tuple[Column[PoolMeasures], ...] = (
    Column("pool", lambda p: p.pool, "pool", words=True),
    Column("chip", lambda p: p.chip, "chip", words=True),
    Column("chips", lambda p: p.chips, "chips", lambda p: f"{p.chips:,}"),
    Column("utilization", lambda p: p.utilization, help="chip time held over chip time there was"),
    Column("busy_chip_s", lambda p: p.busy_chip_s),
    Column("usd", lambda p: p.usd),
    Column("runs", lambda p: p.runs),
)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of a job under a policy."""

    policy: str
    fate: Fate
    pools: tuple[str, ...]  # that it ran in, one after another
    cost_usd: float


JOB_COLUMNS: tuple[Column[JobOutcome], ...] = (
    Column("policy", lambda j: j.policy),
    Column("job", lambda j: j.fate.id),
    Column("owner", lambda j: j.fate.owner),
    Column("arrival_s", lambda j: j.fate.arrival),
    Column("first_start_s", lambda j: j.fate.first),
    Column("end_s", lambda j: j.fate.end),
    Column("jct_s", lambda j: j.fate.jct),
    Column("deadline_s", lambda j: None if j.fate.deadline == inf else j.fate.deadline),
    Column("missed", lambda j: j.fate.missed),
    Column("pools", lambda j: ">".join(j.pools)),
    Column("runs", lambda j: len(j.pools)),
    Column("cost_usd", lambda j: j.cost_usd),
    Column("refused", lambda j: j.fate.refused, help="the reason"),
)


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(Result):
    """A trace under one or more policies."""

    VERB: ClassVar[str] = "simulate"
    name: str
    kind: str  # jobs, recorded or gavel
    jobs: int
    span_s: float  # from the first arrival to the last
    seed: int | None
    measures: tuple[Measures, ...]
    assumptions: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    def refusals(self, policy: str) -> tuple[tuple[str, str], ...]:
        """The jobs that a policy's replay refused, with the reason."""
        fates = next(o.fates for o in self.outcomes if o.policy == policy)
        return tuple((f.id, f.refused) for f in fates if f.end is None)

    @property
    def columns(self) -> list[Column[Measures]]:
        """The columns of a policy."""
        name: Column[Measures] = Column("policy", lambda m: m.policy, "policy", words=True)
        return [name, *(_column(figure, self.measures) for figure in FIGURES)]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "trace": {"name": self.name, "kind": self.kind, "jobs": self.jobs, "span_s": self.span_s},
            "seed": self.seed,
            "policies": {m.policy: self._policy_record(m) for m in self.measures},
            "assumptions": self.assumptions,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a policy, with the use of each pool."""
        return [
            flat(self.columns, m) | {f"utilization_{pool.pool}": pool.utilization for pool in m.pools}
            for m in self.measures
        ]

    def job_rows(self) -> list[dict[str, Any]]:
        """A row for every job under every policy."""
        return [flat(JOB_COLUMNS, job) for outcome in self.outcomes for job in _job_outcomes(outcome)]

    def plot(self, target: str | Path) -> None:
        """Draw who held which chips when and the use of the pools, as .svg or .png."""
        from chipwise.route.simulate import plots

        fates = self.outcomes[0].fates
        labels = [f.owner if self.kind == "recorded" else f.id.partition("#")[0] for f in fates]
        plots.draw(self.outcomes, f"{self.name}: {self.jobs:,} jobs", labels, Path(target))

    def blocks(self) -> list[Block]:
        """For people."""
        seed = "no draws" if self.seed is None else f"seed {self.seed}"
        several = len(self.measures) > 1
        return [
            Text(f"{self.name}: {self.jobs:,} jobs that arrive over {format_seconds(self.span_s)}; {seed}"),
            table(self.columns, self.measures),
            *([Text(f"{MARK} best of its column. {_comparable(self.measures)}")] if several else []),
            *([_pool_table(self.measures)] if any(m.pools for m in self.measures) else []),
            *(block for m in self.measures for block in _refusals(m)),
            *section("Assumed:", [f"- {line}" for line in self.assumptions]),
        ]

    def _policy_record(self, measures: Measures) -> dict[str, Any]:
        return {
            **record(self.columns, measures),
            "pools": [record(POOL_COLUMNS, pool) for pool in measures.pools],
            "refused_jobs": [{"job": job, "reason": reason} for job, reason in self.refusals(measures.policy)],
        }


def _column(figure: Figure, measures: Sequence[Measures]) -> Column[Measures]:
    """The column of a figure: in the table where a policy has it, the best marked."""
    best = _best(figure, measures)

    def cell(m: Measures) -> str:
        value = figure.value(m)
        text = "-" if value is None else figure.show(value)
        return text if best is None else text + (MARK if text == figure.show(best) else " ")

    shown = figure.header and any(figure.value(m) is not None for m in measures)
    return Column(figure.key, attrgetter(figure.key), figure.header if shown else "", cell, drop=figure.drop)


def _best(figure: Figure, measures: Sequence[Measures]) -> float | None:
    """The best value; None where all are alike, or no value is better than another."""
    if figure.best is None or len(measures) < 2:
        return None
    most = max(m.completed for m in measures)
    comparable = [m for m in measures if figure.always or m.completed == most]
    values = [value for m in comparable if (value := figure.value(m)) is not None]
    if not values or (len(values) == len(measures) and max(values) - min(values) <= 1e-9 * abs(max(values))):
        return None
    return figure.best(values)


def _comparable(measures: Sequence[Measures]) -> str:
    if len({m.completed for m in measures}) > 1:
        return (
            "Policies completed different numbers of jobs: times and costs are of completed jobs, and only those "
            "policies that completed the most are marked."
        )
    return "Every policy met the same jobs, pools, prices and luck."


def _pool_table(measures: Sequence[Measures]) -> Table:
    def use(m: Measures) -> Callable[[PoolMeasures], str]:
        by_name = {pool.pool: pool for pool in m.pools}
        return lambda row: f"{percent(by_name[row.pool].utilization)} {format_money(by_name[row.pool].usd)}"

    policies: list[Column[PoolMeasures]] = [Column("", None, m.policy, use(m)) for m in measures]
    return table([*POOL_COLUMNS, *policies], measures[0].pools, title="Chips in use, and what they cost")


def _refusals(m: Measures) -> list[Block]:
    lines = [f"{count} x {reason}" for reason, count in m.reasons[:SHOWN_REASONS]]
    others = len(m.reasons) - SHOWN_REASONS
    more = [f"and {others} other reasons: see -o json"] if others > 0 else []
    return section(f"{m.policy} refused {m.refused}:", [*lines, *more]) if m.refused else []


def _job_outcomes(outcome: Outcome) -> list[JobOutcome]:
    usd = [0.0] * len(outcome.fates)
    pools: list[list[str]] = [[] for _ in outcome.fates]
    for run in outcome.runs:
        usd[run.job] += run.usd
        pools[run.job].append(run.pool)
    return [JobOutcome(outcome.policy, fate, tuple(pools[i]), usd[i]) for i, fate in enumerate(outcome.fates)]
