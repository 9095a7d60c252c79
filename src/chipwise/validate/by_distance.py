"""Serving figures by how far they are from what predictions were fitted to: errors, coverage and widths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, inf
from statistics import median
from typing import Any

from chipwise.catalog.calibration import ServingCalibration
from chipwise.predict.estimate import DISTANCES, Distance, Estimate
from chipwise.serving.widths import Error, from_columns, learn
from chipwise.validate.summary import Pair, summary

METRICS = ("throughput", "tpot", "ttft")
OPERATIONS = ("gemm", "attention", "copy", "gather", "reduce", "exchange")  # of kernels
Key = tuple[str, Distance]
Summary = Mapping[str, Any]


def by_distance(pairs: Iterable[tuple[str, Pair]]) -> dict[str, Summary]:
    """Figures of each metric, or kind of kernel, by the distance of their predictions, and the typical interval."""
    table: dict[Key, list[Pair]] = defaultdict(list)
    for metric, pair in pairs:
        if pair.estimate.distance is not None:
            table[metric, pair.estimate.distance].append(pair)
    keys = [(name, distance) for name in (*METRICS, *OPERATIONS) for distance in DISTANCES]
    return {
        f"{metric}/{distance}": {
            **summary(len(some), some),
            "low": median(e.low / e.value - 1 for _, e in some),
            "high": median(e.high / e.value - 1 for _, e in some),
        }
        for metric, distance in keys
        if (some := table.get((metric, distance)))
    }


def left_out_whole(calibration: ServingCalibration) -> dict[str, Any]:
    """Every error that widths are learned from against the widths that the other repositories alone give."""
    return by_distance(crossed(from_columns(calibration.errors)))


def crossed(
    errors: Sequence[Error], part: Callable[[Error], str] = lambda error: error.repository
) -> list[tuple[str, Pair]]:
    """Each error as a figure predicted, with an interval that no error of its own part of them has a share in.

    The figure observed is a rate of 1, or a time of 1 s.
    """
    parts: dict[str, list[Error]] = defaultdict(list)
    for error in errors:
        parts[part(error)].append(error)
    out: list[tuple[str, Pair]] = []
    for name, mine in sorted(parts.items()):
        widths = learn([error for error in errors if part(error) != name])
        for error in mine:
            width = widths.get(error.metric, {}).get(error.distance)
            low, high = (width.low, width.high) if width else (-inf, inf)
            sign = -1 if error.metric == "throughput" else 1  # of a rate, not of the time behind it
            value = exp(-sign * error.value)
            ends = sorted((value * exp(sign * low), value * exp(sign * high)))
            estimate = Estimate(value, ends[0], ends[1], "modelled", "", error.distance)
            out.append((error.metric, Pair(1.0, estimate)))
    return out
