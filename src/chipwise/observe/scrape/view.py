"""What was scraped, and devices by their newest values, as every face shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.device_table import VALUE_COLUMNS, device_table
from chipwise.observe.scrape.scraper import Page
from chipwise.observe.store.store import Newest
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

PAGE_COLUMNS: tuple[Column[Page], ...] = (
    Column("endpoint", lambda p: p.url, "endpoint", lambda p: safe(p.url), words=True),
    Column("samples", lambda p: len(p.samples), "samples"),
    Column("series", lambda p: len({s.series for s in p.samples}), "series", help="of data/series.csv"),
    Column("devices", lambda p: len({(s.host, s.device) for s in p.samples}), "devices"),
    Column("problem", lambda p: p.problem or None, "problem", lambda p: safe(p.problem) or "–", words=True),
)
NEWEST_COLUMNS: tuple[Column[Newest], ...] = (
    *VALUE_COLUMNS,
    Column("at", lambda n: n.at, help="seconds since 1970"),
    Column("labels", lambda n: n.labels, nested=True),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scraped(Result):
    """What endpoints said in the last round."""

    VERB: ClassVar[str] = "observe scrape"
    store: str
    rounds: int
    pages: Sequence[Page]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "store": self.store,
            "rounds": self.rounds,
            "endpoints": [record(PAGE_COLUMNS, page) for page in self.pages],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row an endpoint."""
        return [flat(PAGE_COLUMNS, page) for page in self.pages]

    def blocks(self) -> list[Block]:
        """For people."""
        return [
            table(PAGE_COLUMNS, self.pages),
            Text(f"{plural(self.rounds, 'round')} kept in {safe(self.store)}"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Devices(Result):
    """Devices, and services, by the newest value of each series."""

    VERB: ClassVar[str] = "observe devices"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in NEWEST_COLUMNS if not column.nested)
    store: str
    newest: Sequence[Newest]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"store": self.store, "values": [record(NEWEST_COLUMNS, one) for one in self.newest]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a series of a device."""
        return [flat(NEWEST_COLUMNS, one) for one in self.newest]

    def blocks(self) -> list[Block]:
        """For people."""
        if not self.newest:
            return [Text(f"store {safe(self.store)}: nothing so new")]
        return [device_table((one.host, one.device, one.series, one.value) for one in self.newest)]
