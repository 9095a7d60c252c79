"""Demand of the past by a ledger: runs by when they were submitted, services by what their servers printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.demand.records import Kind, LeftOut, Month, Observed, Past, Peak, Skipped, month_index
from chipwise.observe.demand.requests import RequestRates, add_requests, counted_rates, printed_rates
from chipwise.observe.log import Log
from chipwise.observe.serving.counters import ServerCounters
from chipwise.observe.store.store import TelemetryStore
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import CANCELLED, AttemptRow, JobRow
from chipwise.units import HOUR
from chipwise.workload.load import load_any
from chipwise.workload.serve import ServingWorkload

Array = NDArray[np.float64]
ReadLog = Callable[[AttemptRow], Log | None]
SUCCEEDED = "succeeded"
PEAK_FROM = 1.2  # times the day's mean: less is no peak that is worth chips of its own (own, 2026-11-19)
FEWEST_DAYS = 3  # of every hour of the day, of which its mean is taken


@dataclass(frozen=True, slots=True)
class Sources:
    """What says how much was asked of servers."""

    read: ReadLog
    counters: ServerCounters | None

    def rates(
        self, attempt: AttemptRow, workload: ServingWorkload, span: tuple[float, float]
    ) -> tuple[RequestRates | None, bool]:
        """Requests of an attempt by what it printed, else by what its engines counted; and whether it is by those."""
        log = self.read(attempt)
        rates = printed_rates(log, workload, span) if log is not None else None
        if rates is not None or self.counters is None:
            return rates, False
        counted = self.counters.counted(attempt, span)
        rates = counted_rates(counted, workload) if counted is not None else None
        return rates, rates is not None


@dataclass(slots=True)
class _Group:
    """Jobs of one workload."""

    name: str
    contents: Mapping[str, Any]
    jobs: list[JobRow] = field(default_factory=list)


def observed_demand(
    book: LedgerView, since: float, now: float, read: ReadLog, telemetry: TelemetryStore | None = None
) -> Observed:
    """What was asked of chips from a moment on; of servers that print nothing, by their counters."""
    attempts: dict[str, list[AttemptRow]] = {}
    for attempt in book.attempts():
        attempts.setdefault(attempt.job_id, []).append(attempt)
    jobs = [job for job in book.jobs() if job.submitted >= since or _runs_since(attempts.get(job.id, []), since)]
    groups, skipped = _groups([job for job in jobs if job.state != CANCELLED or attempts.get(job.id)], attempts, now)
    first = max(since, min((job.submitted for job in jobs), default=now))
    pasts = []
    workloads = [load_any(group.jobs[0].job.workload) for group in groups]
    counters = _counters(telemetry, groups, workloads, attempts)
    for group, workload in zip(groups, workloads, strict=True):
        tries = [attempt for job in group.jobs for attempt in attempts.get(job.id, []) if attempt.started is not None]
        if not isinstance(workload, ServingWorkload):
            pasts.append(_runs(group, tries, first, now))
        elif workload.serve.arrival.kind == "offline":
            skipped.append(_skipped(group.name, LeftOut.OFFLINE, group.jobs, attempts, now))
        else:
            service = _service(group, workload, tries, (max(since, 0.0), now), Sources(read, counters))
            if service is None:
                skipped.append(_skipped(group.name, LeftOut.UNREAD, group.jobs, attempts, now))
            else:
                pasts.append(service)
    return Observed(
        ledger=book.where,
        pasts=sorted(pasts, key=lambda past: -past.chip_hours),
        skipped=skipped,
        bad_rows=[f"{what}: {error}" for what, error in book.bad_rows.items()],
    )


def _counters(
    telemetry: TelemetryStore | None,
    groups: Sequence[_Group],
    workloads: Sequence[object],
    attempts: Mapping[str, Sequence[AttemptRow]],
) -> ServerCounters | None:
    jobs = {
        job.id: job
        for group, workload in zip(groups, workloads, strict=True)
        if isinstance(workload, ServingWorkload)
        for job in group.jobs
    }
    if telemetry is None or not jobs:
        return None
    return ServerCounters(telemetry, jobs, [attempt for name in jobs for attempt in attempts.get(name, [])])


def _runs_since(attempts: Sequence[AttemptRow], since: float) -> bool:
    return any(a.started is not None and (a.ended is None or a.ended > since) for a in attempts)


def _groups(
    jobs: Sequence[JobRow], attempts: Mapping[str, Sequence[AttemptRow]], now: float
) -> tuple[list[_Group], list[Skipped]]:
    """Jobs by what they run, whatever they are called; those that say nothing of it apart, by their name."""
    groups: dict[str, _Group] = {}
    unknown: dict[str, list[JobRow]] = {}
    for job in sorted(jobs, key=lambda job: job.submitted):
        if not job.job.workload:
            unknown.setdefault(job.job.name, []).append(job)
            continue
        contents = json.loads(job.job.workload)
        key = json.dumps({**contents, "name": ""}, sort_keys=True)
        name = str(contents.get("name") or job.job.name)
        groups.setdefault(key, _Group(name, contents)).jobs.append(job)
    names: dict[str, int] = {}
    for group in groups.values():
        names[group.name] = names.get(group.name, 0) + 1
        if names[group.name] > 1:
            group.name = f"{group.name} ({names[group.name]})"
    return list(groups.values()), [
        _skipped(name, LeftOut.NO_WORKLOAD, theirs, attempts, now) for name, theirs in unknown.items()
    ]


def _skipped(
    name: str, why: LeftOut, jobs: Sequence[JobRow], attempts: Mapping[str, Sequence[AttemptRow]], now: float
) -> Skipped:
    tries = [attempt for job in jobs for attempt in attempts.get(job.id, [])]
    return Skipped(name=name, why=why, jobs=len(jobs), chip_hours=_chip_hours(tries, now))


def _chip_hours(attempts: Sequence[AttemptRow], now: float) -> float:
    return sum(
        a.option.chips * ((a.ended if a.ended is not None else now) - a.started) / HOUR
        for a in attempts
        if a.started is not None
    )


def _runs(group: _Group, attempts: Sequence[AttemptRow], first: float, now: float) -> Past:
    held: dict[str, float] = {}
    for attempt in attempts:
        if attempt.started is not None and attempt.ended is not None:
            held[attempt.job_id] = held.get(attempt.job_id, 0.0) + attempt.ended - attempt.started
    well = [held[job.id] for job in group.jobs if job.state == SUCCEEDED and job.id in held]
    months = [
        Month(index=index, share=share, amount=float(sum(begin <= job.submitted < end for job in group.jobs)))
        for index, begin, end, share in calendar(first, now)
    ]
    return Past(
        name=group.name,
        kind=Kind.RUNS,
        workload=group.contents,
        months=months,
        jobs=len(group.jobs),
        chip_hours=_chip_hours(attempts, now),
        run_seconds=median(well) if well else None,
        chips=sorted({attempt.option.chips for attempt in attempts}),
    )


def calendar(first: float, last: float) -> list[tuple[int, float, float, float]]:
    """Months (UTC) with when they begin and end, and the share of each that lies within a span."""
    out = []
    index = _index(first)
    while (begin := _begin(index)) < last:
        end = _begin(index + 1)
        share = (min(end, last) - max(begin, first)) / (end - begin)
        if share > 0:
            out.append((index, begin, end, share))
        index += 1
    return out


def _index(at: float) -> int:
    moment = datetime.fromtimestamp(at, UTC)
    return month_index(moment.year, moment.month)


def _begin(index: int) -> float:
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC).timestamp()


def _service(
    group: _Group,
    workload: ServingWorkload,
    attempts: Sequence[AttemptRow],
    span: tuple[float, float],
    sources: Sources,
) -> Past | None:
    """A service by its servers' windows, all replicas of an hour together; by its own rate where none can be read."""
    hours: dict[int, float] = {}  # hour since 1970 -> requests
    silent: set[int] = set()  # hours of which a server did not say all
    began, ended, counted = span[1], 0.0, False
    for attempt in attempts:
        assert attempt.started is not None
        start = max(span[0], attempt.started)
        end = attempt.ended if attempt.ended is not None else span[1]
        rates, by_counters = sources.rates(attempt, workload, (start, end)) if end > start else (None, False)
        if rates is None:
            continue
        began, ended, counted = min(began, start), max(ended, end), counted or by_counters
        silent |= add_requests(hours, rates, (start, end))
    declared = not hours
    if declared:
        rate, starts = workload.serve.arrival.rate, [a.started for a in attempts if a.started is not None]
        if rate <= 0 or not starts:
            return None
        months = [
            Month(index=index, share=share, amount=rate)
            for index, _, _, share in calendar(max(span[0], min(starts)), span[1])
        ]
    else:
        months = [
            Month(index=index, share=share, amount=_mean_rate(hours, max(begin, began), min(end, ended)))
            for index, begin, end, share in calendar(began, ended)
        ]
    return Past(
        name=group.name,
        kind=Kind.SERVICE,
        workload=group.contents,
        months=months,
        jobs=len(group.jobs),
        chip_hours=_chip_hours(attempts, span[1]),
        peak=peak_of({hour: requests for hour, requests in hours.items() if hour not in silent}),
        declared=declared,
        counted=counted,
    )


def _mean_rate(hours: Mapping[int, float], begin: float, end: float) -> float:
    requests = sum(amount for hour, amount in hours.items() if begin <= hour * HOUR + HOUR / 2 < end)
    return requests / max(end - begin, 1.0)


def peak_of(hours: Mapping[int, float]) -> Peak | None:
    """The hours around the busiest in which the mean of many days is above the day's by more than a fifth."""
    of_day: list[list[float]] = [[] for _ in range(24)]
    for hour, requests in hours.items():
        of_day[hour % 24].append(requests)
    if min(len(amounts) for amounts in of_day) < FEWEST_DAYS:
        return None
    profile = np.array([np.mean(amounts) for amounts in of_day])
    high = profile > PEAK_FROM * profile.mean()
    if not high.any() or high.all():
        return None
    begin = end = int(profile.argmax())
    while high[(begin - 1) % 24]:
        begin -= 1
    while high[(end + 1) % 24]:
        end += 1
    inside = [hour % 24 for hour in range(begin, end + 1)]
    return Peak(times=float(profile[inside].mean() / profile.mean()), begin=begin % 24, end=(end + 1) % 24 or 24)
