"""Where a run's time went, by its log: every second from its first stamp to its last is counted once.

A step beyond its usual time and three median absolute deviations is no noise (as in ml-goodput-measurement): the rest
of it goes to what the lines before it say, or to the slower level that it is part of.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from chipwise.observe.goodput.records import Use
from chipwise.observe.health.changes import FEWEST, SLACK, Level, levels
from chipwise.observe.health.diagnosis import Setting, diagnose
from chipwise.observe.health.records import Condition
from chipwise.observe.health.stragglers import stragglers
from chipwise.observe.log import Log
from chipwise.observe.marks import Mark, Pause
from chipwise.observe.pace import Pace, PacedStep, pace_of
from chipwise.observe.records import FaultClass

NOISE_DEVIATIONS = 3.0  # median absolute deviations, as ml-goodput-measurement 0.2.3 has it (read 2026-11-16)
LEAST_NOISE = 0.10  # of a step: a log whose stamps are whole seconds has no deviation at all
_USES = {Pause.CHECKPOINT: Use.CHECKPOINT, Pause.EVALUATION: Use.EVALUATION, Pause.DATA: Use.DATA}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is known of a run besides its log."""

    began: float | None = None  # seconds since 1970: of its program; the log's first stamp otherwise
    ended: float | None = None  # its last stamp otherwise
    goes_on: bool = False  # an attempt before it ran the same job
    redone_from: int | None = None  # the first step of the attempt after it
    stopped: bool = False  # it was ended by what the log does not say: it is not shutting down after its last step


def seconds_by_use(log: Log, span: Span | None = None) -> dict[Use, float] | None:
    """Seconds by use; None where a log says nothing of time."""
    span = span or Span()
    pace = pace_of(log)
    plateaus = levels(np.array([row.pace for row in pace.settled], dtype=float))
    fastest = _fastest(pace, plateaus)
    rates = [row.seconds / row.steps for row in fastest if row.seconds is not None]
    if not rates:
        return None
    usual = median(rates)
    out: dict[Use, float] = dict.fromkeys(Use, 0.0)
    slower = _slower(log, pace, plateaus, usual)
    noise = _noise(fastest, usual)
    redone = _redone(log, pace, span.redone_from)
    for paced in pace.steps:
        _count(out, log, paced, usual, noise, slower.get(paced.place), paced.place in redone, span)
    _count_end(out, log, pace, usual, span)
    waited = sum(straggler.lost_seconds for straggler in stragglers(log.ranks)[:1])
    if any(step.step_seconds for step in log.steps):
        _move(out, waited, (Use.SLOW_DOWN, Use.PRODUCTIVE), Use.STRAGGLER)
    return {use: seconds for use, seconds in out.items() if seconds > 0.0}


def _count(
    out: dict[Use, float],
    log: Log,
    paced: PacedStep,
    usual: float,
    noise: float,
    slower: tuple[Use, float] | None,
    redone: bool,
    span: Span,
) -> None:
    """Count the time from the step before to this one."""
    step, counts = paced.step, Use.LOST_WORK if redone else Use.PRODUCTIVE
    expected = usual * paced.steps
    first = paced.place == log.starts[paced.start]
    if first:
        again = paced.place > 0 or span.goes_on
        before = (
            log.steps[paced.place - 1].at if paced.place > 0 else span.began if span.began is not None else log.began
        )
        whole = step.at - before if step.at is not None and before is not None else step.step_seconds or 0.0
        own = min(whole, step.step_seconds or expected)
        out[Use.RECOVERY if again else Use.START_UP] += max(0.0, whole - own)
        out[counts] += min(own, usual)
        out[Use.COMPILE] += max(0.0, own - usual)
        return
    seconds = paced.seconds
    if seconds is None:
        return
    if slower is not None:
        part = min(max(0.0, seconds - expected), slower[1] * paced.steps)
        out[slower[0]] += part
        seconds -= part
    rest = seconds - expected
    if rest <= noise * paced.steps:
        out[counts] += seconds
        return
    out[counts] += expected
    pause = _marked(log, log.steps[paced.place - 1].line, step.line) or Use.PAUSE
    out[pause if paced.settled else Use.COMPILE] += rest


def _count_end(out: dict[Use, float], log: Log, pace: Pace, usual: float, span: Span) -> None:
    """Count the time after the last step."""
    last = log.steps[-1]
    ended = span.ended if span.ended is not None else log.ended
    if last.at is None or ended is None or ended <= last.at:
        return
    rest = ended - last.at
    hung = any(f.condition is Condition.HUNG for f in diagnose(log, Setting(until=ended)))
    hung = hung or any(fault.kind is FaultClass.HANG and fault.number > last.line for fault in log.faults)
    if hung:
        use = Use.HANG
    elif (marked := _marked(log, last.line, log.lines + 1)) is not None:
        use = marked
    else:
        use = Use.LOST_WORK if span.stopped else Use.SHUT_DOWN
    out[use] += rest


def _marked(log: Log, after: int, before: int) -> Use | None:
    """What lines between two others say is done."""
    first = bisect_left(log.marks, after, key=_line)
    pauses = {mark.pause for mark in log.marks[first : bisect_left(log.marks, before, key=_line)]}
    return next((_USES[pause] for pause in Pause if pause in pauses), None)


def _line(mark: Mark) -> int:
    return mark.line


def _slower(log: Log, pace: Pace, plateaus: Sequence[Level], usual: float) -> dict[int, tuple[Use, float]]:
    """Of steps in slower levels by their place: what they go to, and by how many seconds each step is slower."""
    settled = pace.settled
    out: dict[int, tuple[Use, float]] = {}
    fastest = plateaus[0].seconds if plateaus else 0.0
    hot = [fault.number for fault in log.faults if fault.kind is FaultClass.THERMAL]
    for level in plateaus:
        fastest = min(fastest, level.seconds)
        if np.log(level.seconds / fastest) <= SLACK:
            continue
        span = settled[level.start : level.end]
        before = settled[level.start - 1].step.line
        use = Use.THROTTLING if any(before <= line <= span[-1].step.line for line in hot) else Use.SLOW_DOWN
        out.update({row.place: (use, usual * (level.seconds / fastest - 1)) for row in span})
    return out


def _noise(steps: Sequence[PacedStep], usual: float) -> float:
    """Seconds beyond the usual that are no more than noise, of one step at the usual level."""
    rates = [row.seconds / row.steps for row in steps if row.seconds is not None]
    deviation = median(abs(rate - usual) for rate in rates) if rates else 0.0
    return max(NOISE_DEVIATIONS * deviation, LEAST_NOISE * usual)


def _redone(log: Log, pace: Pace, redone_from: int | None) -> set[int]:
    """Places of steps that were done again after a restart."""
    firsts = [log.steps[start].step for start in log.starts[1:]] + [redone_from]
    out: set[int] = set()
    for paced in pace.steps:
        later: Sequence[int | None] = firsts[paced.start :]
        number = paced.step.step
        if number is not None and any(first is not None and number >= first for first in later):
            out.add(paced.place)
    return out


def _fastest(pace: Pace, plateaus: Sequence[Level]) -> Sequence[PacedStep]:
    """The steps of the fastest level that the run had for a while; all of them where it never settled."""
    level = min((one for one in plateaus if one.end - one.start >= FEWEST), key=lambda one: one.seconds, default=None)
    return pace.settled[level.start : level.end] if level is not None else pace.settled or pace.steps


def _move(out: dict[Use, float], seconds: float, sources: Sequence[Use], to: Use) -> None:
    for source in sources:
        part = min(seconds, out[source])
        out[source] -= part
        out[to] += part
        seconds -= part
