"""What devices drew, by a store of telemetry: of those that are well, by the pools that have their nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from chipwise.catalog import exact_chip
from chipwise.errors import InputError
from chipwise.observe.nodes.look import names_by_pool, nodes_of, placed
from chipwise.observe.nodes.records import Node
from chipwise.observe.rates.power import HOUR, Drawn, Span, Use, Windows, share_held, used_for
from chipwise.observe.rates.records import DeviceLeftOut, PoolPower, PowerMet, Untold
from chipwise.observe.records import Severity
from chipwise.observe.store.points import Points
from chipwise.observe.store.store import Newest, TelemetryStore
from chipwise.route.ledger import LedgerView
from chipwise.route.load.pools import Pools
from chipwise.route.pool import Pool

MODEL_LABELS = ("model", "modelName", "card_model")  # of a device, by exporter
POWER, BUSY = "device_power", "device_busy"
THROTTLED = ("device_throttled_by_heat", "device_throttle_share")


def power_met(telemetry: TelemetryStore, book: LedgerView, pools: Pools, since: float, now: float) -> PowerMet:
    """What devices drew from a moment on, while jobs held them and while nobody did."""
    names, problems = names_by_pool(pools, book.uid)
    look = _Look(telemetry, {pool.name: pool for pool in pools.pools}, _held(book, now), since, now)
    nodes = {node.host: placed(node, names) for node in nodes_of(telemetry, int(since))}
    devices = {(one.host, one.device): one for one in telemetry.newest(int(since)) if one.series == POWER}
    by_host: dict[str, set[str]] = {}
    for host, device in devices:
        by_host.setdefault(host, set()).add(device)
    unplaced = 0
    for (host, _), one in devices.items():
        pool = look.pool_of(nodes[host], one)
        if pool is None:
            unplaced += 1
        else:
            look.add(nodes[host], one.device, pool, by_host[host])
    rows = [
        PoolPower(pool=name, chip=look.pools[name].chip, use=use, drawn=drawn)
        for (name, use), drawn in sorted(look.drawn.items())
        if drawn.hours > 0
    ]
    return PowerMet(
        store=telemetry.where,
        pools=tuple(rows),
        left_out=tuple(look.left_out),
        unplaced=unplaced,
        problems=tuple(problems),
    )


class _Look:
    """Sums over devices."""

    def __init__(
        self,
        telemetry: TelemetryStore,
        pools: Mapping[str, Pool],
        held: Mapping[str, list[Span]],
        since: float,
        now: float,
    ) -> None:
        self._telemetry, self.pools, self._held = telemetry, pools, held
        self._since, self._until = int(since), int(now) + 1
        self.drawn: dict[tuple[str, Use], Drawn] = {}
        self.left_out: list[DeviceLeftOut] = []

    def pool_of(self, node: Node, device: Newest) -> Pool | None:
        """The pool that has a device: by its node, else the only one with chips of its model."""
        theirs = [self.pools[name] for name in node.pools if self.pools[name].family != "cpu"]
        if not theirs:
            model = next((device.labels[label] for label in MODEL_LABELS if label in device.labels), "")
            try:
                chip = exact_chip(model).id if model else ""
            except InputError:
                chip = ""
            theirs = [pool for pool in self.pools.values() if chip and pool.chip == chip]
        return theirs[0] if len({pool.name for pool in theirs}) == 1 else None

    def add(self, node: Node, device: str, pool: Pool, others: Collection[str]) -> None:
        """Count what a device drew, unless it is sick; but while it was throttled."""
        what = _sick(node, device, others)
        if what:
            self.left_out.append(
                DeviceLeftOut(host=node.host, device=device, pool=pool.name, why=Untold.SICK, what=what)
            )
            return
        points = self._telemetry.by_name((POWER, BUSY, *THROTTLED), node.host, device, self._since, self._until)
        power, busy = _windows(points[POWER]), _windows(points[BUSY])
        seconds, hot = power.seconds, np.zeros(len(power.at), dtype=bool)
        for series in THROTTLED:
            hot |= _windows(points[series]).where(power.at) > 0
        if hot.any():
            hours = float(seconds[hot].sum()) / HOUR
            self.left_out.append(
                DeviceLeftOut(host=node.host, device=device, pool=pool.name, why=Untold.THROTTLED, hours=hours)
            )
        share = share_held(self._held.get(pool.name, []), pool.count)
        for use, flags in zip(Use, used_for(power, busy, share), strict=True):
            there = flags & ~hot & (seconds > 0)
            sums = self.drawn.setdefault((pool.name, use), Drawn())
            sums.add((node.host, device), power.at[there], power.mean[there], seconds[there])


def _windows(points: Points) -> Windows:
    at, first = np.unique(points.at.astype(np.float64), return_index=True)
    return Windows(at, points.mean[first])


def by_chip(met: PowerMet) -> dict[tuple[str, Use], Drawn]:
    """The same by chip, all pools together."""
    out: dict[tuple[str, Use], Drawn] = {}
    for row in met.pools:
        out.setdefault((row.chip, row.use), Drawn()).update(row.drawn)
    return out


def _held(book: LedgerView, now: float) -> dict[str, list[Span]]:
    """When attempts held how many chips, by pool."""
    spans: dict[str, list[Span]] = {}
    for attempt in book.attempts():
        if attempt.started is not None:
            ended = attempt.ended if attempt.ended is not None else now
            spans.setdefault(attempt.pool, []).append((attempt.started, ended, attempt.option.chips))
    return spans


def _sick(node: Node, device: str, others: Collection[str]) -> str:
    """What is gravely wrong with a device, or with its node where no other device is meant; empty where it is well."""
    grave = [one for one in node.symptoms if one.confirmed and one.severity is Severity.CRITICAL]
    mine = [one for one in grave if one.device == device or one.device not in others]
    return mine[0].meaning if mine else ""
