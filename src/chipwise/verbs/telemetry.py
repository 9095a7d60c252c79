"""Verbs of what exporters, agents and jobs say now: what is sick, and all of it on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.observe.export.view import Exported
    from chipwise.observe.nodes.view import NodeHealth
    from chipwise.observe.top.view import Top


def node_health(
    store: str = "",
    *,
    since: str | float = "1h",
    pools: str | Path | None = None,
    ledger: str = "",
    drain: bool = False,
) -> NodeHealth:
    """Say which nodes are sick by what their exporters and agents said `since`, and why.

    With `pools` (a file) their nodes are told by the pools that have them; `drain` lets routers of the ledger start
    nothing on those that are sick.

    >>> node_health("nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: store: 'nowhere.db' is not accepted; expected a store; ...
    """
    from chipwise.errors import NOTHING, InputError
    from chipwise.observe.nodes.look import look_at_nodes
    from chipwise.route.load import read_pools
    from chipwise.verbs.arguments import seconds_of

    if drain and pools is None:
        raise InputError("pools", NOTHING, "a pools file beside drain, or CHIPWISE_POOLS naming one")
    seconds = seconds_of(since, "since")
    return look_at_nodes(store, seconds, None if pools is None else read_pools(Path(pools)), ledger, drain)


def observe_top(
    ledger: str | None = "",
    *,
    pools: str | Path | None = None,
    store: str | None = None,
    jobs_by: str = "newest",
    devices_by: str = "host",
) -> Top:
    """Look once at jobs under way, at devices and at pools: what `observe top` draws again and again.

    Of a `ledger` (None: none), a pools file and a `store` of telemetry, as far as each is named. Jobs are sorted by
    ``"newest"``, ``"slowest"``, ``"health"``, ``"left"`` or ``"goodput"``, devices by ``"host"``, ``"busy"``,
    ``"idle"``, ``"power"``, ``"hot"`` or ``"memory"``. What can't be read is among its `problems`.

    >>> observe_top("nowhere.db").problems  # doctest: +ELLIPSIS
    ['ledger nowhere.db: there is none; ...
    """
    from dataclasses import replace

    from chipwise.errors import UnknownName
    from chipwise.observe.top.look import look
    from chipwise.observe.top.view import DeviceOrder, JobOrder
    from chipwise.route.load import read_pools

    for name, value, orders in (("jobs_by", jobs_by, list(JobOrder)), ("devices_by", devices_by, list(DeviceOrder))):
        if value not in orders:
            raise UnknownName(name, value, orders)
    top = look(ledger, store, None if pools is None else read_pools(Path(pools)))
    return replace(top, job_order=JobOrder(jobs_by), device_order=DeviceOrder(devices_by))


def export_telemetry(
    to: str | Path,
    store: str = "",
    *,
    format: str | None = None,
    resolution: str = "5min",
    since: str | float = "1d",
    until: str = "now",
    series: Sequence[str] = (),
    hosts: Sequence[str] = (),
    devices: Sequence[str] = (),
) -> Exported:
    """Write what a store holds into a file of rows: CSV, SQLite or Parquet, by its ending or the `format`.

    `resolution` is ``"samples"``, ``"5min"`` or ``"1h"``; `since` how long ago (``"7d"``) or a moment, `until` a
    moment. Nothing named is all series, hosts and devices.

    >>> export_telemetry("power.txt")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: to: 'power.txt' is not accepted; expected a name that ends in .csv, .db, .sqlite or \
.parquet, or a format beside it
    """
    import time

    from chipwise.errors import InputError, UnknownName
    from chipwise.io.atomic import atomic_draft
    from chipwise.observe.clock import read_moment
    from chipwise.observe.export.files import ENDINGS, FileFormat, needs, write_file
    from chipwise.observe.export.rows import Selection, rows_of
    from chipwise.observe.export.view import Exported
    from chipwise.observe.store.schema import FIVE_MINUTES, HOURS, SAMPLES
    from chipwise.observe.store.store import open_store

    path, now = Path(to), time.time()
    if format is not None and format not in list(FileFormat):
        raise UnknownName("format", format, list(FileFormat))
    kind = FileFormat(format) if format is not None else ENDINGS.get(path.suffix)
    if kind is None:
        *others, last = ENDINGS
        raise InputError("to", str(to), f"a name that ends in {', '.join(others)} or {last}, or a format beside it")
    resolutions = {"samples": SAMPLES, "5min": FIVE_MINUTES, "1h": HOURS}
    if resolution not in resolutions:
        raise UnknownName("resolution", resolution, list(resolutions))
    needs(kind)
    begin, end = int(_since(since, now)), int(read_moment(until, "until", now)) + (until == "now")
    if begin >= end:
        raise InputError("since", str(since), "a moment before the end")
    wanted = Selection(
        since=begin, until=end, resolution=resolutions[resolution], series=series, hosts=hosts, devices=devices
    )
    with open_store(store, create=False) as telemetry, atomic_draft(path, "to") as draft:
        sizes = write_file(draft, kind, rows_of(telemetry, wanted))
        return Exported(
            store=telemetry.where,
            file=str(path),
            format=kind.value,
            resolution=resolution,
            since=begin,
            until=end,
            rows=sum(size.rows for size in sizes),
            series=sum(size.series for size in sizes),
            hosts=sum(size.rows > 0 for size in sizes),
        )


def _since(since: str | float, now: float) -> float:
    """How long ago, or a moment."""
    from chipwise.observe.clock import read_moment
    from chipwise.verbs.arguments import seconds_of

    if isinstance(since, str) and since[:4].isdigit() and since[4:5] == "-":
        return read_moment(since if len(since) > len("2026-11-02") else f"{since} 00:00:00", "since", now)
    return now - seconds_of(since, "since")
