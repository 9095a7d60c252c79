"""Simulations as tables: policies side by side with the best of each column marked, pools, refusals, assumptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chipwise.present.blocks import Block, Table, Text
from chipwise.units import format_money, format_seconds

if TYPE_CHECKING:
    from chipwise.route.simulate.measures import Measures
    from chipwise.route.simulate.run import Simulation

MARK = "*"
SHOWN_REASONS = 5
# header, the figure, how it is written, whether less is better (None: no best)
Column = tuple[str, "Callable[[Measures], float | None]", "Callable[[float], str]", bool | None]


def _columns() -> tuple[Column, ...]:
    return (
        ("avg JCT", lambda m: m.avg_jct_s, format_seconds, True),
        ("median", lambda m: m.median_jct_s, format_seconds, True),
        ("p99", lambda m: m.p99_jct_s, format_seconds, True),
        ("makespan", lambda m: m.makespan_s, format_seconds, True),
        ("cost", lambda m: m.cost_usd, format_money, True),
        ("kWh", lambda m: m.energy_kwh, lambda v: f"{v:,.0f}", True),
        ("in use", lambda m: m.utilisation, lambda v: f"{100 * v:.0f} %", None),
        ("missed", lambda m: m.deadline_misses if m.deadlines else None, lambda v: f"{v:.0f}", True),
        ("fairness", lambda m: m.fairness, lambda v: f"{v:.2f}", False),
        ("preempted", lambda m: m.preemptions, lambda v: f"{v:.0f}", None),
        ("done", lambda m: m.completed, lambda v: f"{v:.0f}", False),
        ("refused", lambda m: m.refused, lambda v: f"{v:.0f}", True),
        ("CPU s", lambda m: m.cpu_s, lambda v: f"{v:.2f}", None),
    )


def blocks(simulation: Simulation) -> list[Block]:
    """What is printed."""
    seed = "no draws" if simulation.seed is None else f"seed {simulation.seed}"
    out: list[Block] = [
        Text(
            f"{simulation.name}: {simulation.jobs:,} jobs that arrive over {format_seconds(simulation.span_s)}; {seed}"
        ),
        _side_by_side(simulation.measures),
    ]
    if len(simulation.measures) > 1:
        out.append(Text(f"{MARK} best of its column. {_comparable(simulation.measures)}"))
    if any(m.pools for m in simulation.measures):
        out.append(_pools(simulation.measures))
    out += _refusals(simulation)
    out.append(Text("Assumed:", heading=True))
    out += [Text(f"  - {line}") for line in simulation.assumptions]
    return out


def _side_by_side(measures: Sequence[Measures]) -> Table:
    columns = [c for c in _columns() if any(c[1](m) is not None for m in measures)]
    rows = [[m.policy] for m in measures]
    for header, figure, written, less in columns:
        values = [figure(m) for m in measures]
        best = _best(header, values, less, measures)
        for row, value in zip(rows, values, strict=True):
            text = "-" if value is None else written(value)
            row.append(text if best is None else text + (MARK if text == written(best) else " "))
    return Table(
        ["policy", *(c[0] for c in columns)],
        rows,
        frozenset({"policy"}),
        drop=("CPU s", "median", "preempted", "refused", "kWh", "p99", "fairness", "in use", "makespan"),
    )


def _best(header: str, values: Sequence[float | None], less: bool | None, measures: Sequence[Measures]) -> float | None:
    """The best value; completion times count only where no other policy completed more."""
    if less is None or len(measures) < 2:
        return None
    most = max(m.completed for m in measures)
    whole = header in ("refused", "done", "missed")
    fair = [v for v, m in zip(values, measures, strict=True) if v is not None and (whole or m.completed == most)]
    if not fair or (len(fair) == len(values) and max(fair) - min(fair) <= 1e-9 * abs(max(fair))):
        return None
    return min(fair) if less else max(fair)


def _comparable(measures: Sequence[Measures]) -> str:
    if len({m.completed for m in measures}) > 1:
        return (
            "Policies completed different numbers of jobs: times and costs are of completed jobs, and only those "
            "policies that completed the most are marked."
        )
    return "Every policy met the same jobs, pools, prices and luck."


def _pools(measures: Sequence[Measures]) -> Table:
    rows = []
    for i, pool in enumerate(measures[0].pools):
        shares = [f"{100 * m.pools[i].utilisation:.0f} % {format_money(m.pools[i].usd)}" for m in measures]
        rows.append([pool.pool, pool.chip, f"{pool.chips:,}", *shares])
    return Table(
        ["pool", "chip", "chips", *(m.policy for m in measures)],
        rows,
        frozenset({"pool", "chip"}),
        title="Chips in use, and what they cost",
    )


def _refusals(simulation: Simulation) -> list[Block]:
    out: list[Block] = []
    for m in simulation.measures:
        if not m.refused:
            continue
        out.append(Text(f"{m.policy} refused {m.refused}:", heading=True))
        out += [Text(f"  {count} x {reason}") for reason, count in m.reasons[:SHOWN_REASONS]]
        if len(m.reasons) > SHOWN_REASONS:
            out.append(Text(f"  and {len(m.reasons) - SHOWN_REASONS} other reasons: see -o json"))
    return out
