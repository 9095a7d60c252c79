"""Slurm's cloud nodes for real: slurmctld calls the written programs against a cloud that has stockouts.

No node is left down, jobs go on or fall back, and slices come and go as a whole.
"""

import json
import subprocess

import pytest
from cloud_slurm import CloudSlurm, written
from command import chipwise, good
from slurm_cluster import missing

from patience import until

pytestmark = pytest.mark.service
POOLS = [
    {"name": "v5p", "backend": "slurm", "chip": "v5p", "count": 8, "shapes": ["2x2x2"], "cloud": "gcp", "price": 1.2},
    {"name": "h200", "backend": "slurm", "chip": "h200", "count": 16, "unit": 8, "cloud": "gcp", "price": 3.0,
     "terms": "spot"},
]  # fmt: skip
SLICE, HOSTS = "lab-v5p-0", ["lab-v5p-0-0", "lab-v5p-0-1"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    if missing():
        pytest.fail(f"{', '.join(missing())} not installed: run make packages")
    where = ("--name", "lab", "--region", "us-east5", "--zone", "us-east5-a")
    return written(tmp_path_factory.mktemp("deployed"), POOLS, *where)


@pytest.fixture(scope="module")
def cluster(tree):
    with CloudSlurm(tree=tree) as started:
        yield started


def submit(cluster, partition, *options, command="sleep 600"):
    line = ("sbatch", "--parsable", f"--partition={partition}", "--output=/dev/null", *options, f"--wrap={command}")
    return cluster.command(*line).strip()


def job(cluster, number):
    return cluster.command("squeue", "--noheader", f"--jobs={number}", "--format=%T", check=False).strip()


def powered_down(cluster, *nodes):
    return all({"idle", "powered_down"} <= cluster.states()[node] for node in nodes)


def test_the_programs_say_what_the_site_lacks(tree):
    done = subprocess.run([tree / "power" / "check"], capture_output=True, text=True)
    assert done.returncode == 2 and "site.json: values lacks project (the Google Cloud project); network" in done.stderr


def test_every_node_of_the_written_files_is_there_and_powered_down(cluster):
    states = cluster.states()
    assert sorted(states) == sorted([*HOSTS, "lab-h200-0", "lab-h200-1"])
    assert powered_down(cluster, *states)
    check = subprocess.run([cluster.power / "check"], env=cluster.environment, capture_output=True)
    assert check.returncode == 0, check


def test_a_stockout_drains_the_pool_for_a_while_and_leaves_no_node_down(cluster):
    cluster.stockout("h200-a", "h200-b")
    number = submit(cluster, "h200", "--gres=gpu:h200:8", "--no-requeue")
    until(lambda: "drain" in cluster.states()["lab-h200-0"] and "drain" in cluster.states()["lab-h200-1"])
    assert job(cluster, number) in ("", "NODE_FAIL")  # it may not run twice: its submitter hears of it
    asked = [call for call in cluster.calls() if call[0] == "create"]
    assert [placement for _, placement, _ in asked] == ["h200-a", "h200-b"]  # each placement once, one machine
    cluster.stockout()
    until(lambda: cluster.sync() and powered_down(cluster, "lab-h200-0", "lab-h200-1") and not undrained(cluster))
    number = submit(cluster, "h200", "--gres=gpu:h200:8", "--requeue")
    until(lambda: cluster.machines() == ["lab-h200-0"] or cluster.machines() == ["lab-h200-1"])
    cluster.command("scancel", number)


def undrained(cluster):
    return [node for node, states in cluster.states().items() if "drain" in states]


@pytest.mark.slow
def test_a_slice_comes_and_goes_as_a_whole(cluster):
    number = submit(cluster, "v5p", "--nodes=2", "--gres=tpu:v5p:4", command="sleep 1")
    until(lambda: job(cluster, number) == "RUNNING")
    assert cluster.machines().count(SLICE) == 1
    until(lambda: SLICE not in cluster.machines())
    until(lambda: powered_down(cluster, *HOSTS))
    removed = [call for call in cluster.calls() if call == ("remove", "v5p-a", SLICE)]
    assert len(removed) == 1


@pytest.mark.slow
def test_a_preempted_machine_is_noticed_and_its_job_goes_on_elsewhere(cluster):
    number = submit(cluster, "h200", "--gres=gpu:h200:8", "--requeue")
    until(lambda: job(cluster, number) == "RUNNING")
    (machine,) = (name for name in cluster.machines() if "h200" in name)
    cluster.take(machine)
    assert f"{machine}: gone" in cluster.sync().stderr
    until(lambda: job(cluster, number) == "RUNNING" and machine_of(cluster, number) != "")
    assert not [node for node, states in cluster.states().items() if "down" in states]
    cluster.command("scancel", number)


def machine_of(cluster, number):
    return cluster.command("squeue", "--noheader", f"--jobs={number}", "--format=%N", check=False).strip()


@pytest.mark.slow
def test_nodes_that_never_register_are_given_back(tree):
    with CloudSlurm(tree=tree, times={"ResumeTimeout": 8}) as cluster:
        (cluster.cloud / "silent").touch()
        number = submit(cluster, "v5p", "--nodes=2", "--gres=tpu:v5p:4", "--requeue")
        until(lambda: ("remove", "v5p-a", SLICE) in cluster.calls())
        until(lambda: all("powered_down" in cluster.states()[host] for host in HOSTS))
        assert not [node for node, states in cluster.states().items() if "down" in states]
        assert job(cluster, number) == "PENDING"
        # a machine that nobody wants, as a controller that was killed leaves
        stray = cluster.cloud / "machines" / "h200-a"
        stray.mkdir(parents=True, exist_ok=True)
        (stray / "lab-h200-1").write_text("[]")
        settings = json.loads((cluster.power / "site.json").read_text())
        (cluster.power / "site.json").write_text(json.dumps({**settings, "orphan_s": 0}))
        until(lambda: cluster.sync() and "lab-h200-1" not in cluster.machines())


@pytest.mark.slow
def test_the_router_falls_back_when_machines_are_out_of_stock(cluster, tree, tmp_path):
    ledger, jobs = tmp_path / "ledger.db", tmp_path / "jobs.yaml"
    pools = tmp_path / "pools.yaml"
    document = (tree / "pools.yaml").read_text()
    pools.write_text(f"folder: {tmp_path}/shared\nbackends: {{slurm: {{conf: {cluster.conf}}}}}\n{document}")
    variants = {"tpu": {"chips": 8, "command": ["sleep", "1"]}, "gpu": {"chips": 8, "command": ["sleep", "1"]}}
    both = {"name": "both", "variants": variants, "estimates": {"tpu": "10s", "gpu": "30s"}, "retries": 3}
    jobs.write_text(json.dumps({"jobs": [both, {**both, "name": "again"}]}))
    cluster.stockout("v5p-a", "v5p-b")
    files = ("--pools", pools, "--ledger", ledger)
    good("jobs", "submit", jobs, *files, env=cluster.environment)
    line = ("router", "run", *files, "--policy", "fastest", "--interval", "1s", "--until-idle")
    router = chipwise(*line, env=cluster.environment)
    assert router.returncode == 0, router.stderr
    rows = json.loads(good("jobs", "list", "--ledger", ledger, "-o", "json"))["jobs"]
    assert [row["state"] for row in rows] == ["succeeded", "succeeded"]
    words = good("jobs", "explain", str(rows[0]["id"]), "--ledger", ledger)
    assert "v5p" in words and "h200" in words
    cluster.stockout()
