"""How long a run still takes, by the steps that it has done: batch means (Law & Kelton) of what a step takes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from chipwise.observe.pace import Pace
from chipwise.predict.estimate import Estimate

RECENT = 200  # steps told: as it runs now, with what checkpoints and evaluations take
BATCHES = 10
FEWEST = 2 * BATCHES  # steps told below which the least and the most are the interval
_T = 1.833  # of Student's distribution: 90 %, nine degrees of freedom


def seconds_of_step(pace: Pace) -> Estimate | None:
    """What a step takes now, all in all, with the interval of its mean; None where nothing says."""
    recent = [(row.seconds, row.steps) for row in pace.settled if row.seconds is not None][-RECENT:]
    if not recent:
        return None
    whole = sum(seconds for seconds, _ in recent) / sum(steps for _, steps in recent)
    because = f"measured: the mean of the last {len(recent):,} steps told"
    if len(recent) < FEWEST:
        rates = [seconds / steps for seconds, steps in recent]
        return Estimate(whole, min(rates), max(rates), "measured", because)
    means = [sum(s for s, _ in batch) / sum(n for _, n in batch) for batch in _batches(recent)]
    error = _T * stdev(means) / BATCHES**0.5
    # batches are of about the same number of steps: their mean is the whole's but for rounding
    low, high = min(whole, mean(means) - error), max(whole, mean(means) + error)
    return Estimate(whole, max(0.0, low), high, "measured", because)


def _batches(rows: Sequence[tuple[float, int]]) -> list[Sequence[tuple[float, int]]]:
    edges = [round(place * len(rows) / BATCHES) for place in range(BATCHES + 1)]
    return [rows[edges[place] : edges[place + 1]] for place in range(BATCHES)]
