"""How often and how soon a change of runs' times is told, and its version named, over simulated histories.

A history is 50 runs of one program. What differs between runs: white noise of 2.5 %, a level that wanders by 1 % over
some five runs, and 4 % of runs 1.15 to 2 times as long. At one moment the driver is updated, and with it the time of a
run changes, or does not; two other versions are updated at moments of their own, and change nothing. `--noise 2`
doubles the noise.

    python benchmarks/drift.py [--histories 1000] [--noise 1] [--seed 0]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.drift.change_point import FEWEST_AFTER, FEWEST_BEFORE, Change, changes
from chipwise.observe.drift.groups import label_changes

Array = NDArray[np.float64]
RUNS = 50
KEEP = 0.8  # of what wanders, from run to run
OTHERS = ("nccl", "xla")


def history(rng: np.random.Generator, noise: float = 1.0) -> Array:
    """Logarithms of runs' times."""
    out = 0.025 * noise * rng.standard_normal(RUNS)
    level = rng.standard_normal()
    for run in range(RUNS):
        out[run] += 0.01 * noise * level
        level = KEEP * level + np.sqrt(1 - KEEP**2) * rng.standard_normal()
    return np.asarray(out + (rng.random(RUNS) < 0.04) * np.log(rng.uniform(1.15, 2.0, RUNS)))


@dataclass(frozen=True, slots=True)
class Told:
    """Of how many histories a change was told, too soon, and with the right version."""

    histories: int
    in_time: int
    too_soon: int
    named: int  # the right version, first
    runs: list[int]  # from the change on, until it was told


def told(histories: int, by: float, seed: int = 0, noise: float = 1.0) -> Told:
    """Histories that change by a factor at a moment that leaves runs enough on both sides."""
    rng = np.random.default_rng(seed)
    too_soon, named, runs = 0, 0, []
    for _ in range(histories):
        series = history(rng, noise)
        start = int(rng.integers(FEWEST_BEFORE, RUNS - 2 * FEWEST_AFTER + 1))
        series[start:] += np.log(by)
        moments = {"driver": start, **{label: int(rng.integers(1, RUNS)) for label in OTHERS}}
        labels = [{label: "new" if run >= at else "old" for label, at in moments.items()} for run in range(RUNS)]
        every = changes(series)
        too_soon += any(change.called <= start for change in every)
        right = next((change for change in every if change.called > start), None)
        if right is not None:
            runs.append(right.called - start)
            named += _first(labels, right) == "driver"
    return Told(histories, len(runs), too_soon, named, runs)


def _first(labels: list[dict[str, str]], change: Change) -> str:
    near = label_changes(labels, change)
    return near[0].label if near else ""


def false_alarms(histories: int, seed: int = 0, noise: float = 1.0) -> int:
    """Histories without a change of which one is told."""
    rng = np.random.default_rng(seed)
    return sum(bool(changes(history(rng, noise))) for _ in range(histories))


def main() -> None:
    """Print what was told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    alarms = false_alarms(args.histories, args.seed, args.noise)
    print(f"no change: told in {alarms} of {args.histories:,} histories of {RUNS} runs ({alarms / args.histories:.1%})")
    for by in (1.05, 1.10, 1.20):
        answer = told(args.histories, by, args.seed, args.noise)
        share, after = answer.in_time / answer.histories, np.median(answer.runs)
        print(
            f"{by - 1:.0%} longer: told in {answer.in_time:,} of {answer.histories:,} ({share:.1%}), "
            f"{after:.0f} runs after it (median); the right version named first in {answer.named:,}; "
            f"told too soon in {answer.too_soon}"
        )


if __name__ == "__main__":
    main()
