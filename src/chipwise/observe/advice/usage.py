"""Pools as they were used: what was held, how long they were full, who waited, what was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.economics import Economics
from chipwise.observe.advice.records import COMMITTED, State, Used, Wait
from chipwise.observe.log import Log
from chipwise.observe.rates.from_ledger import cause_of, cloud_of
from chipwise.observe.rates.records import Cause, Figure
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import AttemptRow
from chipwise.route.pool import Pool
from chipwise.units import HOUR, MINUTE

Array = NDArray[np.float64]
# the house's choice, 2026-11-19
IDLE_BELOW = 0.3  # of the hours paid for are held
FULL_ABOVE = 0.2  # of the time there is no unit left
WAITED_S = 10 * MINUTE  # a tenth of the jobs and more waited for so long
BUSY = 0.95  # of the time
FEWEST_LOST = 3  # attempts, before a pool is called sick for them
ReadLog = Callable[[AttemptRow], Log | None]


def used_pools(
    book: LedgerView,
    pools: Sequence[Pool],
    span: tuple[float, float],
    know: Economics,
    read: ReadLog,
    sick_nodes: Mapping[str, Sequence[str]],
) -> list[Used]:
    """Every pool with chips, over a span."""
    by_pool: dict[str, list[AttemptRow]] = {}
    for attempt in book.attempts():
        if attempt.started is not None and _end(attempt, span) > max(attempt.started, span[0]):
            by_pool.setdefault(attempt.pool, []).append(attempt)
    submitted = {job.id: job.submitted for job in book.jobs()}
    return [
        _used(pool, by_pool.get(pool.name, []), submitted, span, know, read, sick_nodes.get(pool.name, ()))
        for pool in pools
        if pool.family != "cpu" and pool.count > 0
    ]


def _end(attempt: AttemptRow, span: tuple[float, float]) -> float:
    return min(attempt.ended if attempt.ended is not None else span[1], span[1])


def _used(
    pool: Pool,
    attempts: Sequence[AttemptRow],
    submitted: Mapping[str, float],
    span: tuple[float, float],
    know: Economics,
    read: ReadLog,
    sick_nodes: Sequence[str],
) -> Used:
    hours = (span[1] - span[0]) / HOUR
    spans = [(max(a.started or 0.0, span[0]), _end(a, span), a.option.chips) for a in attempts]
    held = sum(chips * (end - begin) for begin, end, chips in spans) / HOUR
    seconds, chips = _levels(spans, span)
    least = min((count for count, _ in pool.shapes), default=pool.unit)
    full = float(seconds[chips > pool.count - least].sum() / max(seconds.sum(), 1e-9))
    order = np.argsort(chips)
    below = np.cumsum(seconds[order]) / max(seconds.sum(), 1e-9)
    busy = int(chips[order][min(int(np.searchsorted(below, BUSY)), len(order) - 1)])
    causes = [cause_of(a, pool, read(a) if a.state in ("failed", "lost") else None) for a in attempts]
    lost = sum(cause in (Cause.FAILURE, Cause.INTERRUPTION) for cause in causes) + sum(a.restarts for a in attempts)
    paid = pool.count * hours if pool.terms in COMMITTED else held
    used = Used(
        pool=pool,
        hours=hours,
        held_chip_hours=held,
        full_share=full,
        most_chips=int(chips.max()),
        busy_chips=busy,
        usd=paid * pool.usd_per_chip_hour,
        attempts=len(attempts),
        lost=lost,
        lost_low=_least_rate(lost, held / (pool.unit if pool.spot else 1)),
        lost_assumed=_assumed(pool, know),
        wait=wait_of([a.started - submitted[a.job_id] for a in attempts if a.number == 1 and a.started is not None]),
        sick_nodes=sick_nodes,
    )
    return replace(used, states=_states(used))


def _levels(spans: Sequence[tuple[float, float, int]], span: tuple[float, float]) -> tuple[Array, Array]:
    """How many seconds so many chips were held."""
    edges = [(begin, count) for begin, _, count in spans] + [(end, -count) for _, end, count in spans]
    edges += [(span[0], 0), (span[1], 0)]
    moments = np.array(sorted(edges), dtype=np.float64)
    return np.diff(moments[:, 0]), np.cumsum(moments[:, 1])[:-1]


def wait_of(waits: Sequence[float]) -> Wait | None:
    """Typical waits; None of nobody."""
    if not waits:
        return None
    median, p90 = np.percentile(np.maximum(waits, 0.0), (50, 90))
    return Wait(jobs=len(waits), median_s=float(median), p90_s=float(p90))


def _least_rate(count: int, hours: float) -> float:
    """The low end of a Poisson rate's 90 % interval (Garwood)."""
    from scipy.special import gammaincinv  # type: ignore[import-untyped]

    return float(gammaincinv(count, 0.05)) / hours if count and hours else 0.0


def _assumed(pool: Pool, know: Economics) -> float:
    """The most that is assumed to be lost in a chip-hour; on spot a unit goes as a whole."""
    cloud = cloud_of(pool)
    if pool.spot:
        return max(pool.interruptions, know(Figure.INTERRUPTIONS, cloud).high) if cloud else inf
    return know(Figure.FAILURES, cloud).high if cloud else inf


def _states(used: Used) -> list[State]:
    states = []
    if used.sick_nodes or (used.lost >= FEWEST_LOST and used.lost_low > used.lost_assumed):
        states.append(State.SICK)
    if used.full_share > FULL_ABOVE and used.wait is not None and used.wait.p90_s > WAITED_S:
        states.append(State.SATURATED)
    if used.pool.terms in COMMITTED and used.share < IDLE_BELOW:
        states.append(State.IDLE)
    if not used.attempts and not states:
        states.append(State.UNUSED)
    return states or [State.FINE]
