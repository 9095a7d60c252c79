"""Verbs of what exporters, agents and jobs say now: kept, exported, what is sick, and all of it on one screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.observe.export.view import Exported
    from chipwise.observe.nodes.view import NodeHealth
    from chipwise.observe.receive.view import Received
    from chipwise.observe.scrape.view import Scraped
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


def scrape(
    endpoints: Sequence[str] = (),
    *,
    store: str = "",
    interval: str | float = "10s",
    rounds: int | None = 1,
    prometheus: str | None = None,
    since: str | float | None = None,
    step: str | float | None = None,
    match: str | None = None,
    token_file: str | Path | None = None,
    token_env: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> Scraped:
    """Ask exporters for their pages of metrics, or a Prometheus for what it has, and keep it as one set of series.

    `endpoints` are ``"host:port"`` or addresses; `rounds` how often they are asked, ``None`` until it is stopped;
    `tell` hears of those that fail. `store` is a file, ``postgresql://...`` or, by default, one's own. `prometheus` is
    an address instead: what it has `since` (``"1h"``), a value every `step` (30 s), of series that `match`
    (``'cluster="a"'``), with the bearer token of a file or of a variable of the environment.

    >>> scrape(["http://:9400"])
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: endpoint: 'http://:9400' is not accepted; expected host:port, or http://host:port/metrics
    """
    import time

    from chipwise.errors import Conflict, InputError, MissingInput
    from chipwise.observe.scrape.prometheus import Server, pull, server_url
    from chipwise.observe.scrape.scraper import endpoint
    from chipwise.observe.scrape.scraper import scrape as run
    from chipwise.observe.scrape.view import Scraped
    from chipwise.observe.store.store import open_store
    from chipwise.verbs.arguments import seconds_of

    urls = list(dict.fromkeys(endpoint(text) for text in endpoints))
    every, say = seconds_of(interval, "interval"), tell or (lambda words: None)
    if urls and prometheus is not None:
        raise Conflict("endpoints", "prometheus")
    if not urls and prometheus is None:
        raise MissingInput([["endpoints"], ["prometheus"]])
    if prometheus is None:
        alone = {"since": since, "step": step, "match": match, "token_file": token_file, "token_env": token_env}
        name = next((name for name, value in alone.items() if value is not None), None)
        if name is not None:
            raise InputError(name, str(alone[name]), "a prometheus beside it")
        with open_store(store) as telemetry:
            pages = run(urls, telemetry, every, rounds, say)
            return _scraped(Scraped(store=telemetry.where, rounds=rounds or 0, pages=pages))
    step_s = seconds_of(step if step is not None else "30s", "step")
    if step_s < 1 or step_s != int(step_s):
        raise InputError("step", str(step), "whole seconds: the store has no finer moments")
    server = Server(
        url=server_url(prometheus), token=_token(token_file, token_env), match=match or "", step_s=int(step_s)
    )
    begin = int(time.time() - seconds_of(since if since is not None else max(60.0, 2 * step_s), "since"))
    with open_store(store) as telemetry:
        pages = pull(server, telemetry, begin, every, rounds, say)
        return _scraped(Scraped(store=telemetry.where, rounds=rounds or 0, pages=pages))


def receive_telemetry(
    listen: str = "127.0.0.1:4318",
    store: str = "",
    *,
    seconds: str | float | None = None,
    token_file: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Received:
    """Take metrics that programs and collectors send by OpenTelemetry's protocol over HTTP, and keep them.

    In protobuf or JSON, at ``/v1/metrics``. `seconds` is how long (``"1h"``), ``None`` until it is stopped; off
    loopback senders need the bearer token of `token_file`. `tell` hears of the port, and of a store that fails.

    >>> receive_telemetry("4318")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: listen: '4318' is not accepted; expected HOST:PORT such as 127.0.0.1:9464 or [::1]:9464
    """
    import time

    from chipwise.errors import InputError
    from chipwise.io.endpoint import Endpoint, read_token
    from chipwise.observe.receive.receiver import PATH, Receiver
    from chipwise.observe.receive.view import Received
    from chipwise.observe.store.store import open_store
    from chipwise.verbs.arguments import seconds_of

    say = tell or (lambda words: None)
    until = None if seconds is None else time.monotonic() + seconds_of(seconds, "seconds")
    token = read_token(Path(token_file) if token_file is not None else None)
    with open_store(store) as telemetry:
        receiver = Receiver(telemetry, say)
        try:
            endpoint = Endpoint(listen, token, lambda: "", receiver.take)
        except InputError as error:
            raise (error.under("listen") if error.field == "metrics" else error) from None
        endpoint.start()
        try:
            say(f"port {endpoint.port}, {PATH}{', with the bearer token' if token else ''}")
            while until is None or time.monotonic() < until:
                time.sleep(1.0 if until is None else max(0.0, min(1.0, until - time.monotonic())))
        finally:
            endpoint.stop()
        return Received(store=telemetry.where, count=receiver.count)


def _scraped(answer: Scraped) -> Scraped:
    """What was scraped, if anybody answered."""
    from chipwise.errors import Refusal

    if all(page.problem for page in answer.pages):
        first = answer.pages[0]
        raise Refusal(f"no endpoint answers: {first.url}: {first.problem}", "exporters, or a Prometheus, that run")
    return answer


def _token(file: str | Path | None, variable: str | None) -> str:
    """A bearer token by where it lies: its value is never an argument, which everybody on the machine could read."""
    import os

    from chipwise.errors import Conflict, InputError
    from chipwise.io.endpoint import read_token

    if file is not None and variable is not None:
        raise Conflict("token_file", "token_env")
    if file is not None:
        return read_token(Path(file))
    if variable is None:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token or not token.isprintable() or " " in token:
        raise InputError("token_env", variable, "a variable of the environment that holds the token, one word")
    return token


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
