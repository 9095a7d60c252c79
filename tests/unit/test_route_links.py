"""Links to backends: who is on the other side, whether others can read along, and that every call ends."""

import functools
import socket
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kubernetes_cases import a_pool
from kubernetes_server import failure, serving

from certificates import Authority
from chipwise.errors import InputError
from chipwise.io.deadline import run_in_time
from chipwise.route.backend import BackendDown
from chipwise.route.backends.kubernetes import api
from chipwise.route.backends.kubernetes.api import Cluster
from chipwise.route.backends.kubernetes.backend import KubernetesBackend, make
from chipwise.route.backends.ray.link import RayLink
from chipwise.route.backends.slurm.commands import Commands
from chipwise.route.backends.slurm.rest import Rest
from chipwise.route.load.pools import pools_of
from patience import ENDS_S, raised_by, until

JOBS = "/apis/batch/v1/namespaces/default/jobs"
OUTSIDE = "0.0.0.0"  # this machine, by a number that is not of loopback: what holds for others holds for it


# slurmrestd


def slurm_pools(**address):
    return {"pools": [{"name": "h", "backend": "slurm", "chip": "cpu", "count": 1, "price": 1, "address": address}]}


@pytest.mark.parametrize(
    "address",
    [
        {"rest": "http://head:6820"},
        {"rest": "http://10.0.0.1:6820"},
        {"rest": f"http://{OUTSIDE}:6820"},
        {"rest": "http://head:6820", "insecure": False},
        {"rest": "http://localhost.evil.example:6820"},
    ],
)
def test_a_slurmrestd_elsewhere_is_not_reached_in_clear(address, tmp_path):
    with pytest.raises(InputError) as error:
        pools_of(slurm_pools(**address), tmp_path)
    line = str(error.value)
    assert line.startswith("pools[0].address.rest: ") and "https://host:port" in line and "insecure: true" in line
    assert "\n" not in line
    shared = slurm_pools() | {"backends": {"slurm": address}}
    with pytest.raises(InputError, match=r"address\.rest"):
        pools_of(shared, tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        {"rest": "http://localhost:6820"},
        {"rest": "http://127.0.0.1:6820"},
        {"rest": "http://[::1]:6820"},
        {"rest": "https://head:6820"},
        {"rest": "unix:/run/slurmrestd.sock"},
        {"rest": "http://head:6820", "insecure": True},
    ],
)
def test_a_slurmrestd_on_this_machine_or_behind_tls_is_accepted(address, tmp_path):
    assert pools_of(slurm_pools(**address), tmp_path).pools[0].setting("rest") == address["rest"]


def test_insecure_is_true_or_false(tmp_path):
    with pytest.raises(InputError, match=r"pools\[0\]\.address\.insecure: .*true or false"):
        pools_of(slurm_pools(rest="http://head:1", insecure="perhaps"), tmp_path)


@contextmanager
def dripping(begin, family=socket.AF_INET, address=("127.0.0.1", 0)):
    """A server that sends `begin`, and then a byte every quarter of a second until its client has left."""
    ending, held = threading.Event(), []
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()

        def serve():
            while not ending.is_set():
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                held.append(link)
                try:
                    link.sendall(begin)
                    while not ending.wait(0.25):
                        link.sendall(b" ")
                except OSError:
                    continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            ending.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(ENDS_S)
            for link in held:
                link.close()


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nX:", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"])
def test_an_answer_of_slurmrestd_that_trickles_in_is_late(begin, tmp_path):
    with dripping(begin) as (host, port):
        error = raised_by(Rest(f"http://{host}:{port}", 1.0).jobs)
        assert isinstance(error, BackendDown) and "no whole answer within 1 s" in str(error)
    with dripping(begin, socket.AF_UNIX, str(tmp_path / "s")):
        error = raised_by(Rest(f"unix:{tmp_path}/s", 1.0).jobs)
        assert isinstance(error, BackendDown) and "no whole answer within 1 s" in str(error)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "known")


def test_slurmrestd_behind_tls_must_prove_who_it_is(authority, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JWT", "t0ken")
    good, wrong = authority.certificate("good", "IP:127.0.0.1"), authority.certificate("wrong", "DNS:head")
    for certificate, known, words in (
        (good, authority, ""),
        (good, Authority(tmp_path, "other"), "certificate verify failed"),
        (wrong, authority, "certificate verify failed"),
    ):
        with serving(certificate) as server:
            server.play("GET", "/slurm/v0.0.38/jobs", (200, {"jobs": [], "errors": []}))
            monkeypatch.setenv("SSL_CERT_FILE", str(known.file))
            error = raised_by(Rest(f"https://127.0.0.1:{server.server_port}", 20.0).jobs)
            assert words in str(error) if words else error is None, error
            assert len(server.asked) == (0 if words else 1)  # the token is shown to nobody else


# Slurm's commands


def test_a_command_that_is_late_is_killed_with_all_that_it_started(tmp_path, monkeypatch):
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > {tmp_path}/child\nwait\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BackendDown, match="squeue: no answer within 2 s"):
        Commands("", 2.0).jobs()
    child = int((tmp_path / "child").read_text())

    def gone():
        try:
            return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(gone, "its child lives on")


def test_a_program_gets_its_input_and_its_status_is_told():
    done = run_in_time(["sh", "-c", "cat; echo err >&2; exit 3"], {"PATH": "/usr/bin:/bin"}, b"words", 60.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"words", b"err\n")


# Ray


def test_a_driver_of_rays_that_never_ends_its_line_is_late():
    link = RayLink("127.0.0.1:1")
    link._driver.process = subprocess.Popen(
        ["sh", "-c", "while :; do printf x; done"], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        error = raised_by(lambda: link._read(1.0, "late"))
        assert isinstance(error, BackendDown) and "late" in str(error)
    finally:
        link.close()
    assert link.driver is None


def test_a_name_that_takes_long_to_look_up_is_given_up(monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: done.wait(ENDS_S) and [])
    monkeypatch.setattr("chipwise.route.backends.ray.link.REACH_S", 0.2)
    error = raised_by(lambda: RayLink("head:6379").ask("nodes"))
    done.set()
    assert isinstance(error, BackendDown) and "no whole answer" in str(error)


# Kubernetes


def jobs_of(pool, **more):
    backend = KubernetesBackend([pool], "cw1", functools.partial(Cluster, **more))
    try:
        return backend.list()
    finally:
        backend.close()


@pytest.fixture
def secured(authority):
    with serving(authority.certificate("api", "IP:127.0.0.1")) as server:
        for path in (JOBS, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"):
            server.play("GET", path, (200, {"items": [], "metadata": {}}))
        yield server


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # as the pool allows
def test_a_server_of_kubernetes_must_prove_who_it_is_unless_the_pool_says_otherwise(secured, authority, tmp_path):
    unverified = a_pool(kubeconfig=secured.config(tmp_path, **{"insecure-skip-tls-verify": True}))
    with pytest.raises(InputError) as error:
        make("kubernetes", [unverified], tmp_path, "cw1")
    line = str(error.value)
    assert line.startswith("pools.h100.address.kubeconfig: ") and "insecure-skip-tls-verify: true" in line
    assert "`insecure: true`" in line and "\n" not in line
    with pytest.raises(BackendDown, match="insecure-skip-tls-verify"):
        jobs_of(unverified)  # the file has changed since the router began
    assert secured.asked == []  # its token was shown to nobody
    allowed = replace(unverified, address=(*unverified.address, ("insecure", "true")))
    assert make("kubernetes", [allowed], tmp_path, "cw1").list() == []
    with pytest.raises(InputError):
        make("kubernetes", [allowed, replace(unverified, name="other")], tmp_path, "cw1")
    assert len(secured.asked) == 2
    known = a_pool(kubeconfig=secured.config(tmp_path, **{"certificate-authority": str(authority.file)}))
    assert make("kubernetes", [known], tmp_path, "cw1").list() == []
    other = Authority(tmp_path, "other")
    stranger = a_pool(kubeconfig=secured.config(tmp_path, **{"certificate-authority": str(other.file)}))
    with pytest.raises(BackendDown, match="CERTIFICATE_VERIFY_FAILED"):
        make("kubernetes", [stranger], tmp_path, "cw1").list()
    assert len(secured.asked) == 4


def test_a_server_of_kubernetes_elsewhere_is_not_reached_in_clear(tmp_path):
    with serving() as server:
        server.play("GET", JOBS, (200, {"items": [], "metadata": {}}))
        outside = a_pool(kind="job", kubeconfig=server.config(tmp_path, OUTSIDE))
        with pytest.raises(InputError, match="is not https"):
            make("kubernetes", [outside], tmp_path, "cw1")
        with pytest.raises(BackendDown, match="is not https"):
            jobs_of(outside)
        assert server.asked == []
        allowed = replace(outside, address=(*outside.address, ("insecure", "true")))
        assert make("kubernetes", [allowed], tmp_path, "cw1").list() == []


def test_a_configuration_that_cannot_be_read_is_no_refusal(tmp_path):
    for text in ("", "nonsense: [", "contexts: 3", "apiVersion: v1\ncurrent-context: x\n"):
        (tmp_path / "config").write_text(text)
        made = make("kubernetes", [a_pool(kubeconfig=str(tmp_path / "config"))], tmp_path, "cw1")
        with pytest.raises(BackendDown):
            made.list()


def test_an_answer_of_kubernetes_that_is_cut_short_or_too_long_tells_nothing(tmp_path, monkeypatch):
    with serving() as server:
        pool = a_pool(kind="job", kubeconfig=server.config(tmp_path))
        server.play("GET", JOBS, (200, b'{"items": [], "metadata": {}}', {"Content-Length": "4000"}))
        with pytest.raises(BackendDown, match="IncompleteRead"):
            jobs_of(pool, call_s=5.0)
        server.play("GET", JOBS, (200, b'{"items": [], "metadata": {}} ' + b" " * 100))
        monkeypatch.setattr(api, "MOST", 100)
        with pytest.raises(BackendDown, match="more than 100 bytes"):
            jobs_of(pool)


def test_a_list_whose_pages_never_end_is_given_up(tmp_path, monkeypatch):
    with serving() as server:
        pool = a_pool(kind="job", kubeconfig=server.config(tmp_path))
        server.play("GET", JOBS, (200, {"items": [], "metadata": {"continue": "more"}}))
        monkeypatch.setattr(api, "LIST_S", 1.0)
        error = raised_by(lambda: jobs_of(pool))
        assert isinstance(error, BackendDown) and "no whole list within 1 s" in str(error)
        expired = (410, failure(410, "Expired", "The provided continue parameter is too old"))
        server.play("GET", JOBS, expired)
        with pytest.raises(BackendDown, match="expired"):
            jobs_of(pool)
