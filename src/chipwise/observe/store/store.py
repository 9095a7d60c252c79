"""The store of telemetry: batches in, packed and removed as time goes by, values out."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chipwise.errors import BrokenFile, InputError
from chipwise.io.closing import Closing
from chipwise.io.paths import data_folder
from chipwise.observe.exporters import Sample
from chipwise.observe.store import block
from chipwise.observe.store.migration import forward
from chipwise.observe.store.points import Points, joined, rolled_up
from chipwise.observe.store.round import pack_round
from chipwise.observe.store.schema import (
    DAY,
    FIVE_MINUTES,
    HOURS,
    LATE_S,
    RESOLUTIONS,
    SAMPLES,
    SEAL_S,
    VERSION,
    Resolution,
    make_tables,
    mark,
)
from chipwise.observe.store.sealing import points_of, remove, seal
from chipwise.route.ledger.database import Database, SQLite

FEW_HOSTS = 8
_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a series: of a moment, or the mean, the least and the most from it on."""

    at: int
    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest value of a series."""

    series: str
    host: str
    device: str
    labels: dict[str, str]
    at: int
    value: float


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """What a series of a host is of; labels are JSON."""

    name: str
    device: str
    labels: str


class TelemetryStore(Closing):
    """One connection, used by one thread at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._ids: dict[_Key, int] = {}
        self._hosts: dict[str, int] = {}
        self._done_until = 0  # all that was over then is packed
        with db.write():
            if "telemetry_meta" not in db.tables():
                make_tables(db)
            version = mark(db, "version")
        if version < VERSION:
            forward(db)
        elif version > VERSION:
            raise BrokenFile("store", db.where, f"a store of version {VERSION}, by a chipwise of its release")

    @property
    def where(self) -> str:
        """For messages."""
        return self._db.where

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    def write(self, samples: Sequence[Sample], at: int) -> int:
        """Keep samples of one moment, in one transaction; how many.

        One that comes after its half hour was packed is left out, and so is a second one of a moment.
        """
        self._register(samples)
        ids, by_host = self._ids, defaultdict[str, dict[int, float]](dict)
        for sample in samples:
            number = ids[sample.series, sample.host, sample.device, sample.labels]
            by_host[sample.host][number] = sample.value
        rounds = {host: pack_round(list(values), list(values.values())) for host, values in by_host.items()}
        count, written = 0, time.time_ns()
        with self._db.write() as db:
            sealed = self._sealed(db, [self._hosts[host] for host in rounds])
            rows = []
            for host, packed in rounds.items():
                number = self._hosts[host]
                if at >= sealed[number]:
                    rows.append((number, at, written, packed))
                    count += len(by_host[host])
            db.many("INSERT INTO telemetry_rounds (host, at, written, block) VALUES (?, ?, ?, ?)", rows)
        return count

    def _sealed(self, db: Database, hosts: Sequence[int]) -> dict[int, int]:
        """Until when samples of these hosts are packed: asked by number where they are few, as an agent's one is."""
        few = len(hosts) <= FEW_HOSTS
        where = f" WHERE id IN ({', '.join('?' * len(hosts))})" if few and hosts else ""
        rows = db.all(f"SELECT id, sealed FROM telemetry_hosts{where}", *(hosts if where else ()))
        return {int(number): int(until) for number, until in rows}

    def _register(self, samples: Sequence[Sample]) -> None:
        """Give numbers to hosts and series that have none yet."""
        ids = self._ids
        keys = ((sample.series, sample.host, sample.device, sample.labels) for sample in samples)
        unknown = list(dict.fromkeys(key for key in keys if key not in ids))
        if not unknown:
            return
        numbers = {}
        with self._db.write() as db:
            hosts = {str(name): int(number) for number, name in db.all("SELECT id, name FROM telemetry_hosts")}
            missing = [name for name in dict.fromkeys(host for _, host, _, _ in unknown) if name not in hosts]
            hosts |= {name: number for number, name in enumerate(missing, max(hosts.values(), default=0) + 1)}
            db.many(
                "INSERT INTO telemetry_hosts (id, name, sealed, packed) VALUES (?, ?, 0, 0)",
                [(hosts[name], name) for name in missing],
            )
            (largest,) = db.one("SELECT coalesce(max(id), 0) FROM telemetry_series") or (0,)
            new = []
            for key in unknown:
                texts = (*key[:3], json.dumps(dict(key[3]), sort_keys=True))
                row = db.one(
                    "SELECT id FROM telemetry_series WHERE name = ? AND host = ? AND device = ? AND labels = ?", *texts
                )
                if row is None:
                    largest += 1
                    new.append((largest, *texts))
                numbers[key] = int(row[0]) if row is not None else largest
            db.many("INSERT INTO telemetry_series (id, name, host, device, labels) VALUES (?, ?, ?, ?, ?)", new)
        self._hosts |= {host: hosts[host] for _, host, _, _ in unknown}  # those that are written here
        self._ids = {**ids, **numbers}

    def roll_up(self, now: int, most_s: float | None = None) -> None:
        """Pack what is over and was written here, for `most_s` seconds at most; remove what is old."""
        end = (now - LATE_S) // SEAL_S
        if end > self._done_until:
            if seal(self._db, now, set(self._hosts.values()), most_s):
                self._done_until = end
            remove(self._db, now)

    def hosts(self) -> list[str]:
        """Every host that was heard of."""
        return [str(name) for (name,) in self._db.all("SELECT name FROM telemetry_hosts ORDER BY name")]

    def names(self) -> list[str]:
        """Names of all series."""
        return [str(name) for (name,) in self._db.all("SELECT DISTINCT name FROM telemetry_series ORDER BY name")]

    def series(self, host: str) -> dict[int, SeriesRow]:
        """The series of a host by number."""
        rows = self._db.all("SELECT id, name, device, labels FROM telemetry_series WHERE host = ?", host)
        return {int(number): SeriesRow(*texts) for number, *texts in rows}

    def values(self, series: str, host: str, device: str, since: int, until: int) -> list[Value]:
        """The values of a series of a device, from the finest table that still has the beginning of them."""
        points = self.by_name([series], host, device, since, until)[series]
        rows = zip(points.at.tolist(), points.mean.tolist(), points.least.tolist(), points.most.tolist(), strict=True)
        return [Value(*row) for row in rows]

    def by_name(self, names: Sequence[str], host: str, device: str, since: int, until: int) -> dict[str, Points]:
        """Series of a device by name and time, as `values` finds them: its blocks are read and decoded once for all.

        One name may have several series, whose labels differ: theirs are one behind the other.
        """
        rows = self._db.all("SELECT id, name FROM telemetry_series WHERE host = ? AND device = ?", host, device)
        numbers: dict[str, list[int]] = {name: [] for name in names}
        for number, name in rows:
            if name in numbers:
                numbers[name].append(int(number))
        points = self.points(host, since, until, device, series=[one for theirs in numbers.values() for one in theirs])
        out = {}
        for name, theirs in numbers.items():
            part = points[np.isin(points.series, theirs)]
            out[name] = part[np.argsort(part.at, kind="stable")]
        return out

    def points(
        self,
        host: str,
        since: int,
        until: int,
        device: str | None = None,
        resolution: Resolution | None = None,
        series: Sequence[int] | None = None,
    ) -> Points:
        """Series of a host, or of a device of it; by default at the finest resolution that goes back so far."""
        row = self._db.one("SELECT id, packed FROM telemetry_hosts WHERE name = ?", host)
        if row is None:
            return joined([])
        if resolution is None:
            resolution = self.finest(since)
        parts = list(self._blocks(int(row[0]), since, until, device, resolution))
        if resolution is HOURS:  # of days that are not over there are none yet
            finer = self.points(host, max(since, int(row[1])), until, device, FIVE_MINUTES, series)
            parts.append(rolled_up(finer, HOURS.seconds))
        else:
            live = self._live(int(row[0]), host, since, until, device)
            parts.append(live if resolution is SAMPLES else rolled_up(live, FIVE_MINUTES.seconds))
        if series is not None:
            parts = [part[np.isin(part.series, series)] for part in parts]
        return joined(part[(part.at >= since) & (part.at < until)] for part in parts)

    def finest(self, since: int) -> Resolution:
        """The finest resolution that goes back so far."""
        return next((one for one in RESOLUTIONS if mark(self._db, f"removed {one.table}") <= since), HOURS)

    def _blocks(
        self, host: int, since: int, until: int, device: str | None, resolution: Resolution
    ) -> Iterator[Points]:
        rows = self._db.all(
            f"SELECT block FROM {resolution.table} WHERE host = ? AND at > ? AND at < ?"
            + (" AND device = ?" if device is not None else ""),
            *(host, since - DAY, until, *([device] if device is not None else [])),
        )
        return (block.decode(packed) for (packed,) in rows)

    def _live(self, host: int, name: str, since: int, until: int, device: str | None) -> Points:
        points = points_of(
            self._db.all(
                "SELECT at, block FROM telemetry_rounds WHERE host = ? AND at >= ? AND at < ? ORDER BY at, written",
                host,
                since,
                until,
            )
        )
        if device is None:
            return points
        ids = self._db.all("SELECT id FROM telemetry_series WHERE host = ? AND device = ?", name, device)
        return points[np.isin(points.series, [number for (number,) in ids])]

    def samples(self, of: Newest, since: int) -> list[tuple[int, float]]:
        """Every sample of a series since a moment, by time."""
        row = self._db.one(
            "SELECT id FROM telemetry_series WHERE name = ? AND host = ? AND device = ? AND labels = ?",
            of.series,
            of.host,
            of.device,
            json.dumps(of.labels, sort_keys=True),
        )
        points = self.points(of.host, since, 2**62, of.device, SAMPLES, series=row or ())
        return list(zip(points.at.tolist(), points.mean.tolist(), strict=True))

    def newest(self, since: int) -> list[Newest]:
        """The newest value of every series that has one since a moment."""
        out = []
        for number, host in self._db.all("SELECT id, name FROM telemetry_hosts ORDER BY name"):
            live = self._live(int(number), host, since, 2**62, None)
            last = live[np.append(np.diff(live.series) != 0, True)] if len(live) else live
            newest = dict(
                zip(last.series.tolist(), zip(last.at.tolist(), last.mean.tolist(), strict=True), strict=True)
            )
            for series, name, device, labels, at, value in self._db.all(
                "SELECT id, name, device, labels, at, value FROM telemetry_series WHERE host = ? ORDER BY device, name",
                host,
            ):
                last_at, amount = newest.get(series, (at, value))
                if last_at is not None and last_at >= since:
                    out.append(
                        Newest(
                            series=name,
                            host=host,
                            device=device,
                            labels=json.loads(labels),
                            at=int(last_at),
                            value=float(amount),
                        )
                    )
        return out


def open_store(url: str = "", create: bool = True) -> TelemetryStore:
    """The store at a URL: `postgresql://...` (the ledger's database will do), `sqlite:///PATH`, a path; one's own."""
    if url.startswith(("postgresql://", "postgres://")):
        from chipwise.route.ledger.postgres import PostgreSQL

        return TelemetryStore(PostgreSQL(url, noun="store"))
    path = url.removeprefix("sqlite://") if url.startswith("sqlite:///") else url
    if "://" in path:
        raise InputError("store", url.split("://")[0] + "://", "a path, sqlite:///PATH or postgresql://...")
    file = Path(path).expanduser() if path else data_folder() / "telemetry.db"
    if not create and not file.exists():
        raise InputError("store", str(file), "a store; `chipwise observe scrape` makes one")
    return TelemetryStore(SQLite(file, create=True, noun="store"))
