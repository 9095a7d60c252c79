# ruff: noqa: F401, F811 - fixtures are imported
"""Fallback on a real Slurm cluster: a full pool, a node that dies, a variant that fails; each is explained."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from command import chipwise, good
from prometheus_client import CollectorRegistry, Gauge, start_http_server
from slurm_cluster import cluster
from slurm_route import Site

from patience import leave, until

pytestmark = pytest.mark.service

PROGRAM = """\
import os, sys, time
from pathlib import Path

kept = Path(os.environ["CHIPWISE_CHECKPOINT"])
kept.mkdir(parents=True, exist_ok=True)
step = int((kept / "step").read_text()) if (kept / "step").exists() else 0
print(f"from step {step}", flush=True)
while not Path(sys.argv[1]).exists():
    time.sleep(0.05)
    step += 1
    (kept / "draft").write_text(str(step))
    (kept / "draft").replace(kept / "step")
print("done", flush=True)
"""


@pytest.fixture
def site(cluster, tmp_path):
    """A site on an emptied cluster, with a router at work."""
    made = Site(cluster, tmp_path)
    router = made.router()
    yield made
    leave(router)
    cluster.cancel_all()
    for node in cluster.nodes:
        cluster.start_node(node, wait=False)
        cluster.command("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    cluster.wait_for_nodes()


def job(name, tpu, gpu, **more):
    """A job with a variant for each family."""
    return {
        "name": name,
        "variants": {"tpu": {"chips": 4, "command": tpu}, "gpu": {"chips": 8, "command": gpu}},
        "estimates": {"tpu": "10s", "gpu": "30s"},
        **more,
    }


def sleeper(seconds="600"):
    """A command that holds its chips."""
    return ["sleep", seconds]


def test_the_gpu_variant_runs_with_its_own_command_when_tpus_are_taken(site):
    full = site.submit(
        *(
            {"name": f"full-{n}", "variants": {"tpu": {"chips": 4, "command": sleeper()}}, "estimates": {"tpu": "600s"}}
            for n in range(2)
        )
    )
    for each in full:
        site.running(each)
    (mine,) = site.submit(job("mine", ["echo", "tpu words"], ["sh", "-c", "echo gpu words on $SLURMD_NODENAME"]))
    site.over(mine)
    (attempt,) = site.attempts(mine)
    assert (site.row(mine).state, attempt.pool, attempt.variant) == ("succeeded", "h200", "gpu")
    assert re.fullmatch(r"gpu words on h200-[01]\n", site.output(attempt))
    told = site.explained(mine)
    assert re.search(r"start in h200 as gpu: h200: 30\.0 s, starts now; v5e: [0-9.]+ min, starts in [0-9.]+ min", told)
    assert "attempt 1: submitted: h200 knows it as" in told and "succeeded, at attempt 1 in h200 as gpu" in told


def trains(site, folder, hurt):
    """Run the program, hurt the cluster once it has a checkpoint, let it end once it runs elsewhere; job, first, last attempt."""
    program, kept, go = folder / "program.py", folder / "kept", folder / "go"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(go)]
    (mine,) = site.submit(job("train", command, command, checkpoint={"every": "0.1s", "folder": str(kept)}))
    first = site.running(mine)
    until(lambda: (kept / "step").exists() and int((kept / "step").read_text()) > 3, "no checkpoint")
    hurt(first.where)
    last = until(
        lambda: next((a for a in site.attempts(mine) if a.state == "running" and a.where != first.where), None),
        lambda: f"it does not go on elsewhere: {site.log()}",
    )
    go.touch()
    site.over(mine)
    said = "".join(site.output(a) for a in site.attempts(mine)).splitlines()
    assert said[0] == "from step 0" and int(said[1].removeprefix("from step ")) > 3 and said[2:] == ["done"]
    assert site.row(mine).state == "succeeded"
    return mine, first, last


def test_a_job_goes_on_elsewhere_from_its_checkpoint_when_its_node_dies(site, tmp_path):
    mine, first, last = trains(site, tmp_path, site.cluster.node_down)
    attempts = site.attempts(mine)
    assert first.where.startswith("v5e-") and sum(a.restarts for a in attempts) + len(attempts) == 2
    told = site.explained(mine)
    assert (
        f"running: {first.where}" in told
        and f"running: {last.where}" in told
        and "goes on from its checkpoints" in told
    )
    if len(attempts) == 1:
        assert "queued: taken off its nodes and put back into the queue by Slurm, to start again" in told
    else:  # the policy found a better place than Slurm's queue
        assert f"fallback from v5e, variant tpu, which was {attempts[0].state}" in told


def test_a_job_goes_on_with_gpus_when_no_tpu_node_is_left(site, tmp_path):
    mine, _, last = trains(site, tmp_path, lambda _: [site.cluster.node_down(node) for node in ("v5e-0", "v5e-1")])
    assert [(a.pool, a.state) for a in site.attempts(mine)] == [("v5e", "preempted"), ("h200", "succeeded")]
    assert last.where.startswith("h200-")
    told = site.explained(mine)
    assert "moves from v5e (no longer possible) to h200" in told
    assert "start in h200 as gpu" in told and "fallback from v5e, variant tpu" in told


def test_jobs_keep_off_a_drained_node_until_it_is_resumed(site):
    def whole(name, chips=8):
        variant = {"chips": chips, "command": ["sh", "-c", "echo on $SLURMD_NODENAME"]}
        return {"name": name, "variants": {"gpu": variant}, "estimates": {"gpu": "1s"}}

    words = ["pools", "drain", "h200", "--node", "h200-0", "--pools", site.pools]
    assert "node h200-0 of h200 is drained: Xid 79" in site.said(*words, "--reason", "Xid 79")
    jobs = site.submit(*(whole(f"one {n}") for n in range(3)))
    site.over(*jobs)
    assert [site.output(site.attempts(job)[0]).split() for job in jobs] == [["on", "h200-1"]] * 3
    (both,) = site.submit(whole("both", 16))
    until(lambda: "node h200-0 of h200 is drained: Xid 79" in site.explained(both), "nothing said of the node")
    assert site.row(both).state == "pending"
    listed = json.loads(site.said("pools", "--pools", site.pools, "-o", "json"))["pools"]
    (h200,) = (pool for pool in listed if pool["name"] == "h200")
    assert [(one["node"], one["reason"]) for one in h200["drained_nodes"]] == [("h200-0", "Xid 79")]
    assert "Node h200-0 of h200 is drained: Xid 79" in site.said("router", "status")
    site.said("pools", "resume", "h200", "--node", "h200-0", "--pools", site.pools)
    site.over(both)
    assert "on h200-0" in site.output(site.attempts(both)[0]).splitlines()
    entries = json.loads(site.said("audit", "list", "-o", "json"))["entries"]
    details = [entry["detail"] for entry in entries if entry["command"] in ("drain", "resume")]
    assert details == ["node h200-0 of h200", "node h200-0 of h200: Xid 79"]


@pytest.mark.parametrize(
    ("pool", "nodes", "words"),
    [
        ("h200", "h200-7", "node of h200: 'h200-7' is not accepted; expected one of h200-0, h200-1"),
        ("h200", "h200-[0-1]", "the name of one node"),
        ("h200", "h200-0,", "the name of one node"),
        ("h200", "v5e-0", "expected one of h200-0, h200-1"),
        ("none", "h200-0", "none"),
    ],
)
def test_a_node_that_is_not_the_pools_is_named(cluster, tmp_path, pool, nodes, words):
    made = Site(cluster, tmp_path)
    line = ["pools", "drain", pool, "--node", nodes, "--reason", "x", "--pools", made.pools, "--ledger", made.url]
    done = chipwise(*line, env=cluster.environment)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not Path(made.url).exists()  # nothing is made for what is refused


def test_a_variant_that_fails_at_its_start_gives_way_to_the_next(site):
    (mine,) = site.submit(job("mine", ["/no/such/program"], ["echo", "gpu words"]))
    site.over(mine)
    first, second = site.attempts(mine)
    assert site.row(mine).state == "succeeded"
    assert (first.pool, first.state, first.exit_code) == ("v5e", "failed", 127) and "No such file" in first.reason
    told = site.explained(mine)
    assert "attempt 1 (v5e, variant tpu) failed: '/no/such/program': No such file or directory" in told
    assert (
        "v5e failed last" in told
        and "fallback from v5e, variant tpu" in told
        and "succeeded, at attempt 2 in h200 as gpu" in told
    )
    assert (second.pool, second.variant, second.state) == ("h200", "gpu", "succeeded") and site.output(
        second
    ) == "gpu words\n"


@pytest.fixture
def exporter():
    """A page as dcgm-exporter serves it, for three nodes of which one is not Slurm's."""
    registry = CollectorRegistry()
    labels = ("gpu", "Hostname")
    xid, power = (
        Gauge(f"DCGM_FI_DEV_{name}", name, labels, registry=registry) for name in ("XID_ERRORS", "POWER_USAGE")
    )
    for host in ("h200-0", "h200-1", "elsewhere"):
        xid.labels("3", host).set(0)
        power.labels("3", host).set(600)
    server, thread = start_http_server(0, "127.0.0.1", registry=registry)
    yield f"127.0.0.1:{server.server_port}", lambda host, number: xid.labels("3", host).set(number)
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_grave_fault_drains_its_node_once_and_an_operator_may_resume_it(site, exporter, tmp_path):
    page, break_ = exporter
    store = tmp_path / "telemetry.db"

    def look(*more):
        time.sleep(1.1)  # samples are kept to the second
        assert chipwise("observe", "scrape", page, "--store", store, "--rounds", "1").returncode == 0
        line = ["observe", "nodes", "--store", store, "--pools", site.pools, "--since", "1h", *more]
        return site.said(*line) if "--drain" in more else good(*line, env=site.cluster.environment)

    assert look("--drain") == "3 nodes: 3 well\n"
    for host, number in (("h200-0", 79), ("h200-1", 13), ("elsewhere", 48)):
        break_(host, number)
    assert "drained" not in look()
    shown = look("--drain")
    assert "3 nodes: 2 sick, 1 suspect" in shown and "in no pool by that name: elsewhere" in shown
    assert "h200-0 of h200 drained: no job starts there" in shown and "h200-1 of h200" not in shown
    where = [
        "sh",
        "-c",
        "echo on $SLURMD_NODENAME",
    ]  # an attempt that ends between two passes has no node in the ledger
    (job,) = site.submit(
        {"name": "one", "variants": {"gpu": {"chips": 8, "command": where}}, "estimates": {"gpu": "1s"}}
    )
    site.over(job)
    assert site.output(site.attempts(job)[0]).split() == ["on", "h200-1"]
    listed = site.said("pools", "--pools", site.pools)
    assert re.search(
        r"node h200-0 of h200 is drained: device 3: Xid 79: the GPU has fallen off the bus, last .* UTC; drain", listed
    )
    assert "h200-0 of h200 is drained already" in look("--drain")
    site.said("pools", "resume", "h200", "--node", "h200-0", "--pools", site.pools)
    assert "h200-0 of h200 was resumed since its fault was last seen" in look("--drain")
    break_("h200-0", 95)
    assert "h200-0 of h200 drained" in look("--drain")
    break_("h200-1", 48)
    answer = json.loads(look("--drain", "-o", "json"))
    steps = {node["host"]: [step["step"] for step in node["steps"]] for node in answer["nodes"]}
    assert steps == {"h200-0": ["already drained"], "h200-1": ["too many"], "elsewhere": []}
