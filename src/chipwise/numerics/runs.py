"""One training run as it was seen: curves, scales, skipped steps, and what was lost in each layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# What is counted in a layer. Updates are zeroed when they leave a weight as it was.
KINDS = ("activations", "gradients", "weights", "weight gradients", "updates")


@dataclass(frozen=True, slots=True)
class Count:
    """Elements that were not 0, how many of them became 0, and how many became infinite or were clipped."""

    elements: int = 0
    zeroed: int = 0
    overflowed: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.elements + other.elements, self.zeroed + other.zeroed, self.overflowed + other.overflowed)

    @property
    def share_zeroed(self) -> float:
        """The share that became 0."""
        return self.zeroed / self.elements if self.elements else 0.0

    @property
    def share_overflowed(self) -> float:
        """The share that became infinite or was clipped."""
        return self.overflowed / self.elements if self.elements else 0.0


Counts = Mapping[tuple[str, str], Count]  # by (layer, kind)


def total(counts: Iterable[Counts]) -> dict[tuple[str, str], Count]:
    """Counts of several runs added up.

    >>> total([{("fc", "gradients"): Count(4, 1)}, {("fc", "gradients"): Count(4, 2)}])
    {('fc', 'gradients'): Count(elements=8, zeroed=3, overflowed=0)}
    """
    out: dict[tuple[str, str], Count] = {}
    for run_counts in counts:
        for key, count in run_counts.items():
            out[key] = out.get(key, Count()) + count
    return out


@dataclass(frozen=True, slots=True)
class Run:
    """One seed trained by one recipe. Losses and norms are NaN where the step gave none."""

    recipe: str
    seed: int
    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    scales: tuple[float, ...]
    non_finite: tuple[int, ...]  # steps (from 0) whose loss or gradients were not finite
    died: int | None = None  # the step from which nothing finite came any more
    counts: Counts = field(default_factory=dict)

    @property
    def final(self) -> float:
        """The mean loss of the last tenth of the steps (at least five); NaN if one of them is.

        >>> Run("fp32", 0, (9.0,) * 90 + (1.0,) * 10, (), (), ()).final
        1.0
        """
        tail = self.losses[-max(5, len(self.losses) // 10) :]
        return math.fsum(tail) / len(tail) if all(map(math.isfinite, tail)) else math.nan


def smoothed(losses: tuple[float, ...], width: int) -> list[float]:
    """The running mean of the last `width` losses.

    >>> smoothed((4.0, 2.0, 0.0), 2)
    [4.0, 3.0, 1.0]
    """
    return [math.fsum(losses[max(0, i + 1 - width) : i + 1]) / min(width, i + 1) for i in range(len(losses))]
