"""The store of telemetry: batches in, roll-ups made and old values removed as time goes by, values out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import BrokenFile, InputError
from chipwise.io.closing import Closing
from chipwise.io.paths import data_folder
from chipwise.observe.exporters import Sample
from chipwise.observe.store.schema import LATE_S, ROLL_UPS, SAMPLES_KEEP_S, TABLES, VERSION, Resolution
from chipwise.route.ledger.database import Database, SQLite

REMOVED_EVERY_S = 3600  # seconds: what is too old goes in one piece
_Key = tuple[str, str, str, str]


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


class TelemetryStore(Closing):
    """One connection, used by one thread at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._ids: dict[_Key, int] = {}
        rowless = " WITHOUT ROWID" if isinstance(db, SQLite) else ""
        with db.write():
            if "telemetry_meta" not in db.tables():
                for statement in TABLES:
                    db.run(statement.replace("{id}", db.identity).replace("{rowless}", rowless))
                db.run("INSERT INTO telemetry_meta (name, value) VALUES ('version', ?)", VERSION)
            version = db.one("SELECT value FROM telemetry_meta WHERE name = 'version'")
        if version is None or version[0] != VERSION:
            raise BrokenFile("store", db.where, f"a store of version {VERSION}, by a chipwise of its release")

    @property
    def where(self) -> str:
        """For messages."""
        return self._db.where

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    def write(self, samples: Sequence[Sample], at: int) -> int:
        """Keep samples of one moment, in one transaction; how many were new.

        One that comes after its window was rolled up is left out, and so is a second one of a moment.
        """
        if not samples:
            return 0
        try:
            with self._db.write() as db:
                if at < self._mark(ROLL_UPS[0]):
                    return 0
                rows = {self._id(db, sample): sample.value for sample in samples}
                db.run("INSERT INTO telemetry_rounds (at) VALUES (?) ON CONFLICT (at) DO NOTHING", at)
                db.many(
                    "INSERT INTO telemetry_samples (at, series, value) VALUES (?, ?, ?) "
                    "ON CONFLICT (at, series) DO NOTHING",
                    [(at, series, value) for series, value in rows.items()],
                )
        except BaseException:
            self._ids.clear()  # those of a transaction that was taken back are nobody's
            raise
        return len(rows)

    def roll_up(self, now: int) -> None:
        """Roll up what is over, and remove what is older than it is kept for and was rolled up."""
        with self._db.write() as db:
            for roll_up in ROLL_UPS:
                begin, end = self._mark(roll_up), (now - LATE_S) // roll_up.seconds * roll_up.seconds
                if roll_up.finer != "telemetry_samples":
                    end = min(end, self._mark(ROLL_UPS[0]) // roll_up.seconds * roll_up.seconds)
                if end > begin:
                    self._roll(db, roll_up, begin, end)
            self._remove(db, now)

    def _roll(self, db: Database, roll_up: Resolution, begin: int, end: int) -> None:
        if roll_up.finer == "telemetry_samples":
            values = "count(*), avg(value), min(value), max(value)"
            source = "telemetry_samples AS f WHERE"
        else:
            values = "CAST(sum(count) AS BIGINT), sum(mean * count) / sum(count), min(least), max(most)"
            source = f"telemetry_series CROSS JOIN {roll_up.finer} AS f WHERE f.series = telemetry_series.id AND"
        db.run(
            f"INSERT INTO {roll_up.table} (series, at, count, mean, least, most) "
            f"SELECT f.series, f.at / {roll_up.seconds} * {roll_up.seconds}, {values} FROM {source} "
            f"f.at >= ? AND f.at < ? GROUP BY f.series, f.at / {roll_up.seconds}",
            begin,
            end,
        )
        self._set(db, roll_up.table, end)

    def _remove(self, db: Database, now: int) -> None:
        kept = (("telemetry_samples", SAMPLES_KEEP_S), *((one.table, one.keep_s) for one in ROLL_UPS))
        for place, (table, keep_s) in enumerate(kept):
            until = now - keep_s
            if place < len(ROLL_UPS):  # never what no coarser table has yet
                until = min(until, self._mark(ROLL_UPS[place]))
            due = db.one("SELECT value FROM telemetry_meta WHERE name = ?", f"removed {table}")
            if due is not None and until - due[0] < REMOVED_EVERY_S:
                continue
            if place == 0:
                db.run("DELETE FROM telemetry_rounds WHERE at < ?", until)
                db.run("DELETE FROM telemetry_samples WHERE at < ?", until)
            else:
                db.run(f"DELETE FROM {table} WHERE series IN (SELECT id FROM telemetry_series) AND at < ?", until)
            self._set(db, f"removed {table}", until)

    def _set(self, db: Database, name: str, value: int) -> None:
        db.run(
            "INSERT INTO telemetry_meta (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )

    def values(self, series: str, host: str, device: str, since: int, until: int) -> list[Value]:
        """The values of a series of a device, from the finest table that still has the beginning of them."""
        ids = self._db.all(
            "SELECT id FROM telemetry_series WHERE name = ? AND host = ? AND device = ?", series, host, device
        )
        out: list[Value] = []
        for (series_id,) in ids:
            out += self._of_series(series_id, since, until)
        return sorted(out, key=lambda value: value.at)

    def _of_series(self, series: int, since: int, until: int) -> list[Value]:
        removed = self._db.one("SELECT value FROM telemetry_meta WHERE name = 'removed telemetry_samples'")
        if removed is not None and removed[0] > since:
            for table in (one.table for one in ROLL_UPS):
                gone = self._db.one("SELECT value FROM telemetry_meta WHERE name = ?", f"removed {table}")
                if gone is None or gone[0] <= since or table == ROLL_UPS[-1].table:
                    rows = self._db.all(
                        f"SELECT at, mean, least, most FROM {table} "
                        "WHERE series = ? AND at >= ? AND at < ? ORDER BY at",
                        series,
                        since,
                        until,
                    )
                    return [Value(*row) for row in rows]
        rows = self._db.all(
            "SELECT s.at, s.value FROM telemetry_rounds AS r CROSS JOIN telemetry_samples AS s "
            "WHERE s.at = r.at AND s.series = ? AND r.at >= ? AND r.at < ? ORDER BY s.at",
            series,
            since,
            until,
        )
        return [Value(at, value, value, value) for at, value in rows]

    def samples(self, of: Newest, since: int) -> list[tuple[int, float]]:
        """Every sample of a series since a moment, by time."""
        labels = json.dumps(of.labels, sort_keys=True)
        return [
            (int(at), float(value))
            for at, value in self._db.all(
                "SELECT s.at, s.value FROM telemetry_rounds AS r CROSS JOIN telemetry_samples AS s "
                "WHERE s.at = r.at AND r.at >= ? AND s.series = (SELECT id FROM telemetry_series "
                "WHERE name = ? AND host = ? AND device = ? AND labels = ?) ORDER BY s.at",
                since,
                of.series,
                of.host,
                of.device,
                labels,
            )
        ]

    def newest(self, since: int) -> list[Newest]:
        """The newest value of every series that has one since a moment."""
        rows = self._db.all(
            "SELECT name, host, device, labels, s.at, s.value FROM telemetry_samples AS s "
            "JOIN (SELECT series, max(at) AS at FROM telemetry_samples WHERE at >= ? GROUP BY series) AS last "
            "ON last.series = s.series AND last.at = s.at "
            "JOIN telemetry_series ON telemetry_series.id = s.series ORDER BY host, device, name",
            since,
        )
        return [
            Newest(series=name, host=host, device=device, labels=json.loads(labels), at=at, value=value)
            for name, host, device, labels, at, value in rows
        ]

    def _mark(self, roll_up: Resolution) -> int:
        row = self._db.one("SELECT value FROM telemetry_meta WHERE name = ?", roll_up.table)
        return int(row[0]) if row is not None else 0

    def _id(self, db: Database, sample: Sample) -> int:
        key = (sample.series, sample.host, sample.device, json.dumps(dict(sample.labels), sort_keys=True))
        known = self._ids.get(key)
        if known is not None:
            return known
        find = "SELECT id FROM telemetry_series WHERE name = ? AND host = ? AND device = ? AND labels = ?"
        row = db.one(find, *key)
        if row is None:
            (number,) = db.one("SELECT coalesce(max(id), 0) + 1 FROM telemetry_series") or (1,)
            db.run("INSERT INTO telemetry_series (id, name, host, device, labels) VALUES (?, ?, ?, ?, ?)", number, *key)
            row = (number,)
        self._ids[key] = int(row[0])
        return int(row[0])


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
