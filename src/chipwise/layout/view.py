"""A search over layouts as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.catalog import Accelerators
from chipwise.layout.headroom import HEADROOM
from chipwise.layout.headroom import in_words as headroom_in_words
from chipwise.layout.results import TIE, SearchResult, TimedLayout
from chipwise.layout.splits import in_words, most_frequent
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.units import format_bytes, format_seconds
from chipwise.workload.model import Workload


@dataclass(frozen=True, slots=True, repr=False)
class LayoutSearch(Result):
    """Every legal way to split a workload over chips, timed: the best, the Pareto front, and why others are refused."""

    VERB: ClassVar[str] = "layouts"
    workload: Workload
    accelerators: Accelerators
    result: SearchResult
    headroom: float = HEADROOM  # the share of a chip's memory that stays free

    @property
    def best(self) -> TimedLayout:
        """The simplest within 1 % of the fastest that fits."""
        return self.result.best

    @property
    def columns(self) -> list[Column[TimedLayout]]:
        """The columns of a layout."""
        r = self.result
        return [
            Column("layout", lambda f: str(f.layout), "layout", words=True, under=True, help="how the work is split"),
            Column(
                "calibrated_step_seconds",
                lambda f: f.seconds,
                "step",
                lambda f: format_seconds(f.seconds),
                help="one step, calibrated: the value of predict's estimate",
                unit="s",
            ),
            Column("", None, "of the best", lambda f: f"{f.seconds / r.best.seconds:.2f}x"),
            Column(
                "memory_bytes",
                lambda f: {"total": f.bytes},
                "memory",
                lambda f: format_bytes(f.bytes),
                help="of a chip: the `total` alone",
                unit="bytes",
            ),
            Column(
                "headroom_bytes",
                r.headroom,
                "headroom",
                lambda f: format_bytes(max(r.headroom(f), 0.0)),
                help="that a chip has left",
                unit="bytes",
            ),
        ]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        r = self.result
        return {
            "workload": self.workload,
            "accelerators": self.accelerators,
            "best": record(self.columns, r.best),
            "top": [record(self.columns, f) for f in r.top],
            "front": [record(self.columns, f) for f in r.front],
            "limit_bytes": r.limit,
            "required_headroom_bytes": r.required,
            "evaluated": r.evaluated,
            "too_large": r.too_large,
            "least_bytes": r.least_bytes,
            "splits": r.splits,
            "refused_splits": [{"reason": reason, "splits": n} for reason, n in most_frequent(r.refused)],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the best layouts, then the Pareto front."""
        sets = {"top": self.result.top, "front": self.result.front}
        return [{"set": name, **flat(self.columns, f)} for name, some in sets.items() for f in some]

    def blocks(self) -> list[Block]:
        """For people."""
        r = self.result
        fit = (
            f"{plural(r.evaluated, 'layout')} of {plural(r.splits, 'split')} evaluated; "
            f"{r.evaluated - r.too_large:,} fit in {format_bytes(r.limit)}, which "
            f"leaves {headroom_in_words(self.headroom)} free"
        )
        large = (
            f"{plural(r.too_large, 'layout')} too large for the memory (the smallest of all needs "
            f"{format_bytes(r.least_bytes)})"
        )
        fastest = min(f.seconds for f in (r.best, *r.front))
        simpler = f", the simplest within {TIE:.0%} of the fastest" if r.best.seconds > fastest else ""
        return [
            Text(
                f"{self.workload.name} on {self.accelerators.in_words()}: the best of "
                f"{plural(r.evaluated, 'layout')} is {r.best.layout}, {format_seconds(r.best.seconds)} a step{simpler}"
            ),
            table(self.columns, r.top, title="Best layouts, one per split"),
            table(self.columns, r.front, title="Pareto front: nothing else is both faster and smaller"),
            *section("Evaluated and refused", [fit, *([large] if r.too_large else []), *in_words(r.refused)]),
        ]
