"""What a ledger's attempts met while they held chips.

A lost attempt is a failure, on spot an interruption: the ledger knows no more, so that on spot failures are not
counted. What an attempt that ended badly printed says more: a fault of a device is a failure of chips whatever the
attempt's own end, and a notice of preemption on chips that are not spot is the scheduler's. Attempts that were stopped
on purpose held chips to their end and met nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil

import numpy as np

from chipwise.catalog.assumption_file import OWNED
from chipwise.observe.log import Log
from chipwise.observe.rates.records import Cause, Exposure, Figure, LeftOut, Met
from chipwise.observe.records import FaultClass
from chipwise.prices.providers import cloud_id
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import AttemptRow
from chipwise.route.pool import Pool
from chipwise.units import HOUR

WEEK = 7 * 24 * HOUR
COMMITTED = frozenset({"owned", "reserved"})  # terms by which chips are paid for whether used or not
BAD_ENDS = frozenset({"failed", "lost"})
OF_DEVICES = frozenset({FaultClass.MEMORY, FaultClass.LINK, FaultClass.BUS, FaultClass.DRIVER})
ReadLog = Callable[[AttemptRow], Log | None]


def met_by(book: LedgerView, pools: Mapping[str, Pool], since: float, now: float, read: ReadLog) -> Met:
    """What the attempts of a ledger met from a moment on; `read` gives what one printed, where that is to be had."""
    count = _Count(pools, since, now, read)
    attempts = book.attempts()
    for attempt in attempts:
        count.add(attempt)
    first = min((attempt.intended for attempt in attempts), default=now)
    paid = count.utilization(max(since, first))
    exposures = [count.exposures[key] for key in sorted(count.exposures)]
    return Met(
        ledger=book.where,
        exposures=(*exposures, *([paid] if paid is not None else [])),
        left_out=tuple((pool, why, hours) for (pool, why), hours in sorted(count.left_out.items())),
        by_instance=tuple(sorted(count.by_instance.items())),
        restarts=count.restarts,
        unread=count.unread,
        attempts=count.attempts,
        bad_rows=tuple(f"{what}: {error}" for what, error in book.bad_rows.items()),
    )


def cause_of(attempt: AttemptRow, pool: Pool, log: Log | None) -> Cause:
    """What ended an attempt."""
    if attempt.state not in BAD_ENDS:
        return Cause.NOTHING
    faults = {fault.kind for fault in log.faults} if log is not None else set()
    if FaultClass.PREEMPTED in faults:
        return Cause.INTERRUPTION if pool.spot else Cause.SCHEDULER
    if faults & OF_DEVICES:
        return Cause.FAILURE
    if attempt.state == "failed":
        return Cause.PROGRAM
    return Cause.INTERRUPTION if pool.spot else Cause.FAILURE


def cloud_of(pool: Pool) -> str:
    """Whose chips a pool's are; empty where nobody says."""
    if pool.terms == "owned":
        return OWNED
    return cloud_id(pool.cloud) if pool.cloud else ""


def instances(attempt: AttemptRow, pool: Pool) -> int:
    """What can be taken from an attempt one by one: instances; a slice of TPUs goes as a whole."""
    return 1 if attempt.option.topology or pool.shapes else max(1, ceil(attempt.option.chips / pool.unit))


class _Count:
    """Sums over attempts."""

    def __init__(self, pools: Mapping[str, Pool], since: float, now: float, read: ReadLog) -> None:
        self._pools, self._since, self._now, self._read = pools, since, now, read
        self.exposures: dict[tuple[str, str], Exposure] = {}
        self.left_out: dict[tuple[str, LeftOut], float] = {}
        self.by_instance: dict[str, int] = {}
        self.restarts = self.unread = self.attempts = 0
        self._held: dict[str, list[tuple[float, float, int]]] = {}  # of committed pools

    def add(self, attempt: AttemptRow) -> None:
        """Count the time of an attempt, and how it ended."""
        if attempt.started is None:
            return
        ended = attempt.ended if attempt.ended is not None else self._now
        began, chips = max(attempt.started, self._since), attempt.option.chips
        if ended <= began:
            return
        hours = chips * (ended - began) / HOUR
        pool = self._pools.get(attempt.pool)
        obstacle = _obstacle(pool)
        if pool is None or obstacle is not None:
            key = (attempt.pool, obstacle or LeftOut.NO_POOL)
            self.left_out[key] = self.left_out.get(key, 0.0) + hours
            return
        self.attempts += 1
        if pool.terms in COMMITTED:
            self._held.setdefault(pool.name, []).append((began, ended, chips))
        log = self._read(attempt) if attempt.state in BAD_ENDS else None
        self.unread += attempt.state == "failed" and log is None
        cause = cause_of(attempt, pool, log)
        restarts = attempt.restarts if attempt.started >= self._since else 0  # when they were is not known
        self.restarts += restarts
        if pool.spot:
            self.by_instance[pool.name] = 0 if pool.shapes else pool.unit
            many = instances(attempt, pool) * (ended - began) / HOUR
            met = restarts + (cause is Cause.INTERRUPTION)
            self._exposure(Figure.INTERRUPTIONS, pool).add(many, began, ended, met)
        else:
            self._exposure(Figure.FAILURES, pool).add(hours, began, ended, restarts + (cause is Cause.FAILURE))

    def _exposure(self, figure: Figure, pool: Pool) -> Exposure:
        cloud = cloud_of(pool)
        return self.exposures.setdefault((figure.value, cloud), Exposure(figure=figure, cloud=cloud))

    def utilization(self, first: float) -> Exposure | None:
        """Hours held of the hours paid for, week by week; from a pool's first attempt on.

        A pool that nothing ever ran in is paid for since the first attempt of all.
        """
        committed = {
            name: pool for name, pool in self._pools.items() if pool.terms in COMMITTED and pool.family != "cpu"
        }
        if not committed or first >= self._now:
            return None
        total = Exposure(figure=Figure.UTILIZATION)
        weeks: dict[int, list[float]] = {}
        for name, pool in committed.items():
            spans = np.asarray(self._held.get(name, []), dtype=np.float64).reshape(-1, 3)
            began = max(first, float(spans[:, 0].min())) if len(spans) else first
            for week, start, end in _weeks(began, self._now, first):
                paid = pool.count * (end - start) / HOUR
                overlap = np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start)
                used = float((np.maximum(overlap, 0.0) * spans[:, 2]).sum()) / HOUR
                sums = weeks.setdefault(week, [0.0, 0.0])
                sums[0] += paid
                sums[1] += min(paid, used)
                total.add(paid, start, end, min(paid, used))
        total.weeks = [(paid, used) for _, (paid, used) in sorted(weeks.items())]
        return total


def _obstacle(pool: Pool | None) -> LeftOut | None:
    if pool is None:
        return LeftOut.NO_POOL
    if pool.family == "cpu":
        return LeftOut.NO_CHIP
    return None if cloud_of(pool) else LeftOut.NO_CLOUD


def _weeks(began: float, ended: float, first: float) -> Iterator[tuple[int, float, float]]:
    """The weeks since `first` in which time went by, with the part of each."""
    week = int((began - first) // WEEK)
    while first + week * WEEK < ended:
        start, end = max(began, first + week * WEEK), min(ended, first + (week + 1) * WEEK)
        if end > start:
            yield week, start, end
        week += 1
