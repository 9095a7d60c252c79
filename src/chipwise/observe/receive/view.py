"""What was received, as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.receive.receiver import Count
from chipwise.present.blocks import Block, Text
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Received(Result):
    """What programs sent until it was stopped."""

    VERB: ClassVar[str] = "observe receive"
    store: str
    count: Count

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        names = ("requests", "points", "kept", "late", "refused")
        return {"store": self.store, **{name: getattr(self.count, name) for name in names}}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row."""
        return [self.record()]

    def blocks(self) -> list[Block]:
        """For people."""
        count = self.count
        ignored = count.points - count.kept - count.late
        words = f"{plural(count.requests, 'request')}, {plural(count.points, 'point')}: {count.kept:,} kept"
        rest = f"{ignored:,} of no series here, {count.late:,} too late; refused: {plural(count.refused, 'request')}"
        return [Text(f"{words} in {safe(self.store)}, {rest}")]
