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
from chipwise.predict.model.layouts import Layout
from chipwise.predict.model.memory import RESERVE
from chipwise.predict.setup import Setup, set_up
from chipwise.units import format_bytes, rounded
from chipwise.workload.model import Workload

Array = NDArray[np.float64]

MOST_CHIPS = 65_536
LEADERS = 10  # layouts, best by the formulas, of which the corrected times decide
TIE = 0.01  # layouts this close are equal: the simplest is the best


@dataclass(frozen=True, slots=True)
class TimedLayout:
    """A layout with the seconds of its step and its bytes per chip."""

    layout: Layout
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `top` holds the best of each split and way to keep the weights, best first."""

    best: TimedLayout
    top: tuple[TimedLayout, ...]
    front: tuple[TimedLayout, ...]  # nothing else is both faster and smaller; fastest first
    limit: float  # bytes a chip has for the work
    evaluated: int
    too_large: int  # layouts that need more
    least_bytes: float  # of the layout that needs least
    splits: int
    refused: Mapping[str, int]  # splits by the reason they are not legal

    def headroom(self, timed: TimedLayout) -> float:
        """Bytes a layout leaves free."""
        return self.limit - timed.bytes


def search(
    workload: Workload,
    acc: Accelerators,
    calibration: Calibration,
    stack: Stack | None = None,
    top: int = 10,
    reserve: float = RESERVE,
) -> SearchResult:
    """Time every legal layout and keep the best that fit; a typed refusal where none does."""
    legal = enumerate_layouts(workload.model, workload.train, acc)
    work = set_up(workload, acc, calibration, stack)
    result = search_in(work, legal, acc.chip.usable_bytes * (1 - reserve), top)
    if isinstance(result, SearchResult):
        return result
    raise _does_not_fit(workload, acc, calibration, stack, result, reserve)


def search_in(work: Setup, legal: Enumeration, limit: float, top: int = 10) -> SearchResult | TimedLayout:
    """The search over layouts already enumerated; where nothing fits, the layout that needs least."""
    leaders: list[TimedLayout] = []
    fronts: list[TimedLayout] = []
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
        leaders += [_timed(grid, seconds, need, i) for i in _leaders(grid, seconds, need, top)]
    if not leaders:
        return least
    leaders.sort(key=_order)
    shown = sorted(_corrected(work, leaders[: max(top, LEADERS)]), key=_order)
    close = [f for f in shown if f.seconds <= shown[0].seconds * (1 + TIE)]
    best = min(close, key=lambda f: (_parts(f.layout), rounded(f.seconds)))
    front = _corrected(work, [fronts[i] for i in _on_front(fronts)])
    return SearchResult(
        best,
        tuple([best, *(f for f in shown if f is not best)][:top]),
        tuple(front[i] for i in _on_front(front)),
        limit,
        len(legal),
        too_large,
        least.bytes,
        legal.splits,
        legal.refused,
    )


def _corrected(work: Setup, timed: list[TimedLayout]) -> list[TimedLayout]:
    """Times as they are answered: corrected by published steps near each layout."""
    factors = work.factors([t.layout for t in timed])
    return [replace(t, seconds=t.seconds * float(factor)) for t, factor in zip(timed, factors, strict=True)]


def _order(f: TimedLayout) -> tuple[float, float]:
    """By time, then by memory; of those alike in both the first enumerated, on every architecture."""
    return rounded(f.seconds), rounded(f.bytes)


def _on_front(timed: list[TimedLayout]) -> list[int]:
    keys = np.array([_order(t) for t in timed]).reshape(-1, 2)
    return [int(i) for i in pareto(keys[:, 0], keys[:, 1])]


def _parts(x: Layout) -> tuple[int, ...]:
    """How intricate a layout is: pipelines before context, tensor and expert axes, then sharding."""
    return (x.pp > 1) + (x.cp > 1) + (x.tp > 1) + (x.ep > 1), x.pp, x.cp, x.tp, x.ep, x.zero


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
    workload: Workload, chip: Chip, calibration: Calibration, stack: Stack | None = None, reserve: float = RESERVE
) -> Accelerators | None:
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
    stack: Stack | None,
    least: TimedLayout,
    reserve: float,
) -> DoesNotFit:
    limit = acc.chip.usable_bytes * (1 - reserve)
    holds = smallest_that_holds(workload, acc.chip, calibration, stack, reserve)
    reason = (
        f"{workload.name} does not fit on {acc}: the smallest layout ({least.layout}) needs "
        f"{format_bytes(least.bytes)} a chip, {format_bytes(limit)} are free for it"
    )
    if holds is None:
        return DoesNotFit(reason, f"no slice of {acc.chip.id} up to {MOST_CHIPS:,} chips holds it")
    return DoesNotFit(reason, f"by doubling, the smallest that holds it is {holds}")
