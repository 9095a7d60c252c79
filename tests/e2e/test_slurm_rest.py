"""slurmrestd of a real cluster, through its unix socket, as a user who is not root: it refuses to run as root."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster
from slurm_jobs import GPU, TPU, launch

from chipwise.route.backend import BackendDown, BackendRefused
from chipwise.route.backends.slurm.backend import SlurmBackend
from patience import until

pytestmark = pytest.mark.service

NOBODY = 65534  # of every Linux
OTHER = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


@pytest.fixture(scope="module")
def rest():
    """A cluster with a slurmrestd, which runs as nobody where the tests run as root."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    if shutil.which("slurmrestd", path=path) is None:
        pytest.fail("slurmrestd is not installed: run make packages")
    with SlurmCluster() as cluster:
        place = cluster.scratch / "rest"
        place.mkdir()
        (cluster.scratch / "jobs").chmod(0o777)
        if OTHER:
            os.chown(place, NOBODY, NOBODY)
        line = ["slurmrestd", "-a", "rest_auth/local", "-s", "openapi/v0.0.38", f"unix:{place}/socket"]
        with (cluster.scratch / "log" / "rest.out").open("ab") as out:
            daemon = subprocess.Popen(
                line,
                env=cluster.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                **OTHER,
            )
        try:
            until(lambda: (place / "socket").exists() or daemon.poll() is not None, "slurmrestd made no socket")
            yield cluster, f"unix:{place}/socket"
        finally:
            os.killpg(daemon.pid, signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()


@pytest.fixture
def site(rest, request):
    """A backend, and a folder that the user of slurmrestd may write to."""
    cluster, address = rest
    folder = cluster.scratch / "jobs" / request.node.name
    folder.mkdir()
    uid = f"r{len(list((cluster.scratch / 'jobs').iterdir()))}"
    return SlurmBackend(uid, lambda attempt: folder / "attempts" / attempt, {"rest": address, "timeout": "20"}), folder


def python():
    """A Python that the user of slurmrestd may run: root's own often lies in root's home."""
    for each in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        line = [each, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]
        with suppress(OSError):
            if subprocess.run(line, cwd="/", capture_output=True, check=False, **OTHER).returncode == 0:
                return each
    pytest.skip("no Python that another user may run")


def shared(backend, folder, number, command, pool=TPU, **more):
    """A launch in a folder that everybody may write to: jobs run as the user of slurmrestd, who is not the tests' own."""
    pool = replace(pool, address=tuple((k, python() if k == "python" else v) for k, v in pool.address))
    made = launch(folder, f"{backend.ledger}-{number}-1", command, pool=pool, **more)
    for each in (folder, made.folder.parent, made.folder):
        Path(each).chmod(0o777)
    (made.folder / "launch.json").chmod(0o644)
    return made


def ended(backend, attempt):
    """An attempt once it has ended."""
    return until(
        lambda: next(
            (s for s in backend.list() if s.attempt == attempt and s.state not in ("pending", "running")), None
        ),
        f"{attempt} has not ended",
    )


def test_jobs_are_submitted_listed_and_their_ends_known(site):
    backend, folder = site
    words = ["a  b", "$(id)", "\n", "'\"", "é"]
    good = shared(backend, folder, 1, [python(), "-c", "import sys; print(ascii(sys.argv[1:]))", *words])
    bad = shared(backend, folder, 2, ["sh", "-c", "exit 3"], pool=GPU, chips=2)
    jobs = backend.submit(good), backend.submit(bad)
    found = ended(backend, good.attempt), ended(backend, bad.attempt)
    assert [(s.backend_id, s.state, s.exit_code) for s in found] == [(jobs[0], "succeeded", 0), (jobs[1], "failed", 3)]
    assert (good.folder / "output").read_text() == f"{words!a}\n"
    assert found[0].where.startswith("v5e-") and found[1].where.startswith("h200-")


@pytest.mark.slow
def test_a_gang_runs_on_each_node(site):
    backend, folder = site
    made = shared(backend, folder, 1, ["sh", "-c", "echo $SLURMD_NODENAME"], pool=GPU, chips=16)
    backend.submit(made)
    assert ended(backend, made.attempt).state == "succeeded"
    assert sorted((made.folder / "output").read_text().split()) == ["h200-0", "h200-1"]


@pytest.mark.slow
def test_capacity_falls_with_what_runs_and_cancelling_gives_it_back(site):
    backend, folder = site
    made = shared(backend, folder, 1, ["sleep", "60"], pool=GPU, chips=3)
    job = backend.submit(made)
    until(lambda: [s.state for s in backend.list()] == ["running"], "it does not run")
    assert [(r.total, r.free) for r in backend.capacity([GPU, TPU]).values()] == [(16, 13), (8, 8)]
    backend.cancel(job)
    assert ended(backend, made.attempt).state == "cancelled"
    backend.cancel(job)
    backend.cancel("999999")
    until(lambda: backend.capacity([GPU])["h200"].free == 16, "chips are still held")
    assert backend.predicted_start(made) is None


def test_it_can_keep_no_job_off_a_node_and_says_so(site):
    backend, _ = site
    assert backend.node_names(GPU) == ()  # so that none is drained
    assert backend.capacity([replace(GPU, avoid=("h200-0",))])["h200"].down == 8


def test_what_slurm_refuses_is_refused_in_its_words(site):
    backend, folder = site
    with pytest.raises(BackendRefused, match="Requested node configuration is not available"):
        backend.submit(shared(backend, folder, 1, ["true"], pool=replace(TPU, unit=1), chips=5))


@pytest.mark.slow
def test_a_job_that_is_not_restartable_is_lost_when_slurm_starts_it_again(site, rest):
    backend, folder = site
    made = shared(backend, folder, 1, ["sh", "-c", "echo run; sleep 60"])
    job = backend.submit(made)
    until(lambda: (made.folder / "output").exists() and (made.folder / "output").read_text(), "it does not run")
    rest[0].command("scontrol", "requeue", job)
    found = ended(backend, made.attempt)
    assert (
        found.state == "lost" and "not restartable" in found.reason and (made.folder / "output").read_text() == "run\n"
    )


def test_a_daemon_that_answers_nonsense_or_nothing_is_down(site, rest, tmp_path):
    import http.server
    import threading

    class Nonsense(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>proxy</html>")

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Nonsense)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for address in (f"http://127.0.0.1:{server.server_port}", f"unix:{tmp_path}/nothing"):
            with pytest.raises(BackendDown, match="slurmrestd"):
                SlurmBackend("u", lambda a: tmp_path / a, {"rest": address, "timeout": "5"}).list()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
