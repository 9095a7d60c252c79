"""How long the steps of a log took: each by what its line says, and by the stamps of lines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from chipwise.observe.log import WARM_UP, Log
from chipwise.observe.records import Step

_KEYS = ("step_seconds", "tokens_per_s_per_device", "tokens_per_s", "tflops_per_device", "mfu")


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedStep:
    """A step that a log tells, with what passed since the one before it."""

    place: int  # in the log's steps
    step: Step
    start: int  # of the run: 0, 1 after a restart
    settled: bool  # behind the warm-up of its start
    steps: int  # since the one before, of the same start
    seconds: float | None  # in which those were done: by stamps, else by what the step's own line says
    pace: float | None  # in proportion to what one step took: its seconds, or the inverse of its rate
    gap: float | None  # since the step before by stamps alone


@dataclass(frozen=True, slots=True)
class Pace:
    """All the steps of a log."""

    key: str | None  # what `pace` is by: step_seconds, the rate whose inverse it is, or gap; None: nothing says
    steps: list[PacedStep]

    @property
    def settled(self) -> list[PacedStep]:
        """The steps by which a run is judged: behind the warm-up, with a pace."""
        return [row for row in self.steps if row.settled and row.pace is not None]

    @property
    def gap(self) -> float | None:
        """Seconds that typically pass from one step that is told to the next, by stamps."""
        gaps = [row.gap for row in self.steps if row.settled and row.gap is not None]
        return median(gaps) if gaps else None

    @property
    def step_seconds(self) -> float | None:
        """Seconds that a step typically takes."""
        rates = [row.seconds / row.steps for row in self.steps if row.settled and row.seconds is not None]
        return median(rates) if rates else None


def pace_of(log: Log) -> Pace:
    """What each step of a log took."""
    key = next((key for key in _KEYS if any(getattr(step, key) for step in log.steps)), None)
    stamped = sum(step.at is not None for step in log.steps) > 1
    rows: list[PacedStep] = []
    for number, (first, end) in enumerate(pairwise([*log.starts, len(log.steps)])):
        for place in range(first, end):
            before = log.steps[place - 1] if place > first else None
            rows.append(_paced(log, place, number, place - first, before, key or "gap"))
    return Pace(key or ("gap" if stamped else None), rows)


def _paced(log: Log, place: int, start: int, since_start: int, before: Step | None, key: str) -> PacedStep:
    step = log.steps[place]
    steps = 1
    if before is not None and before.step is not None and step.step is not None:
        steps = max(1, step.step - before.step)
    gap = None
    if before is not None and before.at is not None and step.at is not None:
        gap = max(0.0, step.at - before.at)
    own = step.step_seconds * steps if step.step_seconds else None
    amount = gap / steps if key == "gap" and gap else getattr(step, key, None)
    pace = None if not amount else amount if key in ("step_seconds", "gap") else 1.0 / amount
    return PacedStep(
        place=place,
        step=step,
        start=start,
        settled=since_start >= WARM_UP,
        steps=steps,
        seconds=own if gap is None else gap,
        pace=pace if pace is not None and pace > 0 else None,
        gap=gap,
    )
