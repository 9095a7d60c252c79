"""Devices by what is known of them, as a table for people: a row a device, the series that matter as columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from chipwise.observe.exporters import mapping
from chipwise.present.blocks import Table
from chipwise.present.columns import Column
from chipwise.present.safe import safe
from chipwise.units import format_bytes, format_rate

SHOWN = (  # columns of people's table: series and heading
    ("device_busy", "busy"), ("device_tensor_active", "tensor"), ("device_memory_active", "memory busy"),
    ("device_memory_used", "memory used"), ("device_power", "power"), ("device_temperature", "temperature"),
    ("device_clock", "clock"), ("device_last_xid", "last Xid"), ("host_busy", "cores busy"),
    ("host_memory_used", "host memory"), ("serving_running", "running"),
    ("serving_waiting", "waiting"), ("serving_kv_cache_usage", "KV cache"),
    ("job_step", "step"), ("job_step_seconds", "step time, s"), ("job_loss", "loss"),
    ("queue_pending", "pending"), ("queue_admitted", "admitted"),
)  # fmt: skip


DROPPED = (
    "clock",
    "memory busy",
    "cores busy",
    "host memory",
    "last Xid",
    "tensor",
    "temperature",
    "memory used",
)  # first
VALUE_COLUMNS: tuple[Column[Any], ...] = (  # of anything that is a value of a series of a device
    Column("host", lambda v: v.host),
    Column("device", lambda v: v.device),
    Column("series", lambda v: v.series),
    Column("value", lambda v: v.value, help="in SI units, ratios to one"),
    Column("unit", lambda v: units().get(v.series)),
)


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


def device_table(values: Iterable[tuple[str, str, str, float]], title: str = "") -> Table:
    """Rows of host, device, series and value as a table; columns that nobody fills are left out."""
    newest: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for host, device, series, value in values:
        newest[host, device][series] = value
    count = Counter(series for row in newest.values() for series in row)
    columns = [(series, head) for series, head in SHOWN if count[series]]
    rows = [
        [safe(host), safe(device) or "–", *(_shown(s, row[s]) if s in row else "–" for s, _ in columns)]
        for (host, device), row in newest.items()
        if any(series in row for series, _ in columns)
    ]
    return Table(
        ["host", "device", *(head for _, head in columns)],
        rows,
        frozenset({"host", "device"}),
        title=title,
        drop=DROPPED,
    )
