"""What was scraped, and devices by their newest values, as every face shows them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.exporters import mapping
from chipwise.observe.scrape.scraper import Page
from chipwise.observe.store.store import Newest
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import format_bytes, format_rate

PAGE_COLUMNS: tuple[Column[Page], ...] = (
    Column("endpoint", lambda p: p.url, "endpoint", lambda p: safe(p.url), words=True),
    Column("samples", lambda p: len(p.samples), "samples"),
    Column("series", lambda p: len({s.series for s in p.samples}), "series", help="of data/series.csv"),
    Column("devices", lambda p: len({(s.host, s.device) for s in p.samples}), "devices"),
    Column("problem", lambda p: p.problem or None, "problem", lambda p: safe(p.problem) or "–", words=True),
)
NEWEST_COLUMNS: tuple[Column[Newest], ...] = (
    Column("host", lambda n: n.host),
    Column("device", lambda n: n.device),
    Column("series", lambda n: n.series),
    Column("value", lambda n: n.value, help="in SI units, ratios to one"),
    Column("unit", lambda n: units().get(n.series)),
    Column("at", lambda n: n.at, help="seconds since 1970"),
    Column("labels", lambda n: n.labels, nested=True),
)
SHOWN = (  # columns of people's table: series and heading
    ("device_busy", "busy"), ("device_tensor_active", "tensor"), ("device_memory_active", "memory busy"),
    ("device_memory_used", "memory used"), ("device_power", "power"), ("device_temperature", "temperature"),
    ("device_clock", "clock"), ("device_last_xid", "last Xid"), ("serving_running", "running"),
    ("serving_waiting", "waiting"), ("serving_kv_cache_usage", "KV cache"),
)  # fmt: skip


def units() -> dict[str, str]:
    """The unit of every series."""
    return {mapped.series: mapped.unit for mapped in mapping().values()}


def _shown(series: str, value: float) -> str:
    unit = units()[series]
    if unit == "ratio":
        return f"{value:.0%}"
    if unit == "bytes":
        return format_bytes(value)
    if unit == "Hz":
        return format_rate(value, "Hz")
    return f"{value:.0f} {unit}" if unit in ("W", "°C") else f"{value:g}"


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
        values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for one in self.newest:
            values[one.host, one.device][one.series] = one.value
        count = Counter(series for row in values.values() for series in row)
        columns = [(series, head) for series, head in SHOWN if count[series]]
        rows = [
            [safe(host), safe(device) or "–", *(_shown(s, row[s]) if s in row else "–" for s, _ in columns)]
            for (host, device), row in values.items()
        ]
        return [Table(["host", "device", *(head for _, head in columns)], rows, frozenset({"host", "device"}))]
