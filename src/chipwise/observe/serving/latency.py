"""Latencies of servers by their histograms, over a window: means, and quantiles between the bounds of their buckets.

A mean is exact: a sum over a count. A quantile lies in a bucket; within it values are taken as even, as Prometheus'
histogram_quantile does, and the bucket's bounds say how far that may be off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from chipwise.observe.against import Verdict
from chipwise.observe.exporters import BUCKET, SUM
from chipwise.observe.serving.engines import Engine
from chipwise.observe.serving.rises import rises
from chipwise.observe.store.schema import SAMPLES
from chipwise.observe.store.store import TelemetryStore
from chipwise.predict.estimate import Estimate

FIGURES = {  # of a server, by what a prediction calls it
    "ttft": "serving_first_token_seconds",
    "tpot": "serving_later_token_seconds",
    "itl": "serving_token_gap_seconds",
    "e2e": "serving_request_seconds",
}
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
MEAN = "mean"
FEWEST = 100  # of a histogram in a window: p99 is the largest of fewer (own, 2026-11-19)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A statistic of a latency, s, and what is predicted of it at the same load."""

    figure: str  # of FIGURES
    statistic: str  # MEAN, or one of QUANTILES
    actual: float
    low: float  # bounds of its bucket; the mean itself
    high: float
    predicted: Estimate | None = None

    @property
    def ratio(self) -> float | None:
        """Actual over predicted."""
        return self.actual / self.predicted.value if self.predicted is not None and self.predicted.value > 0 else None

    @property
    def verdict(self) -> Verdict | None:
        """Where the bucket lies in the interval of what is predicted: beside it, or as predicted."""
        if self.predicted is None:
            return None
        if self.low > self.predicted.high:
            return Verdict.SLOWER
        return Verdict.FASTER if self.high < self.predicted.low else Verdict.AS_PREDICTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """What all engines of a server counted in a window."""

    bounds: Mapping[float, float]  # upper bound -> how many were at most so long
    seconds: float | None  # of all of them together

    @property
    def count(self) -> float:
        """How many."""
        return self.bounds.get(inf, max(self.bounds.values(), default=0.0))

    def quantile(self, share: float) -> tuple[float, float, float]:
        """A quantile, and the bounds of its bucket.

        >>> Histogram(bounds={1.0: 50.0, 2.0: 100.0, inf: 100.0}, seconds=None).quantile(0.75)
        (1.5, 1.0, 2.0)
        """
        before, low = 0.0, 0.0
        for bound, amount in sorted(self.bounds.items()):
            if amount >= share * self.count and amount > before:
                if bound == inf:
                    return low, low, inf
                return low + (bound - low) * (share * self.count - before) / (amount - before), low, bound
            before, low = max(before, amount), bound
        return low, low, inf


def histograms(
    telemetry: TelemetryStore, engines: Sequence[Engine], began: float, ended: float
) -> dict[str, Histogram]:
    """The histograms of engines together in a window, by figure; those alone that say enough."""
    out = {}
    for figure, series in FIGURES.items():
        bounds: dict[float, float] = {}
        total: float | None = None
        for engine in engines:
            for labels, name, amount in _risen(telemetry, engine, series, began, ended):
                if name.endswith(BUCKET):
                    bound = float(labels.get("le", "nan"))
                    bounds[bound] = bounds.get(bound, 0.0) + amount
                else:
                    total = (total or 0.0) + amount
        histogram = Histogram(bounds=bounds, seconds=total)
        if histogram.count >= FEWEST:
            out[figure] = histogram
    return out


def _risen(
    telemetry: TelemetryStore, engine: Engine, series: str, began: float, ended: float
) -> list[tuple[Mapping[str, str], str, float]]:
    """By how much each counter of a histogram rose in a window: its labels, its name and the rise."""
    of = {
        number: (labels, f"{series}{part}")
        for part in (BUCKET, SUM)
        for number, labels in engine.series.get(f"{series}{part}", ())
    }
    if not of:
        return []
    resolution = telemetry.finest(int(began))
    width = 0.0 if resolution is SAMPLES else float(resolution.seconds)
    points = telemetry.points(engine.host, int(began), int(ended) + 1, engine.device, resolution, list(of))
    return [
        (*of[number], sum(rise.within(began, ended) for rise in rises(points[points.series == number], width)))
        for number in np.unique(points.series).tolist()
    ]


def latencies(of: Mapping[str, Histogram]) -> list[Latency]:
    """What histograms say, without a prediction."""
    out = []
    for figure, histogram in of.items():
        if histogram.seconds is not None:
            mean = histogram.seconds / histogram.count
            out.append(Latency(figure=figure, statistic=MEAN, actual=mean, low=mean, high=mean))
        for name, share in QUANTILES.items():
            actual, low, high = histogram.quantile(share)
            out.append(Latency(figure=figure, statistic=name, actual=actual, low=low, high=high))
    return out
