"""The best layouts of a workload on chips: every legal one is timed, those that don't fit are set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Accelerators, Chip, Stack, load, parse
from chipwise.catalog.calibration import Calibration
from chipwise.errors import DoesNotFit, InputError, NoLayout
from chipwise.layout.enumerate import Enumeration, enumerate_layouts
from chipwise.layout.evaluate import evaluate, memory_need
from chipwise.layout.front import pareto, sieve
from chipwise.layout.grid import Grid
from chipwise.predict.bench import Bench, bench
from chipwise.predict.layouts import Layout
from chipwise.units import format_bytes
from chipwise.workload.model import Workload

Array = NDArray[np.float64]

# Kept free for the runtime, communication buffers and fragmentation, which the bookkeeping does not count.
# An assumption, not a measurement.
RESERVE = 0.06
MOST_CHIPS = 65_536


@dataclass(frozen=True, slots=True)
class Found:
    """A layout with the seconds of its step and its bytes per chip."""

    layout: Layout
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `top` holds the best of each split and way to keep the weights, best first."""

    best: Found
    top: tuple[Found, ...]
    front: tuple[Found, ...]  # nothing else is both faster and smaller; fastest first
    limit: float  # bytes a chip has for the work
    evaluated: int
    too_large: int  # layouts that need more
    least_bytes: float  # of the layout that needs least
    splits: int
    refused: Mapping[str, int]  # splits by the reason they are not legal

    def headroom(self, found: Found) -> float:
        """Bytes a layout leaves free."""
        return self.limit - found.bytes

    def scaled(self, factor: float) -> SearchResult:
        """The result with every time multiplied by what was learnt about the best layout."""
        def all_of(some: tuple[Found, ...]) -> tuple[Found, ...]:
            return tuple(replace(f, seconds=f.seconds * factor) for f in some)

        return replace(self, best=all_of((self.best,))[0], top=all_of(self.top), front=all_of(self.front))


def search(workload: Workload, acc: Accelerators, calibration: Calibration, stack: Stack | None = None,
           top: int = 10, reserve: float = RESERVE) -> SearchResult:
    """Time every legal layout and keep the best that fit; a typed refusal where none does."""
    legal = enumerate_layouts(workload.model, workload.train, acc)
    work = bench(workload, acc, calibration, stack)
    result = search_in(work, legal, acc.chip.usable_bytes * (1 - reserve), top)
    if isinstance(result, SearchResult):
        return result
    raise _does_not_fit(workload, acc, calibration, stack, result, reserve)


def search_in(work: Bench, legal: Enumeration, limit: float, top: int = 10) -> SearchResult | Found:
    """The search over layouts already enumerated; where nothing fits, the layout that needs least."""
    leaders: list[Found] = []
    fronts: list[Found] = []
    too_large, least = 0, Found(Layout(), np.inf, np.inf)
    for grid in legal.grids:
        seconds, need = evaluate(work, grid)
        smallest = int(np.argmin(need))
        if need.flat[smallest] < least.bytes:
            least = _found(grid, seconds, need, smallest)
        fits = need <= limit
        count = int(np.count_nonzero(fits))
        too_large += len(grid) - count
        if not count:
            continue
        fronts += [_found(grid, seconds, need, i) for i in _front(seconds, need, limit)]
        np.putmask(seconds, ~fits, np.inf)
        leaders += [_found(grid, seconds, need, i) for i in _leaders(grid, seconds, need, top)]
    if not leaders:
        return least
    leaders.sort(key=lambda f: (f.seconds, f.bytes))
    on_front = pareto(np.array([f.seconds for f in fronts]), np.array([f.bytes for f in fronts]))
    return SearchResult(
        leaders[0], tuple(leaders[:top]), tuple(fronts[i] for i in on_front), limit, len(legal), too_large,
        least.bytes, legal.splits, legal.refused,
    )


def _found(grid: Grid, seconds: Array, need: Array, index: int) -> Found:
    return Found(grid.at(index), float(seconds.flat[index]), float(need.flat[index]))


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
    for leader in np.argpartition(best, several - 1, axis=None)[:several]:
        which, split = divmod(int(leader), best.shape[1])
        if not np.isfinite(best[which, split]):
            continue
        group, first = groups[which], int(grid.starts[split])
        cut = (group, slice(None), slice(first, int(ends[split])))
        # of layouts that take the same time, the one that needs least memory
        least = np.where(seconds[cut] <= best[which, split] * (1 + 1e-12), need[cut], np.inf)
        z, r, i = np.unravel_index(int(np.argmin(least)), least.shape)
        yield int(np.ravel_multi_index((int(group[z]), int(r), int(i) + first), grid.shape))


def smallest_that_holds(workload: Workload, chip: Chip, calibration: Calibration, stack: Stack | None = None,
                        reserve: float = RESERVE) -> Accelerators | None:
    """The smallest slice or cluster of a chip, by doubling, on which some layout fits; None up to 65,536."""
    limit, chips = chip.usable_bytes * (1 - reserve), 1
    while chips <= MOST_CHIPS:
        acc = _so_many(chip, chips)
        chips *= 2
        try:
            legal = enumerate_layouts(workload.model, workload.train, acc) if acc else None
        except NoLayout:
            continue
        if acc is None or legal is None:
            continue
        work = bench(workload, acc, calibration, stack)
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


def _does_not_fit(workload: Workload, acc: Accelerators, calibration: Calibration, stack: Stack | None,
                  least: Found, reserve: float) -> DoesNotFit:
    limit = acc.chip.usable_bytes * (1 - reserve)
    holds = smallest_that_holds(workload, acc.chip, calibration, stack, reserve)
    reason = (
        f"{workload.name} does not fit on {acc}: the smallest layout ({least.layout}) needs "
        f"{format_bytes(least.bytes)} a chip, {format_bytes(limit)} are free for it"
    )
    if holds is None:
        return DoesNotFit(reason, f"no slice of {acc.chip.id} up to {MOST_CHIPS:,} chips holds it")
    return DoesNotFit(reason, f"the smallest that holds it is {holds}")
