"""The best layouts of a workload on chips: every legal one is timed, those that don't fit are set aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Accelerators, Chip, Stack, load, parse
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.stacks import AXES
from chipwise.errors import DoesNotFit, InputError, NoLayout
from chipwise.layout.enumerate import Enumeration, enumerate_layouts
from chipwise.layout.evaluate import evaluate, memory_need
from chipwise.layout.front import pareto, sieve
from chipwise.layout.grid import Grid
from chipwise.layout.headroom import HEADROOM, allocatable, in_words, required
from chipwise.layout.remedies import remedies
from chipwise.layout.results import TIE, SearchResult, TimedLayout, kind, order
from chipwise.layout.shards import with_shards
from chipwise.layout.simplicity import intricacy, simplest
from chipwise.predict.model.layouts import Layout
from chipwise.predict.model.memory import RESERVE
from chipwise.predict.setup import Setup, set_up, stack_of
from chipwise.units import format_bytes
from chipwise.workload.model import Workload

Array = NDArray[np.float64]

MOST_CHIPS = 65_536


def search(
    workload: Workload,
    acc: Accelerators,
    calibration: Calibration,
    stack: Stack | None = None,
    top: int = 10,
    headroom: float = HEADROOM,
    reserve: float = RESERVE,
) -> SearchResult:
    """Time every layout that the workload and its stack allow, keep the best that fit; a typed refusal where none does.

    A layout fits that leaves a share `headroom` of the chip's memory free, and the reserve of the runtime.
    """
    stack = stack_of(workload, acc.chip, stack)
    legal = enumerate_layouts(workload.model, workload.train, acc, stack.parallel)
    work = set_up(workload, acc, calibration, stack)
    free = required(acc.chip, headroom)
    result = search_in(work, legal, allocatable(acc.chip, reserve) - free, top, free)
    if isinstance(result, SearchResult):
        return result
    raise _does_not_fit(workload, acc, calibration, stack, result, (headroom, reserve))


def search_in(
    work: Setup, legal: Enumeration, limit: float, top: int = 10, free: float = 0.0
) -> SearchResult | TimedLayout:
    """The search from an enumeration: all that it lists, then around the best of them groups of replicas of any size.

    Where no layout takes at most `limit` bytes, the one that needs least. `free` bytes have to stay free beyond them.
    """
    result = search_listed(work, legal, limit, top, free)
    return with_shards(work, result, legal.parallel) if isinstance(result, SearchResult) else result


def search_listed(
    work: Setup, legal: Enumeration, limit: float, top: int = 10, free: float = 0.0
) -> SearchResult | TimedLayout:
    """The search over layouts already enumerated; where none takes at most `limit` bytes, the one that needs least.

    The best is the simplest of all layouts within `TIE` of the fastest. `free` bytes have to stay free beyond `limit`.
    """
    leaders: list[TimedLayout] = []
    fronts: list[TimedLayout] = []
    ties = Ties()
    too_large, least = 0, TimedLayout(Layout(), np.inf, np.inf)
    for grid in legal.grids:
        seconds, need = evaluate(work, grid)
        smallest = int(np.argmin(need))
        if need.flat[smallest] < least.bytes:
            least = _timed(grid, seconds, need, smallest)
        fits = need <= limit
        count = int(np.count_nonzero(fits))
        too_large += len(grid) - count
        if not count:
            continue
        fronts += [_timed(grid, seconds, need, i) for i in _front(seconds, need, limit)]
        np.putmask(seconds, ~fits, np.inf)
        ties.add(grid, seconds, need)
        leaders += [_timed(grid, seconds, need, i) for i in _leaders(grid, seconds, need, top)]
    if not leaders:
        return least
    leaders.sort(key=order)
    best = ties.best()
    return SearchResult(
        best,
        tuple([best, *(f for f in leaders if kind(f.layout) != kind(best.layout))][:top]),
        tuple(fronts[i] for i in _on_front(fronts)),
        limit,
        free,
        len(legal),
        too_large,
        least.bytes,
        legal.splits,
        legal.refused,
    )


class Ties:
    """The layouts within `TIE` of the fastest, grid after grid."""

    def __init__(self) -> None:
        self.fastest = np.inf
        self.near: list[tuple[Grid, NDArray[np.intp], Array, Array]] = []

    def add(self, grid: Grid, seconds: Array, need: Array) -> None:
        """Take in a grid; layouts that don't fit take infinitely long."""
        self.fastest = min(self.fastest, float(seconds.min()))
        close = np.flatnonzero(seconds <= self.fastest * (1 + TIE))
        self.near.append((grid, close, seconds.ravel()[close], need.ravel()[close]))

    def best(self) -> TimedLayout:
        """The simplest; of those equally simple the fastest, then the smallest."""
        rows, timed = [], []
        for grid, indices, seconds, need in self.near:
            tied = seconds <= self.fastest * (1 + TIE)
            if not tied.any():
                continue
            rows.append(intricacy(grid.take(indices[tied])))
            timed += [(grid, *layout) for layout in zip(indices[tied], seconds[tied], need[tied], strict=True)]
        few = [timed[i] for i in simplest(np.concatenate(rows))]
        options = [TimedLayout(grid.at(int(i)), float(seconds), float(need)) for grid, i, seconds, need in few]
        return min(options, key=order)


def _on_front(timed: list[TimedLayout]) -> list[int]:
    keys = np.array([order(t) for t in timed]).reshape(-1, 2)
    return [int(i) for i in pareto(keys[:, 0], keys[:, 1])]


def _timed(grid: Grid, seconds: Array, need: Array, index: int) -> TimedLayout:
    return TimedLayout(grid.at(index), float(seconds.flat[index]), float(need.flat[index]))


def _front(seconds: Array, need: Array, limit: float) -> list[int]:
    maybe = sieve(seconds, need, limit)
    return [int(maybe[i]) for i in pareto(seconds.ravel()[maybe], need.ravel()[maybe])]


def _leaders(grid: Grid, seconds: Array, need: Array, top: int) -> Iterator[int]:
    """The best layout of each split and way to keep the weights, for the `top` best of those."""
    states, _, rows = grid.shape
    zero = grid.layouts.zero.ravel()
    # stages 0 to 2 keep whole weights: one group; each kind of fully sharded weights is its own
    groups = [np.flatnonzero(zero < 3)] + [np.array([z]) for z in range(states) if zero[z] == 3]
    fastest = seconds.min(axis=1)
    best = np.minimum.reduceat(np.stack([fastest[g].min(axis=0) for g in groups]), grid.starts, axis=1)
    ends = np.append(grid.starts[1:], rows)
    several = min(top, best.size)
    for leader in np.sort(np.argpartition(best, several - 1, axis=None)[:several]):  # as enumerated
        which, split = divmod(int(leader), best.shape[1])
        if not np.isfinite(best[which, split]):
            continue
        group, first = groups[which], int(grid.starts[split])
        cut = (group, slice(None), slice(first, int(ends[split])))
        # of layouts that take the same time, the one that needs least memory
        least = np.where(seconds[cut] <= best[which, split] * (1 + 1e-12), need[cut], np.inf)
        z, r, i = np.unravel_index(int(np.argmin(least)), least.shape)
        yield int(np.ravel_multi_index((int(group[z]), int(r), int(i) + first), grid.shape))


def smallest_that_holds(
    workload: Workload,
    chip: Chip,
    calibration: Calibration,
    stack: Stack | None = None,
    headroom: float = HEADROOM,
    reserve: float = RESERVE,
) -> Accelerators | None:
    """The smallest slice or cluster of a chip, by doubling, on which some layout fits; None up to 65,536."""
    limit, chips = allocatable(chip, reserve) - required(chip, headroom), 1
    stack = stack_of(workload, chip, stack)
    while chips <= MOST_CHIPS:
        acc = _so_many(chip, chips)
        chips *= 2
        try:
            legal = enumerate_layouts(workload.model, workload.train, acc, stack.parallel) if acc else None
        except NoLayout:
            continue
        if acc is None or legal is None:
            continue
        work = set_up(workload, acc, calibration, stack)
        if any(float(memory_need(work, grid).min()) <= limit for grid in legal.grids):
            return acc
    return None


def _so_many(chip: Chip, chips: int) -> Accelerators | None:
    """That many chips, in a legal slice where the chip comes in slices; None where there is none."""
    if chip.id not in load().slices:
        return Accelerators(chip, chips)
    try:
        return replace(parse(f"{chip.id}:{chips}"), chip=chip)
    except InputError:
        return None


def _does_not_fit(
    workload: Workload,
    acc: Accelerators,
    calibration: Calibration,
    stack: Stack,
    least: TimedLayout,
    shares: tuple[float, float],
) -> DoesNotFit:
    headroom, reserve = shares
    most = allocatable(acc.chip, reserve)
    limit = max(most - required(acc.chip, headroom), 0.0)
    only_headroom = least.bytes <= most
    free = f" with {in_words(headroom)} free" if only_headroom else ""
    reason = (
        f"{workload.name} does not fit on {acc}{free}: the smallest layout ({least.layout}) needs "
        f"{format_bytes(least.bytes)} a chip, {format_bytes(limit)} are free for it"
        + ("; `--headroom 0` would do" if only_headroom else "")
    )
    holds = smallest_that_holds(workload, acc.chip, calibration, stack, headroom, reserve)
    flags = [remedy.flags for remedy in remedies(workload, acc, calibration, stack, limit)]
    same = f"on {acc} it fits with {' or with '.join(f'`{one}`' for one in flags)}" if flags else ""
    if holds is not None:
        bigger = f"by doubling, the smallest that holds it is {holds}"
        return DoesNotFit(reason, f"{bigger}; {same}" if same else bigger, str(holds))
    if same:
        return DoesNotFit(reason, same)
    lacks = ", ".join(axis for axis in AXES if axis not in stack.parallel.axes)
    with_stack = f" with {stack.name}, which has no {lacks}" if lacks else ""
    return DoesNotFit(reason, f"no slice of {acc.chip.id} up to {MOST_CHIPS:,} chips holds it{with_stack}")
