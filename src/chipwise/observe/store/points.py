"""Values of many series as columns of numbers: put together, made unique, rolled up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """A row a value, by series and then by time: of a moment, or the count, mean, least and most from it on."""

    series: Integers
    at: Integers  # seconds since 1970
    count: Integers
    mean: Floats
    least: Floats
    most: Floats

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, rows: NDArray[np.bool_] | Integers | slice) -> Points:
        return Points(**{column.name: getattr(self, column.name)[rows] for column in fields(self)})


def of_samples(series: Sequence[Integers], at: Sequence[int], values: Sequence[Floats]) -> Points:
    """Samples, an array for each moment; of two of a series and a moment the first counts."""
    numbers = _integers(series)
    moments = np.repeat(np.asarray(at, np.int64), [len(part) for part in series])
    amounts = _floats(values)
    order = np.lexsort((moments, numbers))  # stable: the first of two stays the first
    numbers, moments, amounts = numbers[order], moments[order], amounts[order]
    new = np.ones(len(numbers), bool)
    new[1:] = (np.diff(numbers) != 0) | (np.diff(moments) != 0)
    numbers, moments, amounts = numbers[new], moments[new], amounts[new]
    return Points(
        series=numbers, at=moments, count=np.ones(len(numbers), np.int64), mean=amounts, least=amounts, most=amounts
    )


def joined(parts: Iterable[Points]) -> Points:
    """Points of several times as one, in order; no moment of a series is in two of them."""
    listed = list(parts)
    points = Points(
        series=_integers([part.series for part in listed]),
        at=_integers([part.at for part in listed]),
        count=_integers([part.count for part in listed]),
        mean=_floats([part.mean for part in listed]),
        least=_floats([part.least for part in listed]),
        most=_floats([part.most for part in listed]),
    )
    return points[np.lexsort((points.at, points.series))]


def rolled_up(points: Points, seconds: int) -> Points:
    """The points of every so many seconds as one: counts added, means weighed by them."""
    if not len(points):
        return points
    begins = points.at // seconds * seconds
    new = np.ones(len(points), bool)
    new[1:] = (np.diff(points.series) != 0) | (np.diff(begins) != 0)
    starts = np.flatnonzero(new)
    count = np.add.reduceat(points.count, starts)
    least, most = np.minimum.reduceat(points.least, starts), np.maximum.reduceat(points.most, starts)
    mean = np.add.reduceat(points.mean * points.count, starts) / count
    return Points(
        series=points.series[starts],
        at=begins[starts],
        count=count,
        mean=np.clip(mean, least, most),
        least=least,
        most=most,
    )


def _integers(parts: Sequence[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _floats(parts: Sequence[Floats]) -> Floats:
    return np.concatenate([np.empty(0, np.float64), *parts])
