"""Looking again and again: one look, and the screen that is drawn of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from chipwise.errors import ChipwiseError
from chipwise.observe.jobs.look import look_at_jobs
from chipwise.observe.jobs.view import JobObservations
from chipwise.observe.scrape.view import Devices
from chipwise.observe.store.store import open_store
from chipwise.observe.top.view import Choice, DeviceOrder, JobOrder, Top
from chipwise.present.blocks import Block
from chipwise.present.live import Line, Screen, fitted
from chipwise.present.terminal import styled
from chipwise.route.load import Pools
from chipwise.route.pool_view import PoolList, list_pools

FRESH_S = 300  # values no older than this are of now


def look(ledger: str | None, store: str | None, pools: Pools | None) -> Top:
    """Jobs under way, devices and pools, as far as each is named; what can't be read is said, and not the end."""
    problems: list[str] = []

    def tried(what: Callable[[], JobObservations | Devices | PoolList]) -> object:
        try:
            return what()
        except ChipwiseError as error:
            problems.append(str(error))
            return None

    jobs = tried(lambda: look_at_jobs(ledger or "")) if ledger is not None else None
    devices = tried(lambda: _devices(store or "")) if store is not None else None
    statuses = tried(lambda: list_pools(pools, ledger or "")) if pools is not None else None
    return Top(
        at=time.time(),
        jobs=jobs if isinstance(jobs, JobObservations) else None,
        devices=devices if isinstance(devices, Devices) else None,
        pools=statuses if isinstance(statuses, PoolList) else None,
        problems=problems,
    )


def _devices(store: str) -> Devices:
    with open_store(store, create=False) as telemetry:
        return Devices(store=telemetry.where, newest=telemetry.newest(int(time.time()) - FRESH_S))


def watch(look_now: Callable[[], Top], every_s: float, jobs: JobOrder, devices: DeviceOrder) -> None:
    """Draw what there is until somebody has seen enough."""
    choice = Choice(jobs=jobs, devices=devices)
    with Screen() as screen:
        while not choice.over:
            top, next_look = look_now(), time.monotonic() + every_s
            while not choice.over:
                screen.draw(page(top, choice, screen.size))
                try:
                    key = screen.key(min(1.0, next_look - time.monotonic()))
                except KeyboardInterrupt:
                    return
                if choice.press(key) or time.monotonic() >= next_look:
                    break


def page(top: Top, choice: Choice, size: tuple[int, int]) -> list[Line]:
    """A screen of so many columns and lines."""
    width, height = size
    head, *parts = replace(top, job_order=choice.jobs, device_order=choice.devices).sections()
    titles = {"Jobs": 1, "Devices": 2, "Pools": 3}
    if choice.only:
        parts = [part for part in parts if titles[_title(part)] == choice.only]
    sections = [_lines(part, width) for part in (head, *parts)]
    return [*fitted(sections, height - 1), (Choice.HELP[:width], "dim")]


def _title(part: Sequence[Block]) -> str:
    return str(getattr(part[0], "title", "")).partition(",")[0]


def _lines(part: Sequence[Block], width: int) -> list[Line]:
    return [line for block in part for line in styled(block, width)]
