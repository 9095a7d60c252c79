"""What a search over layouts found, and how layouts are ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.predict.model.layouts import Layout
from chipwise.units import rounded

TIE = 0.01  # layouts this close to the fastest are equal: the simplest is the best


@dataclass(frozen=True, slots=True, repr=False)
class TimedLayout:
    """A layout with the seconds of its step and its bytes per chip."""

    layout: Layout
    seconds: float
    bytes: float

    def __repr__(self) -> str:
        return f"<TimedLayout {self.layout}: {self.seconds:.3g} s, {self.bytes:.3g} bytes>"


@dataclass(frozen=True, slots=True, repr=False)
class SearchResult:
    """What a search found. `top` holds the best of each split and way to keep the weights, best first."""

    best: TimedLayout  # the simplest of those within `TIE` of the fastest
    top: tuple[TimedLayout, ...]
    front: tuple[TimedLayout, ...]  # nothing else is both faster and smaller; fastest first
    limit: float  # bytes a layout may take of a chip
    required: float  # bytes beyond them that have to stay free
    evaluated: int
    too_large: int  # layouts that need more
    least_bytes: float  # of the layout that needs least
    splits: int
    refused: Mapping[str, int]  # splits by the reason they are not legal

    def __repr__(self) -> str:
        return f"<SearchResult {self.evaluated:,} layouts, best {self.best.layout}: {self.best.seconds:.3g} s>"

    def headroom(self, timed: TimedLayout) -> float:
        """Bytes a layout leaves free beside the runtime's reserve."""
        return self.limit + self.required - timed.bytes


def order(f: TimedLayout) -> tuple[float, float]:
    """By time, then by memory; of those alike in both the first enumerated, on every architecture."""
    return rounded(f.seconds), rounded(f.bytes)


def kind(x: Layout) -> tuple[int, ...]:
    """What a row of `top` is the best of: the split, and how weights are kept."""
    return x.tp, x.pp, x.cp, x.ep, x.shard if x.zero == 3 else 0
