"""Ledgers of every released version, as those releases wrote them, opened by this one; on SQLite and PostgreSQL."""

import sqlite3
import uuid
from pathlib import Path

import pytest

from chipwise.route.ledger import LedgerError, open_ledger
from chipwise.route.ledger.schema import VERSION

RECORDED = sorted((Path(__file__).parents[1] / "ledgers").glob("version-*.sql"))


def recorded_in_sqlite(sql, tmp_path):
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as db:
        db.executescript(sql)
    return str(path)


def recorded_in_postgres(sql, server):
    """The same rows in PostgreSQL, in tables that the release itself would have made there."""
    import psycopg

    url = server.database(f"m{uuid.uuid4().hex}")
    source = sqlite3.connect(":memory:")
    source.executescript(sql)
    tables = source.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'jobs'"  # others refer to jobs
    ).fetchall()
    with psycopg.connect(url) as db:
        for _, statement in tables:
            db.execute(statement.replace("INTEGER PRIMARY KEY", "BIGINT PRIMARY KEY"))
        for (statement,) in source.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"):
            db.execute(statement)
        for name, _ in tables:
            rows = source.execute(f"SELECT * FROM {name}").fetchall()
            places = ", ".join(["%s"] * len(source.execute(f"SELECT * FROM {name}").description))
            for row in rows:
                db.execute(f"INSERT INTO {name} VALUES ({places})", row)
    return url


@pytest.fixture(params=RECORDED, ids=lambda path: path.stem)
def sql(request):
    return request.param.read_text()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def old(request, sql, tmp_path):
    if request.param == "sqlite":
        return recorded_in_sqlite(sql, tmp_path)
    return recorded_in_postgres(sql, request.getfixturevalue("postgres"))


def test_there_is_a_recording_of_every_version_before_this_one():
    assert {int(path.stem.split("-")[1]) for path in RECORDED} == set(range(1, VERSION))


def test_an_old_ledger_is_read_whole(old):
    with open_ledger(old) as ledger:
        assert ledger.check() == []
        jobs = {row.job.name: row for row in ledger.jobs()}
        assert {name: row.state for name, row in jobs.items()} == {
            "hello": "succeeded",
            "fails": "pending",
            "given up": "failed",
            "cancelled": "cancelled",
            "long": "running",
            "waits é" + " \u202e" * ("waits é" not in jobs): "pending",  # no release takes such a name since version 3
        }
        assert jobs["hello"].job.key == "first, once" and jobs["long"].job.budget == 100
        assert [a.state for a in ledger.attempts(under_way=True)] == ["running"]
        (attempt,) = ledger.attempts(jobs["hello"].id)
        assert attempt.state == "succeeded" and attempt.backend_id.startswith("local-") and attempt.spent > 0
        assert [e.kind for e in ledger.events(jobs["hello"].id)][-3:] == ["submitted", "ended", "succeeded"]
        assert "failures" in dir(jobs["given up"]) and jobs["given up"].failures == 1
        assert ledger.decisions(jobs["hello"].id)[0].decision.reason
        assert ledger.backend_folders()["local"].startswith("/recorded/")
        again = ledger.attempts(under_way=True)[0]
        assert ledger.take("another", again.lease + 1, 30.0)[0].id == again.id  # it goes on from there


def test_its_tables_are_then_those_of_a_new_one(old, postgres_or_none, tmp_path):
    with open_ledger(old):
        pass
    new = postgres_or_none.database(f"m{uuid.uuid4().hex}") if old.startswith("postgres") else str(tmp_path / "new.db")
    with open_ledger(new):
        pass
    assert shape(old) == shape(new)


@pytest.fixture
def postgres_or_none(request, old):
    return request.getfixturevalue("postgres") if old.startswith("postgres") else None


def shape(url):
    """Tables, columns, indexes and triggers, without the names that a server gives."""
    if not url.startswith("postgres"):
        with sqlite3.connect(url) as db:
            return sorted(db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
    import psycopg

    with psycopg.connect(url) as db:
        columns = db.execute(
            "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY 1, 2"
        ).fetchall()
        indexes = db.execute(
            "SELECT tablename, regexp_replace(indexdef, 'INDEX \\S+ ON', 'INDEX ON') FROM pg_indexes "
            "WHERE schemaname = 'public' ORDER BY 1, 2"
        ).fetchall()
        rules = db.execute(
            "SELECT conrelid::regclass::text, contype, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
        ).fetchall()
        triggers = db.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1").fetchall()
        return columns, indexes, rules, triggers


def test_a_file_is_kept_as_it_was(sql, tmp_path):
    path = Path(recorded_in_sqlite(sql, tmp_path))
    with sqlite3.connect(path) as db:
        (version,) = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        before = list(db.iterdump())
    open_ledger(str(path)).close()
    kept = path.with_name(f"ledger.db.version-{version}")
    assert kept.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(kept) as db:
        assert list(db.iterdump()) == before


def test_a_router_of_the_old_version_is_not_pulled_the_rug_from_under(old):
    change(old, "UPDATE routers SET seen = 1e12")  # alive, as far as its clock says
    with pytest.raises(LedgerError, match=r"of version \d, and router recorded-host-1 of that version works with it"):
        open_ledger(old)
    change(old, "UPDATE routers SET stopped = seen")
    open_ledger(old).close()


def test_a_migration_that_fails_changes_nothing(sql, tmp_path):
    path = recorded_in_sqlite(sql, tmp_path)
    change(path, "CREATE TABLE nodes (unlike TEXT)")  # in the way
    with sqlite3.connect(path) as db:
        before = list(db.iterdump())
    with pytest.raises(LedgerError):
        open_ledger(path)
    with sqlite3.connect(path) as db:
        assert list(db.iterdump()) == before


@pytest.mark.parametrize("version", ["0", str(VERSION + 1), "x"])
def test_a_ledger_of_no_known_version_is_refused_and_left_as_it_is(tmp_path, version):
    path = tmp_path / "ledger.db"
    open_ledger(str(path)).close()
    change(str(path), f"UPDATE meta SET value = '{version}' WHERE name = 'version'")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=f"it is of version .*, this chipwise reads 1, 2, 3, {VERSION}"):
        open_ledger(str(path))
    assert path.read_bytes() == before


def test_rows_of_the_audit_log_are_never_changed_or_removed(tmp_path, old):
    open_ledger(old).close()
    change(old, "INSERT INTO audit VALUES ('a', 1, 0, 'ann', 'operator', 'x', NULL, '', '', 'h')")
    for statement in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit"):
        with pytest.raises(Exception, match="never changed or removed"):
            change(old, statement)


def change(url, statement):
    if url.startswith("postgres"):
        import psycopg

        with psycopg.connect(url) as db:
            db.execute(statement)
    else:
        with sqlite3.connect(url) as db:
            db.execute(statement)
