"""The tables, in SQL that SQLite and PostgreSQL both read. They may lie in the ledger's own database."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.route.ledger.database import Database, SQLite

VERSION = 2
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Resolution:
    """A table of packed values: how far apart, and kept for how long."""

    table: str
    seconds: int
    keep_s: int


# Samples of two days are what a fault is looked for in, five minutes of a month what a job is, hours of over a year
# what a fleet is bought by (the house's choice, 2026-11-19)
SAMPLES = Resolution("telemetry_samples", 1, 2 * DAY)
FIVE_MINUTES = Resolution("telemetry_5min", 5 * MINUTE, 31 * DAY)
HOURS = Resolution("telemetry_1h", HOUR, 400 * DAY)
RESOLUTIONS = (SAMPLES, FIVE_MINUTES, HOURS)  # the finest first
SEAL_S = (
    30 * MINUTE
)  # samples are packed for so long at once: the more, the smaller, and the more to read for the newest
LATE_S = 60  # what is over is packed so long after: pages of one round come within seconds

TABLES = (
    "CREATE TABLE telemetry_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    # samples before `sealed` are packed, roll-ups before `packed` lie in blocks of a day
    """CREATE TABLE telemetry_hosts (
        id {id},
        name TEXT NOT NULL UNIQUE,
        sealed BIGINT NOT NULL,
        packed BIGINT NOT NULL
    )""",
    # a series of a device: names, units and kinds are those of data/series.csv; labels as JSON; its newest sample
    """CREATE TABLE telemetry_series (
        id {id},
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        device TEXT NOT NULL,
        labels TEXT NOT NULL,
        at BIGINT,
        value DOUBLE PRECISION,
        UNIQUE (host, device, name, labels)
    )""",
    # what a host said at a moment, as it came (round.py)
    """CREATE TABLE telemetry_rounds (
        host BIGINT NOT NULL REFERENCES telemetry_hosts (id),
        at BIGINT NOT NULL,
        written BIGINT NOT NULL,
        block {bytes} NOT NULL,
        PRIMARY KEY (host, at, written)
    )""",
    # all series of a device for `span` seconds, packed (block.py)
    *(
        f"""CREATE TABLE {resolution.table} (
        host BIGINT NOT NULL REFERENCES telemetry_hosts (id),
        device TEXT NOT NULL,
        at BIGINT NOT NULL,
        span BIGINT NOT NULL,
        block {{bytes}} NOT NULL,
        PRIMARY KEY (host, device, at)
    )"""
        for resolution in RESOLUTIONS
    ),
    *(f"CREATE INDEX {resolution.table}_at ON {resolution.table} (at)" for resolution in RESOLUTIONS),
)


def make_tables(db: Database) -> None:
    """An empty store; inside a transaction."""
    kind = "BLOB" if isinstance(db, SQLite) else "BYTEA"
    for statement in TABLES:
        db.run(statement.replace("{id}", db.identity).replace("{bytes}", kind))
    if kind == "BYTEA":  # packed already: the server need not try again
        for table in ("telemetry_rounds", *(resolution.table for resolution in RESOLUTIONS)):
            db.run(f"ALTER TABLE {table} ALTER COLUMN block SET STORAGE EXTERNAL")
    set_mark(db, "version", VERSION)


def mark(db: Database, name: str) -> int:
    """A number of the store's own; 0 where it has none yet."""
    row = db.one("SELECT value FROM telemetry_meta WHERE name = ?", name)
    return int(row[0]) if row is not None else 0


def set_mark(db: Database, name: str, value: int) -> None:
    """Keep a number of the store's own."""
    db.run(
        "INSERT INTO telemetry_meta (name, value) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        value,
    )
