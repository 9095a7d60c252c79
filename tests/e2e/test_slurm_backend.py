# ruff: noqa: F401, F811 - fixtures are imported
"""The Slurm backend on a real cluster of GPU and TPU nodes: what is asked for runs, once, and its end is known."""

import json
import os
import re
import sys
import time
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
from slurm_cluster import SlurmCluster, backend, backend_on, cluster
from slurm_jobs import GPU, TPU, launch

from backend_contract import BackendContract, with_folder
from chipwise.route.backend import BackendDown, BackendRefused
from patience import until

pytestmark = pytest.mark.service

HOSTILE = [
    "",
    " ",
    "a b",
    "$(touch pwned)",
    "`id`",
    "; rm -rf x",
    "'\"",
    "\\",
    "\n#SBATCH --nodes=9\n",
    "%j%%",
    "*",
    "--help",
    "-",
    "é\u202e💥",
    "a=b",
    "\udcff\udc80",
]
DUMP = "import sys, os; open('dump', 'wb').write(b'\\0'.join([os.fsencode(a) for a in sys.argv[1:]] + [os.environb[b'HOSTILE']]))"


def seen(backend, attempt):
    """The jobs of an attempt."""
    return [each for each in backend.list() if each.attempt == attempt]


def ended(backend, attempt):
    """An attempt once it has ended."""

    def over():
        found = seen(backend, attempt)
        return found[0] if found and found[0].state in ("succeeded", "failed", "lost", "cancelled") else None

    return until(over, f"{attempt} has not ended")


def running(backend, attempt):
    """An attempt once its program has claimed it."""
    return until(
        lambda: next(
            (
                s
                for s in seen(backend, attempt)
                if s.state == "running" and (backend.folder_of(attempt) / "claim").exists()
            ),
            None,
        ),
        f"{attempt} does not run",
    )


NUMBERS = count(1000)


class Site:
    """Attempts as jobs of Slurm's."""

    def __init__(self, backend, cluster, folder):
        self.backend, self.cluster, self.folder = backend, cluster, folder

    def another(self):
        return backend_on(self.cluster, self.folder)

    def launch(self, script):
        attempt = f"u-{next(NUMBERS)}-1"  # no other backend on this cluster has seen it
        own = self.folder / "attempts" / attempt
        return launch(self.folder, attempt, [sys.executable, "-c", with_folder(script, own)])

    def lose(self, one):
        self.cluster.node_down(running(self.backend, one.attempt).where)


class TestContract(BackendContract):
    @pytest.fixture
    def site(self, backend, cluster, tmp_path):
        return Site(backend, cluster, tmp_path)


def test_a_job_runs_on_its_own_chips_and_leaves_its_output(backend, tmp_path):
    made = launch(tmp_path, "u-1-1", ["sh", "-c", "echo on $SLURMD_NODENAME with $CHIPWISE_CHIPS"])
    job = backend.submit(made)
    found = ended(backend, "u-1-1")
    assert (found.state, found.exit_code, found.backend_id, found.restarts) == ("succeeded", 0, job, 0)
    assert re.fullmatch(r"v5e-[01]", found.where) and found.started <= found.ended <= time.time()
    assert (made.folder / "output").read_text() == f"on {found.where} with 4\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["/no/such/program"], 127, "No such file"),
        (["sh", "-c", "kill -9 $$"], 137, ""),
    ],
    ids=["by its own status", "not found", "killed"],
)
def test_a_failure_has_the_programs_own_status(backend, tmp_path, command, code, words):
    backend.submit(launch(tmp_path, "u-1-1", command))
    found = ended(backend, "u-1-1")
    assert (found.state, found.exit_code) == ("failed", code) and words in found.reason


def test_a_gang_runs_once_on_each_of_its_nodes(backend, tmp_path):
    made = launch(
        tmp_path,
        "u-2-1",
        ["sh", "-c", 'echo $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME "$1"', "x", "a  'b"],
        pool=GPU,
        chips=16,
    )
    backend.submit(made)
    assert ended(backend, "u-2-1").where == "h200-[0-1]"
    assert sorted((made.folder / "output").read_text().splitlines()) == [
        "0 of 2 on h200-0 a  'b",
        "1 of 2 on h200-1 a  'b",
    ]


def test_capacity_is_what_working_nodes_have_left(backend, cluster, tmp_path):
    assert backend.capacity([GPU, TPU])["h200"].free == 16
    backend.submit(launch(tmp_path, "u-1-1", ["sleep", "60"]))
    backend.submit(launch(tmp_path, "u-2-1", ["sleep", "60"], pool=GPU, chips=3))
    running(backend, "u-1-1"), running(backend, "u-2-1")
    rooms = backend.capacity([GPU, replace(GPU, name="hosts", unit=8), TPU, replace(GPU, name="few", count=4)])
    assert [(rooms[n].total, rooms[n].free, rooms[n].down) for n in ("h200", "hosts", "v5e", "few")] == [
        (16, 13, 0),
        (16, 8, 0),
        (8, 4, 0),
        (4, 4, 0),
    ]
    assert rooms["h200"].note == "at most 8 free on one node"
    cluster.node_down("h200-1")
    room = backend.capacity([GPU])["h200"]
    assert (room.total, room.down) == (8, 8) and room.free <= 8
    assert "no node of Slurm's has" in backend.capacity([replace(TPU, address=(("partition", "gpu"),))])["v5e"].note


def test_nothing_starts_on_a_node_that_is_drained(backend, tmp_path):
    """And a name that Slurm does not have (a node that is gone since) spoils nothing."""
    at = replace(GPU, avoid=("gone-7", "h200-0"))
    room = backend.capacity([at])["h200"]
    assert (room.total, room.free, room.down) == (8, 8, 8)
    for number in range(3):
        backend.submit(launch(tmp_path, f"u-{number}-1", ["sh", "-c", "echo $SLURMD_NODENAME"], pool=at, chips=8))
    assert [ended(backend, f"u-{number}-1").where for number in range(3)] == ["h200-1"] * 3
    assert sorted(backend.node_names(GPU)) == ["h200-0", "h200-1"]


def test_tables_say_the_same_as_json(backend, cluster, tmp_path):
    for number, command in enumerate((["true"], ["false"], ["sleep", "60"]), 1):
        backend.submit(launch(tmp_path, f"u-{number}-1", command))
    cluster.node_down("h200-0")
    ended(backend, "u-1-1"), ended(backend, "u-2-1"), running(backend, "u-3-1")
    jobs, rooms = backend.list(), backend.capacity([GPU, TPU])
    backend.link._json = {"squeue": False, "sinfo": False}
    assert backend.list() == jobs and len(jobs) == 3
    assert backend.capacity([GPU, TPU]) == rooms


def test_what_slurm_can_never_place_is_refused_in_its_words(backend, tmp_path):
    with pytest.raises(BackendRefused, match="Requested node configuration is not available"):
        backend.submit(launch(tmp_path, "u-1-1", ["true"], pool=replace(TPU, unit=1), chips=5))
    nowhere = replace(TPU, address=(("partition", "nowhere"),))
    with pytest.raises(BackendRefused, match="Invalid partition name"):
        backend.submit(launch(tmp_path, "u-2-1", ["true"], pool=nowhere))
    assert backend.predicted_start(launch(tmp_path, "u-3-1", ["true"], pool=nowhere)) is None


def test_a_start_is_predicted_from_the_time_limits_of_what_runs(backend, tmp_path):
    now = time.time()
    assert abs(backend.predicted_start(launch(tmp_path, "u-9-1", ["true"])) - now) < 60
    for number in (1, 2):
        backend.submit(launch(tmp_path, f"u-{number}-1", ["sleep", "60"], time_limit=3600))
    running(backend, "u-1-1"), running(backend, "u-2-1")
    assert 3000 < backend.predicted_start(launch(tmp_path, "u-9-1", ["true"])) - now < 4500


def test_cancelled_is_cancelled_whether_it_waits_or_runs(backend, tmp_path):
    jobs = [backend.submit(launch(tmp_path, f"u-{n}-1", ["sleep", "60"])) for n in (1, 2, 3)]
    running(backend, "u-1-1"), running(backend, "u-2-1")
    assert seen(backend, "u-3-1")[0].state == "pending"
    for job in (jobs[2], jobs[0], jobs[0]):
        backend.cancel(job)
    assert ended(backend, "u-3-1").state == ended(backend, "u-1-1").state == "cancelled"
    backend.cancel(jobs[0])
    backend.cancel("999999")
    with pytest.raises(BackendRefused, match="is no id of a job"):
        backend.cancel("1; scancel --user=root")


def test_two_jobs_of_one_attempt_are_both_listed_and_run_once(backend, tmp_path):
    made = launch(tmp_path, "u-1-1", ["sh", "-c", "echo run; sleep 3"])
    first, second = backend.submit(made), backend.submit(made)
    assert {s.backend_id for s in seen(backend, "u-1-1")} == {first, second}
    until(
        lambda: (
            [s.backend_id for s in seen(backend, "u-1-1")] == [first] and seen(backend, "u-1-1")[0].state == "succeeded"
        ),
        "the second did not leave",
    )
    assert (made.folder / "output").read_text() == "run\n"


def test_hostile_words_arrive_byte_for_byte(backend, tmp_path):
    folder = tmp_path / "a 'b' $(touch pwned) %j \"é"
    backend.folder_of = lambda attempt: folder / "attempts" / attempt
    for number, pool in ((1, TPU), (2, replace(GPU, address=(*GPU.address, ("cpus", "2"))))):
        made = launch(
            folder,
            f"u-{number}-1",
            [sys.executable, "-c", DUMP, *HOSTILE],
            pool=pool,
            chips=4 if pool is TPU else 16,
            variables=[("HOSTILE", "".join(HOSTILE))],
            name="\n#SBATCH -N9 $(x)",
        )
        backend.submit(made)
        assert ended(backend, f"u-{number}-1").state == "succeeded", (made.folder / "output").read_text()
        words = [os.fsencode(word) for word in (*HOSTILE, "".join(HOSTILE))]
        assert (made.folder / "dump").read_bytes().split(b"\0") == words
    assert not list(tmp_path.rglob("pwned"))


def test_secrets_reach_the_program_and_nothing_else(backend, cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "hush-4711")
    monkeypatch.setenv("ANOTHER", "hush-4712")
    made = launch(
        tmp_path,
        "u-1-1",
        ["sh", "-c", 'test "${A_TOKEN%-*}" = hush -a "${A_TOKEN#*-}" = 4711 -a -z "$ANOTHER"'],
        secrets=["A_TOKEN"],
    )
    assert "hush-47" not in backend.render(made)
    backend.submit(made)
    assert ended(backend, "u-1-1").state == "succeeded"
    assert "hush-47" not in cluster.command("scontrol", "show", "job", "-dd")
    assert not [p for p in made.folder.rglob("*") if p.is_file() and b"hush-47" in p.read_bytes()]
    with pytest.raises(BackendRefused, match="the router's environment has no MISSING_TOKEN"):
        backend.submit(launch(tmp_path, "u-2-1", ["true"], secrets=["MISSING_TOKEN"]))
    with pytest.raises(
        BackendRefused, match=r"may not hand ANOTHER to jobs; expected secrets: \[ANOTHER\].*backends.slurm"
    ):
        backend.submit(launch(tmp_path, "u-3-1", ["true"], secrets=["A_TOKEN", "ANOTHER"]))
    assert not [seen for seen in backend.list() if seen.attempt == "u-3-1"]


def test_a_time_limit_ends_the_program(backend, tmp_path):
    for number in range(1, 6):  # as a router does: a busy node may not start a job in time, which is lost then
        backend.submit(launch(tmp_path, f"u-{number}-1", ["sleep", "60"], time_limit=1.0))
        found = ended(backend, f"u-{number}-1")
        if found.state != "lost":
            break
    assert found.state == "failed" and "time limit of 1 s" in found.reason


def test_a_requeued_job_is_the_same_attempt_and_goes_on(backend, cluster, tmp_path):
    script = (
        'echo "restart ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME"; [ -n "$SLURM_RESTART_COUNT" ] || exec sleep 60'
    )
    made = launch(tmp_path, "u-1-1", ["sh", "-c", script], restartable=True)
    job = backend.submit(made)
    first, output = running(backend, "u-1-1"), made.folder / "output"
    until(lambda: output.exists() and output.read_text(), "the program has not begun")
    cluster.node_down(first.where)
    until(lambda: seen(backend, "u-1-1")[0].state == "pending", "it is not back in the queue")
    assert seen(backend, "u-1-1")[0].restarts == 1
    found = ended(backend, "u-1-1")
    assert (found.state, found.backend_id, found.restarts) == ("succeeded", job, 1) and found.where != first.where
    assert (made.folder / "output").read_text() == f"restart 0 on {first.where}\nrestart 1 on {found.where}\n"


@pytest.mark.parametrize("restartable", [True, False])
def test_a_job_that_its_node_can_not_start_is_lost_and_never_runs(tmp_path, restartable):
    prolog, sick = tmp_path / "prolog", tmp_path / "sick"
    prolog.write_text(f"#!/bin/sh\n[ ! -e {sick} ]\n")
    prolog.chmod(0o755)
    sick.touch()
    with SlurmCluster(nodes={"v5e-0": ("tpu", "v5e", 4)}, extra=f"Prolog={prolog}\n") as cluster:
        backend = backend_on(cluster, tmp_path)
        job = backend.submit(launch(tmp_path, "u-1-1", ["true"], restartable=restartable))
        found = ended(backend, "u-1-1")
        assert (found.state, found.backend_id) == ("lost", job) and "its node could not start it" in found.reason
        until(
            lambda: "CANCELLED" in cluster.command("squeue", "--states=all", "--noheader", "--format=%T"), "it is held"
        )
        assert ended(backend, "u-1-1").state == "lost"  # for another router as well
        sick.unlink()
        cluster.command("scontrol", "update", "nodename=v5e-0", "state=resume")
        backend.submit(launch(tmp_path, "u-1-2", ["true"]))
        assert ended(backend, "u-1-2").state == "succeeded"
        assert not (launch(tmp_path, "u-1-1", ["true"]).folder / "output").exists()


def test_the_folder_tells_what_slurm_has_forgotten(tmp_path):
    with SlurmCluster(nodes={"v5e-0": ("tpu", "v5e", 4)}, min_job_age=2) as short:
        backend = backend_on(short, tmp_path)
        for number, command in enumerate((["true"], ["sh", "-c", "exit 7"]), 1):
            backend.submit(launch(tmp_path, f"u-{number}-1", command))
        until(
            lambda: all((tmp_path / f"attempts/u-{n}-1/end").exists() for n in (1, 2)) and not backend.list(),
            "Slurm does not forget",
        )
        found = {s.attempt: s for s in backend.status([("u-1-1", "1"), ("u-2-1", ""), ("u-3-1", "")])}
        assert {k: (s.state, s.exit_code) for k, s in found.items()} == {
            "u-1-1": ("succeeded", 0),
            "u-2-1": ("failed", 7),
        }
        (tmp_path / "attempts/u-2-1/end").unlink()
        assert backend.status([("u-2-1", "2")]) == []  # the router gives it up when it stays so


def test_a_program_that_slurm_has_forgotten_runs_on(tmp_path):
    """A controller that is killed forgets what was submitted since it last saved its jobs; their programs run on."""
    with SlurmCluster(nodes={"v5e-0": ("tpu", "v5e", 4)}) as cluster:
        backend, runs, go = backend_on(cluster, tmp_path), tmp_path / "runs", tmp_path / "go"
        wait = f"touch {runs}; while [ ! -e {go} ]; do sleep 0.05; done"
        backend.submit(launch(tmp_path, "u-1-1", ["sh", "-c", wait]))
        until(runs.exists, "it does not start")
        cluster.forget_jobs()
        assert backend.list() == []
        (running,) = backend.status([("u-1-1", "1")])
        assert running.state == "running", running
        assert "no longer knows job 1, whose program still runs" in running.reason
        assert backend.submit(launch(tmp_path, "u-2-1", ["true"])) == "1"  # a number that was given before
        assert len(backend.status([("u-1-1", "1")])) == 1
        backend.cancel("1")
        assert [(found.attempt, found.state) for found in backend.list()] == [("u-2-1", "pending")]
        go.touch()
        until(lambda: backend.status([("u-1-1", "1")])[0].state == "succeeded", "its end is not seen")


def test_a_controller_that_is_away_is_never_an_empty_queue(tmp_path):
    with SlurmCluster(nodes={"v5e-0": ("tpu", "v5e", 4)}, extra="MessageTimeout=3\n") as small:
        backend = backend_on(small, tmp_path)
        made = launch(tmp_path, "u-1-1", ["sleep", "60"])
        job = backend.submit(made)
        running(backend, "u-1-1")
        small._end("slurmctld")
        for ask in (backend.list, lambda: backend.capacity([TPU]), lambda: backend.submit(made)):
            with pytest.raises(BackendDown, match=r"slurm: (squeue|sinfo|sbatch)"):
                ask()
        quick = backend_on(small, tmp_path, timeout="0.5")
        for ask in (quick.list, lambda: quick.cancel(job), lambda: quick.predicted_start(made)):
            with pytest.raises(BackendDown, match=r"no answer within 0.5 s"):
                ask()
        small._daemon("slurmctld", ["slurmctld", "-D"])
        small.wait_for_nodes()
        assert [(s.backend_id, s.state) for s in backend.list()] == [(job, "running")]


def unread(tmp_path):
    """A cluster whose configuration is there and says nothing."""
    (tmp_path / "slurm.conf").touch()
    return SimpleNamespace(conf=str(tmp_path / "slurm.conf"))


@pytest.mark.parametrize(
    "answer",
    [
        "echo garbage",
        "echo '[]'",
        "echo '{\"jobs\": 3}'",
        'echo \'{"jobs": [{"job_id": 1}]}\'',
        "true",
        "exit 9",
        'echo \'{"jobs": [], "errors": [{"error": "Unable to contact slurm controller"}]}\'',
        "kill -9 $$",
        "head -c 100000 /dev/urandom",
        'echo \'{"jobs": [{"job_id": 1, "name": "u-1-1", "job_state": "DANCING"}]}\'',
    ],
)
def test_nonsense_is_no_answer(tmp_path, monkeypatch, answer):
    for command in ("squeue", "sbatch"):
        (tmp_path / command).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    backend = backend_on(unread(tmp_path), tmp_path)
    with pytest.raises(BackendDown, match=r"^slurm: squeue") as error:
        backend.list()
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    with pytest.raises(BackendDown, match=r"^slurm: sbatch"):
        backend.submit(launch(tmp_path, "u-1-1", ["true"]))


def test_missing_commands_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendDown, match="slurm-client"):
        backend_on(unread(tmp_path), tmp_path).list()


def test_a_configuration_that_is_not_there_is_said_at_once(tmp_path):
    with pytest.raises(BackendDown, match=r"slurm: /nowhere: there is no such file \(conf\)"):
        backend_on(SimpleNamespace(conf="/nowhere"), tmp_path).list()


def test_a_render_is_what_is_submitted(backend, cluster, tmp_path):
    made = launch(tmp_path, "u-1-1", ["sleep", "60"], restartable=True, time_limit=600)
    backend.submit(made)
    text = backend.render(made)
    shown = cluster.command("scontrol", "show", "job", running(backend, "u-1-1").backend_id)
    for asked, got in (
        ("--job-name=u-1-1", "JobName=u-1-1"),
        ("--time=0-00:12:30", "TimeLimit=00:13:00"),
        ("--requeue", "Requeue=1"),
        ("--gres=tpu:v5e:4", "TresPerNode=gres:tpu:v5e:4"),
        ("'--comment=chipwise u-1-1'", "Comment=chipwise u-1-1"),
        ("--partition=tpu", "Partition=tpu"),
    ):
        assert asked in text and got in shown
    assert json.loads(text.split("# launch.json\n")[1].split("\n\n")[0])["argv"] == ["sleep", "60"]


@pytest.mark.slow
def test_a_node_that_loses_power_gives_its_job_to_another(backend, cluster, tmp_path):
    for number, restartable in ((1, True), (2, False)):
        script = 'echo run; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'
        backend.submit(launch(tmp_path, f"u-{number}-1", ["sh", "-c", script], restartable=restartable))
    nodes = {running(backend, f"u-{n}-1").where for n in (1, 2)}
    for node in nodes:
        cluster.kill_node(node)
    assert ended(backend, "u-2-1").state == "lost"
    for node in nodes:
        cluster.start_node(node)
    found = ended(backend, "u-1-1")
    assert (found.state, found.restarts) == ("succeeded", 1)
    assert [(tmp_path / f"attempts/u-{n}-1/output").read_text() for n in (1, 2)] == ["run\nrun\n", "run\n"]
