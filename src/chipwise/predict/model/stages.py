"""How a decoder's layers lie on pipeline stages, and which stage decides how long a micro-batch takes.

Layers that divide lie evenly, as tools put them by default. Of others every stage has whole layers: the last, which
has the output layer (and the layers that predict ahead) as well, takes as many as keep the slowest stage fastest, and
what is left over is left out of the first, which has the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from chipwise.ops.operations import OpTable

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stages:
    """Layers of the stages of a pipeline; numbers, or arrays over layouts."""

    first: Array
    middle: Array  # of every stage between, the most of all
    last: Array
    slow_layers: Array  # share of all layers, with those that predict ahead, that the slowest stage has
    slow_head: Array  # 1 where the slowest stage is the one with the output layer

    def take(self, index: NDArray[np.intp]) -> Stages:
        """The stages of several pipelines."""
        return Stages(
            self.first[index],
            self.middle[index],
            self.last[index],
            self.slow_layers[index],
            self.slow_head[index],
        )


def stages(ops: OpTable, pp: Array) -> Stages:
    """The stages of each pipeline of `pp`."""
    most = max(ops.model.layers, int(np.max(pp, initial=1)))
    return _table(ops.model.layers, ops.model.mtp_layers, head_in_layers(ops), most).take(pp.astype(np.intp))


def head_in_layers(ops: OpTable) -> float:
    """FLOPs of one output layer, in those of one layer."""
    head = sum(2 * m.rows * m.n * m.k * m.count for m in ops.matmuls if m.place == "head")
    blocks = ops.model.layers + ops.model.mtp_layers
    layers = (ops.flops_forward - head) / max(blocks, 1)
    return head / (1 + ops.model.mtp_layers) / layers if layers > 0 else 0.0


def split(layers: int, ahead: int, head: float, pp: int) -> tuple[int, int, int]:
    """Layers of the first stage, of those between and of the last; `ahead` lie beside `1 + ahead` output layers there.

    >>> split(61, 0, 1.5, 4), split(64, 0, 1.5, 4), split(126, 0, 0.7, 16), split(5, 0, 9.0, 4)
    ((15, 16, 14), (16, 16, 16), (7, 8, 7), (1, 2, 0))
    """
    if layers % pp == 0:
        return (layers // pp,) * 3
    beside = ahead + (1 + ahead) * head

    def slowest(last: int) -> tuple[float, int]:
        return max(-(-(layers - last) // (pp - 1)), last + beside), -last

    last = min(range(layers // pp + 1), key=slowest)
    middle = -(-(layers - last) // (pp - 1))
    return max(layers - last - middle * (pp - 2), 0), middle, last


def chunks(ops: OpTable, pp: int, vpp: int) -> tuple[int, ...]:
    """Layers of each virtual stage in the order of the model: stage `v * pp + r` is the `v`-th of rank `r`.

    What of a rank's layers divides by no `vpp` lies on its first virtual stages.
    """
    first, middle, last = split(ops.model.layers, ops.model.mtp_layers, head_in_layers(ops), pp)
    ranks = (first, *(middle,) * (pp - 2), last) if pp > 1 else (ops.model.layers,)
    return tuple(of_rank // vpp + (v < of_rank % vpp) for v in range(vpp) for of_rank in ranks)


@lru_cache(maxsize=256)
def _table(layers: int, ahead: int, head: float, most: int) -> Stages:
    """The stages of pipelines of 0 (which there is none of), 1, 2 ... `most` stages."""
    rows = []
    for pp in range(most + 1):
        if pp < 2 or layers % pp == 0 or pp > layers:  # more stages than layers: no model has them
            each = layers / max(pp, 1)
            rows.append((each, each, each, 1 / max(pp, 1), 1.0))
            continue
        first, middle, last = split(layers, ahead, head, pp)
        by_head = last + ahead + (1 + ahead) * head > middle
        slowest = (last + ahead if by_head else middle) / (layers + ahead)
        rows.append((first, middle, last, slowest, float(by_head)))
    return Stages(*np.array(rows, float).T)
