"""How soon a slow-down and a straggler are found, and how often where there is none, over simulated runs.

Step times are simulated as trainers' logs show them: white and correlated noise of 2 % each, a level that wanders by
1 % over hours, 2 % of steps 1.2 to 3 times as long, a checkpoint every 100 steps, bursts of a few slow steps, and of
ranks noise of 5 % with 2 % between ranks that stays. `--noise 2` doubles the noise of steps.

    python benchmarks/health.py [--runs 1000] [--days 1000] [--noise 1] [--seed 0]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.health.changes import Level, first_change, levels
from chipwise.observe.health.stragglers import straggling

Array = NDArray[np.float64]
STEP_S = 5.0  # as large language models train
DAY_STEPS = int(86400 / STEP_S)
WANDER_S = 7200.0  # of temperature, of neighbors on the network
WITHIN_STEPS, RANK_STEPS = 50, 20
RUN_STEPS = 400


def step_times(rng: np.random.Generator, runs: int, steps: int, noise: float = 1.0) -> Array:
    """Logarithms of step times."""
    out = 0.02 * noise * rng.standard_normal((runs, steps))
    out += 0.02 * noise * _correlated(rng, runs, steps, 0.5)
    out += 0.01 * _correlated(rng, runs, steps, float(np.exp(-STEP_S / WANDER_S)))
    out += (rng.random((runs, steps)) < 0.02) * np.log(rng.uniform(1.2, 3.0, (runs, steps)))
    out[:, ::100] += np.log(rng.uniform(1.5, 4.0, out[:, ::100].shape))
    for run, bursts in enumerate(rng.poisson(steps / 2000, runs)):
        for start, length in zip(rng.integers(0, steps, bursts), rng.integers(2, 7, bursts), strict=True):
            out[run, start : start + length] += np.log(rng.uniform(1.3, 2.0))
    return out


def _correlated(rng: np.random.Generator, runs: int, steps: int, keep: float) -> Array:
    """Noise of which so much remains from step to step, of variance 1."""
    from scipy.signal import lfilter

    first = keep * rng.standard_normal((runs, 1))
    drawn = rng.standard_normal((runs, steps))
    return np.asarray(lfilter([np.sqrt(1 - keep**2)], [1, -keep], drawn, axis=1, zi=first)[0])


@dataclass(frozen=True, slots=True)
class Found:
    """Of how many runs a change was found in time, and in how many before there was one."""

    runs: int
    in_time: int
    too_soon: int
    steps: list[int]  # until it was found


def slow_downs(runs: int, seed: int = 0, noise: float = 1.0, by: float = 1.10) -> Found:
    """Runs that take so much longer from some step on."""
    rng = np.random.default_rng(seed)
    series = step_times(rng, runs, RUN_STEPS, noise)
    starts = rng.integers(60, RUN_STEPS - WITHIN_STEPS, runs)
    in_time, too_soon, after = 0, 0, []
    for run, start in zip(series, starts, strict=True):
        run[start:] += np.log(by)
        change = first_change(run[: start + WITHIN_STEPS])
        if change is not None and change[1] < start:
            too_soon += 1
        elif change is not None:
            in_time += 1
            after.append(change[1] - int(start))
    return Found(runs, in_time, too_soon, after)


def false_alarms(days: int, seed: int = 0, noise: float = 1.0, at_once: int = 10) -> int:
    """Slow-downs called in so many days of runs that have none."""
    rng = np.random.default_rng(seed)
    count = 0
    for first in range(0, days, at_once):
        for run in step_times(rng, min(at_once, days - first), DAY_STEPS, noise):
            count += sum(slower(pair) for pair in pairwise(levels(np.exp(run))))
    return count


def slower(pair: tuple[Level, Level]) -> bool:
    """Whether the later level is the slower one."""
    return pair[1].seconds > pair[0].seconds


@dataclass(frozen=True, slots=True)
class Named:
    """In how many runs the straggler was named in time, and in how many another rank was, at any step."""

    runs: int
    in_time: int
    innocent: int


def named_stragglers(runs: int, seed: int = 0, ranks: int = 256, by: float = 1.15, steps: int = 100) -> Named:
    """Runs in which one rank takes so much longer from some step on."""
    rng = np.random.default_rng(seed)
    in_time = innocent = 0
    for _ in range(runs):
        logs = 0.05 * rng.standard_normal((steps, ranks)) + 0.02 * rng.standard_normal(ranks)
        logs += 0.1 * rng.standard_normal((steps, 1))  # all of them together
        logs += (rng.random((steps, ranks)) < 0.01) * np.log(rng.uniform(1.2, 3.0, (steps, ranks)))
        rank, start = int(rng.integers(ranks)), int(rng.integers(20, steps - RANK_STEPS))
        logs[start:, rank] += np.log(by)
        named = straggling(np.exp(logs))
        in_time += bool(named[start : start + RANK_STEPS, rank].any())
        innocent += bool(np.delete(named, rank, axis=1).any())
    return Named(runs, in_time, innocent)


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    slow = slow_downs(given.runs, given.seed, given.noise)
    print(
        f"slow-down of 10 %: found within {WITHIN_STEPS} steps in {slow.in_time:,} of {slow.runs:,} runs "
        f"({slow.in_time / slow.runs:.1%}), after {np.median(slow.steps):.0f} steps (median); "
        f"called too soon in {slow.too_soon}"
    )
    alarms = false_alarms(given.days, given.seed, given.noise)
    print(f"no slow-down: {alarms} false alarms in {given.days:,} days of a run")
    named = named_stragglers(given.runs, given.seed)
    print(
        f"straggler of 15 % among 256 ranks: named within {RANK_STEPS} steps in {named.in_time:,} of "
        f"{named.runs:,} runs ({named.in_time / named.runs:.1%}); another rank named in {named.innocent}"
    )


if __name__ == "__main__":
    main()
