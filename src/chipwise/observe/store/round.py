"""What a host said at a moment as bytes: numbers of its series and their values, quick to make."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence

import numpy as np

from chipwise.observe.store.points import Floats, Integers

LEVEL = 1  # it lives for half an hour


def pack_round(series: Sequence[int], values: Sequence[float]) -> bytes:
    """The bytes of a round; what is not a number is absent."""
    amounts = np.frombuffer(array("d", values), np.float64)
    numbers = np.asarray(series, np.int64)
    order = np.argsort(numbers, kind="stable")
    order = order[np.isfinite(amounts[order])]
    columns = np.stack([np.diff(numbers[order], prepend=0).view(np.float64), amounts[order]])
    return zlib.compress(np.ascontiguousarray(columns.view(np.uint8).reshape(-1, 8).T).tobytes(), LEVEL)


def unpack_round(block: bytes) -> tuple[Integers, Floats]:
    """The series of a round, and their values."""
    columns = np.frombuffer(zlib.decompress(block), np.uint8).reshape(8, -1).T
    numbers, amounts = np.ascontiguousarray(columns).view(np.float64).reshape(2, -1)
    return np.cumsum(numbers.view(np.int64)), amounts
