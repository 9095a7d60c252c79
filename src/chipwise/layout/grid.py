"""A block of layouts as a product: rows x ways to keep the state x recomputation, never written out.

The arrays of `Grid.layouts` broadcast to (states, recomputations, rows). The functions that time layouts then
work on each part of the product at its own size, and only what mixes all three is computed for every layout.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.io.brief import brief
from chipwise.predict.model.layouts import RECOMPUTE, Layout, Layouts

PER_KEY = ("key_micro_batch", "key_tp", "key_cp", "key_ep")


@brief
@dataclass(frozen=True, slots=True)
class Grid:
    """Layouts that broadcast to `shape`; rows of one (tp, pp, cp, ep) lie side by side from `starts` on."""

    layouts: Layouts
    shape: tuple[int, int, int]
    starts: NDArray[np.intp]

    def __len__(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2]

    def part(self, first: int, last: int) -> Layouts:
        """The layouts of some rows, still as a product."""
        return Layouts(
            **{
                f.name: value if f.name in PER_KEY else rows(value, first, last, self.shape[2])
                for f in fields(Layouts)
                for value in (getattr(self.layouts, f.name),)
            }
        )

    def flat(self) -> Layouts:
        """Every layout written out."""
        return Layouts(
            **{
                f.name: value if f.name in PER_KEY else np.broadcast_to(value, self.shape).ravel()
                for f in fields(Layouts)
                for value in (getattr(self.layouts, f.name),)
            }
        )

    def take(self, indices: NDArray[np.intp]) -> Layouts:
        """Some layouts written out, by their indices in the written-out order."""
        z, r, i = np.unravel_index(indices, self.shape)
        x = self.layouts
        return Layouts(
            x.dp[i],
            x.pp[i],
            x.vpp[i],
            x.zero[z, 0, 0],
            np.broadcast_to(x.shard, (self.shape[0], 1, self.shape[2]))[z, 0, i],
            x.recompute[r, 0],
            x.pipe_inner[i],
            x.key[i],
            x.key_micro_batch,
            x.key_tp,
            x.key_cp,
            x.key_ep,
        )

    def at(self, index: int) -> Layout:
        """One layout, by its index in the written-out order."""
        z, r, i = (int(x) for x in np.unravel_index(index, self.shape))
        x = self.layouts
        k = int(x.key[i])
        return Layout(
            int(x.dp[i]),
            int(x.key_tp[k]),
            int(x.pp[i]),
            int(x.key_cp[k]),
            int(x.key_ep[k]),
            int(x.vpp[i]),
            int(x.key_micro_batch[k]),
            int(x.zero[z, 0, 0]),
            int(x.shard[z, 0, i]),
            RECOMPUTE[int(x.recompute[r, 0])],
            bool(x.pipe_inner[i]),
        )


def rows(value: NDArray[Any], first: int, last: int, total: int) -> NDArray[Any]:
    """Some rows of an array that broadcasts to (states, recomputations, rows)."""
    return value[..., first:last] if value.ndim and value.shape[-1] == total else value


def join(grids: tuple[Grid, ...]) -> Layouts:
    """All layouts of some grids written out, in order."""
    flats, base, keys = [g.flat() for g in grids], 0, []
    for flat in flats:
        keys.append(flat.key + base)
        base += len(flat.key_tp)
    names = [f.name for f in fields(Layouts)]
    joined = {name: np.concatenate([getattr(f, name) for f in flats]) for name in names if name != "key"}
    return Layouts(key=np.concatenate(keys), **joined)
