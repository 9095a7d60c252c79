"""Learns how wide intervals of kernels are, from errors with whole sources left out: conformal, a group as one.

Kernels that one source measured of one operation on one chip err together, so every such group has the same weight
(Lee, Barber and Willett, Distribution-free inference with hierarchical data, 2023). A new source is one group more,
whose errors are none of these: it counts as one at a factor of two either way, where the paper has infinity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from chipwise.calibrate.kernel_points import Point
from chipwise.predict.estimate import Distance
from chipwise.serving.widths import GROUPS, Weighted, weighted_bounds
from chipwise.validate.kernel_rows import KernelRow
from chipwise.validate.kernel_widths import ANY, Regime, Sources, distance_of, kind_of, regime_of

LEARNED = (Distance.CHIP, Distance.DESIGN, Distance.VENDOR, Distance.NOBODY)  # a source left out is never nearer
# How far a source that was never seen may be off: assumed before any width was looked at (2026-11-19)
UNSEEN = log(2.0)
NEW_GROUP: Weighted = [(-UNSEEN, 0.5), (UNSEEN, 0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """log(observed / predicted) of a kernel whose source the calibration never saw."""

    op: str
    regime: Regime
    distance: Distance
    group: str  # of kernels that err together
    value: float


def measured(points: Iterable[Point]) -> dict[str, dict[str, list[str]]]:
    """Who measured which kinds of kernels on which chips; the best of many shapes says little of any other."""
    sources: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for p in points:
        if p.kernel.bench != "best":
            sources[kind_of(p.kernel)][p.chip.id].add(p.row.source)
    return {kind: {chip: sorted(names) for chip, names in sorted(by.items())} for kind, by in sorted(sources.items())}


def error_of(row: KernelRow, seconds: float, sources: Sources) -> Error:
    """A row that was predicted to take `seconds` by a calibration on these sources."""
    return Error(
        op=row.kernel.op,
        regime=regime_of(row.kernel, seconds),
        distance=distance_of(row.kernel, row.chip, row.source, sources),
        group=row.group,
        value=log(row.observed_s / seconds),
    )


def learn(errors: Sequence[Error]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Bounds by operation, regime and distance, with the rows and groups behind them; a farther one holds the nearer.

    A distance with too few groups of an operation is filled up with all operations' errors there, and those from
    farther ones.
    """
    table: dict[str, dict[str, dict[str, list[float]]]] = {}
    for regime in Regime:
        rows = [error for error in errors if error.regime is regime] or list(errors)
        pooled = _pooled(rows)
        for op in (*sorted({error.op for error in errors}), ANY):
            own = [error for error in rows if op in (error.op, ANY)]
            table.setdefault(op, {})[str(regime)] = _of_operation(own, pooled)
    return table


def _pooled(rows: Sequence[Error]) -> Mapping[Distance, Weighted]:
    """Errors of all operations by distance, filled up from farther ones."""
    pooled: dict[Distance, Weighted] = {}
    farther = _by_group(rows)
    for distance in reversed(LEARNED):
        farther = pooled[distance] = _filled([error for error in rows if error.distance is distance], farther)
    return pooled


def _of_operation(rows: Sequence[Error], pooled: Mapping[Distance, Weighted]) -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    low = high = 0.0
    for distance in LEARNED:
        mine = [error for error in rows if error.distance is distance]
        weighted = _filled(mine, pooled[distance])
        count = [len(mine), len({error.group for error in mine})]
        if distance is Distance.CHIP:  # of a source that was seen there is no new group
            low, high = _widened((low, high), weighted)
            out[str(Distance.SOURCE)] = [low, high, *count]
        low, high = _widened((low, high), weighted + NEW_GROUP)
        out[str(distance)] = [low, high, *count]
    return out


def _widened(nearer: tuple[float, float], weighted: Weighted) -> tuple[float, float]:
    low, high = weighted_bounds(weighted)
    return min(nearer[0], round(low, 4)), max(nearer[1], round(high, 4))


def _by_group(rows: Iterable[Error]) -> Weighted:
    groups: dict[str, list[float]] = defaultdict(list)
    for error in rows:
        groups[error.group].append(error.value)
    return [(value, 1 / len(values)) for values in groups.values() for value in values]


def _filled(rows: Sequence[Error], others: Weighted) -> Weighted:
    """Each group's errors with a weight of one in all, and of others as many groups' weight as are lacking."""
    lacking = max(GROUPS - len({error.group for error in rows}), 0)
    whole = sum(weight for _, weight in others)
    return _by_group(rows) + [(value, lacking * weight / whole) for value, weight in others if lacking]
