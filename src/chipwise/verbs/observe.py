"""Verbs of what really happened: logs read and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.compare.training.predict import PricedPrediction
    from chipwise.knowledge import Knowledge
    from chipwise.observe.health.view import HealthReport
    from chipwise.observe.view import LogReading


def read_log(source: str | Path, *, format: str | None = None, against: PricedPrediction | None = None) -> LogReading:
    """Read what a program printed: steps of training, windows of serving, faults, metrics.

    `source` is a file (gzip as well) or ``"-"`` for standard input. The `format` is found by what the lines say, unless
    it is named. `against` is a prediction of the same run: the reading then has actual over predicted.

    >>> log = read_log("examples/logs/maxtext.log")
    >>> log.log.format, len(log.steps), log.log.typical("step_seconds")
    ('maxtext', 10, 5.667)
    """
    from chipwise.observe.against import ratios
    from chipwise.observe.log import read_lines
    from chipwise.observe.text import lines_of
    from chipwise.observe.view import LogReading

    log = read_lines(lines_of(str(source)), format)
    return LogReading(str(source), log, ratios(log, against.prediction) if against is not None else ())


def diagnose(
    source: str | Path,
    *,
    format: str | None = None,
    against: PricedPrediction | None = None,
    on: str | None = None,
    until: str | None = None,
    knowledge: Knowledge | None = None,
) -> HealthReport:
    """Judge a run by what it printed: hung, slow, slower than it was, stragglers, faults, each with what it has cost.

    `against` is a prediction of the same run: without one nobody sees a run that was slow from its first step. `on`
    names the chips where no prediction does, for chip-hours and dollars. `until` is a moment to which the run is known
    to have gone on (``"now"``, ``"2026-11-02T10:00:00Z"``); the log's last stamp otherwise.

    >>> report = diagnose("examples/logs/slow.log", on="h100:8")
    >>> report.worst.value, [finding.condition.value for finding in report.findings]
    ('warning', ['slowed', 'fault'])
    """
    import time

    from chipwise.catalog import parse
    from chipwise.observe.against import ratios
    from chipwise.observe.clock import read_moment
    from chipwise.observe.health.diagnosis import Setting, unjudged
    from chipwise.observe.health.diagnosis import diagnose as findings_of
    from chipwise.observe.health.view import HealthReport
    from chipwise.observe.log import read_lines
    from chipwise.observe.text import lines_of
    from chipwise.prices import cheapest_of
    from chipwise.verbs.arguments import knowledge_of

    end = None if until is None else read_moment(until, "until", time.time())
    chips = against.accelerators if against is not None else parse(on) if on is not None else None
    known = knowledge_of(knowledge)
    rental = cheapest_of(chips, today=known.today, book=known.prices) if chips is not None else None
    log = read_lines(lines_of(str(source)), format)
    setting = Setting(
        ratios=ratios(log, against.prediction) if against is not None else (),
        until=end,
        chips=chips.count if chips is not None else None,
        chips_of_host=chips.chip.fabric.host_chips if chips is not None else None,
        usd_per_chip_hour=rental.price.usd_per_chip_hour if rental is not None else None,
    )
    return HealthReport(str(source), log, findings_of(log, setting), unjudged(log, setting))
