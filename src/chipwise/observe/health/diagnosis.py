"""What is wrong with a run, by its log: each finding with its evidence, what to do, and what it has cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.observe.against import Ratio, Verdict
from chipwise.observe.faults import xids
from chipwise.observe.formats.documents import labels_of
from chipwise.observe.health.changes import FEWEST, SLACK, Level, levels
from chipwise.observe.health.playbook import advice, advice_on, device_series
from chipwise.observe.health.records import Condition, Cost, Finding, Unjudged
from chipwise.observe.health.stragglers import FEWEST_STEPS, stragglers
from chipwise.observe.log import Log
from chipwise.observe.pace import Pace, PacedStep, pace_of
from chipwise.observe.records import Fault, FaultClass, Severity
from chipwise.present.numbers import plural
from chipwise.units import format_seconds

HANG_STEPS = 10.0  # times the typical gap between steps told: a save or an evaluation takes less in most runs
# PyTorch gives up a collective of NCCL after so long (torch.distributed.constants.default_pg_nccl_timeout, 2026-11-19):
# a job that is silent for less may still be told by its own framework
LEAST_HANG_S = 600.0
NEAR_START = 8  # steps from a start within which a change is of that start: CUSUM dates it that well
LONGER_PAUSE = 2.0  # times the longest pause that the run came back from
_XID_SERIES = "DCGM_FI_DEV_XID_ERRORS"
_DEVICE_LABELS = ("gpu", "uuid", "UUID", "gpu_id", "gpu_uuid", "device")
_HOST_LABELS = ("Hostname", "hostname", "instance", "node")
_CONDITIONS = tuple(Condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is judged by besides its log."""

    ratios: Sequence[Ratio] = ()  # against its prediction
    until: float | None = None  # until when it is known to have run: a log that ends sooner is silent since
    chips: int | None = None
    chips_of_host: int | None = None
    usd_per_chip_hour: float | None = None

    def cost(self, seconds: float | None) -> Cost | None:
        """What so many seconds of all its chips are."""
        return None if seconds is None else Cost(max(0.0, seconds), self.chips, self.usd_per_chip_hour)


def diagnose(log: Log, setting: Setting) -> list[Finding]:
    """All that is wrong, the gravest first."""
    pace = pace_of(log)
    findings = [
        *_silences(log, pace, setting),
        *_faults(log, pace, setting),
        *_devices(log),
        *_slow(pace, setting),
        *_slowed(pace, setting),
        *_stragglers(log, setting),
    ]
    gravity = list(Severity)
    return sorted(findings, key=lambda f: (gravity.index(f.severity), _CONDITIONS.index(f.condition), f.line or 0))


def _silences(log: Log, pace: Pace, setting: Setting) -> Iterator[Finding]:
    """Where no step came for far longer than one takes."""
    typical = pace.gap
    if not typical:
        return
    limit = max(HANG_STEPS * typical, LEAST_HANG_S)
    longest = 0.0  # of the pauses that were no stall
    for paced in pace.steps:
        if paced.gap is None or not paced.settled:
            continue
        if paced.gap > max(limit, LONGER_PAUSE * longest):
            what = f"no step for {format_seconds(paced.gap)}, {paced.gap / typical:.0f} times the usual"
            yield replace(
                _finding(Condition.STALLED, what, setting.cost(paced.gap - typical)),
                step=paced.step.step,
                line=paced.step.line,
            )
        else:
            longest = max(longest, paced.gap)
    last = log.steps[-1]
    until = setting.until if setting.until is not None else log.ended
    if last.at is None or until is None:
        return
    silent = until - last.at
    if silent > max(limit, LONGER_PAUSE * longest):
        what = f"no step for {format_seconds(silent)} since, {silent / typical:.0f} times the usual"
        yield replace(_finding(Condition.HUNG, what, setting.cost(silent)), step=last.step, line=last.line)


def _slow(pace: Pace, setting: Setting) -> Iterator[Finding]:
    """Slower than predicted in its first settled steps already: what no comparison with itself shows."""
    if not pace.settled:
        return
    for ratio in setting.ratios:
        times = 1 / ratio.ratio if ratio.larger_is_faster else ratio.ratio
        if ratio.verdict is not Verdict.SLOWER:
            continue
        value = ratio.predicted.value
        bound = ratio.predicted.low if ratio.larger_is_faster else ratio.predicted.high
        what = (
            f"{ratio.figure} of {ratio.actual:.4g} {ratio.unit} where {value:.4g} was predicted, "
            f"{bound:.4g} at the worst in 9 of 10 runs"
        )
        seconds = sum(one.seconds for one in pace.settled if one.seconds is not None)
        yield replace(
            _finding(Condition.SLOW, what, setting.cost(seconds * (1 - 1 / times)) if seconds else None),
            step=pace.steps[0].step.step,
            ratio=times,
        )
        return  # one figure says it


def _slowed(pace: Pace, setting: Setting) -> Iterator[Finding]:
    """Levels of the pace that are slower than the fastest before them."""
    settled = pace.settled
    plateaus = _at_starts(levels(np.array([one.pace for one in settled], dtype=float)), settled)
    fastest: Level | None = None
    for number, level in enumerate(plateaus):
        if fastest is None or level.seconds <= fastest.seconds:
            fastest = level
            continue
        times = level.seconds / fastest.seconds
        if np.log(times) <= SLACK:
            continue
        span = settled[level.start : level.end]
        lost = [one.seconds * (1 - 1 / times) for one in span if one.seconds is not None]
        over = number + 1 < len(plateaus)
        what = f"{times:.2f} times as long as steps {_steps(settled[fastest.start : fastest.end])}"
        if span[0].start != settled[level.start - 1].start:
            what += ", since the run was started again"
        yield replace(
            _finding(Condition.SLOWED, what, setting.cost(sum(lost)) if lost else None),
            step=span[0].step.step,
            until_step=span[-1].step.step if over else None,
            called_step=settled[min(level.called, len(settled) - 1)].step.step,
            ratio=times,
            line=span[0].step.line,
        )


def _at_starts(plateaus: Sequence[Level], settled: Sequence[PacedStep]) -> list[Level]:
    """The levels, of which one that began about where the run was started again began there."""
    starts = [place for place in range(1, len(settled)) if settled[place].start != settled[place - 1].start]
    edges = [
        next((start for start in starts if abs(start - level.start) <= NEAR_START), level.start) for level in plateaus
    ]
    ends = [*edges[1:], len(settled)][: len(edges)]
    return [
        replace(level, start=edge, end=end)
        for level, edge, end in zip(plateaus, edges, ends, strict=True)
        if end > edge
    ]


def _steps(span: Sequence[PacedStep]) -> str:
    return f"{span[0].step.step} to {span[-1].step.step}"


def _stragglers(log: Log, setting: Setting) -> Iterator[Finding]:
    seconds = any(step.step_seconds for step in log.steps)
    for straggler in stragglers(log.ranks, setting.chips_of_host):
        what = (
            f"{straggler.ratio:.2f} times as long as the median rank over "
            f"{plural(straggler.last - straggler.first + 1, 'step')} told"
        )
        yield replace(
            _finding(Condition.STRAGGLER, what, setting.cost(straggler.lost_seconds) if seconds else None),
            where=straggler.name,
            step=log.ranks[straggler.first].step,
            ratio=straggler.ratio,
        )


def unjudged(log: Log, setting: Setting) -> list[Unjudged]:
    """What this log can't show."""
    pace = pace_of(log)
    out = []
    if log.steps and pace.gap is None:
        out.append(Unjudged.SILENCE)
    if log.steps and not setting.ratios:
        out.append(Unjudged.PREDICTION)
    if log.steps and len(pace.settled) < FEWEST:
        out.append(Unjudged.CHANGE)
    if log.steps and len(log.ranks) < FEWEST_STEPS:
        out.append(Unjudged.RANKS)
    return out


def _faults(log: Log, pace: Pace, setting: Setting) -> Iterator[Finding]:
    for fault in log.faults:
        entry = advice_on(fault)
        thermal = fault.kind is FaultClass.THERMAL
        yield Finding(
            condition=Condition.THROTTLED if thermal else Condition.FAULT,
            severity=entry.severity,
            fault=fault.kind,
            where=fault.device or "",
            step=next((step.step for step in reversed(log.steps) if step.line and step.line < fault.number), None),
            xid=fault.xid,
            line=fault.number,
            evidence=f"{entry.meaning}: {fault.line}" if entry.meaning else fault.line,
            action=entry.action,
            cost=None if thermal else setting.cost(_stopped(log, pace, fault)),
        )


def _stopped(log: Log, pace: Pace, fault: Fault) -> float | None:
    """Seconds that a fault has cost: until the run went on from where it stood, or as far as its log goes."""
    after = [place for place in log.starts[1:] if log.steps[place].line > fault.number]
    if not after:
        last = next((step for step in reversed(log.steps) if step.line < fault.number and step.at is not None), None)
        stamps = [at for at in (fault.at, last.at if last else None) if at is not None]
        goes_on = any(step.line > fault.number for step in log.steps)
        return None if goes_on or not stamps or log.ended is None else log.ended - min(stamps)
    first = after[0]
    redone = _redone(log, pace, first)
    before, again = log.steps[first - 1].at, log.steps[first].at
    if before is None or again is None:
        return redone
    return again - before + (redone or 0.0)


def _redone(log: Log, pace: Pace, first: int) -> float | None:
    """Seconds of the steps that were done before a start and are done again after it."""
    number = log.steps[first].step
    seconds = pace.step_seconds
    before = log.steps[first - 1].step
    if number is None or before is None or seconds is None:
        return None
    return max(0, before - number + 1) * seconds


def _devices(log: Log) -> Iterator[Finding]:
    """What a page of metrics says of devices."""
    rows = ((name, labels, amount) for name, row in log.series.items() for labels, amount in row.items())
    for name, labels, amount in rows:
        where = _device(labels)
        for series in device_series():
            if name == series.series and series.tells(amount):
                entry = advice(series.condition, series.fault)
                yield Finding(
                    condition=series.condition,
                    severity=series.severity,
                    fault=series.fault,
                    where=where,
                    evidence=f"{name} is {amount:g}: {series.meaning}",
                    action=entry.action,
                )
        if name == _XID_SERIES and amount >= 1:
            xid = xids().get(int(amount))
            yield Finding(
                condition=Condition.FAULT,
                severity=Severity.NOTICE,
                fault=xid.kind if xid else FaultClass.DRIVER,
                where=where,
                xid=int(amount),
                evidence=f"{name} is {amount:g}" + (f": {xid.meaning}" if xid else "") + "; it may be days old",
                action="look for it in the kernel's log: the series keeps the last Xid"
                + (f"; if it is new: {xid.action}" if xid else ""),
            )


def _device(labels: str) -> str:
    named = labels_of(labels)
    host = next((named[label] for label in _HOST_LABELS if label in named), "")
    device = next((named[label] for label in _DEVICE_LABELS if label in named), "")
    return " ".join(filter(None, (host, f"GPU {device}" if device.isdigit() else device)))


def _finding(condition: Condition, evidence: str, cost: Cost | None) -> Finding:
    entry = advice(condition)
    return Finding(condition=condition, severity=entry.severity, evidence=evidence, action=entry.action, cost=cost)
