"""Which of two layouts that take the same time is the simpler one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.model.layouts import RECOMPUTE, Layouts

OFFLOAD = RECOMPUTE.index("offload")


def intricacy(x: Layouts) -> NDArray[np.int64]:
    """A row of numbers for each layout; the one whose row comes first in dictionary order is the simpler.

    In this order: fewer axes (tp, pp, cp, ep above 1; offloading to the host counts as one), stages not interleaved,
    less recomputation (none, selective, full, offload), smaller pp, smaller cp, smaller tp, smaller ep, a lower ZeRO
    stage, state shared by all replicas rather than by groups of them, less interleaving, and the pipeline as the
    outermost axis. The micro-batch does not count: of layouts alike in all of these the fastest is taken.
    """
    tp, cp, ep = x.tp, x.cp, x.ep
    axes = (tp > 1).astype(np.int64) + (x.pp > 1) + (cp > 1) + (ep > 1) + (x.recompute == OFFLOAD)
    groups = (x.zero > 0) & (x.shard != x.dp)
    columns = (axes, x.vpp > 1, x.recompute, x.pp, cp, tp, ep, x.zero, groups, x.vpp, x.pipe_inner)
    return np.stack([np.broadcast_to(column, len(x)) for column in columns], axis=1).astype(np.int64)


def simplest(rows: NDArray[np.int64]) -> NDArray[np.intp]:
    """The layouts, by their rows of `intricacy`, than which none is simpler.

    >>> simplest(np.array([[1, 4], [0, 7], [0, 5], [0, 5]])).tolist()
    [2, 3]
    """
    kept = np.arange(len(rows))
    for column in range(rows.shape[1]):
        values = rows[kept, column]
        kept = kept[values == values.min()]
    return kept
