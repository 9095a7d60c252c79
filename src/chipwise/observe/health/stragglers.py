"""Ranks and nodes that take longer over their part of a step than the others.

A rank's score is the mean over recent steps of its time against the median rank's, as a logarithm: what all share
cancels, and one noisy step does not make a straggler. A straggler's score is half of a slow-down of 15 % or more, and
far from the other ranks' scores, or far from what its own was before (nvidia-resiliency-ext has these two too, below
0.75 of the others' and of its own best speed).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.ranks import FEWEST_RANKS, RankStep

WINDOW = 20  # steps within which a straggler has to be named
FEWEST_STEPS = 10  # before any is
SHIFT = log(1.15)  # of a straggler that has to be named
LEAST = SHIFT / 2
SIGMAS = 5.5  # from the other ranks: no false name in 300 runs of 256 ranks by `benchmarks/health.py`, 2026-11-19
CLIP = SHIFT  # the most that one step counts
_ROBUST = 1.4826  # a standard deviation in median absolute deviations, of a normal distribution


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank, or a node, that was slower than the others."""

    name: str  # rank 7, node 3 (ranks 24 to 31)
    ratio: float  # its time over the median rank's, over the last steps in which it straggled
    first: int  # place of the step at which it was named
    last: int
    lost_seconds: float  # by which the slowest stragglers of its steps took longer than the median rank


def straggling(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which ranks straggle, by place: of each row of `seconds` (steps by ranks), by the `WINDOW` steps up to it."""
    score, change = scores(seconds)
    far = score > np.maximum(LEAST, SIGMAS * _spread(score))
    slower = (score > LEAST) & (change > np.maximum(LEAST, SIGMAS * _spread(change)))
    return np.asarray(far | slower)


def scores(seconds: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of ranks by place, against the median rank and against the rank's own steps before; nan for too few."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(seconds)
    ratios = np.clip(logs - _medians(logs), -CLIP, CLIP)
    present = ~np.isnan(ratios)
    sums = np.cumsum(np.where(present, ratios, 0.0), axis=0)
    counts = np.cumsum(present, axis=0).astype(float)
    before, steps_before = np.zeros_like(sums), np.zeros_like(counts)
    before[WINDOW:], steps_before[WINDOW:] = sums[:-WINDOW], counts[:-WINDOW]
    recent = counts - steps_before
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(recent >= FEWEST_STEPS, (sums - before) / recent, np.nan)
        score -= _medians(score)
        own = np.where(steps_before >= WINDOW, before / steps_before, np.nan)
    return score, score - own


def _medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each row, nan where it has nothing else."""
    out = np.full((len(rows), 1), np.nan)
    some = ~np.all(np.isnan(rows), axis=1)
    out[some, 0] = np.nanmedian(rows[some], axis=1)
    return out


def _spread(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The robust standard deviation of each row."""
    return _ROBUST * _medians(np.abs(rows - _medians(rows)))


def stragglers(rows: Sequence[RankStep], ranks_of_node: int | None = None) -> list[Straggler]:
    """The ranks that straggled in steps told by rank, the slowest first; whole nodes where most of their ranks did."""
    names = sorted({rank for row in rows for rank in row.seconds}, key=lambda name: (len(name), name))
    if len(names) < FEWEST_RANKS or len(rows) < FEWEST_STEPS:
        return []
    seconds = np.full((len(rows), len(names)), np.nan)
    places = {name: place for place, name in enumerate(names)}
    for at, row in enumerate(rows):
        for rank, value in row.seconds.items():
            seconds[at, places[rank]] = value
    named = straggling(seconds)
    middle = np.nanmedian(seconds, axis=1)
    out = []
    for name, ranks in _groups(
        names, [bool(named[:, place].any()) for place in range(len(names))], ranks_of_node
    ).items():
        where = np.flatnonzero(named[:, ranks].any(axis=1))
        if len(where) == 0:
            continue
        first, last = int(where[0]), int(where[-1])
        begun = max(0, first + 1 - FEWEST_STEPS)
        slowest = np.fmax.reduce(seconds[begun : last + 1][:, ranks], axis=1)
        ratio = float(np.nanmedian(slowest / middle[begun : last + 1]))
        lost = float(np.nansum(np.maximum(slowest - middle[begun : last + 1], 0.0)))
        out.append(Straggler(name, ratio, first, last, lost))
    return sorted(out, key=lambda straggler: -straggler.ratio)


def _groups(names: list[str], slow: list[bool], ranks_of_node: int | None) -> dict[str, list[int]]:
    """Ranks that straggled at all, as nodes where more than half of a node's did."""
    nodes: dict[int, list[int]] = defaultdict(list)
    if ranks_of_node and ranks_of_node > 1 and all(name.isdigit() for name in names):
        for place, name in enumerate(names):
            nodes[int(name) // ranks_of_node].append(place)
    out: dict[str, list[int]] = {}
    whole: set[int] = set()
    for node, places in nodes.items():
        if len(places) > 1 and 2 * sum(slow[place] for place in places) > len(places):
            out[f"node {node} (ranks {names[places[0]]} to {names[places[-1]]})"] = places
            whole.update(places)
    out.update({f"rank {names[place]}": [place] for place in range(len(names)) if slow[place] and place not in whole})
    return out
