"""A second user of the machine, with a uid of its own, who tries to read, cancel, replace and impersonate: all refused."""

import http.client
import json
import os
import shutil
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path

import pytest
from command import chipwise, chipwise_here, good, running
from other_user import ADA, MALLORY, as_user, needs_root, refused

from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S

pytestmark = [pytest.mark.service, needs_root]

POOLS = """
folder: {folder}/attempts
access:
  submitter: {{users: ["uid:4243", "uid:4242"]}}
  quotas: {{users: {{"uid:4242": {{chips: 1}}}}}}
pools:
  - {{name: cpu, backend: local, chip: cpu, count: 2, price: 0, terms: owned, watts: 50}}
"""
JOB = "name: {name}\ncommand: [sh, -c, 'echo secret-words; exit {exit}']\nestimates: {{cpu: 1s}}\nretries: 0\n{more}"


class Place:
    """A service with a job of Ada's that has failed, and one that waits."""

    def __init__(self, folder):
        self.folder = folder
        self.pools, self.ledger, self.socket = (
            folder / name for name in ("pools.yaml", "ledger.db", "run/service.sock")
        )
        (folder / "run").mkdir(mode=0o755)
        self.pools.write_text(POOLS.format(folder=folder))
        self.pools.chmod(0o644)
        self.url = f"unix://{self.socket}"
        self.jobs = folder / "jobs"
        self.jobs.mkdir(mode=0o755)

    def file(self, name, exit=0, more=""):
        path = self.jobs / f"{name}.yaml"
        path.write_text(JOB.format(name=name, exit=exit, more=more))
        path.chmod(0o644)
        return path

    def cli(self, uid, *words, ledger=None):
        """Exit status, output and errors of a command of that user's."""

        def run():
            done = chipwise_here(*words, "--ledger", ledger or self.url, env={"PATH": os.environ["PATH"]})
            return done.returncode, done.stdout, done.stderr

        return as_user(uid, run)


def answering(path):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(str(path))
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the service does not answer")


@pytest.fixture(scope="module")
def place():
    folder = Path(tempfile.mkdtemp(prefix="two"))
    folder.chmod(0o755)
    here = Place(folder)
    words = ("--pools", here.pools, "--ledger", here.ledger)
    try:
        with running("service", "run", *words, "--socket", here.socket) as process:
            answering(here.socket)
            # what the other users' processes need is imported before they lose the right to
            for verb in ("list", "show", "explain", "cancel", "retry", "submit"):
                chipwise_here("jobs", verb, "1", "--ledger", here.url)
            for verb in (("service", "whoami"), ("router", "status")):
                chipwise_here(*verb, "--ledger", here.url)
            chipwise_here("jobs", "submit", here.file("warm"), "--ledger", here.url)
            status, _, errors = here.cli(ADA, "jobs", "submit", here.file("fails", exit=3))
            assert status == 0, errors
            routed = chipwise("router", "run", *words, "--policy", "cheapest", "--until-idle")
            assert routed.returncode == 0, routed.stderr  # it says so where it has to compile first
            status, _, errors = here.cli(ADA, "jobs", "submit", here.file("waits"))
            assert status == 0, errors
            here.failed, here.waiting = "2", "3"
            yield here
            process.terminate()
    finally:
        shutil.rmtree(folder)


def line(done):
    """The one line of a refusal."""
    status, out, err = done
    assert (status, out) == (2, "") and err.count("\n") == 1 and "Traceback" not in err, done
    return err


def test_each_is_who_the_system_says(place):
    for uid in (ADA, MALLORY):
        status, out, _ = place.cli(uid, "service", "whoami")
        assert (status, out) == (0, f"uid:{uid}: submitter, by OS user {uid}\n")


def test_ada_sees_her_jobs_and_what_they_printed(place):
    assert "fails" in place.cli(ADA, "jobs", "list")[1] and "waits" in place.cli(ADA, "jobs", "list")[1]
    assert "secret-words" in place.cli(ADA, "jobs", "explain", place.failed)[1]


# read


def test_the_other_user_lists_nothing_of_hers(place):
    status, out, _ = place.cli(MALLORY, "jobs", "list", "-o", "json")
    assert status == 0 and json.loads(out)["jobs"] == [] and not any(json.loads(out)["totals"].values())
    assert "fails" not in place.cli(MALLORY, "jobs", "list", "--owner", "uid:4243")[1]


@pytest.mark.parametrize("verb", ["show", "explain", "wait"])
def test_the_other_user_reads_none_of_her_jobs_nor_whether_there_is_one(place, verb):
    for job in (place.failed, place.waiting, "999"):
        words = line(place.cli(MALLORY, "jobs", verb, job))
        assert words == f"chipwise: job {job}: no such job of 'uid:4242'; a submitter sees and changes only its own\n"


@pytest.mark.parametrize("part", ["", "/attempts", "/decisions", "/events", "/output", "/log"])
def test_no_part_of_her_job_is_answered(place, part):
    status, answer = as_user(MALLORY, asked, place.socket, "GET", f"/v1/jobs/{place.failed}{part}")
    assert status == 403 and "secret" not in json.dumps(answer)


def test_how_routing_stands_is_for_viewers_and_operators(place):
    assert "role: 'submitter' of 'uid:4242' may not status" in line(place.cli(MALLORY, "router", "status"))


def test_the_ledger_itself_and_the_folders_of_attempts_are_closed(place):
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        if (place.folder / name).exists():
            assert refused(MALLORY, (place.folder / name).read_bytes)
    assert "can't be opened" in line(place.cli(MALLORY, "jobs", "list", ledger=str(place.ledger)))
    inner = [path for path in (place.folder / "attempts").rglob("*") if path.is_file()]
    assert any(path.name == "launch.json" for path in inner) and any(path.name == "output" for path in inner)
    for path in inner:
        assert refused(MALLORY, path.read_bytes)


# cancel, retry


def test_the_other_user_neither_cancels_nor_retries(place):
    assert "no such job" in line(place.cli(MALLORY, "jobs", "cancel", place.waiting))
    assert "no such job" in line(place.cli(MALLORY, "jobs", "retry", place.failed))
    with open_ledger(str(place.ledger)) as ledger:
        assert (ledger.job(place.waiting).state, ledger.job(place.failed).state) == ("pending", "failed")


def test_one_job_of_hers_among_ones_own_stops_the_whole_command(place):
    status, out, errors = place.cli(MALLORY, "jobs", "submit", place.file("mine"), "-o", "json")
    assert status == 0, errors
    mine = json.loads(out)["jobs"][0]["id"]
    line(place.cli(MALLORY, "jobs", "cancel", mine, place.waiting))
    with open_ledger(str(place.ledger)) as ledger:
        assert (ledger.job(mine).state, ledger.job(place.waiting).state) == ("pending", "pending")
    assert place.cli(MALLORY, "jobs", "cancel", mine)[0] == 0


def test_nobody_but_an_operator_drains(place):
    status, answer = as_user(MALLORY, asked, place.socket, "POST", "/v1/pools/cpu/drain", {"reason": "mine"})
    assert status == 403 and "operator" in answer["error"]["message"]
    with open_ledger(str(place.ledger)) as ledger:
        assert ledger.drained() == {}


# replace


def test_nothing_that_routing_rests_on_can_be_replaced(place):
    launches = list((place.folder / "attempts").rglob("launch.json"))
    for path in (place.ledger, place.pools, place.socket, *launches, *(p.parent for p in launches)):
        refused(MALLORY, os.unlink, path)
        refused(MALLORY, os.rename, path, place.folder / "mine")
        if path != place.socket:
            refused(MALLORY, os.open, path, os.O_WRONLY)
    refused(MALLORY, bound, place.socket)
    refused(MALLORY, bound, place.folder / "run" / "other.sock")
    assert as_user(ADA, asked, place.socket, "GET", "/v1/identity")[0] == 200


def bound(path):
    with socket.socket(socket.AF_UNIX) as link:
        link.bind(str(path))


def test_a_socket_that_another_could_have_put_there_is_not_spoken_to(place):
    """In a folder that others can write, whoever comes first is the service: clients refuse it."""
    shared = Path(tempfile.mkdtemp(prefix="shared", dir=place.folder))
    shared.chmod(0o1777)
    fake = shared / "service.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(fake))
        listening.listen()
        fake.chmod(0o666)
        words = line(place.cli(ADA, "jobs", "list", ledger=f"unix://{fake}"))
    assert "a folder that only the service's user can write" in words


def test_a_folder_of_anybodys_in_a_shared_one_serves_nobody_else(place):
    """Where all can make folders, Mallory's own with a socket of hers is in place before the service is."""
    shared = Path(tempfile.mkdtemp(prefix="sticky", dir=place.folder))
    shared.chmod(0o1777)
    taken, ready, go = shared / "chipwise", os.pipe(), os.pipe()

    def squat():
        taken.mkdir(mode=0o755)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(taken / "service.sock"))
            (taken / "service.sock").chmod(0o666)
            listening.listen()
            os.write(ready[1], b".")
            os.read(go[0], 1)

    thread = threading.Thread(target=as_user, args=(MALLORY, squat))
    thread.start()
    try:
        assert os.read(ready[0], 1) == b"."
        words = line(place.cli(ADA, "jobs", "list", ledger=f"unix://{taken / 'service.sock'}"))
    finally:
        os.write(go[1], b".")
        thread.join(PATIENCE_S)
        for descriptor in (*ready, *go):
            os.close(descriptor)
    assert f"not below {shared}, where anybody can make folders" in words


def test_a_service_does_not_listen_where_others_can_write(place):
    shared = Path(tempfile.mkdtemp(prefix="open", dir=place.folder))
    shared.chmod(0o1777)
    done = chipwise_here("service", "run", "--pools", place.pools, "--ledger", place.ledger, "--socket", shared / "s")
    assert done.returncode == 2 and "others can't write" in done.stderr and done.stderr.count("\n") == 1


# impersonate


def test_an_owner_in_the_file_is_not_believed(place):
    words = line(place.cli(MALLORY, "jobs", "submit", place.file("forged", more="owner: uid:4243\n")))
    assert words == (
        "chipwise: jobs[0].owner: 'uid:4243' is not accepted; expected uid:4242, who submits it, or no owner\n"
    )


def test_her_key_is_hers(place):
    """The same key of two users: two jobs, and neither learns of the other's."""
    file = place.file("keyed", more="key: nightly\n")
    ids = {
        uid: json.loads(place.cli(uid, "jobs", "submit", file, "-o", "json")[1])["jobs"][0]["id"]
        for uid in (ADA, MALLORY)
    }
    assert ids[ADA] != ids[MALLORY]
    with open_ledger(str(place.ledger)) as ledger:
        assert [ledger.job(ids[uid]).job.owner for uid in (ADA, MALLORY)] == ["uid:4243", "uid:4242"]
        ledger.change("cancel", list(ids.values()), time.time())


def test_headers_do_not_change_who_the_kernel_says_it_is(place):
    forged = {
        "Authorization": "Basic dWlkOjQyNDM6",
        "X-Remote-User": "root",
        "X-Forwarded-User": "uid:4243",
        "Remote-User": "root",
    }
    status, answer = as_user(MALLORY, asked, place.socket, "GET", "/v1/identity", None, forged)
    assert status == 200 and answer["identity"]["user"] == "uid:4242"


def test_credentials_can_not_be_forged_to_the_kernel(place):
    def claims():
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", os.getpid(), ADA, ADA))])
        theirs.close()

    def sets():
        with socket.socket(socket.AF_UNIX) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.pack("3i", 1, 0, 0))

    for forgery in (claims, sets):
        refused(MALLORY, forgery)


def test_what_a_proxy_passes_on_is_the_proxys(place):
    """Mallory passes her request on, byte for byte: it is Mallory's."""

    def passes_on():
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(place.socket))
            link.sendall(
                b"GET /v1/identity HTTP/1.1\r\nHost: x\r\nX-Remote-User: uid:4243\r\nConnection: close\r\n\r\n"
            )
            data = b""
            while piece := link.recv(65_536):
                data += piece
            return data

    assert b'"user": "uid:4242"' in as_user(MALLORY, passes_on)


def test_refused_commands_are_in_the_log_and_the_log_holds(place):
    line(place.cli(MALLORY, "jobs", "cancel", place.waiting))
    listed = json.loads(good("audit", "list", "--ledger", place.ledger, "-o", "json"))["entries"]
    refusals = [entry for entry in listed if entry["command"] == "refused"]
    assert refusals and all(entry["who"] == "uid:4242 (OS user 4242)" for entry in refusals)
    assert json.loads(good("audit", "verify", "--ledger", place.ledger, "-o", "json"))["sound"]


def asked(path, method, target, body=None, headers=None):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(PATIENCE_S)
    link.connect(str(path))
    connection = http.client.HTTPConnection("localhost")
    connection.sock = link
    return answer_of(connection, method, target, body, headers or {})


def answer_of(connection, method, target, body, headers):
    try:
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
