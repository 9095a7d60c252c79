"""As time goes by: samples are packed every half hour, with their roll-ups; roll-ups of a day; what is old goes.

Each host has its own marks, so that an agent packs what it wrote itself, and hosts of a scraper are packed a few at a
time: nothing that is read or written has to wait long.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chipwise.observe.exporters import mapping
from chipwise.observe.store import block
from chipwise.observe.store.points import Points, joined, of_samples, rolled_up
from chipwise.observe.store.round import unpack_round
from chipwise.observe.store.schema import (
    DAY,
    FIVE_MINUTES,
    HOURS,
    LATE_S,
    RESOLUTIONS,
    SAMPLES,
    SEAL_S,
    mark,
    set_mark,
)
from chipwise.route.ledger.database import Database

REMOVED_EVERY_S = 3600  # seconds: what is too old goes in one piece
ORPHANED_S = 2 * SEAL_S  # whose writer has not packed it by then is packed by whoever comes
MEASURED = frozenset(
    {"W", "°C", "Hz", "ratio", "bytes", "J", "requests", "tokens", "nats"}
)  # by instruments; others are told


@dataclass(frozen=True, slots=True)
class Series:
    """Whose a series is, and whether its values count, number or date something."""

    name: str
    device: str
    counting: bool


@cache
def _counting() -> frozenset[str]:
    return frozenset(one.series for one in mapping().values() if one.kind == "counter" or one.unit not in MEASURED)


def series_of(db: Database, host: int) -> dict[int, Series]:
    """The series of a host by number."""
    rows = db.all(
        "SELECT s.id, s.name, s.device FROM telemetry_series AS s "
        "JOIN telemetry_hosts AS h ON s.host = h.name WHERE h.id = ?",
        host,
    )
    return {int(number): Series(name, device, name in _counting()) for number, name, device in rows}


def seal(db: Database, now: int, own: Collection[int], most_s: float | None) -> bool:
    """Pack what is over, of one's `own` hosts and of orphans, for so long; whether all of it is done."""
    until = time.monotonic() + most_s if most_s is not None else float("inf")
    end = (now - LATE_S) // SEAL_S * SEAL_S
    oldest = "SELECT host, min(at) FROM telemetry_rounds WHERE at < ? GROUP BY host ORDER BY min(at)"
    due = [(int(host), int(at)) for host, at in db.all(oldest, end)]
    due = [(host, at) for host, at in due if host in own or at < now - LATE_S - ORPHANED_S]
    while due:
        for host, at in due:
            _seal(db, host, at // SEAL_S * SEAL_S)
            if time.monotonic() > until:
                return False
        hosts = {host for host, _ in due}
        due = [(int(host), int(at)) for host, at in db.all(oldest, end) if host in hosts]
    late = "SELECT 1 FROM telemetry_rounds AS r WHERE r.host = telemetry_hosts.id AND r.at < ?"
    with db.write():
        db.run(f"UPDATE telemetry_hosts SET sealed = ? WHERE sealed < ? AND NOT EXISTS ({late})", end, end, end)
    midnight = end // DAY * DAY
    whole = "SELECT id, packed FROM telemetry_hosts WHERE packed < ? AND sealed >= ? ORDER BY packed"
    for host, since in db.all(whole, midnight, midnight):
        if host not in own and end - midnight < ORPHANED_S:
            continue
        _pack(db, int(host), int(since), midnight)
        if time.monotonic() > until:
            return False
    return True


def _seal(db: Database, host: int, begin: int) -> None:
    """Pack the samples of a host of half an hour; not where others wrote or packed some of them meanwhile."""
    find, end = "FROM telemetry_rounds WHERE host = ? AND at < ?", begin + SEAL_S
    rows = db.all(f"SELECT at, block {find} ORDER BY at, written", host, end)
    points = points_of(rows)
    blocks = packed_samples(points, series_of(db, host))
    last = points[np.append(np.diff(points.series) != 0, True)] if len(points) else points
    newest = list(zip(last.at.tolist(), last.mean.tolist(), last.series.tolist(), last.at.tolist(), strict=True))
    with db.write():
        (count,) = db.one(f"SELECT count(*) {find}", host, end) or (0,)
        if count != len(rows):
            return
        for table, device, packed in blocks:
            put(db, table, host, device, begin, SEAL_S, packed)
        db.many("UPDATE telemetry_series SET at = ?, value = ? WHERE id = ? AND (at IS NULL OR at < ?)", newest)
        db.run(f"DELETE {find}", host, end)
        db.run("UPDATE telemetry_hosts SET sealed = ? WHERE id = ? AND sealed < ?", end, host, end)


def points_of(rounds: Sequence[Sequence[object]]) -> Points:
    """The samples of rows of moments and packed rounds, the first written first."""
    unpacked = [unpack_round(packed) for _, packed in rounds]  # type: ignore[arg-type]
    return of_samples(
        [series for series, _ in unpacked],
        [at for at, _ in rounds],  # type: ignore[misc]
        [values for _, values in unpacked],
    )


def packed_samples(points: Points, series: Mapping[int, Series]) -> list[tuple[str, str, bytes]]:
    """Blocks of samples and of five minutes of them: table, device, bytes."""
    levels = (
        (SAMPLES, points, block.SAMPLES),
        (FIVE_MINUTES, rolled_up(points, FIVE_MINUTES.seconds), block.ROLLED_UP),
    )
    return [
        (resolution.table, device, block.encode(part, counting, precision))
        for resolution, level, precision in levels
        for device, part, counting in by_device(level, series)
    ]


def packed_roll_ups(points: Points, series: Mapping[int, Series]) -> list[tuple[str, str, bytes]]:
    """Blocks of five minutes, and of hours of them: table, device, bytes."""
    levels = ((FIVE_MINUTES, points), (HOURS, rolled_up(points, HOURS.seconds)))
    return [
        (resolution.table, device, block.encode(part, counting, block.ROLLED_UP))
        for resolution, level in levels
        for device, part, counting in by_device(level, series)
    ]


def _pack(db: Database, host: int, since: int, midnight: int) -> None:
    """Put the roll-ups of each day into one block a device, and make those of hours of them."""
    find = f"FROM {FIVE_MINUTES.table} WHERE host = ? AND at >= ? AND at < ?"
    series, days = series_of(db, host), {}
    for (day,) in db.all(f"SELECT DISTINCT at / {DAY} {find}", host, since, midnight):
        begin = int(day) * DAY
        rows = db.all(f"SELECT block {find} ORDER BY at", host, begin, begin + DAY)
        days[begin] = packed_roll_ups(joined(block.decode(packed) for (packed,) in rows), series)
    with db.write():
        for begin, blocks in days.items():
            db.run(f"DELETE {find}", host, begin, begin + DAY)
            for table, device, packed in blocks:
                put(db, table, host, device, begin, DAY, packed)
        db.run("UPDATE telemetry_hosts SET packed = ? WHERE id = ? AND packed < ?", midnight, host, midnight)


def by_device(points: Points, series: Mapping[int, Series]) -> Iterator[tuple[str, Points, NDArray[np.bool_]]]:
    """Points by the device that they are of, with whether each row's series counts."""
    numbers, places = np.unique(points.series, return_inverse=True)
    theirs = [series[number] for number in numbers.tolist()]
    devices = sorted({one.device for one in theirs})
    of_device = np.array([devices.index(one.device) for one in theirs], np.int64)[places] if len(points) else places
    counting = np.array([one.counting for one in theirs], bool)[places] if len(points) else np.empty(0, bool)
    for place, device in enumerate(devices):
        rows = of_device == place
        yield device, points[rows], counting[rows]


def put(db: Database, table: str, host: int, device: str, at: int, span: int, packed: bytes) -> None:
    """Keep a block, in place of one that begins as it does."""
    db.run(
        f"INSERT INTO {table} (host, device, at, span, block) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (host, device, at) DO UPDATE SET span = excluded.span, block = excluded.block",
        host,
        device,
        at,
        span,
        packed,
    )


def remove(db: Database, now: int) -> None:
    """Remove blocks that are older than they are kept for."""
    for resolution in RESOLUTIONS:
        unit = SEAL_S if resolution is SAMPLES else DAY
        until = (now - resolution.keep_s) // unit * unit
        name = f"removed {resolution.table}"
        if until - mark(db, name) >= min(unit, REMOVED_EVERY_S):
            with db.write():
                db.run(f"DELETE FROM {resolution.table} WHERE at + span <= ? AND at < ?", until, until)
                set_mark(db, name, until)
