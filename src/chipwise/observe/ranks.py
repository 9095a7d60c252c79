"""What each rank's own part of a step took: where ranks print their steps, and in Megatron's tables of timers.

Megatron-LM prints `times across ranks (ms):` with `--timing-log-option all` (megatron/core/timers.py, read 2026-11-19).
Of its timers those of computing count: the others hold time in which a rank waits for others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from chipwise.observe.records import Step

FEWEST_RANKS = 3  # of which one can be said to be slower than the others
_TABLE = "times across ranks (ms)"
_TIMER = re.compile(r"^\s*([\w-]+):\s*$")
_RANK = re.compile(r"^\s*rank\s+(\d+):\s+([\d.]+)\s*$")
_OWN_WORK = "-compute"  # forward-compute, backward-compute


@dataclass(slots=True)
class RankStep:
    """Seconds of one step by rank."""

    step: int | None
    seconds: dict[str, float] = field(default_factory=dict)


class RankTimers:
    """Reads Megatron's tables."""

    def __init__(self) -> None:
        self.rows: list[RankStep] = []
        self._within = False
        self._own = False

    def read(self, line: str, step: int | None) -> None:
        """Take a line; `step` is the last that was printed."""
        if _TABLE in line and "(min, max)" not in line:
            self._within, self._own = True, False
            self.rows.append(RankStep(step))
            return
        if not self._within:
            return
        if match := _RANK.match(line):
            if self._own:
                row = self.rows[-1].seconds
                row[match[1]] = row.get(match[1], 0.0) + float(match[2]) * 1e-3
        elif match := _TIMER.match(line):
            self._own = match[1].endswith(_OWN_WORK)
        else:
            self._within = False


def by_rank(steps: Iterable[Step], tables: Iterable[RankStep]) -> list[RankStep]:
    """Steps by rank: of tables of timers where a log has them, else of steps that name the rank that prints them."""
    rows = [row for row in tables if len(row.seconds) >= FEWEST_RANKS]
    if rows:
        return rows
    out: list[RankStep] = []
    open_rows: dict[int, RankStep] = {}
    for step in steps:
        seconds = own_seconds(step)
        if not step.rank or step.step is None or seconds is None:
            continue
        row = open_rows.get(step.step)
        if row is None or step.rank in row.seconds:  # a rank tells a step again: the run has begun again
            row = open_rows[step.step] = RankStep(step.step)
            out.append(row)
        row.seconds[step.rank] = seconds
    return [row for row in out if len(row.seconds) >= FEWEST_RANKS]


def own_seconds(step: Step) -> float | None:
    """What a step took, or what is in proportion to it: the inverse of its rate.

    >>> own_seconds(Step(step_seconds=2.0)), own_seconds(Step(tokens_per_s_per_device=4.0)), own_seconds(Step(loss=1.0))
    (2.0, 0.25, None)
    """
    if step.step_seconds:
        return step.step_seconds
    rate = step.tokens_per_s_per_device or step.tokens_per_s or step.tflops_per_device or step.mfu
    return 1.0 / rate if rate and rate > 0 else None
