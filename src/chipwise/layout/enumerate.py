"""Every legal way to split a training run over chips, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Accelerators
from chipwise.catalog.stacks import EVERY_AXIS, Parallelism
from chipwise.errors import NoLayout
from chipwise.io.brief import brief
from chipwise.layout.grid import Grid, join
from chipwise.layout.splits import (
    Split,
    candidates,
    domain,
    interleavings,
    micro_batches,
    refusal,
    shard_inside,
)
from chipwise.predict.model.layouts import RECOMPUTE, Layouts
from chipwise.workload.model import Model, Train

GRID_LAYOUTS = 400_000  # layouts a grid may hold before the next one starts: bounds memory
WHOLE, INSIDE = 0, 1  # the state is shared by all replicas, or by those in one fast domain
ALONE = ((0, WHOLE),)
SHARED = ((0, WHOLE), (1, WHOLE), (2, WHOLE), (3, WHOLE))
HYBRID = (*SHARED, (1, INSIDE), (2, INSIDE), (3, INSIDE))
States = tuple[tuple[int, int], ...]  # (ZeRO stage, WHOLE or INSIDE)


@brief
@dataclass(frozen=True, slots=True)
class Enumeration:
    """The legal layouts as grids, and how many splits were refused for which reason."""

    grids: tuple[Grid, ...]
    splits: int  # legal (tp, pp, cp, ep)
    refused: Mapping[str, int]  # reason -> splits
    parallel: Parallelism  # what the stack has

    def __len__(self) -> int:
        return sum(len(g) for g in self.grids)

    @property
    def layouts(self) -> Layouts:
        """Every layout written out."""
        return join(self.grids)


@dataclass(frozen=True, slots=True)
class _Block:
    """The rows of one split and placement: interleaving x micro-batch."""

    split: Split
    inner: bool
    inside: int  # replicas that share the state in one fast domain, 0: none
    vpp: NDArray[np.float64]
    micro_batch: NDArray[np.float64]
    parallel: Parallelism

    @property
    def states(self) -> States:
        if self.split.dp * self.split.cp == 1:
            return ALONE
        stages = self.parallel.stages(self.split.pp)
        return tuple(state for state in (HYBRID if self.inside else SHARED) if state[0] in stages)


def enumerate_layouts(model: Model, train: Train, acc: Accelerators, parallel: Parallelism = EVERY_AXIS) -> Enumeration:
    """All layouts of a training run on these chips that its dimensions and its stack allow.

    A refusal says why there are none.
    """
    wide = domain(acc)
    refused: dict[str, int] = {}
    legal: list[Split] = []
    for split in candidates(model, acc):
        why = refusal(split, model, train, wide, parallel)
        if why:
            refused[why] = refused.get(why, 0) + 1
        else:
            legal.append(split)
    if not legal:
        raise _no_layout(model, train, acc, wide, parallel)
    ways = parallel.recomputes(RECOMPUTE) if train.recompute == "auto" else (train.recompute,)
    modes = [RECOMPUTE.index(way) for way in ways]
    blocks: dict[States, list[_Block]] = {}
    inner_rows: dict[tuple[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    for split in legal:
        shape = (split.pp, split.dp)
        if shape not in inner_rows:
            inner_rows[shape] = _rows(model, train, split, parallel)
        for inner in (False, True) if _placement_matters(split, acc, wide) else (False,):
            block = _Block(split, inner, shard_inside(split, wide, inner), *inner_rows[shape], parallel)
            blocks.setdefault(block.states, []).append(block)
    grids = [
        _grid(chunk, states, modes)
        for states, group in blocks.items()
        for chunk in _chunks(group, len(states) * len(modes))
    ]
    return Enumeration(tuple(grids), len(legal), dict(sorted(refused.items(), key=lambda x: -x[1])), parallel)


def _rows(
    model: Model, train: Train, split: Split, parallel: Parallelism
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interleaving and micro-batch of every row; interleaving needs whole rounds of micro-batches."""
    pp, dp = split.pp, split.dp
    sizes = np.array(micro_batches(model, train, dp), float)
    pieces = np.array(interleavings(model, pp, parallel), float)
    vpp, mbs = np.repeat(pieces, len(sizes)), np.tile(sizes, len(pieces))
    whole = (vpp == 1) | (np.mod(train.global_batch / (dp * mbs), pp) == 0)
    return vpp[whole], mbs[whole]


def _placement_matters(split: Split, acc: Accelerators, wide: int) -> bool:
    """Whether the wires tell apart pipeline neighbours next to each other and data replicas there."""
    if split.pp == 1 or split.dp == 1:
        return False
    return bool(acc.shape) or split.tp < wide < acc.count


def _chunks(blocks: list[_Block], times: int) -> list[list[_Block]]:
    """Blocks in groups of about `GRID_LAYOUTS`, kernel shapes of one (tp, cp, ep) together."""
    out: list[list[_Block]] = [[]]
    size, last = 0, (0, 0, 0)
    for block in blocks:
        shape = (block.split.tp, block.split.cp, block.split.ep)
        if size * times >= GRID_LAYOUTS and shape != last:
            out.append([])
            size = 0
        last = shape
        out[-1].append(block)
        size += len(block.vpp)
    return out


def _grid(blocks: Sequence[_Block], states: States, modes: list[int]) -> Grid:
    lengths = np.array([len(b.vpp) for b in blocks])
    shapes = sorted({(b.split.tp, b.split.cp, b.split.ep) for b in blocks})
    distinct = {id(b.micro_batch): b.micro_batch for b in blocks}  # splits of one (pp, dp) share their rows
    sizes = np.array(sorted({float(x) for each in distinct.values() for x in each}))
    base = {shape: i * len(sizes) for i, shape in enumerate(shapes)}

    def spread(values: list[int]) -> NDArray[np.float64]:
        return np.repeat(np.array(values, float), lengths)

    first = np.repeat([base[b.split.tp, b.split.cp, b.split.ep] for b in blocks], lengths)
    key = first + np.searchsorted(sizes, np.concatenate([b.micro_batch for b in blocks]))
    used = np.zeros(len(shapes) * len(sizes), bool)
    used[key] = True
    key = (np.cumsum(used) - 1)[key]
    table = np.repeat(np.array(shapes, float), len(sizes), axis=0)[used]
    dp, inside = spread([b.split.dp for b in blocks]), spread([b.inside for b in blocks])
    shard = [np.ones_like(dp) if not zero else inside if where else dp for zero, where in states]
    layouts = Layouts(
        dp=dp,
        pp=spread([b.split.pp for b in blocks]),
        vpp=np.concatenate([b.vpp for b in blocks]),
        zero=np.array([zero for zero, _ in states], np.int8).reshape(-1, 1, 1),
        shard=np.stack(shard)[:, None, :],
        recompute=np.array(modes, np.int8).reshape(-1, 1),
        pipe_inner=np.repeat([b.inner for b in blocks], lengths),
        key=key,
        key_micro_batch=np.tile(sizes, len(shapes))[used],
        key_tp=table[:, 0],
        key_cp=table[:, 1],
        key_ep=table[:, 2],
    )
    # both placements of a split follow each other and count as one group of rows
    new = [i for i, b in enumerate(blocks) if i == 0 or b.split != blocks[i - 1].split]
    starts = (np.cumsum(lengths) - lengths)[new]
    return Grid(layouts, (len(states), len(modes), int(lengths.sum())), starts)


def _no_layout(model: Model, train: Train, acc: Accelerators, wide: int, parallel: Parallelism) -> NoLayout:
    """The refusal of a batch that no legal split divides, with the nearest batches one does."""
    batch = train.global_batch
    splits = (split for split in candidates(model, acc) if split.ep == 1)
    sizes = sorted({s.dp for s in splits if refusal(s, model, train, wide, parallel).startswith("global batch")})
    below = max((batch // dp * dp for dp in sizes), default=0)
    above = min((-(-batch // dp) * dp for dp in sizes), default=0)
    near = " or ".join(f"{n:,}" for n in dict.fromkeys((below, above)) if n)
    shown = ", ".join(f"global_batch({batch}) % dp({dp}) != 0" for dp in sizes[:3])
    more = f" and {len(sizes) - 3} more" if len(sizes) > 3 else ""
    unlock = f"the nearest global batch that works is {near}"
    return NoLayout(f"no split of {acc} divides the batch: {shown}{more}", unlock)
