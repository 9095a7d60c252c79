"""How a counter rose, by what a store kept of it. A server that starts again counts from nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from chipwise.observe.store.points import Points


@dataclass(frozen=True, slots=True)
class Rise:
    """By how much a counter rose between two moments."""

    began: float  # seconds since 1970
    ended: float
    amount: float

    def within(self, began: float, ended: float) -> float:
        """The part of it that belongs to a span, as if it had risen evenly."""
        shared = min(self.ended, ended) - max(self.began, began)
        return self.amount * max(0.0, shared) / (self.ended - self.began)


def rises(points: Points, width_s: float) -> Iterator[Rise]:
    """The rises of one series, of samples (`width_s` 0) or of windows that are so long, by time.

    A window has its least and its most: a least below the most before it is a start of the server in between. What it
    had counted by then is the most of the window where that is above what it had before; the rest is from nothing.

    >>> from chipwise.observe.store.points import of_samples
    >>> import numpy as np
    >>> values = [np.array([value]) for value in (5.0, 8.0, 2.0, 6.0)]
    >>> samples = of_samples([np.array([1])] * 4, [0, 10, 20, 30], values)
    >>> [rise.amount for rise in rises(samples, 0)]
    [3.0, 2.0, 4.0]
    """
    rows = list(zip(points.at.tolist(), points.least.tolist(), points.most.tolist(), strict=True))
    level = rows[0][2] if rows else 0.0
    for place, (before, row) in enumerate(pairwise(rows), 1):
        at, least, most = row
        if least >= level:
            amount, level = most - level, most
        else:
            follower = rows[place + 1][1] if place + 1 < len(rows) else most
            last = min(most, follower) if follower >= least else most
            lost = most - level if most > max(level, last) else 0.0
            amount, level = lost + last, last
        if at > before[0]:
            yield Rise(before[0] + width_s, at + width_s, amount)


def by_hour(of: Iterable[Rise], began: float, ended: float, hour_s: float = 3600.0) -> dict[int, float]:
    """What rose within a span, by hours since 1970."""
    out: dict[int, float] = {}
    for rise in of:
        start, end = max(rise.began, began), min(rise.ended, ended)
        while start < end:
            hour = int(start // hour_s)
            until = min(end, (hour + 1) * hour_s)
            out[hour] = out.get(hour, 0.0) + rise.within(start, until)
            start = until
    return out
