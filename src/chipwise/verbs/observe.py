"""Verbs of what really happened: logs read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.compare.training.predict import PricedPrediction
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
