"""Files of rows: CSV, SQLite and Parquet, written a host at a time."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from chipwise.errors import Refusal
from chipwise.io.install import install_line
from chipwise.observe.export.rows import HostRows

COLUMNS = {  # as SQL calls their types
    "at": "INTEGER", "series": "TEXT", "host": "TEXT", "device": "TEXT", "labels": "TEXT", "unit": "TEXT",
    "count": "INTEGER", "mean": "REAL", "least": "REAL", "most": "REAL",
}  # fmt: skip
TABLE = "telemetry"


class FileFormat(StrEnum):
    """What a file is."""

    CSV = "csv"
    SQLITE = "sqlite"
    PARQUET = "parquet"


ENDINGS = {
    ".csv": FileFormat.CSV,
    ".db": FileFormat.SQLITE,
    ".sqlite": FileFormat.SQLITE,
    ".parquet": FileFormat.PARQUET,
}


@dataclass(frozen=True, slots=True)
class Size:
    """What was written of a host."""

    rows: int
    series: int


def write_file(path: Path, kind: FileFormat, hosts: Iterable[HostRows]) -> list[Size]:
    """Write the rows of hosts into a file that is not there yet."""
    writers = {FileFormat.CSV: _csv, FileFormat.SQLITE: _sqlite, FileFormat.PARQUET: _parquet}
    return [Size(len(host.points), len(set(host.points.series.tolist()))) for host in writers[kind](path, hosts)]


def needs(kind: FileFormat) -> ModuleType | None:
    """What a format needs besides; refused where it is not installed."""
    if kind is not FileFormat.PARQUET:
        return None
    try:
        import pyarrow.parquet
    except ImportError:
        raise Refusal(
            "Parquet can't be written: pyarrow is not installed", f"install it with: {install_line('parquet')}"
        ) from None
    return pyarrow.parquet  # type: ignore[no-any-return]


def _csv(path: Path, hosts: Iterable[HostRows]) -> Iterator[HostRows]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for host in hosts:
            writer.writerows(zip(*host.columns().values(), strict=True))
            yield host


def _sqlite(path: Path, hosts: Iterable[HostRows]) -> Iterator[HostRows]:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with closing(sqlite3.connect(path)) as link, link:
        link.execute(f"CREATE TABLE {TABLE} ({columns})")
        insert = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(COLUMNS))})"
        for host in hosts:
            link.executemany(insert, zip(*host.columns().values(), strict=True))
            yield host
        link.execute(f"CREATE INDEX {TABLE}_series ON {TABLE} (series, host, device, at)")


def _parquet(path: Path, hosts: Iterable[HostRows]) -> Iterator[HostRows]:
    import pyarrow

    parquet: Any = needs(FileFormat.PARQUET)
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {"INTEGER": pyarrow.int64(), "TEXT": text, "REAL": pyarrow.float64()}
    fields = {name: kinds[kind] for name, kind in COLUMNS.items()}
    schema = pyarrow.schema(fields | {"at": pyarrow.timestamp("s", tz="UTC")})
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for host in hosts:
            if len(host.points):
                writer.write_table(pyarrow.table(host.columns(), schema=schema))
            yield host
