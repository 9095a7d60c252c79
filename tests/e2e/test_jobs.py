"""`chipwise jobs` and `chipwise pools` as people run them, on a ledger of their own."""

import csv
import io
import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import ROOT, chipwise, chipwise_here
from ledger_cases import options, start, submission

from chipwise.present.safe import safe
from chipwise.route.backend import AttemptStatus
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.route.ledger.records import AttemptEnd

POOLS = str(ROOT / "examples" / "pools" / "local.yaml")
HELLO = str(ROOT / "examples" / "jobs" / "hello.yaml")
HOSTILE = [
    "two\nlines",
    "\x1b[2J\x1b]0;owned\x07",
    "'; DROP TABLE jobs; --",
    "$(touch pwned) `id` | tee x",
    "naïve 作業 🚀",
    "\u202eright to left",
    "x" * 3000,
    "nul\x00 and \ud800",
    '"quoted" \\ back',
    "%s ? {0}",
]


@pytest.fixture
def at(tmp_path):
    """Runs chipwise with a ledger, pools and data of the test's own."""
    env = {
        **os.environ,
        "CHIPWISE_LEDGER": str(tmp_path / "ledger.db"),
        "CHIPWISE_POOLS": POOLS,
        "XDG_DATA_HOME": str(tmp_path),
    }

    def run(*arguments, status=0, apart=False):
        done = (chipwise if apart else chipwise_here)(*arguments, env=env)
        assert done.returncode == status, done.stderr + done.stdout
        assert "Traceback" not in done.stderr and (done.stderr == "" or status == 2)
        return done.stderr if status == 2 else done.stdout

    run.ledger, run.folder = env["CHIPWISE_LEDGER"], tmp_path
    return run


def story(ledger):
    """A job that failed on GPUs, was lost on TPUs, and waits."""
    (job,) = ledger.submit([submission("story", owner="ada", budget=50.0)], 1000.0)
    ledger.decide(
        "r1", "fastest", [Decision(job, "wait", "h100", reason="h100 is full, starts in 20 min")], 1001.0, 30.0, {}
    )
    (first,) = ledger.decide("r1", "fastest", [start(job)], 1010.0, 30.0, {"h100": 8})
    ledger.mark_submitted(first.id, "4711", 1011.0)
    ledger.observe(first.id, AttemptStatus(first.id, "4711", "running", started=1012.0, where="gpu-node-3"), 1012.0)
    ledger.end(first.id, AttemptEnd("failed", exit_code=9, reason="left with status 9", spent=0.25), 1020.0)
    (second,) = ledger.decide("r2", "fastest", [start(job, "v5e")], 1030.0, 30.0, {"v5e": 4})
    ledger.end(second.id, AttemptEnd("lost", reason="node tpu-1 is down", done=0.4, not_before=4e9), 1040.0)
    ledger.drain("h100", True, "new drivers", 1041.0)
    ledger.backend_health("local", False, "connection refused", 1100.0, 1042.0)
    return job


def test_submit_list_show_and_explain_agree(at):
    said = at("jobs", "submit", HELLO, ROOT / "examples" / "jobs" / "fallback.yaml", apart=True)
    assert "1  hello" in said and "2  fallback" in said and "assumed: no router runs" in said
    assert "2 pending" in at("jobs", "list", apart=True) and "fallback" not in at("jobs", "list", "--name", "hello")
    shown = json.loads(at("jobs", "show", "2", "-o", "json"))
    assert (
        [o["pool"] for o in shown["options"]] == ["h100", "v5e"]
        and shown["infeasible"][0]["pool"] == "cpu"
        and shown["attempts"] == []
    )
    assert "no router has run on this ledger" in at("jobs", "explain", "2")
    rows = list(csv.DictReader(io.StringIO(at("jobs", "list", "-o", "csv"))))
    assert [row["id"] for row in rows] == ["2", "1"]


def test_explain_tells_the_whole_story(at):
    with open_ledger(at.ledger) as ledger:
        job = story(ledger)
    said = at("jobs", "explain", job)
    for words in (
        "modelled",
        "from 12 published steps",
        "h100 is no TPU",
        "wait for h100: h100 is full",
        "start in h100 as gpu: cheapest with room",
        "compared: h100: score 6",
        "compared: v5e: not wanted",
        "h100 knows it as 4711",
        "running: gpu-node-3",
        "failed, exit status 9, after 8.00 s",
        "fallback from h100, variant gpu, which failed",
        "ended: lost",
        "node tpu-1 is down",
        "is not tried again for",
        "pool h100 is drained: new drivers",
        "backend local does not answer: connection refused",
        "no router",
    ):
        assert words in said, words
    found = json.loads(at("jobs", "explain", job, "-o", "json"))
    assert found["happened"] and found["now"] and [d["kind"] for d in found["decisions"]] == ["wait", "start", "start"]
    assert (
        found["done"] == 0.4 and found["spent_usd"] == 0.25 and found["decisions"][1]["scores"]["v5e"]["score"] is None
    )


def test_a_job_that_fits_no_pool_is_refused_with_the_reason_per_pool_and_nothing_is_written(at):
    (at.folder / "big.yaml").write_text(
        "jobs:\n- {name: small, command: [echo], estimates: {cpu: 1s}}\n"
        "- {name: big, chips: 99, command: [echo], estimates: {cpu: 1s}}\n"
    )
    line = at("jobs", "submit", at.folder / "big.yaml", status=2)
    assert (
        "big can't run in any pool" in line
        and all(f"{pool}: " in line for pool in ("h100", "v5e", "cpu"))
        and line.count("\n") == 1
    )
    assert not Path(at.ledger).exists()


def test_the_same_key_is_one_job_and_other_contents_are_refused(at):
    file = at.folder / "job.yaml"
    file.write_text("{name: a, command: [echo], estimates: {cpu: 1s}, key: k, deadline: 1h}")
    first, second = (json.loads(at("jobs", "submit", file, "-o", "json"))["jobs"][0]["id"] for _ in range(2))
    assert first == second == "1"
    file.write_text("{name: b, command: [echo], estimates: {cpu: 1s}, key: k}")
    assert "job 1 was submitted with this one and other contents" in at("jobs", "submit", file, status=2)
    assert len(json.loads(at("jobs", "list", "-o", "json"))["jobs"]) == 1


def test_cancel_and_retry_are_all_or_none(at):
    with open_ledger(at.ledger) as ledger:
        ledger.submit([submission(), submission()], 1.0)
    assert "cancelled on request" in at("jobs", "cancel", "1")
    assert "job 2 is pending" in at("jobs", "retry", "1", "2", status=2)
    assert [j["state"] for j in json.loads(at("jobs", "list", "-o", "json"))["jobs"]] == ["pending", "cancelled"]
    at("jobs", "retry", "1")
    assert json.loads(at("jobs", "list", "-o", "json"))["totals"] == {"pending": 2}


def test_an_active_job_is_cancelled_once_its_backend_has_stopped_it(at):
    with open_ledger(at.ledger) as ledger:
        (job,) = ledger.submit([submission()], 1.0)
        (attempt,) = ledger.decide("r", "fastest", [start(job)], 1.0, 30.0, {"h100": 2})
        assert "running" in at("jobs", "cancel", job) and ", to be cancelled" in at("jobs", "show", job)
        assert ledger.attempt(attempt.id).stop == "cancel"
        ledger.end(attempt.id, AttemptEnd("cancelled"), 2.0)
        assert ledger.job(job).state == "cancelled" and ledger.check() == []


def test_wait_tells_how_jobs_ended_by_its_exit_status(at):
    with open_ledger(at.ledger) as ledger:
        done, failed, open_ = ledger.submit([submission() for _ in range(3)], 1.0)
        (attempt,) = ledger.decide("r", "fastest", [start(done)], 1.0, 30.0, {"h100": 2})
        ledger.end(attempt.id, AttemptEnd("succeeded", "succeeded"), 2.0)
        ledger.fail(failed, "fits nowhere", 2.0)
    at("jobs", "wait", done)
    assert "fits nowhere" in at("jobs", "wait", done, failed, status=1)
    assert (
        json.loads(at("jobs", "wait", open_, done, "--timeout", "200ms", "-o", "json", status=124))["jobs"][0]["state"]
        == "pending"
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_hostile_names_come_back_exactly_and_are_shown_harmlessly(kind, at, request):
    def tried(url):
        with open_ledger(url) as ledger:
            jobs = [Job(name, (Variant("gpu", "gpu", 2, command=(name,)),), owner=name, key=name) for name in HOSTILE]
            ids = ledger.submit([NewJob(job, options()[:1]) for job in jobs], 1.0)
            assert ids == ledger.submit([NewJob(job, options()[:1]) for job in jobs], 1.0)
            assert [ledger.job(i).job for i in ids] == jobs and ledger.check() == []
            assert [[row.id for row in ledger.jobs(name=name, owner=name)] for name in HOSTILE] == [[i] for i in ids]
            for i, name in zip(ids, HOSTILE, strict=True):
                ledger.fail(i, name, 2.0)
        for arguments in (("jobs", "list"), ("jobs", "show", "2"), ("jobs", "explain", "2"), ("jobs", "explain", "8")):
            said = at(*arguments, "--ledger", url)
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
        assert len(at("jobs", "list", "--ledger", url).splitlines()) == len(HOSTILE) + 3
        assert {
            j["name"] for j in json.loads(at("jobs", "list", "--ledger", url, "-o", "json", "--limit", "3"))["jobs"]
        } >= {HOSTILE[-1]}
        assert not (ROOT / "pwned").exists()

    tried(at.ledger if kind == "sqlite" else request.getfixturevalue("postgres").database("hostile"))


def test_what_cannot_be_printed_is_escaped():
    assert all(safe(name).isprintable() and len(safe(name, 40)) <= 40 for name in HOSTILE)


def test_no_value_of_an_environment_is_shown(at):
    (at.folder / "job.yaml").write_text(
        "{name: a, command: [echo], estimates: {cpu: 1s}, environment: {COLOUR: mauve}}"
    )
    at("jobs", "submit", at.folder / "job.yaml")
    for arguments in (("show", "1"), ("explain", "1"), ("show", "1", "-o", "json"), ("explain", "1", "-o", "json")):
        assert "mauve" not in at("jobs", *arguments) and "COLOUR" in at("jobs", *arguments)


def test_a_literal_secret_is_refused_and_never_written(at):
    (at.folder / "job.yaml").write_text(
        "{name: a, command: [echo], estimates: {cpu: 1s}, environment: {HF_TOKEN: hf_hunter2}}"
    )
    assert "hunter2" not in at("jobs", "submit", at.folder / "job.yaml", status=2)
    assert not Path(at.ledger).exists()


def test_the_ledger_is_its_owners_alone(at):
    at("jobs", "submit", HELLO)
    assert {oct(path.stat().st_mode & 0o777) for path in at.folder.glob("ledger.db*")} == {"0o600"}
    with closing(sqlite3.connect(at.ledger)) as link:
        assert link.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_pools_show_room_and_are_drained_and_resumed(at):
    said = at("pools")
    assert "no ledger yet" in said and "16 of 16" in said and "assumed: " in said
    assert "drained: new\\nfans" in at("pools", "drain", "v5e", "--reason", "new\nfans")
    found = {p["name"]: p for p in json.loads(at("pools", "-o", "json"))["pools"]}
    assert (
        found["v5e"]["drained"]
        and found["v5e"]["reason"] == "new\nfans"
        and not found["h100"]["drained"]
        and found["h100"]["free"] == 8
    )
    with open_ledger(at.ledger) as ledger:
        (job,) = ledger.submit([submission()], 1.0)
        assert ledger.decide("r", "fastest", [start(job, "v5e")], 1.0, 30.0, {"v5e": 4}) == []
        (attempt,) = ledger.decide("r", "fastest", [start(job)], 1.0, 30.0, {"h100": 8})
    at("pools", "resume", "v5e")
    found = {p["name"]: p for p in json.loads(at("pools", "-o", "json", "--no-ask"))["pools"]}
    assert (
        not found["v5e"]["drained"] and found["h100"]["held"] == attempt.option.chips and found["h100"]["free"] is None
    )
    assert len(list(csv.DictReader(io.StringIO(at("pools", "-o", "csv", "--no-ask"))))) == 3


def test_a_backend_that_does_not_answer_is_named_and_the_others_are_shown(at):
    (at.folder / "pools.yaml").write_text(
        "backends: {slurm: {conf: /nowhere/slurm.conf, timeout: '2'}}\npools:\n"
        "- {name: far, backend: slurm, chip: h100, count: 8, price: 1, terms: owned, address: {partition: p}}\n"
        "- {name: here, backend: local, chip: cpu, count: 2}\n"
    )
    said = at("pools", "--pools", at.folder / "pools.yaml")
    assert "does not answer: slurm" in said and "2 of 2" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("jobs", "show", "99"), "the number of a job"),
        (("jobs", "show", "-1"), "No such option"),
        (("jobs", "cancel", "1; rm"), "the number of a job"),
        (("jobs", "explain", "9" * 40), "the number of a job"),
        (("jobs", "show", "１"), "the number of a job"),
        (("jobs", "list", "--state", "happy"), "one of pending"),
        (("jobs", "list", "--limit", "0"), "--limit"),
        (("jobs", "wait", "1", "--timeout", "soon"), "--timeout"),
        (("jobs", "submit", "nowhere.yaml"), "nowhere.yaml"),
        (("jobs", "submit", HELLO, "--pools", "nowhere.yaml"), "nowhere.yaml"),
        (("jobs", "submit", HELLO, "--policy", "whim"), "whim"),
        (("jobs", "submit"), "FILE"),
        (("jobs", "show", "1", "-o", "xml"), "one of table, json"),
        (("pools", "drain", "h1000", "--reason", "x"), "did you mean h100"),
        (("pools", "drain", "h100", "--reason", " "), "--reason"),
        (("pools", "drain", "h100"), "--reason"),
        (("pools", "-o", "xml"), "one of table, json, csv"),
    ],
    ids=lambda a: " ".join(a)[:40] if isinstance(a, tuple) else "",
)
def test_bad_input_is_one_line(arguments, words, at):
    with open_ledger(at.ledger) as ledger:
        ledger.submit([submission()], 1.0)
    line = at(*arguments, status=2, apart=arguments == ("jobs", "show", "99"))
    assert words in line and line.startswith("chipwise: ") and line.count("\n") == 1


def keys(value, out):
    if isinstance(value, dict):
        for key, inside in value.items():
            out.add(key)
            keys(None if key in ("scores", "data", "totals") else inside, out)
    elif isinstance(value, list):
        for inside in value:
            keys(inside, out)
    return out


def test_every_key_of_the_json_is_documented(at):
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    with open_ledger(at.ledger) as ledger:
        job = story(ledger)
    for arguments in (
        ("jobs", "submit", HELLO),
        ("jobs", "list"),
        ("jobs", "show", job),
        ("jobs", "explain", job),
        ("jobs", "cancel", job),
        ("pools",),
    ):
        missing = [key for key in keys(json.loads(at(*arguments, "-o", "json")), set()) if f"`{key}`" not in page]
        assert not missing, arguments
