"""Telemetry in files that other tools read: CSV, SQLite and Parquet hold the same values."""

import csv
import json
import sqlite3
import sys
import time
from contextlib import closing

import pytest
from command import chipwise_here

import chipwise as cw
from chipwise.errors import InputError, Refusal, UnknownName
from chipwise.observe.exporters import Sample
from chipwise.observe.store.store import open_store

ROUNDS = 400


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two hosts, and the last hour and more of them; most of it is packed."""
    path = tmp_path_factory.mktemp("telemetry") / "telemetry.db"
    begin = int(time.time()) - 10 * ROUNDS
    with open_store(str(path)) as telemetry:
        for number in range(ROUNDS):
            at = begin + 10 * number
            samples = [
                Sample(name, host, f"GPU-{device}", (("model", "H100"),), 100.0 + device)
                for host in ("n1", "n2")
                for device in range(2)
                for name in ("device_power", "device_busy")
            ]
            telemetry.write(samples, at)
            telemetry.roll_up(at)
    return str(path)


def test_every_format_has_the_same_rows(store, tmp_path):
    files = {ending: tmp_path / f"telemetry{ending}" for ending in (".csv", ".db", ".parquet")}
    if not _has_pyarrow():
        del files[".parquet"]
    for file in files.values():
        written = cw.export_telemetry(file, store, resolution="samples", since="2h")
        assert (written.rows, written.series, written.hosts) == (ROUNDS * 8, 8, 2)
    with files[".csv"].open() as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    assert len(rows) == ROUNDS * 8 and rows[0]["unit"] == "W" and json.loads(rows[0]["labels"]) == {"model": "H100"}
    with closing(sqlite3.connect(files[".db"])) as link:  # the SQL of the page
        means = link.execute(
            "SELECT host, device, avg(mean) FROM telemetry WHERE series = 'device_power' GROUP BY host, device"
        ).fetchall()
        kept = link.execute("SELECT at, series, host, device, mean FROM telemetry").fetchall()
    assert means == [(host, f"GPU-{device}", 100.0 + device) for host in ("n1", "n2") for device in range(2)]
    as_text = [(row["at"], row["series"], row["host"], row["device"], float(row["mean"])) for row in rows]
    assert [(str(at), *others) for at, *others in kept] == as_text
    if ".parquet" in files:
        import pyarrow.parquet as parquet

        table = parquet.read_table(files[".parquet"])
        assert str(table.schema.field("at").type) == "timestamp[ms, tz=UTC]"  # Parquet has no seconds
        columns = [table[name].to_pylist() for name in ("at", "series", "host", "device", "mean")]
        assert [(int(at.timestamp()), *others) for at, *others in zip(*columns, strict=True)] == kept


def _has_pyarrow():
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


def test_roll_ups_and_choices(store, tmp_path):
    file = tmp_path / "power.csv"
    written = cw.export_telemetry(file, store, series=["device_power"], hosts=["n2"], devices=["GPU-1"])
    assert written.series == 1 and ROUNDS / 30 - 2 <= written.rows <= ROUNDS / 30 + 2
    with file.open() as rows:
        assert {row["mean"] for row in csv.DictReader(rows)} == {"101.0"}
    hours = cw.export_telemetry(file, store, resolution="1h", series=["device_power"], since="2d")
    assert 4 <= hours.rows <= 12


def test_what_is_not_there_is_refused_and_nothing_is_written(store, tmp_path, monkeypatch):
    for arguments, error, words in (
        ({"hosts": ["n3"]}, UnknownName, "host"),
        ({"devices": ["GPU-7"]}, UnknownName, "device"),
        ({"series": ["power"]}, UnknownName, "series"),
        ({"resolution": "2h"}, UnknownName, "resolution"),
        ({"format": "xlsx"}, UnknownName, "format"),
        ({"since": "2100-01-01"}, InputError, "since"),
        ({"until": "soon"}, InputError, "until"),
    ):
        with pytest.raises(error, match=words):
            cw.export_telemetry(tmp_path / "x.csv", store, **arguments)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Refusal, match=r"pyarrow is not installed; install it with: pip install"):
        cw.export_telemetry(tmp_path / "x.parquet", store)
    assert list(tmp_path.iterdir()) == []


def test_the_command(store, tmp_path):
    file = tmp_path / "day.csv"
    done = chipwise_here("observe", "export", "--to", file, "--store", store, "--series", "device_power")
    assert done.returncode == 0 and "4 series of 2 hosts, 5min" in done.stdout, done.stderr
    refused = chipwise_here("observe", "export", "--to", tmp_path / "day.txt", "--store", store)
    assert refused.returncode == 2 and ".parquet" in refused.stderr
    folder = chipwise_here("observe", "export", "--to", tmp_path / "none" / "day.csv", "--store", store)
    assert folder.returncode == 2 and "--to" in folder.stderr
