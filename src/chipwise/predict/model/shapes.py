"""Shapes of the kernels that are timed: arrays, so that many are timed at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Products:
    """`batch` products (m x k)(k x n), with the bytes of a value of each operand."""

    m: Array
    n: Array
    k: Array
    batch: Array | float = 1.0
    in_bytes: Array | float = 2.0
    weight_bytes: Array | float = 2.0


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of `batch` sequences by `heads`: each of `queries` sees `visible` keys."""

    batch: Array
    heads: Array
    kv_heads: Array
    qk_dim: float
    v_dim: float
    queries: Array
    visible: Array
