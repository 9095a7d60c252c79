"""Expected run time with failures and interruptions: exact in expectation, a Poisson tail for its high end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, sqrt

from chipwise.catalog.economics import Economics
from chipwise.cost.spot import Hazard, expected, segments
from chipwise.predict.estimate import Estimate
from chipwise.route.job import Checkpoint
from chipwise.route.pool import Pool
from chipwise.units import HOUR

TAIL = 0.95  # the high end of a 90 % interval is passed by one run in twenty
MOST_STOPS = 1000  # beyond which a run is said never to end


@dataclass(frozen=True, slots=True)
class Stretched:
    """A run with what interrupts it; None where it never ends."""

    seconds: Estimate | None
    note: str


def stretched(
    work: Estimate, pool: Pool, chips: int, checkpoint: Checkpoint, write_s: float, know: Economics
) -> Stretched:
    """The run from its start with failures of chips and, on spot, interruptions; waits for chips are the queue's.

    A job that is not restartable, or has no checkpoints, starts over each time. The low end is that of a run that
    nothing interrupts; the high end has as many interruptions as one run in twenty exceeds.
    """
    units = max(1, ceil(chips / pool.unit)) if not pool.shapes else 1
    failing = 0.0 if pool.family == "cpu" else know.value("failure_chip_hour", pool.cloud or "owned") * chips
    rate = failing + pool.interruptions * units
    saves = checkpoint.restartable and checkpoint.every < inf
    write = write_s if saves else 0.0
    hazard = Hazard(HOUR / rate if rate > 0 else inf, write, checkpoint.restart)
    values = [expected(end, hazard, checkpoint.every if saves else end).billed_s for end in (work.value, work.high)]
    if inf in values or values[1] / hazard.mean_s > MOST_STOPS:
        return Stretched(None, "")
    written = segments(work.low, checkpoint.every) * write if saves else 0.0
    stops = _quantile(work.high / hazard.mean_s)
    per_stop = (min(checkpoint.every, work.high) if saves else work.high) / 2 + checkpoint.restart
    high = work.high + (segments(work.high, checkpoint.every) * write if saves else 0.0) + stops * per_stop
    value = max(values[0], work.low + written)
    seconds = Estimate(value, min(work.low + written, value), max(high, values[1]), work.evidence, work.because)
    return Stretched(seconds, _note(work, seconds, rate, chips, pool, saves))


def _quantile(mean: float) -> int:
    """The number of interruptions that one run in twenty exceeds, of so many on average (Poisson).

    >>> _quantile(0.0), _quantile(0.04), _quantile(1.0)
    (0, 0, 3)
    """
    if mean > MOST_STOPS / 2:
        return ceil(mean + 1.645 * sqrt(mean))  # normal: 95 % lie below
    n, term = 0, exp(-mean)
    below = term
    while below < TAIL:
        n += 1
        term *= mean / n
        below += term
    return n


def _note(work: Estimate, seconds: Estimate, rate: float, chips: int, pool: Pool, saves: bool) -> str:
    if seconds.value < work.value * 1.005:
        return ""
    what = "failures and spot interruptions" if pool.interruptions else "failures"
    how = "its checkpoints" if saves else "starting over"
    return f"{seconds.value / work.value:.2f}x for {what} ({rate:.2g} an hour), with {how}"
