"""One row of the ledger that can't be read is that row's trouble alone."""

import sqlite3

import pytest
from command import chipwise

from chipwise.route.ledger import BadRow, open_ledger

POOLS = "pools: [{name: cpu, backend: local, chip: cpu, count: 2, price: 1, terms: owned, watts: 50}]\n"
JOBS = "jobs:\n" + "".join(
    f"  - {{name: job{n}, command: [echo, hello], estimates: {{cpu: 1s}}}}\n" for n in range(1, 4)
)
SPOILT = {
    "no JSON": "UPDATE jobs SET job = 'nonsense' WHERE id = 2",
    "nested": f"UPDATE jobs SET job = '{'[' * 100_000}' WHERE id = 2",
    "another record": """UPDATE jobs SET job = '{"name": 3}' WHERE id = 2""",
    "no options": "UPDATE jobs SET options = '[]x' WHERE id = 2",
    "an option of words": 'UPDATE jobs SET options = replace(options, \'"chips":1\', \'"chips":"one"\') WHERE id = 2',
    "an option without end": 'UPDATE jobs SET options = replace(options, \'"usd_hour":1.0\', \'"usd_hour":"inf"\') WHERE id = 2',
    "a pool that is a list": 'UPDATE jobs SET options = replace(options, \'"pool":"cpu"\', \'"pool":[]\') WHERE id = 2',
    "a time of words": "UPDATE jobs SET submitted = 'yesterday' WHERE id = 2",
    "changed, of words": "UPDATE jobs SET changed = 'lately' WHERE id = 2",
    "a priority of words": "UPDATE jobs SET job = replace(job, '{', '{\"priority\": \"high\", ') WHERE id = 2",
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "pools.yaml").write_text(f"folder: {tmp_path}/attempts\n{POOLS}")
    (tmp_path / "jobs.yaml").write_text(JOBS)
    submit = chipwise(
        "jobs", "submit", tmp_path / "jobs.yaml", "--pools", tmp_path / "pools.yaml", "--ledger", tmp_path / "l.db"
    )
    assert submit.returncode == 0, submit.stderr
    return tmp_path


def route(place, *more):
    return chipwise(
        *("router", "run", "--pools", place / "pools.yaml", "--ledger", place / "l.db"),
        *("--policy", "cheapest", "--interval", "0.2s", *(more or ("--until-idle",))),
    )


def test_an_attempt_whose_name_is_no_text_is_quarantined(place):
    with open_ledger(str(place / "l.db")) as ledger:
        assert route(place).returncode == 0
        name = ledger.attempts("2")[0].id
    with sqlite3.connect(place / "l.db") as db:
        db.execute("UPDATE jobs SET state = 'running' WHERE id = 2")
        db.execute("UPDATE attempts SET id = CAST(id AS BLOB), state = 'running', ended = NULL WHERE id = ?", (name,))
    assert (
        chipwise(
            "jobs", "submit", place / "jobs.yaml", *("--pools", place / "pools.yaml", "--ledger", place / "l.db")
        ).returncode
        == 0
    )
    routed = route(place, "--once")
    assert routed.returncode == 0 and "is quarantined" in routed.stdout and "does not answer" not in routed.stdout


@pytest.mark.parametrize("statement", SPOILT.values(), ids=SPOILT)
def test_a_bad_row_is_named_and_the_other_jobs_are_done(place, statement):
    with sqlite3.connect(place / "l.db") as db:
        assert db.execute(statement).rowcount == 1
        before = db.execute("SELECT * FROM jobs WHERE id = 2").fetchone()
    routed = route(place)
    assert routed.returncode == 0, routed.stderr
    assert routed.stdout.count("job 2 is quarantined") == 1, routed.stdout
    with open_ledger(str(place / "l.db")) as ledger:
        assert {row.id: row.state for row in ledger.jobs()} == {"1": "succeeded", "3": "succeeded"}
        with pytest.raises(BadRow, match="job 2: its row in the ledger can't be read"):
            ledger.job("2")
    with sqlite3.connect(place / "l.db") as db:
        assert db.execute("SELECT * FROM jobs WHERE id = 2").fetchone() == before  # for someone to look at
    listed = chipwise("jobs", "list", "--ledger", place / "l.db")
    assert listed.returncode == 0 and "left out: job 2" in listed.stdout and "job3" in listed.stdout
    shown = chipwise("jobs", "show", "2", "--ledger", place / "l.db")
    assert shown.returncode == 2 and shown.stderr.count("\n") == 1 and "job 2" in shown.stderr
