"""The service on its socket: roles, hostile documents, limits, and nothing leaked."""

import http.client
import json
import os
import socket
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from command import chipwise, good, running

from chipwise.errors import InputError
from chipwise.route.ledger import link, open_ledger
from chipwise.service import api, server
from chipwise.service.limits import Limits
from chipwise.service.peer import Peer, peer_of
from chipwise.service.service import Service, ServiceOptions
from patience import PATIENCE_S, until

pytestmark = pytest.mark.service

POOLS = """
folder: {folder}/attempts
access:
  operator: {{users: [ops]}}
  submitter: {{users: [ada, bob]}}
  viewer: {{users: [ann]}}
  teams: {{vision: {{users: [ada]}}}}
  quotas:
    users: {{ada: {{chips: 2}}}}
    teams: {{vision: {{usd: 5}}}}
pools:
  - {{name: cpu, backend: local, chip: cpu, count: 4, price: 1, terms: owned, watts: 50}}
"""
HELLO = {"name": "hello", "command": ["echo", "hello"], "estimates": {"cpu": "5s"}}
QUICK = Limits(
    body_bytes=20_000,
    connections=12,
    connections_each=6,
    head_s=1.0,
    body_s=1.0,
    idle_s=2.0,
    failures=5,
    failures_s=2.0,
    refusals=5,
)


USERS = {"submitter": "ada", "viewer": "ann", "operator": "ops", "bob": "bob", "nobody": "eve"}


def peer_by_name(connection):
    """Who connects, by the name that the test bound the client's end to: one process stands in for several users.

    What the kernel says of real ones is tested in test_second_user.py.
    """
    user = connection.getpeername().decode().strip("\0").partition("@")[0]
    return Peer(5000 + list(USERS.values()).index(user), user, frozenset())


class Running:
    """A service of this process, and a user for each role."""

    names = count()

    def __init__(self, folder, limits=None):
        folder.chmod(0o700)
        self.folder, self.ledger, self.said = folder, folder / "ledger.db", []
        self.socket = folder / "s.sock"
        (folder / "pools.yaml").write_text(POOLS.format(folder=folder))
        options = ServiceOptions(folder / "pools.yaml", self.socket, str(self.ledger), limits or Limits())
        self.service = Service(options, self.said.append)

    def link(self, who):
        """A connection of a user's."""
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(PATIENCE_S)
        link.bind(f"\0{USERS[who]}@{os.getpid()}.{next(self.names)}")
        link.connect(str(self.socket))
        return link

    def ask(self, who, method, path, body=None):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = self.link(who)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was sent to its end
                connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def raw(self, data, who="submitter"):
        with self.link(who) as link:
            answer = b""
            with suppress(ConnectionResetError, BrokenPipeError):  # closed with something unread
                link.sendall(data)
                while piece := link.recv(65_536):
                    answer += piece
            return answer

    def submit(self, who, **more):
        status, answer = self.ask(who, "POST", "/v1/jobs", {"jobs": [{**HELLO, **more}]})
        assert status == 200, answer
        return answer["submission"]["jobs"][0]["row"]["id"]


@pytest.fixture(autouse=True)
def users(monkeypatch):
    monkeypatch.setattr(server, "peer_of", peer_by_name)


@pytest.fixture
def here(tmp_path):
    running = Running(tmp_path)
    with running.service:
        yield running


@pytest.fixture
def quick(tmp_path):
    running = Running(tmp_path, QUICK)
    with running.service:
        yield running


# roles


def test_roles_do_what_they_may_and_no_more(here):
    hers, his = here.submit("submitter"), here.submit("bob")
    assert here.ask("viewer", "POST", "/v1/jobs", {"jobs": [HELLO]})[0] == 403
    for who, jobs in (("viewer", [his, hers]), ("operator", [his, hers]), ("submitter", [hers]), ("bob", [his])):
        status, answer = here.ask(who, "GET", "/v1/jobs")
        assert (status, [job["id"] for job in answer["jobs"]]) == (200, jobs)
    assert here.ask("viewer", "GET", f"/v1/jobs/{hers}")[0] == 200
    assert here.ask("bob", "GET", f"/v1/jobs/{hers}")[0] == 403
    for who, status in (("viewer", 403), ("bob", 403), ("submitter", 200), ("operator", 200)):
        assert here.ask(who, "POST", "/v1/jobs/cancel", {"jobs": [hers]})[0] == status
        assert here.ask(who, "POST", "/v1/jobs/retry", {"jobs": [hers]})[0] == status
    for who, status in (("viewer", 403), ("submitter", 403), ("operator", 200)):
        assert here.ask(who, "POST", "/v1/pools/cpu/drain", {"reason": "drivers"})[0] == status
        assert here.ask(who, "POST", "/v1/pools/cpu/resume", {})[0] == status
    for who, status in (("viewer", 403), ("submitter", 403), ("operator", 200)):
        assert here.ask(who, "POST", "/v1/pools/cpu/resume", {"nodes": ["n1", "n1", "n-2"]})[0] == status
    for nodes in ([], ["n1,n2"], "n1", [1], ["-n"], ["n" * 300]):
        status, answer = here.ask("operator", "POST", "/v1/pools/cpu/drain", {"reason": "x", "nodes": nodes})
        assert status == 400 and answer["error"]["field"] == "node"
    status, answer = here.ask("operator", "POST", "/v1/pools/cpu/drain", {"reason": "x", "nodes": ["n1"]})
    assert status == 400 and "drain the whole pool" in answer["error"]["accepted"]  # of a machine
    nodes = here.ask("submitter", "GET", "/v1/pools")[1]["nodes"]
    assert [(node["pool"], node["node"], node["drained"]) for node in nodes] == [
        ("cpu", "n-2", False),
        ("cpu", "n1", False),
    ]
    for who, status in (("viewer", 200), ("submitter", 403), ("operator", 200)):
        assert here.ask(who, "GET", "/v1/status")[0] == status
    with open_ledger(str(here.ledger)) as ledger:
        assert {row.id: (row.job.owner, row.submitter, row.team) for row in ledger.jobs()} == {
            hers: ("ada", "ada", "vision"),
            his: ("bob", "bob", ""),
        }
        assert ledger.verify_audit().problems == ()


def test_an_operator_submits_for_others_and_their_quotas_count(here):
    job = here.submit("operator", owner="ada")
    with open_ledger(str(here.ledger)) as ledger:
        row = ledger.job(job)
        assert (row.job.owner, row.submitter, row.team) == ("ada", "ops", "vision")
    status, answer = here.ask("operator", "POST", "/v1/jobs", {"jobs": [{**HELLO, "owner": "ada", "chips": 3}]})
    assert status == 400 and answer["error"]["field"] == "job hello: chips of user ada"


def test_quotas_are_refused_with_field_value_and_what_is_left(here):
    long = {**HELLO, "estimates": {"cpu": "10h"}}
    status, answer = here.ask("submitter", "POST", "/v1/jobs", {"jobs": [long]})
    assert status == 400 and answer["error"]["message"] == (
        "usd of team vision: '$10.00' is not accepted; expected at most $5.00, which is left of $5.00 this month"
    )


def test_roles_and_quotas_are_read_again_when_the_file_changes(here):
    file = here.folder / "pools.yaml"
    assert here.ask("submitter", "POST", "/v1/jobs", {"jobs": [{**HELLO, "chips": 3}]})[0] == 400
    file.write_text(file.read_text().replace("chips: 2", "chips: 3 "))
    assert here.ask("submitter", "POST", "/v1/jobs", {"jobs": [{**HELLO, "chips": 3}]})[0] == 200
    file.write_text("pools: nonsense")
    assert here.ask("submitter", "GET", "/v1/jobs")[0] == 200
    assert any("the one before counts" in line for line in here.said)


def test_environment_values_stay_with_the_service(here):
    job = here.submit("submitter", environment={"DATA": "s3://private-bucket"})
    for who in ("submitter", "viewer", "operator"):
        status, answer = here.ask(who, "GET", f"/v1/jobs/{job}")
        assert status == 200 and "private-bucket" not in json.dumps(answer) and "DATA" in json.dumps(answer)


# what clients send


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ({"workload": "/etc/passwd"}, "jobs[0].workload"),
        ({"workload": {"model": {"hf": "/etc/passwd"}, "train": {}}}, "jobs[0].workload.model.hf"),
        ({"workload": {"model": "llama-3.1-8b", "serve": {"trace": "/etc/passwd"}}}, "jobs[0].workload.serve.trace"),
        ({"variants": {"cpu": {"program": "/tmp/evil.py:main"}}}, "jobs[0].variants.cpu.program"),
        ({"owner": "ops"}, "jobs[0].owner"),
        ({"environment": {"HF_TOKEN": "hf_" + "a" * 34}}, "jobs[0].environment"),
        ({"environment": {"CHIPWISE_FOLDER": "/"}}, "jobs[0].environment"),
        ({"command": "rm -rf /"}, "jobs[0].command"),
        ({"name": "a\x1b[2J"}, "jobs[0].name"),
        ({"submitter": "root"}, "jobs[0].submitter"),
    ],
)
def test_a_document_is_not_trusted(here, job, field):
    status, answer = here.ask("submitter", "POST", "/v1/jobs", {"jobs": [{**HELLO, **job}]})
    assert status == 400 and answer["error"]["field"].startswith(field), answer
    assert "root:" not in json.dumps(answer) and "a" * 34 not in json.dumps(answer)
    with open_ledger(str(here.ledger)) as ledger:
        assert ledger.jobs() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/jobs", None, 400),
        ("POST", "/v1/jobs", [], 400),
        ("POST", "/v1/jobs", {"jobs": 3}, 400),
        ("POST", "/v1/jobs", {"jobs": []}, 400),
        ("POST", "/v1/jobs", {"jobs": [3]}, 400),
        ("POST", "/v1/jobs", {"jobs": [HELLO], "policy": 3}, 400),
        ("POST", "/v1/jobs", {"jobs": [HELLO], "policy": "nonsense"}, 400),
        ("POST", "/v1/jobs/cancel", {"jobs": "1"}, 400),
        ("POST", "/v1/jobs/cancel", {"jobs": ["1; DROP TABLE jobs"]}, 403),
        ("POST", "/v1/jobs/cancel", {"jobs": ["9" * 400]}, 403),
        ("GET", "/v1/jobs/%2e%2e%2fetc", None, 403),
        ("GET", "/v1/jobs?limit=-1", None, 400),
        ("GET", "/v1/jobs?state=nonsense", None, 400),
        ("GET", "/v1/jobs?" + "&".join(f"a{i}=1" for i in range(50)), None, 400),
        ("GET", "/", None, 404),
        ("GET", "/v1/../../etc/passwd", None, 404),
        ("DELETE", "/v1/jobs/1", None, 501),
        ("POST", "/v1/identity", {}, 405),
    ],
)
def test_what_is_no_request_is_answered_and_nothing_else_happens(here, method, path, body, status):
    assert here.ask("submitter", method, path, body)[0] == status
    assert here.ask("submitter", "GET", "/v1/identity")[0] == 200
    assert not any("defect" in line for line in here.said)


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /v1/identity HTTP/9.9\r\n\r\n",
        b"GET " + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v1/identity HTTP/1.1\r\n" + b"A: b\r\n" * 300 + b"\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 9000\r\n\r\n" + b"[" * 9000,
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_what_is_no_http_ends_its_own_connection_alone(quick, data):
    answer = quick.raw(data)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), answer[:80]
    assert quick.ask("submitter", "GET", "/v1/identity")[0] == 200
    assert not any("defect" in line for line in quick.said)


# limits


def test_nothing_of_strangers_is_parsed(here):
    status, answer = here.ask("nobody", "POST", "/v1/jobs", "[" * 5000)
    assert status == 403 and "'eve' has no role" in answer["error"]["message"]  # not 400: the body was read over
    request = b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 7000000\r\n\r\n"
    assert b" 403 " in here.raw(request + b"[" * 100, "nobody")  # without waiting for the rest


def test_headers_that_can_not_be_read_whole_are_refused(here):
    answer = here.raw(b"GET /v1/jobs HTTP/1.1\r\njunk\r\nContent-Length: 3\r\n\r\nabc", "operator")
    assert b" 400 " in answer and answer.count(b"HTTP/1.1") == 1 and b"close" in answer


def test_one_user_takes_no_places_of_others(here, monkeypatch):
    real, held, go = api.submit_documents, threading.Semaphore(0), threading.Event()

    def slow(ledger, documents, policy, pools, identity, actor, now):
        if identity.user == "bob":
            held.release()
            assert go.wait(PATIENCE_S)
        return real(ledger, documents, policy, pools, identity, actor, now)

    monkeypatch.setattr(api, "submit_documents", slow)
    monkeypatch.setattr(api, "SUBMISSION_S", PATIENCE_S)
    threads = [threading.Thread(target=here.submit, args=("bob",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        assert held.acquire(timeout=PATIENCE_S)
        here.submit("submitter")  # ada, though bob has five on their way
        assert not held.acquire(blocking=False)
    finally:
        go.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    with open_ledger(str(here.ledger)) as ledger:
        assert [row.submitter for row in ledger.jobs()].count("bob") == 5


def test_a_large_body_is_refused_before_it_is_read(quick):
    status, answer = quick.ask("submitter", "POST", "/v1/jobs", {"jobs": [{**HELLO, "name": "x" * 30_000}]})
    assert status == 413 and "20,000" in answer["error"]["message"]


def test_a_client_learns_that_its_body_is_too_large_though_it_was_cut_off(quick, monkeypatch):
    """More than a socket takes at once: the service answers while the client still sends."""
    monkeypatch.setattr(link, "_socket", lambda path, url: quick.link("submitter"))
    client = link.Link(f"unix://{quick.socket}")
    status, answer = client.ask("POST", "/v1/jobs", b'{"jobs": "' + b"x" * 5_000_000, time.monotonic() + PATIENCE_S)
    client.close()
    assert status == 413 and b"20,000" in answer


@pytest.mark.parametrize("head", [b"GET /v1/identity HTT", b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"])
def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(quick, head):
    with quick.link("submitter") as link:
        link.sendall(head)
        sent = 0
        try:
            while sent < 200:  # 20 s: well over the limit of 1 s, well under what a test may take
                link.sendall(b" ")
                sent += 1
                link.settimeout(0.1)
                try:
                    if not link.recv(65_536).startswith(b"HTTP/1.1 408"):
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass
        assert sent < 200


def test_slow_clients_do_not_keep_others_out(tmp_path):
    limits = Limits(connections=8, connections_each=4, head_s=60.0)
    running = Running(tmp_path, limits)
    with running.service:
        idle = [running.link("submitter") for _ in range(10)]
        try:
            # until those that may be have been taken: of this user there are enough
            until(lambda: b"503" in running.raw(b"GET /v1/identity HTTP/1.0\r\n\r\n"))
            assert running.ask("bob", "GET", "/v1/identity")[0] == 200
        finally:
            for link in idle:
                link.close()

        def given_back():
            with suppress(OSError, ValueError):
                return running.ask("submitter", "GET", "/v1/identity")[0] == 200

        until(given_back, "the places were not given back")


def test_who_has_no_role_is_heard_no_more_and_fills_no_log(quick):
    statuses = []
    until(lambda: statuses.append(quick.ask("nobody", "GET", "/v1/identity")[0]) or 429 in statuses)
    assert statuses[:5] == [403] * 5 and set(statuses) == {403, 429}  # a slow machine may need several windows of time
    assert quick.ask("submitter", "GET", "/v1/identity")[0] == 200
    assert sum("refused uid" in line for line in quick.said) == statuses.count(403)
    until(lambda: quick.ask("nobody", "GET", "/v1/identity")[0] == 403, step=0.2)


def test_the_audit_log_tells_when_the_service_began_and_when_its_rules_changed(quick, tmp_path):
    (tmp_path / "pools.yaml").write_text((tmp_path / "pools.yaml").read_text() + "\n")
    assert quick.ask("submitter", "GET", "/v1/jobs")[0] == 200
    with open_ledger(str(quick.ledger)) as ledger:
        entries = [entry for entry in reversed(ledger.audit_entries()) if entry.chain.startswith("service ")]
        assert ledger.verify_audit().problems == ()
    assert [entry.command for entry in entries] == ["service run", "pools file"]


def test_commands_that_are_refused_again_and_again_are_not_heard_and_fill_no_log(quick):
    statuses = [quick.ask("viewer", "POST", "/v1/jobs/cancel", {"jobs": ["1"]})[0] for _ in range(8)]
    assert statuses[:5] == [403] * 5 and 429 in statuses[5:]
    assert quick.ask("viewer", "GET", "/v1/jobs")[0] == 200 and quick.submit("submitter")
    with open_ledger(str(quick.ledger)) as ledger:
        refused = [entry for entry in ledger.audit_entries() if entry.command == "refused"]
    assert len(refused) == statuses.count(403)


def test_many_submit_at_once_and_none_is_lost(here):
    threads = [threading.Thread(target=here.submit, args=("operator",)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_ledger(str(here.ledger)) as ledger:
        assert len(ledger.jobs()) == 12 and ledger.verify_audit().problems == () and ledger.check() == []


# how it is started


@pytest.mark.parametrize(
    ("path", "words"),
    [("/nowhere/s", "No such file"), ("/tmp/" + "x" * 120, "107 bytes"), ("{folder}", "but a socket")],
)
def test_a_service_that_could_not_be_safe_does_not_start(tmp_path, path, words):
    tmp_path.chmod(0o700)
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path))
    (tmp_path / "file").touch()
    socket_path = Path(path.format(folder=tmp_path / "file"))
    with pytest.raises(InputError, match=words):
        Service(ServiceOptions(tmp_path / "pools.yaml", socket_path, str(tmp_path / "ledger.db")))
    assert not (tmp_path / "ledger.db").exists()


def test_the_verbs_work_over_the_socket_as_they_do_on_the_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "peer_of", peer_of)  # the verbs are processes of their own
    running = Running(tmp_path)
    env = {**os.environ, "CHIPWISE_LEDGER": f"unix://{running.socket}"}
    with running.service:
        assert f": operator, by OS user {os.getuid()}" in good("service", "whoami", env=env)
        file = tmp_path / "job.yaml"
        file.write_text("name: hello\ncommand: [echo, hello]\nestimates: {cpu: 5s}\n")
        assert "hello" in good("jobs", "submit", file, env=env)
        direct = {**os.environ, "CHIPWISE_LEDGER": str(running.ledger)}
        for verb in (("jobs", "list"), ("jobs", "show", "1"), ("jobs", "explain", "1"), ("router", "status")):
            remote, local = (json.loads(good(*verb, "-o", "json", env=one)) for one in (env, direct))
            for document in (remote, local):
                document.pop("ledger", None), document.pop("at", None), document.pop("oldest_wait_seconds", None)
            assert remote == local
            assert good(*verb, env=env).count("\n") == good(*verb, env=direct).count("\n")
        good("router", "run", "--pools", tmp_path / "pools.yaml", "--until-idle", env=direct)
        assert good("jobs", "logs", "1", env=env) == "hello\n" == good("jobs", "logs", "1", "-f", env=direct)
        good("jobs", "submit", file, env=env)
        assert "cancelled" in good("jobs", "cancel", "2", env=env)
        assert chipwise("jobs", "wait", "2", env=env).returncode == 1
        assert "pending" in good("jobs", "retry", "2", env=env)
        assert "drained" in good("pools", "drain", "cpu", "--reason", "x", "--pools", tmp_path / "pools.yaml", env=env)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://jobs.example.org:8443", "expected a path"),
        ("unix://run/s", "the whole path"),
        ("unix:///nowhere/s", "does not answer"),
    ],
)
def test_a_service_that_can_not_be_reached_is_one_line(url, words):
    done = chipwise("jobs", "list", env={**os.environ, "CHIPWISE_LEDGER": url})
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_a_router_needs_the_ledger_itself():
    done = chipwise(
        *(
            "router",
            "run",
            "--pools",
            "examples/pools/local.yaml",
            "--policy",
            "cheapest",
            "--ledger",
            "unix:///nowhere/s",
        )
    )
    assert done.returncode == 2 and "the ledger itself" in done.stderr


def test_it_leaves_when_told_and_takes_its_socket_with_it(tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path))
    path = tmp_path / "s.sock"
    words = ("--pools", tmp_path / "pools.yaml", "--ledger", tmp_path / "ledger.db", "--socket", path)
    with running("service", "run", *words) as process:
        assert f"unix://{path}" in process.stdout.readline()
        done = chipwise("service", "run", *words)
        assert done.returncode == 2 and "no service answers already" in done.stderr
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert not path.exists()
