"""Groups of replicas that share a copy of the state, of every size: tried around the best layouts of a search.

The search itself lists state shared by all replicas and by those in one fast domain. Sizes between pay where gathers
over all replicas are slow and one domain has not the memory; all of them, for every layout, would be half as many
layouts again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog.stacks import Parallelism
from chipwise.layout.front import pareto
from chipwise.layout.results import TIE, SearchResult, TimedLayout, kind, order
from chipwise.layout.simplicity import intricacy, simplest
from chipwise.layout.splits import divisors
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.setup import Setup


def with_shards(work: Setup, result: SearchResult, parallel: Parallelism) -> SearchResult:
    """The result with the best layouts of it also in groups of other sizes."""
    options = list(dict.fromkeys(x for timed in result.top for x in resharded(timed.layout, parallel)))
    if not options:
        return result
    seconds = work.seconds(options)
    need = np.broadcast_to(work.memory(Layouts.of(options)).total, len(options))
    fits = need <= result.limit
    more = [TimedLayout(options[i], float(seconds[i]), float(need[i])) for i in np.flatnonzero(fits)]
    best = _best([result.best, *result.top, *result.front, *more])
    others = [timed for timed in result.top if kind(timed.layout) != kind(best.layout)]
    pool = [*result.front, *more]
    keys = np.array([order(timed) for timed in pool])
    return replace(
        result,
        best=best,
        top=result.top if best is result.best else tuple([best, *others][: len(result.top)]),
        front=tuple(pool[int(i)] for i in pareto(keys[:, 0], keys[:, 1])),
        evaluated=result.evaluated + len(options),
        too_large=result.too_large + int(np.count_nonzero(~fits)),
    )


def resharded(x: Layout, parallel: Parallelism) -> list[Layout]:
    """A layout that shares its state, with that shared by groups of replicas of every other size."""
    if not x.zero:
        return []
    whole = [n for n in divisors(x.dp) if n > 1 and n != x.shard and _whole_groups(n * x.cp, x.ep)]
    return [replace(x, zero=zero, shard=n) for n in whole for zero in parallel.stages(x.pp) if zero]


def _whole_groups(group: int, ep: int) -> bool:
    return group % ep == 0 or ep % group == 0


def _best(timed: list[TimedLayout]) -> TimedLayout:
    """The first where it is within `TIE` of the fastest, else the simplest that is."""
    fastest = min(each.seconds for each in timed)
    if timed[0].seconds <= fastest * (1 + TIE):
        return timed[0]
    near = [each for each in timed if each.seconds <= fastest * (1 + TIE)]
    few = [near[int(i)] for i in simplest(intricacy(Layouts.of([each.layout for each in near])))]
    return min(few, key=order)
