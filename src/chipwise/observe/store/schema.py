"""The tables, in SQL that SQLite and PostgreSQL both read. They may lie in the ledger's own database."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Resolution:
    """A table of values: how far apart, from which finer one, kept for how long."""

    table: str
    seconds: int
    finer: str
    keep_s: int


# Samples of two days are what a fault is looked for in, five minutes of a month what a job is, hours of over a year
# what a fleet is bought by (the house's choice, 2026-11-19)
SAMPLES_KEEP_S = 2 * DAY
ROLL_UPS = (
    Resolution("telemetry_5min", 5 * MINUTE, "telemetry_samples", 31 * DAY),
    Resolution("telemetry_1h", HOUR, "telemetry_5min", 400 * DAY),
)
LATE_S = 60  # a window is rolled up once it has been over for so long: pages of one round come within seconds

TABLES = (
    "CREATE TABLE telemetry_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    # a series of a device: names, units and kinds are those of data/series.csv; labels as JSON
    """CREATE TABLE telemetry_series (
        id {id},
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        device TEXT NOT NULL,
        labels TEXT NOT NULL,
        UNIQUE (name, host, device, labels)
    )""",
    # moments at which samples were kept, whole seconds since 1970: of a series they are looked up one by one
    "CREATE TABLE telemetry_rounds (at BIGINT PRIMARY KEY)",
    # in the order in which they come: what is kept last is written, rolled up and removed in one piece
    """CREATE TABLE telemetry_samples (
        at BIGINT NOT NULL,
        series BIGINT NOT NULL REFERENCES telemetry_series (id),
        value DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (at, series)
    ){rowless}""",
    *(
        f"""CREATE TABLE {roll_up.table} (
        series BIGINT NOT NULL REFERENCES telemetry_series (id),
        at BIGINT NOT NULL,
        count BIGINT NOT NULL,
        mean DOUBLE PRECISION NOT NULL,
        least DOUBLE PRECISION NOT NULL,
        most DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (series, at)
    ){{rowless}}"""
        for roll_up in ROLL_UPS
    ),
)
