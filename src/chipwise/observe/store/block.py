"""Points of a device packed into bytes: differences in steps that are coarse where nobody measures finer, deflated.

A value is a whole number of steps from the first of its series. A step is the largest of two: the decimal that all
values of the series are multiples of, and a share of the series' largest value (of its rise, where it counts). What
does not change is exact, and so are small whole numbers: flags, Xids, counts of faults.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.store.points import Floats, Integers, Points

FORMAT = 1
_HEAD = struct.Struct("<BBIII")  # format, whether rolled up, series, rows, moments
DECIMALS = (1.0, 10.0, 100.0, 1000.0)  # steps of a unit: whole numbers, percents, thousandths
DECIMAL_ERROR = 2.0**-50  # of the largest value: what is left of a decimal in binary, after a few roundings


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Steps, as negative powers of two."""

    level: int  # of the largest value of a series
    rise: int  # of what a series rises by: counters, numbers, moments
    extreme: int  # of the largest value, for the least and the most of what is rolled up


# Instruments are good for 1 to 5 % of power and 1 °C (NVML's and tpumonitoring's documents, 2026-11-16): a roll-up's
# mean is off by 0.1 % of the largest of its day at most, a sample by a hundredth of that (own, 2026-11-19)
SAMPLES = Precision(level=16, rise=20, extreme=16)
ROLLED_UP = Precision(level=9, rise=16, extreme=9)


def encode(points: Points, counts: NDArray[np.bool_], precision: Precision) -> bytes:
    """The bytes of points, of which `counts` says whether a row's series counts, numbers or dates something."""
    lengths, starts = _series(points)
    base = points.mean[starts]
    rows = np.repeat(np.arange(len(starts)), lengths)
    shifted = points.mean - base[rows]
    counting = counts[starts]
    units = _units((shifted,), points, starts, counting, precision.rise, precision.level)
    steps = np.rint(shifted * units[rows]).astype(np.int64)
    moments, places = np.unique(points.at, return_inverse=True)
    is_rolled_up = bool((points.count != 1).any() or (points.least != points.most).any())
    parts = [
        _HEAD.pack(FORMAT, is_rolled_up, len(starts), len(points), len(moments)),
        _shuffled(np.diff(points.series[starts], prepend=0)),
        _shuffled(lengths),
        _shuffled(np.diff(moments, prepend=0)),
        _shuffled(base),
        _shuffled(units),
        _planes(_zigzag(_within(places.astype(np.int64), starts, keep_first=True))),
        _planes(_zigzag(_within(steps, starts))),
    ]
    if is_rolled_up:
        mean = base[rows] + steps / units[rows]
        least, most = points.least - base[rows], points.most - base[rows]
        coarse = _units((least, most), points, starts, counting, precision.rise, precision.extreme)
        middle = np.rint((mean - base[rows]) * coarse[rows])
        low, high = middle - np.rint(least * coarse[rows]), np.rint(most * coarse[rows]) - middle
        parts += [
            _shuffled(coarse),
            _planes(_zigzag(_within(points.count, starts, keep_first=True))),
            _planes(np.maximum(low, 0).astype(np.uint64)),
            _planes(np.maximum(high, 0).astype(np.uint64)),
        ]
    packer = zlib.compressobj(6, zlib.DEFLATED, 15, 5)  # small blocks of codes: series differ (measured, 2026-11-19)
    return packer.compress(b"".join(parts)) + packer.flush()


def decode(block: bytes) -> Points:
    """The points of a block."""
    reader = _Reader(zlib.decompress(block))
    _, is_rolled_up, series_count, row_count, moment_count = reader.head()
    series = np.cumsum(reader.integers(series_count))
    lengths = reader.integers(series_count)
    moments = np.cumsum(reader.integers(moment_count))
    base, units = reader.floats(series_count), reader.floats(series_count)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(series_count), lengths)
    at = moments[_summed(_signed(reader.planes(row_count)), starts, rows)]
    steps = _summed(_signed(reader.planes(row_count)), starts, rows)
    mean = base[rows] + steps / units[rows]
    if not is_rolled_up:
        ones = np.ones(row_count, np.int64)
        return Points(series=series[rows], at=at, count=ones, mean=mean, least=mean, most=mean)
    coarse = reader.floats(series_count)
    count = _summed(_signed(reader.planes(row_count)), starts, rows)
    middle = np.rint((mean - base[rows]) * coarse[rows])
    least = base[rows] + (middle - reader.planes(row_count).astype(np.float64)) / coarse[rows]
    most = base[rows] + (middle + reader.planes(row_count).astype(np.float64)) / coarse[rows]
    least = np.minimum(least, most)
    return Points(series=series[rows], at=at, count=count, mean=np.clip(mean, least, most), least=least, most=most)


def _units(
    columns: Sequence[Floats], points: Points, starts: Integers, counting: NDArray[np.bool_], rise: int, level: int
) -> Floats:
    """Steps of each series in one unit of it."""
    least, most = np.minimum.reduceat(points.least, starts), np.maximum.reduceat(points.most, starts)
    size = np.maximum(np.abs(least), np.abs(most))
    largest = np.where(counting, np.ldexp(most - least, -rise), np.ldexp(size, -level))
    units = np.divide(1.0, largest, out=np.ones(len(starts)), where=largest > 0)
    for decimal in reversed(DECIMALS):
        exact = np.ones(len(starts), bool)
        for column in columns:
            scaled = column * decimal
            off = np.maximum.reduceat(np.abs(scaled - np.rint(scaled)), starts)
            exact &= off <= DECIMAL_ERROR * decimal * size
        units = np.where(exact & (units > decimal), decimal, units)
    return units


def _series(points: Points) -> tuple[Integers, Integers]:
    new = np.ones(len(points), bool)
    new[1:] = np.diff(points.series) != 0
    starts = np.flatnonzero(new)
    return np.diff(starts, append=len(points)), starts


def _within(column: Integers, starts: Integers, keep_first: bool = False) -> Integers:
    """Differences within each series; the first of each is 0 unless it is kept."""
    out = np.diff(column, prepend=0)
    out[starts] = column[starts] if keep_first else 0
    return out


def _summed(differences: Integers, starts: Integers, rows: Integers) -> Integers:
    total = np.cumsum(differences)
    return total - (total[starts] - differences[starts])[rows]


def _zigzag(column: Integers) -> NDArray[np.uint64]:
    return ((column << 1) ^ (column >> 63)).astype(np.uint64)


def _signed(column: NDArray[np.uint64]) -> Integers:
    return (column >> np.uint64(1)).astype(np.int64) ^ -(column & np.uint64(1)).astype(np.int64)


def _planes(column: NDArray[np.uint64]) -> bytes:
    """A column by bytes: the lowest of every number, then the next."""
    width = (int(column.max()).bit_length() + 7) // 8
    return bytes([width]) + np.ascontiguousarray(column.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width]).tobytes()


def _shuffled(column: Integers | Floats) -> bytes:
    """A column of eight bytes each, by bytes."""
    little = column.astype(column.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little.view(np.uint8).reshape(-1, 8).T).tobytes()


class _Reader:
    """Columns out of bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def head(self) -> tuple[int, ...]:
        self._place = _HEAD.size
        return _HEAD.unpack_from(self._data)

    def _bytes(self, rows: int, width: int) -> NDArray[np.uint8]:
        out = np.zeros((rows, 8), np.uint8)
        columns = np.frombuffer(self._data, np.uint8, rows * width, self._place).reshape(width, rows)
        out[:, :width] = columns.T
        self._place += rows * width
        return out

    def integers(self, rows: int) -> Integers:
        return self._bytes(rows, 8).view("<i8").reshape(rows).astype(np.int64)

    def floats(self, rows: int) -> Floats:
        return self._bytes(rows, 8).view("<f8").reshape(rows).astype(np.float64)

    def planes(self, rows: int) -> NDArray[np.uint64]:
        width = self._data[self._place]
        self._place += 1
        return self._bytes(rows, width).view("<u8").reshape(rows).astype(np.uint64)
