"""A store of version 1, a row a value, brought to packed blocks: what it has is kept, each at its resolution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chipwise.observe.store import block
from chipwise.observe.store.points import Points
from chipwise.observe.store.round import pack_round
from chipwise.observe.store.schema import DAY, FIVE_MINUTES, HOURS, RESOLUTIONS, SAMPLES, SEAL_S, make_tables, set_mark
from chipwise.observe.store.sealing import Series, by_device, put, series_of
from chipwise.route.ledger.database import Database

_Rows = Sequence[tuple[Any, ...]]
_OLD = ("meta", "series", "rounds", "samples", "5min", "1h")


def forward(db: Database) -> None:
    """Bring version 1 to version 2, in one transaction."""
    with db.patient(), db.write():
        sealed = _mark(db, FIVE_MINUTES.table) // SEAL_S * SEAL_S
        packed = min(sealed, _mark(db, HOURS.table)) // DAY * DAY
        for name in _OLD:
            db.run(f"ALTER TABLE telemetry_{name} RENAME TO telemetry_{name}_1")
        make_tables(db)
        for (host,) in db.all("SELECT DISTINCT host FROM telemetry_series_1 ORDER BY host"):
            db.run(
                "INSERT INTO telemetry_hosts (id, name, sealed, packed) "
                "SELECT coalesce(max(id), 0) + 1, ?, ?, ? FROM telemetry_hosts",
                *(host, sealed, packed),
            )
        db.run(
            "INSERT INTO telemetry_series (id, name, host, device, labels) "
            "SELECT id, name, host, device, labels FROM telemetry_series_1"
        )
        _Forward(db, sealed, packed).all_of_it()
        for resolution in RESOLUTIONS:
            row = db.one("SELECT value FROM telemetry_meta_1 WHERE name = ?", f"removed {resolution.table}")
            if row is not None:
                unit = SEAL_S if resolution is SAMPLES else DAY
                set_mark(db, f"removed {resolution.table}", -(-int(row[0]) // unit) * unit)
        for name in ("samples", "5min", "1h", "series", "rounds", "meta"):
            db.run(f"DROP TABLE telemetry_{name}_1")


def _mark(db: Database, name: str) -> int:
    row = db.one("SELECT value FROM telemetry_meta WHERE name = ?", name)
    return int(row[0]) if row is not None else 0


class _Forward:
    """The values of a store of version 1, on their way."""

    def __init__(self, db: Database, sealed: int, packed: int) -> None:
        self._db, self._sealed, self._packed = db, sealed, packed
        self._host_of: dict[int, int] = {}
        self._series: dict[int, Mapping[int, Series]] = {}
        for (host,) in db.all("SELECT id FROM telemetry_hosts"):
            self._series[int(host)] = series_of(db, int(host))
            self._host_of |= dict.fromkeys(self._series[int(host)], int(host))

    def all_of_it(self) -> None:
        """Samples, five minutes and hours."""
        self._samples()
        self._roll_ups(FIVE_MINUTES.table, 0, self._packed, DAY)
        self._roll_ups(FIVE_MINUTES.table, self._packed, self._sealed, SEAL_S)
        self._roll_ups(HOURS.table, 0, self._packed, DAY)

    def _samples(self) -> None:
        """What is over in blocks, the rest as it came."""
        for (window,) in self._db.all(f"SELECT DISTINCT at / {SEAL_S} FROM telemetry_rounds_1 ORDER BY 1"):
            begin = int(window) * SEAL_S
            rows = self._db.all(
                "SELECT series, at, 1, value, value, value FROM telemetry_samples_1 WHERE at >= ? AND at < ?",
                begin,
                begin + SEAL_S,
            )
            if begin < self._sealed:
                self._keep(SAMPLES.table, rows, begin, SEAL_S, block.SAMPLES)
                self._newest(rows)
            else:
                self._as_rounds(rows)

    def _roll_ups(self, table: str, since: int, until: int, span: int) -> None:
        for (window,) in self._db.all(
            f"SELECT DISTINCT at / {span} FROM {table}_1 WHERE at >= ? AND at < ? ORDER BY 1", since, until
        ):
            begin = int(window) * span
            rows = self._db.all(
                "SELECT f.series, f.at, f.count, f.mean, f.least, f.most "
                f"FROM telemetry_series_1 AS s CROSS JOIN {table}_1 AS f "  # which has its rows by series
                "WHERE f.series = s.id AND f.at >= ? AND f.at < ?",
                begin,
                min(begin + span, until),
            )
            self._keep(table, rows, begin, span, block.ROLLED_UP)

    def _keep(self, table: str, rows: _Rows, begin: int, span: int, precision: block.Precision) -> None:
        points = _points(rows)
        hosts = np.array([self._host_of[number] for number in points.series.tolist()], np.int64)
        for host in np.unique(hosts).tolist():
            for device, part, counting in by_device(points[hosts == host], self._series[host]):
                put(self._db, table, host, device, begin, span, block.encode(part, counting, precision))

    def _newest(self, rows: _Rows) -> None:
        newest = {series: (at, value, series) for series, at, _, value, _, _ in sorted(rows)}
        self._db.many("UPDATE telemetry_series SET at = ?, value = ? WHERE id = ?", list(newest.values()))

    def _as_rounds(self, rows: _Rows) -> None:
        rounds: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        for series, at, _, value, _, _ in rows:
            rounds[self._host_of[series], at][series] = value
        self._db.many(
            "INSERT INTO telemetry_rounds (host, at, written, block) VALUES (?, ?, 0, ?)",
            [(host, at, pack_round(list(of), list(of.values()))) for (host, at), of in rounds.items()],
        )


def _points(rows: _Rows) -> Points:
    series, at, count, mean, least, most = zip(*sorted(rows), strict=True)
    return Points(
        series=np.array(series, np.int64),
        at=np.array(at, np.int64),
        count=np.array(count, np.int64),
        mean=np.array(mean, np.float64),
        least=np.array(least, np.float64),
        most=np.array(most, np.float64),
    )
