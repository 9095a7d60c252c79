"""The figures of a replay: completion times, money, energy, use of the pools, deadlines, fairness."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from chipwise.route.cluster_state import Floats
from chipwise.route.simulate.outcome import FAILED, INTERRUPTED, PREEMPTED, Fate, Outcome
from chipwise.units import HOUR


@dataclass(frozen=True, slots=True)
class PoolMeasures:
    """How one pool was used, from the first arrival until the last chips were given back."""

    pool: str
    chip: str
    chips: int
    utilization: float  # chip time held over chip time there was
    busy_chip_s: float
    usd: float
    runs: int


@dataclass(frozen=True, slots=True)
class Measures:
    """The figures of one policy. Completion times are of completed jobs; None where there are none."""

    policy: str
    jobs: int
    completed: int
    refused: int
    avg_jct_s: float | None
    median_jct_s: float | None
    p99_jct_s: float | None
    makespan_s: float | None  # from the first arrival to the last end
    avg_wait_s: float | None  # from arrival to the first chips
    cost_usd: float
    energy_kwh: float | None  # None where no power is known
    utilization: float  # of all pools together, each chip counting the same
    deadlines: int
    deadline_misses: int  # refused jobs with a deadline among them
    fairness: float | None  # Jain's index of the jobs' speeds, 1: all alike
    worst_slowdown: float | None  # of a job: completion time over that of its fastest way with nobody else there
    avg_slowdown: float | None
    worst_owner: str  # whose jobs were slowed down most on average
    worst_owner_slowdown: float | None
    preemptions: int
    interruptions: int
    node_failures: int
    lost_chip_s: float  # held for work that was repeated, or for restarting
    cpu_s: float
    decisions: int
    pools: tuple[PoolMeasures, ...]
    reasons: tuple[tuple[str, int], ...]  # why jobs were refused, and how many


def measure(outcome: Outcome) -> Measures:
    """The figures of an outcome."""
    done = [f for f in outcome.fates if f.end is not None]
    jct = np.array([f.jct for f in done], float)
    begin = min((f.arrival for f in outcome.fates), default=0.0)
    makespan = max((f.end for f in done if f.end is not None), default=begin) - begin if done else None
    span = max((r.end for r in outcome.runs), default=begin) - begin  # jobs that were never done held chips too
    slow = np.array([_slowdown(f) for f in done], float)
    owner, by_owner = _worst_owner(done)
    ends = Counter(r.how for r in outcome.runs)
    pools = tuple(_pool(outcome, i, span) for i in range(len(outcome.pools)))
    available = sum(p.chips for p in outcome.pools) * span
    return Measures(
        policy=outcome.policy,
        jobs=len(outcome.fates),
        completed=len(done),
        refused=len(outcome.fates) - len(done),
        avg_jct_s=_or_none(jct, np.mean),
        median_jct_s=_or_none(jct, np.median),
        p99_jct_s=_or_none(jct, lambda x: np.percentile(x, 99)),
        makespan_s=makespan,
        avg_wait_s=_or_none(np.array([f.first - f.arrival for f in done if f.first is not None]), np.mean),
        cost_usd=sum(r.usd for r in outcome.runs),
        energy_kwh=sum(r.joules for r in outcome.runs) / (1000 * HOUR) or None,
        utilization=sum(p.busy_chip_s for p in pools) / available if available > 0 else 0.0,
        deadlines=sum(f.deadline < inf for f in outcome.fates),
        deadline_misses=sum(f.missed for f in outcome.fates),
        fairness=jain([1 / s for s in slow]) if len(slow) else None,
        worst_slowdown=_or_none(slow, np.max),
        avg_slowdown=_or_none(slow, np.mean),
        worst_owner=owner,
        worst_owner_slowdown=by_owner,
        preemptions=ends[PREEMPTED],
        interruptions=ends[INTERRUPTED] + ends[FAILED],
        node_failures=outcome.downs,
        lost_chip_s=sum(r.lost * r.chips for r in outcome.runs),
        cpu_s=outcome.cpu_s,
        decisions=outcome.decisions,
        pools=pools,
        reasons=tuple(Counter(f.refused for f in outcome.fates if f.end is None).most_common()),
    )


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 where all are alike, 1/n where one has everything.

    R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.

    >>> jain([1.0, 1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    x = np.asarray(values, float)
    square = float((x * x).sum())
    return float(x.sum() ** 2 / (len(x) * square)) if square > 0 else 1.0


def busy(outcome: Outcome, pool: str, edges: Floats) -> Floats:
    """Mean chips of a pool that were held between each two edges."""
    bounds = np.asarray(edges, float)
    held = np.zeros(len(bounds))  # chip-seconds held before each edge
    for run in outcome.runs:
        if run.pool == pool:
            held += run.chips * (np.clip(bounds, run.start, run.end) - run.start)
    width = np.diff(bounds)
    return np.divide(np.diff(held), width, out=np.zeros_like(width), where=width > 0)


def _pool(outcome: Outcome, i: int, span: float) -> PoolMeasures:
    pool = outcome.pools[i]
    runs = [r for r in outcome.runs if r.pool == pool.name]
    held = sum(r.chips * (r.end - r.start) for r in runs)
    available = pool.chips * span
    utilization = held / available if available > 0 else 0.0
    return PoolMeasures(pool.name, pool.chip, pool.chips, utilization, held, sum(r.usd for r in runs), len(runs))


def _slowdown(fate: Fate) -> float:
    """Completion time over that alone; 1 at least, for luck may beat the estimate."""
    assert fate.jct is not None
    return max(1.0, fate.jct / fate.alone) if fate.alone > 0 else 1.0


def _worst_owner(done: Sequence[Fate]) -> tuple[str, float | None]:
    owners: dict[str, list[float]] = defaultdict(list)
    for fate in done:
        owners[fate.owner].append(_slowdown(fate))
    if len(owners) < 2:
        return "", None
    name = max(owners, key=lambda o: (float(np.mean(owners[o])), o))
    return name, float(np.mean(owners[name]))


def _or_none(values: Floats, figure: Callable[[Floats], Any]) -> float | None:
    return float(figure(values)) if len(values) else None
