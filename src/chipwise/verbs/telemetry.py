"""Verbs of what exporters, agents and jobs say now: what is sick, and all of it on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
