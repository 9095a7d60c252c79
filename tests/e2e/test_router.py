"""chipwise router, as another process."""

import http.client
import json
import os
import re
import signal
import time

import chaos
import pytest
from command import ROOT, chipwise, chipwise_here, good, good_here
from postgres_server import postgres_server

from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S, leave

pytestmark = pytest.mark.service

HEAD = ("schema", "chipwise", "command")  # how every document begins

POOLS = """
folder: {folder}
pools:
  - {{name: near, backend: local, chip: cpu, count: 2}}
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path / "state"), encoding="utf-8")
    return tmp_path


def line(place, *more, policy="fastest"):
    return (
        "router",
        "run",
        "--pools",
        place / "pools.yaml",
        "--ledger",
        place / "ledger.db",
        "--policy",
        policy,
        *more,
    )


def submit(place, number=2, seconds=(0.0,)):
    with open_ledger(str(place / "ledger.db")) as ledger:
        return ledger.submit(chaos.jobs(place / "logs", number, [chaos.option("near", 0.1)], seconds), time.time())


def test_jobs_are_run_and_told_and_the_status_says_so(place):
    submit(place)
    said = good(*line(place, "--until-idle", "--interval", "0.1s"))
    assert (
        "policy fastest" in said and "submitted" in said and "assumed:" in said and said.endswith("jobs: 2 succeeded\n")
    )
    found = json.loads(good_here("router", "status", "--ledger", place / "ledger.db", "-o", "json"))
    assert (
        found["jobs"] == {"succeeded": 2} and found["attempts"] == {"succeeded": 2} and found["inconsistencies"] == []
    )
    assert [r["liveness"] for r in found["routers"]] == ["stopped"] and found["backends"][0]["ok"]
    table = good_here("router", "status", "--ledger", place / "ledger.db")
    assert "Routers" in table and "The ledger is consistent." in table


def test_every_key_of_the_json_is_documented(place):
    submit(place, 3)
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").partition("## router")[2]
    for verb in (line(place, "--once"), ("router", "status", "--ledger", place / "ledger.db")):
        found = json.loads(good_here(*verb, "-o", "json"))
        inner = [
            key
            for rows in found.values()
            if isinstance(rows, list)
            for row in rows
            if isinstance(row, dict)
            for key in row
        ]
        assert [key for key in [*found, *inner] if f"`{key}`" not in page and key not in HEAD] == []


def test_one_look_as_json(place):
    submit(place, 3)
    found = json.loads(good_here(*line(place, "--once", "-o", "json")))
    assert list(found)[:3] == ["schema", "chipwise", "command"] and found["command"] == "router run"
    assert found["ticks"] == 1 and found["attempts"] == {"started": 2} and found["jobs"] == {"running": 2, "pending": 1}
    assert json.loads(good_here(*line(place, "--until-idle", "--interval", "0.1s", "-o", "json")))["jobs"] == {
        "succeeded": 3
    }


def test_what_was_said_can_be_written_to_a_file(place):
    assert good_here(*line(place, "--once", "--out", place / "said.txt")) == ""
    assert "stopped after 1 scheduling pass" in (place / "said.txt").read_text()


def test_a_router_that_was_killed_is_told_from_one_that_lives(place):
    with open_ledger(str(place / "ledger.db")) as ledger:
        ledger.heartbeat("old-1", "old", 1, "fastest", time.time() - 1000)
        ledger.heartbeat("new-1", "new", 2, "fastest", time.time())
    found = json.loads(good_here("router", "status", "--ledger", place / "ledger.db", "-o", "json"))
    assert {r["id"]: r["liveness"] for r in found["routers"]} == {"old-1": "dead", "new-1": "alive"}
    refused = chipwise_here(*line(place, "--once"))
    assert refused.returncode == 2 and "router new-1 works on this ledger on another machine" in refused.stderr


def test_metrics_are_scraped_from_a_router_at_work(place):
    submit(place, 4, (0.5,))
    env = chaos.environment(CHIPWISE_METRICS_TOKEN="sesame-sesame-sesame")
    router = chaos.RouterProcess(
        chaos.command(*line(place, "--until-idle", "--interval", "0.2s", "--metrics", "127.0.0.1:0")),
        place / "router.txt",
        env,
    )
    try:
        until, text = time.monotonic() + PATIENCE_S, ""
        while "chipwise_jobs" not in text and time.monotonic() < until and router.process.poll() is None:
            found = re.search(r"metrics: port (\d+)", router.said())
            if found:
                text = scraped(int(found[1]))
            time.sleep(0.05)
        assert 'chipwise_pool_chips{pool="near"} 2' in text and "sesame" not in router.said()
        assert router.process.wait(PATIENCE_S) == 0
    finally:
        if router.process.poll() is None:
            router.kill()


def scraped(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer sesame-sesame-sesame"})
        return connection.getresponse().read().decode()
    except OSError:  # it has just left
        return ""
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--policy", "dearest"), "policy"),
        (("--interval", "0"), "--interval"),
        (("--interval", "-1s"), "--interval"),
        (("--lease", "3s"), "twice the interval"),
        (("--keep", "1s"), "--keep"),
        (("--keep", "always"), "--keep"),
        (("--once", "--until-idle"), "--once"),
        (("--metrics", "0.0.0.0:0"), "bearer token"),
        (("--metrics", "nowhere"), "HOST:PORT"),
        (("--token-file", "x"), "--metrics beside it"),
        (("--weight", "cost"), "--weight"),
        (("--weight", "cost=-1"), "--weight"),
        (("--weight", "cost=nan"), "--weight"),
        (("-o", "csv"), "--output"),
        (("--pools", "none.yaml"), "none.yaml"),
        (("--ledger", "mysql://x"), "ledger"),
        (("--metrics", "127.0.0.1:0", "--token-file", "no-file"), "--token-file"),
    ],
)
def test_bad_input_is_one_line(place, more, words):
    done = chipwise_here(*line(place, *more), cwd=place, env=chaos.environment())
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1 and words in done.stderr
    assert not (place / "state").exists() or not list((place / "state").glob("*/attempts/*"))


def without(place, option):
    """`router run --once` with all that a test names but an option."""
    words = list(map(str, line(place, "--once")))
    at = words.index(option)
    return chipwise_here(*words[:at], *words[at + 2 :])


def test_pools_must_be_named(place):
    done = without(place, "--pools")
    assert done.returncode == 2 and "--pools" in done.stderr and done.stderr.count("\n") == 1


def test_jobs_are_routed_by_the_default_policy_where_none_is_named(place):
    submit(place, 1)
    done = without(place, "--policy")
    assert done.returncode == 0 and "policy cheapest-within-deadline" in done.stdout


def test_a_router_with_another_folder_is_refused_while_attempts_of_the_first_run(place):
    """It would see none of what runs, take it for lost, and run it again."""
    submit(place, 1, (3.0,))
    good_here(*line(place, "--once"))
    (place / "other.yaml").write_text(POOLS.format(folder=place / "elsewhere"), encoding="utf-8")
    done = chipwise_here(*line(place, "--once", "--pools", place / "other.yaml"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "1 attempts are under way" in done.stderr
    good_here(*line(place, "--until-idle", "--interval", "0.1s"))
    assert good_here(*line(place, "--once", "--pools", place / "other.yaml"))


def test_a_ledger_that_is_none_stops_the_router_with_one_line(place):
    (place / "ledger.db").write_bytes(os.urandom(4096))
    for verb in (line(place, "--once"), ("router", "status", "--ledger", place / "ledger.db")):
        done = chipwise_here(*verb)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "ledger" in done.stderr
    assert "Traceback" not in chipwise_here("router", "status", "--ledger", place / "nowhere.db").stderr


def test_a_state_folder_that_can_not_be_written_stops_the_router_before_it_decides(place):
    submit(place)
    (place / "state").write_text("a file")
    done = chipwise(*line(place, "--once"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "can be written" in done.stderr
    with open_ledger(str(place / "ledger.db")) as ledger:
        assert ledger.attempts() == []


def test_a_database_that_goes_away_is_waited_for_and_nothing_is_lost(place):
    """PostgreSQL is stopped under a router at work: one line; when it is back, the jobs end once each."""
    with postgres_server() as server:
        url = server.database("gone")
        with open_ledger(url) as ledger:
            ids = ledger.submit(chaos.jobs(place / "logs", 6, [chaos.option("near", 0.1)], (0.3,)), time.time())
        words = [
            str(w).replace(str(place / "ledger.db"), url) for w in line(place, "--until-idle", "--interval", "0.1s")
        ]
        router = chaos.RouterProcess(chaos.command(*words), place / "router.txt", chaos.environment())
        until = time.monotonic() + PATIENCE_S
        while "submitted" not in router.said() and time.monotonic() < until:
            time.sleep(0.02)
        server.stop()
        while "does not answer" not in router.said() and time.monotonic() < until:
            time.sleep(0.02)
        server.start()
        assert router.process.wait(PATIENCE_S) == 0, router.said()
        assert "answers again" in router.said() and "hunter2" not in router.said()
        with open_ledger(url) as ledger:
            assert {ledger.job(each).state for each in ids} == {"succeeded"} and ledger.check() == []
        logs = [(place / "logs" / f"{n}.log").read_text().split() for n in range(6)]
        assert all(words.count("start") == words.count("end") == 1 for words in logs)


def test_interrupting_leaves_in_good_order(place):
    router = chaos.RouterProcess(chaos.command(*line(place)), place / "router.txt", chaos.environment())
    until = time.monotonic() + PATIENCE_S
    while not router.ready() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.2)
    assert leave(router.process, signal.SIGINT) == 0 and "stopped after" in router.said()
