"""Commits on PostgreSQL wait for the disk together and outside the writers' lock: nothing that was told is lost."""

import itertools
import multiprocessing
import time
from collections import Counter
from dataclasses import replace
from math import inf

import pytest
from ledger_cases import POOLS, start, submission
from postgres_server import postgres_server

from chipwise.errors import InputError
from chipwise.route.ledger import LedgerError, open_ledger
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.postgres import OFTEN, PostgreSQL
from chipwise.route.pool import Pool
from chipwise.route.router.job_cache import JobCache
from lane import share
from patience import PATIENCE_S

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def server():
    with postgres_server() as running:
        yield running


def messages(monkeypatch, ledger):
    """What is sent to the server from now on, one text a message."""
    import psycopg

    sent, real = [], psycopg.Connection.wait

    def wait(self, *arguments, **options):
        sent.append(1)
        return real(self, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "wait", wait)
    return sent


def test_a_submission_is_one_message_and_several_are_two(server, monkeypatch):
    with open_ledger(server.database("messages")) as ledger:
        for n in range(OFTEN):  # until the server keeps the plans
            ledger.submit([submission()], 1.0 + n)
        ledger.submit([submission()], 10.0)
        sent = messages(monkeypatch, ledger)
        assert ledger.submit([submission()], 11.0) == [str(OFTEN + 2)]
        assert len(sent) == 1  # with the lock, the end and the wait for the disk
        assert ledger.submit([submission(), submission()], 12.0) == [str(OFTEN + 3), str(OFTEN + 4)]
        assert len(sent) == 3  # what is there, with the lock; then all that is written, with the end


NAMES = [
    "it's",
    "\\'; DROP TABLE jobs; --",
    '"$1 ? % {} \\" \\u00e9',
    "\u00e9\u2028\U0001f600",
    "E'\\\\\n\t",
    "a\0b\ud800",
    "?" * 50,
]


@pytest.mark.parametrize("setting", ["on", "off"])
def test_what_the_server_numbers_and_hashes_is_as_ours(server, setting):
    """One by one the server makes number and hashes, of several at once we do: rows, events and chain are alike."""
    url = server.database(f"hashes_{setting}")
    with open_ledger(url) as ledger:
        ledger._db.run(f"SET standard_conforming_strings = {setting}")
        for n, name in enumerate(NAMES * 2):  # the clock stands still, and the server has plans in the second half
            actor = Actor(f"chain {name}", name, "submitter", name)
            new = replace(submission(name), team=name)
            ours, theirs = f"{3 * n + 1}", [f"{3 * n + 2}", f"{3 * n + 3}"]
            assert ledger.submit([new], 7.1, actor) == [ours]
            assert ledger.submit([new, new], 7.1, actor) == theirs
            one, two = (ledger.job(number) for number in (ours, theirs[0]))
            assert replace(one, id=two.id, changed=two.changed) == two and one.changed < two.changed
            events = [replace(ledger.events(number)[0], id=0, job_id="") for number in (ours, theirs[0])]
            assert events[0] == events[1]
        rows = ledger._db.all("SELECT id, key, digest, failures, done, spent FROM jobs ORDER BY id")
        assert [row[0] for row in rows] == [*range(1, 6 * len(NAMES) + 1)]
        assert len({row[1:] for row in rows}) == len(NAMES)
        verified = ledger.verify_audit()
        assert verified.problems == () and len(verified.heads) == len(NAMES)
        assert all(head.number == 4 for head in verified.heads)
        assert ledger.check() == []
    with open_ledger(url) as ledger:
        ledger._db.run("UPDATE jobs SET team = 'another' WHERE id = 1")
        assert "jobs 1 to 1 are not as they were submitted" in str(ledger.verify_audit().problems)


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_a_transaction_that_is_known_beforehand_is_all_or_nothing(server, tmp_path, where):
    with open_ledger(str(tmp_path / "ledger.db") if where == "sqlite" else server.database("at_once")) as ledger:
        add = "INSERT INTO meta (name, value) VALUES (?, ?)"
        assert ledger._db.at_once([(add, ("a", "1")), ("SELECT value FROM meta WHERE name = ?", ("a",))]) == [("1",)]
        with pytest.raises(LedgerError):
            ledger._db.at_once([(add, ("b", "1")), (add, ("a", "1"))])
        assert ledger._db.one("SELECT count(*) FROM meta WHERE name = 'b'") == (0,)


def test_a_job_without_a_place_to_run_is_refused_before_anything_is_sent(server, monkeypatch):
    with open_ledger(server.database("refused")) as ledger:
        sent = messages(monkeypatch, ledger)
        with pytest.raises(InputError, match="a job that can run in some pool"):
            ledger.submit([replace(submission(), options=())], 1.0)
        assert sent == []
        assert ledger.submit([submission()], 1.0) == ["1"]


def test_an_error_in_the_one_message_leaves_nothing_and_the_connection_goes_on(server):
    with open_ledger(server.database("error")) as ledger:
        ledger._db.run("ALTER TABLE events RENAME TO elsewhere")
        with pytest.raises(LedgerError, match="events"):
            ledger.submit([submission()], 1.0)
        ledger._db.run("ALTER TABLE elsewhere RENAME TO events")
        assert ledger.jobs() == [] and ledger.submit([submission()], 2.0) == ["1"]


@pytest.mark.parametrize("setting", ["on", "off"])
def test_every_value_comes_back_as_it_was_sent(server, setting):
    texts = ["it's", "\\'; DROP TABLE jobs; --", "$1 ? % {}", "\u00e9\u2028\U0001f600", "", "E'\\\\"]
    numbers = [-5, 2**62, -1.5, 1e-300, 0.1 + 0.2, -0.0]
    with open_ledger(server.database(f"values_{setting}")) as ledger, ledger._db.write() as db:
        db.run(f"SET LOCAL standard_conforming_strings = {setting}")
        for _ in range(2 * OFTEN):  # also once the server keeps its plan
            row = db.one("SELECT ?::text, ?::text, ?::text, ?::text, ?::text, ?::text", *texts)
            assert row == tuple(texts)
        sums = ", ".join(["1 - ?::float8"] * len(numbers))
        assert db.one(f"SELECT {sums}", *numbers) == tuple(1 - float(number) for number in numbers)
        assert db.one("SELECT ?::float8, ?::text, ?::boolean", inf, None, True) == (inf, None, True)
        assert db.one("SELECT count(*) FROM jobs") == (0,)


def test_what_is_written_is_read_back_inside_its_transaction_and_errors_come_in_time(server):
    with open_ledger(server.database("inside")) as ledger:
        db = ledger._db
        with db.write():
            db.run("INSERT INTO meta (name, value) VALUES (?, ?)", "a", "it's \\ 100 % \u00e9")
            assert db.one("SELECT value FROM meta WHERE name = ?", "a") == ("it's \\ 100 % \u00e9",)
            db.many("INSERT INTO meta (name, value) VALUES (?, ?)", [(f"b{n}", "x") for n in range(50)])
            assert db.one("SELECT count(*) FROM meta WHERE value = 'x'") == (50,)
        with pytest.raises(LedgerError, match="nothing was written"), db.write():
            db.run("INSERT INTO meta (name, value) VALUES ('c', 'c')")
            db.run("INSERT INTO meta (name, value) VALUES ('a', 'again')")
        assert db.one("SELECT count(*) FROM meta WHERE name = 'c'") == (0,)
        with pytest.raises(ZeroDivisionError), db.write():
            db.run("INSERT INTO meta (name, value) VALUES ('d', 'd')")
            raise ZeroDivisionError
        assert db.one("SELECT count(*) FROM meta WHERE name = 'd'") == (0,)
        values = [0.1, 1e300, -2.5, 1763350000.1234567, 5e-324]
        with db.write():
            for n, value in enumerate(values):
                db.run(
                    "INSERT INTO routers (id, host, pid, policy, started, seen) VALUES (?, '', 0, '', ?, 0)", n, value
                )
        assert [v for (v,) in db.all("SELECT started FROM routers ORDER BY id")] == values


def kept_plans(db):
    return {
        name: sql for name, sql in db.all("SELECT name, statement FROM pg_prepared_statements") if "chipwise" in name
    }


def test_the_server_keeps_the_plans_of_what_is_sent_often_and_values_stay_exact(server):
    values = ["it's \\ 100 % \u00e9", "$1", "?", "'; DROP TABLE jobs; --", "a\nb", "%s", ""]
    numbers = [0.1, 1e300, -2.5, 1763350000.1234567, 5e-324, 3, -0.0]
    with open_ledger(server.database("plans")) as ledger:
        db = ledger._db
        for n in range(3 * len(values)):
            with db.write():
                row = (f"r{n}", values[n % 7], n, values[(n + 1) % 7], numbers[n % 7], numbers[(n + 1) % 7])
                db.run("INSERT INTO routers (id, host, pid, policy, started, seen) VALUES (?, ?, ?, ?, ?, ?)", *row)
                assert db.one("SELECT id, host, pid, policy, started, seen FROM routers WHERE id = ?", f"r{n}") == row
                assert db.one("SELECT ? + ?", n, 1) == (n + 1,)  # of which the server can't tell the types
        assert any("INSERT INTO routers" in sql for sql in kept_plans(db).values())
        for _ in range(10):
            ledger.jobs()  # which the library would keep plans of, to forget all of them at the next rollback
        for n in range(3):
            with pytest.raises(LedgerError, match="nothing was written"), db.write():
                db.run(
                    "INSERT INTO routers (id, host, pid, policy, started, seen) VALUES (?, '', 0, '', ?, 0)", "r1", 1
                )
            assert ledger.submit([submission()], 1.0 + n) == [str(n + 1)]


def test_plans_are_of_their_connection(postgres):
    with open_ledger(postgres.database(f"plans_{time.time_ns()}")) as ledger:
        for n in range(10):
            ledger.submit([submission()], 1.0 + n)
        assert kept_plans(ledger._db)
        with pytest.raises(LedgerError):
            ledger._db.run("SELECT pg_terminate_backend(pg_backend_pid())")
        for n in range(10, 20):
            assert ledger.submit([submission()], 1.0 + n) == [str(n + 1)]
        assert kept_plans(ledger._db) and ledger.check() == []


def test_the_lock_is_free_before_the_disk_has_answered(server):
    """A commit that waits for the disk holds up no writer: with 0.1 s a flush, ten writers end in about one."""
    url = server.database("slow")
    with open_ledger(url) as ledger:
        ledger._db.run("ALTER SYSTEM SET commit_siblings = 0")
        ledger._db.run("ALTER SYSTEM SET commit_delay = 100000")
        ledger._db.run("SELECT pg_reload_conf()")
        try:
            flushes = [ledger._db.one("SELECT wal_sync FROM pg_stat_wal")[0]]
            context = multiprocessing.get_context("spawn")
            ready, told = context.Barrier(8), context.Queue()
            clients = [context.Process(target=submit_some, args=(url, 6, ready, told)) for _ in range(8)]
            for client in clients:
                client.start()
            ids = [told.get(timeout=PATIENCE_S) for _ in range(8 * 6)]
            for client in clients:
                client.join(PATIENCE_S)
            flushes.append(ledger._db.one("SELECT wal_sync FROM pg_stat_wal")[0])
        finally:
            ledger._db.run("ALTER SYSTEM RESET ALL")
            ledger._db.run("SELECT pg_reload_conf()")
        assert sorted(map(int, ids)) == list(range(1, 49))  # no gaps, none twice
        assert flushes[1] - flushes[0] < 40  # one each, were the lock held until the disk answers
        rows = sorted(ledger.jobs(), key=lambda row: int(row.id))
        assert all(a.changed < b.changed for a, b in itertools.pairwise(rows))  # in the order of commits
        assert ledger.check() == []


def submit_some(url, count, ready, told):
    with open_ledger(url) as ledger:
        ready.wait()
        for _ in range(count):
            told.put(ledger.submit([submission()], time.time())[0])


def submit_until_it_dies(url, number, told):
    count = 0
    try:
        ledger = open_ledger(url)  # which may be too late
        while True:
            count += 1
            (job,) = ledger.submit([submission(key=f"{number}-{count}")], time.time())
            told.put((job, f"{number}-{count}"))
    except LedgerError:
        told.put(None)


@pytest.mark.sampled
@pytest.mark.parametrize("round", share(range(3), 3))
def test_nothing_that_was_told_is_lost_when_the_server_dies(server, round):
    url = server.database(f"dies{round}")
    with open_ledger(url):
        pass
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    clients = [context.Process(target=submit_until_it_dies, args=(url, n, told)) for n in range(6)]
    for client in clients:
        client.start()
    submitted = [told.get(timeout=PATIENCE_S) for _ in range(60 + 17 * round)]
    server.stop()  # at once, what is in its memory is lost
    left = 6
    while left:
        answer = told.get(timeout=PATIENCE_S)
        left -= answer is None
        submitted += [answer] if answer is not None else []
    for client in clients:
        client.join(PATIENCE_S)
    server.start()
    with open_ledger(url) as ledger:
        kept = {row.id: row.job.key for row in ledger.jobs()}
        assert all(kept.get(job) == key for job, key in submitted)
        assert max(Counter(kept.values()).values()) == 1 and ledger.check() == []


def test_a_router_reads_all_again_after_a_crash_of_the_server(server):
    """A job that it has seen may not have been on the disk: one that is no more holds no place in the queue."""
    with open_ledger(server.database("phantom")) as ledger:
        ledger.submit([submission(), submission()], 1.0)
        cache = JobCache(ledger, [Pool(name, "local", name, "gpu", count) for name, count in POOLS.items()])
        cache.refresh([], 2.0)
        assert set(cache.rows) == {"1", "2"} and len(cache.table) == 2
        with ledger._db.write() as db:  # as if it had never been
            db.run("DELETE FROM events WHERE job_id = 2")
            db.run("DELETE FROM jobs WHERE id = 2")
        cache.refresh([], 3.0)
        assert set(cache.rows) == {"1", "2"}  # nobody can know
        server.stop()
        server.start()
        with ledger._db.write():
            pass
        cache.refresh([], 4.0)
        assert set(cache.rows) == {"1"} and len(cache.table) == 1
        made = ledger.decide("r", "fastest", [start("1")], 5.0, 30.0, POOLS)
        cache.refresh(made, 6.0)
        assert cache.running == {"1"}


def test_a_server_that_does_not_let_us_ask_for_the_disk_is_waited_for_with_the_lock(server, monkeypatch):
    monkeypatch.setattr(PostgreSQL, "_grouped", False)
    with open_ledger(server.database("alone")) as ledger:
        assert ledger.submit([submission()], 1.0) == ["1"] and ledger.check() == []
