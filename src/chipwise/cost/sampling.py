"""Inputs that are not known, drawn together: percentiles of what they lead to, and which of them matter most.

An input has a median and a 90 % interval. On either side of the median it is lognormal (normal where it may be 0), so
that its median and the ends of its range are exactly those given. Draws depend on the seed and the input's name alone:
the same in every process, and shared by everything that uses the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import NormalDist
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.statement import Spread, Swing
from chipwise.errors import InputError

Array = NDArray[np.float64]
Amount = Any  # a float, or an array of draws

DRAWS = 4_000
MOST_DRAWS = 1_000_000
END = NormalDist().inv_cdf(0.95)  # standard deviations from the median to the ends of a range
P10 = NormalDist().inv_cdf(0.10)


STREAMS = {"utilization": "utilisation", "migration_weeks": "port_weeks"}  # older names: a seed draws what it drew


@dataclass(frozen=True, slots=True)
class Input:
    """A number that is not known. `most` is never exceeded."""

    name: str
    value: float  # median
    low: float  # 5th percentile
    high: float  # 95th percentile
    most: float = inf

    @property
    def known(self) -> bool:
        """Whether it has no range."""
        return self.low == self.high

    def at(self, deviations: Amount) -> Amount:
        """The input so many standard deviations from its median.

        >>> Input("x", 4.0, 2.0, 16.0).at(END), Input("x", 4.0, 2.0, 16.0).at(-END)
        (16.0, 2.0)
        """
        steps = np.asarray(deviations)
        if self.low > 0:
            down, up = log(self.value / self.low) / END, log(self.high / self.value) / END
            out = self.value * np.exp(np.where(steps < 0, down, up) * steps)
        else:
            down, up = (self.value - self.low) / END, (self.high - self.value) / END
            out = np.maximum(self.value + np.where(steps < 0, down, up) * steps, 0.0)
        capped = np.minimum(out, self.most)
        return float(capped) if capped.ndim == 0 else capped

    def draw(self, count: int, seed: int) -> Array:
        """So many draws."""
        out: Array = np.asarray(self.at(generator(seed, STREAMS.get(self.name, self.name)).standard_normal(count)))
        return out


def generator(seed: int, name: str) -> np.random.Generator:
    """The random numbers of one name."""
    return np.random.default_rng([seed, crc32(name.encode())])


def drawn(inputs: Sequence[Input], count: int, seed: int) -> dict[str, Array]:
    """Draws of every input by name."""
    return {each.name: each.draw(count, seed) for each in inputs}


def medians(inputs: Sequence[Input]) -> dict[str, float]:
    """Every input at its median."""
    return {each.name: each.value for each in inputs}


def spread(amounts: Array) -> Spread:
    """The percentiles of draws.

    >>> spread(np.arange(101.0))
    Spread(p10=10.0, p50=50.0, p90=90.0)
    """
    p10, p50, p90 = (float(x) for x in np.percentile(amounts, [10, 50, 90], method="inverted_cdf"))
    return Spread(p10, p50, p90)


def tornado(inputs: Sequence[Input], total: Callable[[Mapping[str, float]], float]) -> tuple[Swing, ...]:
    """What each input alone does to a total between its 10th and 90th percentile, the largest swing first."""
    middle = medians(inputs)
    found = []
    for each in inputs:
        if each.known:
            continue
        low, high = each.at(P10), each.at(-P10)
        swing = Swing(each.name, low, high, *(total({**middle, each.name: end}) for end in (low, high)))
        if swing.swing > 0:
            found.append(swing)
    return tuple(sorted(found, key=lambda s: (-s.swing, s.name)))


def checked_draws(count: int, seed: int) -> tuple[int, int]:
    """A number of draws and a seed that can be used."""
    if not 100 <= count <= MOST_DRAWS:
        raise InputError("draws", count, f"a whole number from 100 to {MOST_DRAWS:,}")
    if not 0 <= seed < 2**32:
        raise InputError("seed", seed, f"a whole number from 0 to {2**32 - 1:,}")
    return count, seed
