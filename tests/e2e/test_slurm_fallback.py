# ruff: noqa: F401, F811 - fixtures are imported
"""Fallback on a real Slurm cluster: a full pool, a node that dies, a variant that fails; each is explained."""

import re
import sys

import pytest
from slurm_cluster import cluster, until
from slurm_route import TRAIN, Site


@pytest.fixture
def site(cluster, tmp_path):
    """A site on an emptied cluster, with a router at work."""
    made = Site(cluster, tmp_path)
    router = made.router()
    yield made
    router.terminate()
    router.wait(30)
    cluster.cancel_all()
    for node in cluster.nodes:
        cluster.start_node(node, wait=False)
        cluster.command("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    cluster.wait_for_nodes()


def job(name, tpu, gpu, **more):
    """A job with a variant for each family."""
    return {"name": name, "variants": {"tpu": {"chips": 4, "command": tpu}, "gpu": {"chips": 8, "command": gpu}},
            "estimates": {"tpu": "10s", "gpu": "30s"}, **more}


def sleeper(seconds="600"):
    """A command that holds its chips."""
    return ["sleep", seconds]


def test_the_gpu_variant_runs_with_its_own_command_when_tpus_are_taken(site):
    full = site.submit(*({"name": f"full-{n}", "variants": {"tpu": {"chips": 4, "command": sleeper()}},
                          "estimates": {"tpu": "600s"}} for n in range(2)))
    for each in full:
        site.running(each)
    mine, = site.submit(job("mine", ["echo", "tpu words"], ["echo", "gpu words"]))
    site.over(mine)
    attempt, = site.attempts(mine)
    assert (site.row(mine).state, attempt.pool, attempt.variant) == ("done", "h200", "gpu")
    assert site.output(attempt) == "gpu words\n" and attempt.where.startswith("h200-")
    told = site.explained(mine)
    assert re.search(r"start in h200 as gpu: h200: 30\.0 s, starts now; v5e: [0-9.]+ min, starts in [0-9.]+ min", told)
    assert "attempt 1: running: h200-" in told and "done, at attempt 1 in h200 as gpu" in told


def test_a_job_goes_on_elsewhere_from_its_checkpoint_when_its_node_dies(site, tmp_path):
    kept = tmp_path / "kept"
    train = [sys.executable, TRAIN, "100"]
    mine, = site.submit(job("train", train, train, checkpoint={"every": "0.1s", "folder": str(kept)}))
    first = site.running(mine)
    assert first.where.startswith("v5e-")
    until(lambda: (kept / "train.json").exists(), "no checkpoint")
    site.cluster.node_down(first.where, "taken down")
    site.over(mine)
    attempts = site.attempts(mine)
    assert site.row(mine).state == "done"
    said = "".join(site.output(a) for a in attempts)
    starts = [int(line.split("step ")[1].split(" of")[0]) for line in said.splitlines() if " of 100" in line]
    assert len(starts) == 2 and starts[0] == 0 < starts[1] and said.endswith("done: 100 steps\n")
    last = attempts[-1]
    assert (last.where or "") != first.where and sum(a.restarts for a in attempts) + len(attempts) == 2
    told = site.explained(mine)
    assert f"running: {first.where}" in told and f"running: {last.where}" in told and "goes on from its checkpoints" in told
    if len(attempts) == 1:
        assert "queued: taken off its nodes and put back into the queue by Slurm, to start again" in told
    else:  # the router looked before Slurm had put it back
        assert "its node failed" in told


def test_a_variant_that_fails_at_its_start_gives_way_to_the_next(site):
    mine, = site.submit(job("mine", ["/no/such/program"], ["echo", "gpu words"]))
    site.over(mine)
    first, second = site.attempts(mine)
    assert site.row(mine).state == "done"
    assert (first.pool, first.state, first.exit_code) == ("v5e", "failed", 127) and "No such file" in first.reason
    told = site.explained(mine)
    assert "attempt 1 (v5e, variant tpu) failed: '/no/such/program': No such file or directory" in told
    assert "v5e failed last" in told and "fallback from v5e, variant tpu" in told and "done, at attempt 2 in h200 as gpu" in told
    assert (second.pool, second.variant, second.state) == ("h200", "gpu", "done") and site.output(second) == "gpu words\n"


def test_a_job_goes_on_with_gpus_when_no_tpu_node_is_left(site, tmp_path):
    kept = tmp_path / "kept"
    train = [sys.executable, TRAIN, "100"]
    mine, = site.submit(job("train", train, train, checkpoint={"every": "0.1s", "folder": str(kept)}))
    first = site.running(mine)
    until(lambda: (kept / "train.json").exists(), "no checkpoint")
    for node in ("v5e-0", "v5e-1"):
        site.cluster.node_down(node)
    site.over(mine, seconds=240)
    attempts = site.attempts(mine)
    assert [(a.pool, a.state) for a in attempts] == [("v5e", "preempted"), ("h200", "done")] and first.pool == "v5e"
    starts = [int(line.split("step ")[1].split(" of")[0]) for a in attempts for line in site.output(a).splitlines() if " of 100" in line]
    assert len(starts) == 2 and starts[0] == 0 < starts[1]
    told = site.explained(mine)
    assert "put back into the queue by Slurm" in told and "moves from v5e (no longer possible) to h200" in told
    assert "start in h200 as gpu" in told and "fallback from v5e, variant tpu" in told
