"""`ledger check` finds what is wrong, `ledger repair` mends it, and routing goes on; on SQLite and PostgreSQL."""

import json
import random
import sqlite3
import uuid

import pytest
from command import chipwise

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import AttemptEnd, NewJob
from chipwise.route.option import Option
from lane import share

OPTION = Option("cpu", "cpu", 1, "", Estimate(1.0, 1.0, 1.0, "bounded"), 1.0, 1.0)
JOBS = 6
WRONG = {
    "no JSON in a job": "UPDATE jobs SET job = 'nonsense' WHERE id = 5",
    "nor in one that runs": "UPDATE jobs SET job = 'nonsense', options = '' WHERE id = 3",
    "nor in one that succeeded": "UPDATE jobs SET job = 'nonsense' WHERE id = 1",
    "no JSON in an attempt": "UPDATE attempts SET plan = '[' WHERE job_id = 3",
    "no JSON in an event": "UPDATE events SET data = '{' WHERE id = 2",
    "no JSON in a decision": "UPDATE decisions SET decision = '{' WHERE id = 1",
    "a job that runs nowhere": "UPDATE jobs SET state = 'running' WHERE id = 5",
    "a pending job that runs": "UPDATE jobs SET state = 'pending' WHERE id = 3",
    "a success that the job knows nothing of": "UPDATE jobs SET state = 'failed', done = 0 WHERE id = 1",
    "a success that no attempt has": "UPDATE jobs SET state = 'succeeded' WHERE id = 6",
    "money from nowhere": "UPDATE jobs SET spent = 1000 WHERE id = 1",
    "a cancellation of what has failed": "UPDATE jobs SET cancel = 1 WHERE id = 2",
    "an end of what runs": "UPDATE attempts SET ended = 1 WHERE job_id = 3",
    "no end of what has ended": "UPDATE attempts SET ended = NULL WHERE job_id = 1",
    "a stop of what has ended": "UPDATE attempts SET stop = 'cancel' WHERE job_id = 1",
    "no event of a submission": "UPDATE events SET kind = 'x' WHERE job_id = 5",
    "a last event that is wrong": "UPDATE events SET kind = 'x' WHERE job_id = 2 AND kind = 'failed'",
    "events that are gone": "DELETE FROM events WHERE job_id = 1 AND kind <> 'submitted'",
    "an event of a job that can't be": "UPDATE events SET job_id = 3000000000 WHERE id = 2",
    "a job that is gone": "DELETE FROM jobs WHERE id = 6",
}


def fill(ledger):
    """A job that succeeded, one that failed, one that runs, one that was cancelled, and two that wait."""
    jobs = [
        NewJob(Job(f"job{n}", (Variant("cpu", "cpu", 1, command=("true",)),)), (OPTION,)) for n in range(1, JOBS + 1)
    ]
    ledger.submit(jobs, 1000.0)
    ledger.ask_cancel("4", 1001.0)
    starts = [Decision(str(n), "start", "cpu", "cpu") for n in (1, 2, 3)]
    begun = ledger.decide("one", "cheapest", starts, 1002.0, 30.0, {"cpu": 3})
    for attempt in begun:
        ledger.mark_submitted(attempt.id, f"local-{attempt.number}-{attempt.job_id}", 1003.0)
    ledger.end(begun[0].id, AttemptEnd("succeeded", "succeeded", spent=2.0), 1010.0)
    ledger.end(begun[1].id, AttemptEnd("failed", "failed", "it was bad", spent=1.0), 1010.0)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def url(request, tmp_path):
    if request.param == "sqlite":
        made = str(tmp_path / "ledger.db")
    else:
        made = request.getfixturevalue("postgres").database(f"r{uuid.uuid4().hex}")
    with open_ledger(made) as ledger:
        fill(ledger)
        assert ledger.check() == []
    return made


def spoil(url, statement):
    if url.startswith("postgres"):
        import psycopg

        with psycopg.connect(url) as db:
            db.execute("SET session_replication_role = replica")  # foreign keys are not looked at
            db.execute(statement)
    else:
        with sqlite3.connect(url) as db:
            db.execute(statement)


def ledger_verb(verb, url, *more):
    return chipwise("ledger", verb, "--ledger", url, *more)


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found_and_mended(url, statement):
    spoil(url, statement)
    checked = ledger_verb("check", url, "-o", "json")
    assert checked.returncode == 1, checked.stderr
    assert json.loads(checked.stdout)["problems"]
    tried = ledger_verb("repair", url, "--dry-run", "-o", "json")
    assert tried.returncode == 1 and json.loads(tried.stdout)["done"]
    assert ledger_verb("check", url, "-o", "json").stdout == checked.stdout  # nothing was written
    repaired = ledger_verb("repair", url, "-o", "json")
    document = json.loads(repaired.stdout)
    assert (repaired.returncode, document["left"]) == (0, []), repaired.stderr
    assert document["done"] == json.loads(tried.stdout)["done"]
    assert ledger_verb("check", url).returncode == 0
    with open_ledger(url) as ledger:
        states = {row.id: row.state for row in ledger.jobs()}
        assert len(states) == JOBS and states["1"] == "succeeded" and states["3"] == "running"
        assert states["4"] == "cancelled" and states["5"] in ("pending", "failed")
        (running,) = ledger.attempts(under_way=True)
        assert ledger.end(running.id, AttemptEnd("succeeded", "succeeded"), 2000.0)  # it goes on from there
        assert ledger.check() == [] and ledger.verify_audit().problems == ()


def test_the_audit_log_tells_what_a_repair_has_replaced_and_what_was_changed_since(url):
    spoil(url, "UPDATE jobs SET job = 'nonsense' WHERE id = 5")
    spoil(url, "DELETE FROM decisions WHERE id = 1")
    with open_ledger(url) as ledger:
        assert len(ledger.verify_audit().problems) == 2
    assert ledger_verb("repair", url).returncode == 0
    with open_ledger(url) as ledger:
        found = ledger.verify_audit()
        assert found.problems == () and {line.partition(" rows of ")[2].partition(" (")[0] for line in found.notes} == {
            "jobs 1 to 6", "decisions 1 to 3",
        }  # fmt: skip
    verified = chipwise("audit", "verify", "--ledger", url)
    assert verified.returncode == 0 and "Replaced: chain " in verified.stdout
    spoil(url, "UPDATE jobs SET owner = 'eve' WHERE id = 5")
    with open_ledger(url) as ledger:
        assert "jobs 1 to 6 are not as they were submitted" in ledger.verify_audit().problems[0]


def test_a_sound_ledger_is_left_as_it_is(url):
    checked = ledger_verb("check", url)
    assert checked.returncode == 0 and "The ledger is sound." in checked.stdout
    repaired = ledger_verb("repair", url)
    assert repaired.returncode == 0 and "nothing was done" in repaired.stdout


def test_what_could_not_be_read_is_kept_as_it_was(url):
    spoil(url, "UPDATE jobs SET job = 'nonsense' WHERE id = 5")
    assert ledger_verb("repair", url).returncode == 0
    with open_ledger(url) as ledger:
        ((kind, number, content),) = ledger._db.all("SELECT kind, id, content FROM quarantine")
        assert (kind, number, json.loads(content)["job"]) == ("job", "5", "nonsense")
        assert ledger.job("5").state == "failed" and "submit it again" in ledger.job("5").reason


def test_nothing_is_repaired_under_a_router(url):
    with open_ledger(url) as ledger:
        import time

        ledger.heartbeat("vm-1", "vm", 1, "cheapest", time.time())
    spoil(url, "UPDATE jobs SET spent = 1000 WHERE id = 1")
    repaired = ledger_verb("repair", url)
    assert repaired.returncode == 2 and "stop vm-1 first" in repaired.stderr and repaired.stderr.count("\n") == 1
    assert ledger_verb("check", url).returncode == 1


@pytest.mark.sampled
@pytest.mark.parametrize("seed", share(range(12), 6))
def test_of_a_damaged_file_all_that_can_be_read_is_saved(tmp_path, seed):
    path = tmp_path / "ledger.db"
    with open_ledger(str(path)) as ledger:
        jobs = [NewJob(Job(f"job{n}", (Variant("cpu", "cpu", 1, command=("true",)),)), (OPTION,)) for n in range(400)]
        ledger.submit(jobs, 1000.0)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data, rng = bytearray(path.read_bytes()), random.Random(seed)
    damaged = False
    while not damaged:  # what was overwritten may not have been in use
        for _ in range(3):  # pages, but for the first, which say what the tables are
            page = rng.randrange(30, len(data) // size)
            data[page * size : page * size + 200] = rng.randbytes(200)
        path.write_bytes(data)
        damaged = ledger_verb("check", path).returncode != 0
    repaired = ledger_verb("repair", path)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert ledger_verb("check", path).returncode == 0
    with open_ledger(str(path)) as ledger:
        rows = ledger.jobs()
        assert len(rows) == 400 or len(rows) > 300  # the last ones may have been on the damaged pages
        assert sum(row.state == "pending" for row in rows) > 250
    (kept,) = [
        p
        for p in tmp_path.glob("ledger.db.damaged-*")
        if p.suffix != ".db-wal" and "-wal" not in p.name and "-shm" not in p.name
    ]
    assert kept.read_bytes() == bytes(data)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_of_which_nothing_can_be_read_is_left_as_it_is(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(str(path)) as ledger:
        fill(ledger)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    repaired = ledger_verb("repair", path)
    assert repaired.returncode == 2 and repaired.stderr.count("\n") == 1, repaired.stderr
    assert path.read_bytes()[100:] == b"\xff" * (len(data) - 100)
