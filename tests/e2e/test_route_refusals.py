"""What the routing verbs refuse, and that nothing is written then."""

import os
from pathlib import Path

import pytest
from command import ROOT, chipwise_here

from chipwise.route.ledger import default_ledger, open_ledger
from chipwise.route.load.pools import default_folder

POOLS = str(ROOT / "examples" / "pools" / "local.yaml")
HELLO = str(ROOT / "examples" / "jobs" / "hello.yaml")
TRACE = ("examples/traces/mixed-day.yaml", "--pools", "examples/traces/mixed-pools.yaml")


@pytest.fixture
def at(tmp_path):
    """Runs chipwise with data of the test's own; what it says."""
    env = {**os.environ, "CHIPWISE_DATA": str(tmp_path / "data"), "CHIPWISE_POOLS": POOLS}
    env.pop("CHIPWISE_LEDGER", None)

    def run(*arguments, status=0):
        done = chipwise_here(*arguments, env=env)
        assert done.returncode == status, done.stderr + done.stdout
        return done.stderr if status == 2 else done.stdout

    run.ledger = tmp_path / "data" / "ledger.db"
    return run


def jobs(at):
    if not at.ledger.exists():
        return []
    with open_ledger(str(at.ledger)) as book:
        return book.jobs()


def test_a_policy_that_fails_leaves_the_ledger_as_it_was(at, tmp_path, monkeypatch):
    (tmp_path / "broken_policy.py").write_text("def broken(view):\n    raise RuntimeError('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "broken_policy:broken failed" in at("jobs", "submit", HELLO, "--policy", "broken_policy:broken", status=2)
    assert jobs(at) == []


def test_a_job_is_not_written_where_the_answer_cannot_be(at, tmp_path):
    for out in ("/nope/x", str(tmp_path)):
        assert "--out" in at("jobs", "submit", HELLO, "--out", out, status=2)
    assert jobs(at) == []
    at("jobs", "submit", HELLO, "--out", tmp_path / "said")
    assert "--out" in at("jobs", "cancel", "1", "--out", "/nope/x", status=2)
    assert [job.state for job in jobs(at)] == ["waiting"] and "hello" in (tmp_path / "said").read_text()
    assert "--out" in at("pools", "drain", "h100", "--reason", "why", "--out", "/nope/x", status=2)
    with open_ledger(str(at.ledger)) as book:
        assert book.drained() == {}


@pytest.mark.parametrize("verb", [("router", "run", "--once"), ("simulate", *TRACE)], ids=lambda verb: verb[0])
def test_weights_that_no_policy_hears_are_refused(at, verb):
    assert "cost, time, energy, risk" in at(*verb, "--policy", "balanced", "--weight", "foo=1", status=2)
    assert "cheapest has none" in at(*verb, "--policy", "cheapest", "--weight", "cost=1", status=2)


def test_the_ledger_lies_in_the_data_folder_beside_the_attempts(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path))
    assert Path(default_ledger()).parent == default_folder().parent == tmp_path
    monkeypatch.delenv("CHIPWISE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Path(default_ledger()).parent == default_folder().parent == tmp_path / "chipwise"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert Path(default_ledger()).parent == default_folder().parent == Path.home() / ".local" / "share" / "chipwise"


def test_of_several_files_the_wrong_one_is_named(at, tmp_path):
    bad = tmp_path / "b.yaml"
    bad.write_text("name: b\ncommand: [echo]\nestimates: {cpu: 5s}\nretries: -1\n")
    assert f"{bad}: retries: -1" in at("jobs", "submit", HELLO, bad, status=2)
    bad.write_text("name: [\n")
    assert str(bad) in at("jobs", "submit", HELLO, bad, status=2)
    assert str(tmp_path / "none.yaml") in at("jobs", "submit", HELLO, tmp_path / "none.yaml", status=2)
    assert jobs(at) == []
