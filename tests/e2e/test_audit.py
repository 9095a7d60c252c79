"""The audit log: what it holds, what the database refuses, and that every tampering shows."""

import json
import sqlite3
import time
from contextlib import closing

import pytest
from command import chipwise, good
from ledger_cases import POOLS, start, submission

from chipwise.route.ledger import LedgerError, open_ledger
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.audit import Head

pytestmark = pytest.mark.service

NOW = 1_800_000_000.0
ADA = Actor("service here", "ada", "submitter", "token 1")


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request, tmp_path):
    if request.param == "sqlite":
        url = str(tmp_path / "ledger.db")
    else:
        url = request.getfixturevalue("postgres").database(f"audit_{time.time_ns()}")
    with open_ledger(url) as made:
        yield made


def used(ledger):
    """A ledger in which something of every kind has happened."""
    ledger.submit([submission("one"), submission("two")], NOW, ADA)
    ledger.submit([submission("three")], NOW + 1)
    ledger.decide("r1", "cheapest", [start("1"), start("2", "v5e")], NOW + 2, 30.0, POOLS)
    ledger.decide("r2", "cheapest", [start("3")], NOW + 3, 30.0, POOLS)
    ledger.change("cancel", ["3"], NOW + 4, ADA)
    ledger.drain("h100", True, "new drivers", NOW + 5)
    ledger.drain("h100", False, "", NOW + 6)
    ledger.note_command(ADA, "refused", "/v1/jobs/cancel: job 1", NOW + 7)
    ledger.ask_stop(ledger.attempts("1")[0].id, "budget", NOW + 8)
    ledger.ask_stop(ledger.attempts("1")[0].id, "budget", NOW + 9)  # which was asked
    return ledger


def test_every_command_and_decision_is_an_entry_with_who_and_what(ledger):
    used(ledger)
    entries = {(entry.chain, entry.number): entry for entry in ledger.audit_entries()}
    mine = [entry for (chain, _), entry in sorted(entries.items()) if chain == "service here"]
    assert [entry.command for entry in mine] == ["submit", "cancel", "refused"]
    assert {(entry.who, entry.role) for entry in mine} == {("ada (token 1)", "submitter")}
    assert mine[1].job_id == 3
    assert [entries["router r1", 1].command, entries["router r2", 1].command] == ["decide", "decide"]
    direct = [entry.command for (chain, _), entry in sorted(entries.items()) if chain == ledger.actor.chain]
    assert direct == ["submit", "drain", "resume", "stop"]


def test_an_untouched_log_is_sound_and_has_a_head_for_each_writer(ledger):
    found = used(ledger).verify_audit()
    assert (found.problems, found.notes) == ((), ()) and {head.chain for head in found.heads} == {
        "router r1", "router r2", "service here", ledger.actor.chain,
    }  # fmt: skip


def test_what_comes_to_nothing_leaves_no_entry(ledger):
    used(ledger)
    before = ledger.verify_audit().heads
    with pytest.raises(Exception, match="only a job that failed"):
        ledger.change("retry", ["1"], NOW + 9)
    ledger.decide("r1", "cheapest", [start("1")], NOW + 9, 30.0, POOLS)  # it runs already
    assert ledger.verify_audit().heads == before


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit SET who = 'eve'",
        "UPDATE audit SET detail = '' WHERE number = 2",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE number = 2",
    ],
)
def test_the_database_refuses_to_change_or_remove_entries(ledger, sql):
    used(ledger)
    with pytest.raises(LedgerError, match="never changed or removed"), ledger._db.write() as db:
        db.run(sql)
    assert ledger.verify_audit().problems == ()


def test_an_entry_is_not_written_in_the_place_of_another(tmp_path):
    """SQLite's INSERT OR REPLACE removes a row and tells no trigger of removals."""
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        used(ledger)
        with sqlite3.connect(tmp_path / "l.db") as db, pytest.raises(sqlite3.IntegrityError, match="never changed"):
            db.execute("INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE number = 1")
        assert ledger.verify_audit().problems == ()


TAMPERINGS = {
    "another who": (
        "UPDATE audit SET who = 'eve' WHERE chain = 'service here' AND number = 2",
        "service here, entry 2",
    ),
    "another time": ("UPDATE audit SET at = at + 1 WHERE chain = 'router r1'", "router r1, entry 1"),
    "another job": ("UPDATE audit SET job_id = 1 WHERE chain = 'service here' AND number = 2", "service here, entry 2"),
    "another role": (
        "UPDATE audit SET role = 'operator' WHERE chain = 'service here' AND number = 1",
        "service here, entry 1",
    ),
    "one removed": ("DELETE FROM audit WHERE chain = 'service here' AND number = 2", "entry 2 is missing"),
    "the first removed": ("DELETE FROM audit WHERE chain = 'service here' AND number = 1", "entry 1 is missing"),
    "numbers closed up": (
        "DELETE FROM audit WHERE chain = 'service here' AND number = 2;"
        "UPDATE audit SET number = 2 WHERE chain = 'service here' AND number = 3",
        "does not follow",
    ),
    "a chain renamed": (
        "UPDATE audit SET chain = 'service there' WHERE chain = 'service here'",
        "service there, entry 1",
    ),
    "a decision changed": (
        "UPDATE decisions SET pool = 'v5e' WHERE id = 1",
        "decisions 1 to 2 are not as they were made",
    ),
    "a decision removed": ("DELETE FROM events; DELETE FROM decisions WHERE id = 2", "decisions 1 to 2"),
    "a job's command changed": (
        "UPDATE jobs SET job = replace(job, 'train.py', 'evil.py') WHERE id = 2",
        "jobs 1 to 2",
    ),
    "a job given away": ("UPDATE jobs SET owner = 'eve' WHERE id = 3", "jobs 3 to 3"),
    "a job's submitter changed": ("UPDATE jobs SET submitter = 'eve' WHERE id = 1", "jobs 1 to 2"),
}


def without_triggers(ledger):
    """As who owns the database can have it."""
    with ledger._db.write() as db:
        if "audit_kept" in " ".join(db.append_only("audit")):
            db.run("DROP TRIGGER audit_kept ON audit")
        else:
            for step in ("update", "delete"):
                db.run(f"DROP TRIGGER audit_no_{step}")
    return ledger


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_tampering_shows_and_the_first_entry_is_named(ledger, what):
    without_triggers(used(ledger))
    sql, words = TAMPERINGS[what]
    with ledger._db.write() as db:
        for statement in sql.split(";"):
            db.run(statement)
    problems = ledger.verify_audit().problems
    assert problems and words in problems[0], problems


def test_what_is_cut_off_shows_by_heads_that_were_kept(ledger):
    without_triggers(used(ledger))
    kept = {head.chain: head for head in ledger.verify_audit().heads}
    with ledger._db.write() as db:
        db.run("DELETE FROM audit WHERE chain = 'service here' AND number = 3")
    assert ledger.verify_audit().problems == ()  # a shorter chain is a chain
    assert "chain service here, entry 3: it is gone" in ledger.verify_audit(kept).problems[0]
    with ledger._db.write() as db:
        db.run("DELETE FROM audit WHERE chain = 'router r2'")
    assert any("chain router r2: it is gone" in problem for problem in ledger.verify_audit(kept).problems)


def test_a_log_written_anew_shows_by_heads_that_were_kept(ledger):
    kept = {head.chain: head for head in used(ledger).verify_audit().heads}
    forged = {**kept, "service here": Head("service here", 1, "0" * 64)}
    assert ledger.verify_audit(kept).problems == ()
    assert "another than in the heads" in ledger.verify_audit(forged).problems[0]


def test_a_log_that_goes_on_is_sound_by_older_heads(ledger):
    kept = {head.chain: head for head in used(ledger).verify_audit().heads}
    ledger.submit([submission("more")], NOW + 10, ADA)
    assert ledger.verify_audit(kept).problems == ()


# the verbs


def test_verify_leaves_with_1_and_names_the_entry(tmp_path):
    path, heads = tmp_path / "ledger.db", tmp_path / "heads.json"
    with open_ledger(str(path)) as ledger:
        used(ledger)
    good("audit", "verify", "--ledger", path, "-o", "json", "--out", heads)
    assert "Every entry is as it was written." in good("audit", "verify", "--ledger", path, "--heads", heads)
    with closing(sqlite3.connect(path)) as link:
        link.executescript(
            "DROP TRIGGER audit_no_delete; DELETE FROM audit WHERE chain = 'service here' AND number = 3"
        )
    done = chipwise("audit", "verify", "--ledger", path, "--heads", heads)
    assert done.returncode == 1 and "service here, entry 3: it is gone" in done.stdout
    assert good("audit", "verify", "--ledger", path)


def test_list_chooses_by_chain_and_job(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(str(path)) as ledger:
        used(ledger)
    listed = json.loads(good("audit", "list", "--ledger", path, "--job", "3", "-o", "json"))["entries"]
    assert [entry["command"] for entry in listed] == ["cancel"]
    assert good("audit", "list", "--ledger", path, "--chain", "router r1", "-o", "csv").count("\n") == 2
    assert "no such entry" in good("audit", "list", "--ledger", path, "--chain", "nobody")


def test_words_of_others_are_shown_harmlessly(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(str(path)) as ledger:
        ledger.note_command(Actor("c\x1b[2J", "=eve()", "viewer"), "refused", "\x1b]0;x\x07\n12:00 forged", NOW)
    for more in ((), ("-o", "csv"), ("-o", "json")):
        out = good("audit", "list", "--ledger", path, *more)
        assert "\x1b" not in out and "\x07" not in out
    assert "'=eve()" in good("audit", "list", "--ledger", path, "-o", "csv")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"heads": [3]}', '{"heads": [{"chain": "a"}]}'])
def test_a_file_that_holds_no_heads_is_refused(tmp_path, text):
    path = tmp_path / "ledger.db"
    open_ledger(str(path)).close()
    (tmp_path / "heads.json").write_text(text)
    done = chipwise("audit", "verify", "--ledger", path, "--heads", tmp_path / "heads.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
