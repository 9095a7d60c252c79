"""What was written, as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Text
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Exported(Result):
    """A file of rows of a store."""

    VERB: ClassVar[str] = "observe export"
    store: str
    file: str
    format: str
    resolution: str
    since: int
    until: int
    rows: int
    series: int
    hosts: int

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        names = ("store", "file", "format", "resolution", "since", "until", "rows", "series", "hosts")
        return {name: getattr(self, name) for name in names}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row."""
        return [self.record()]

    def blocks(self) -> list[Block]:
        """For people."""
        begin, end = (datetime.fromtimestamp(at, UTC) for at in (self.since, self.until))
        return [
            Text(
                f"{safe(self.file)}: {plural(self.rows, 'row')} of {self.series:,} series "
                f"of {plural(self.hosts, 'host')}, {self.resolution}, "
                f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
            )
        ]
