"""Routers killed at random while jobs run on a real Slurm cluster and a node goes down and comes back.

Half the jobs may be started again by Slurm itself, which is the same attempt; the others may not.
"""

from dataclasses import replace

import chaos
import pytest
from slurm_cluster import SlurmCluster
from slurm_route import Site

from chipwise.route.job import Checkpoint, Variant

pytestmark = pytest.mark.service

VARIANTS = (Variant("tpu", "tpu", 1), Variant("gpu", "gpu", 1))


def wild(tmp_path, jobs, kills, seed, hurt, limit):
    """What came of so many jobs and kills."""
    with SlurmCluster(min_job_age=3600) as cluster:
        site = Site(cluster, tmp_path, shapes=("1x1",))
        ways = [chaos.option("v5e", 0.5, "tpu"), chaos.option("h200", 0.5, "gpu", usd_hour=2.0)]
        made = chaos.jobs(tmp_path / "logs", jobs, ways, (0.1, 0.5, 2.0), seed, VARIANTS, kills=kills)
        made = [
            replace(one, job=replace(one.job, checkpoint=Checkpoint(restartable=n % 2 == 0, every=0.1)))
            for n, one in enumerate(made)
        ]

        def attempts():
            return set(cluster.command("squeue", "--noheader", "--states=all", "--format=%j").split())

        return chaos.run(
            lambda n: chaos.command(
                "router",
                "run",
                "--pools",
                site.pools,
                "--policy",
                "fastest",
                "--ledger",
                site.url,
                "--interval",
                "0.2s",
                "--lease",
                "3s",
                "--until-idle",
            ),
            site.url,
            made,
            kills,
            seed,
            lambda how: hurt(cluster, how),
            folder=tmp_path,
            logs=tmp_path / "logs",
            backend_attempts=attempts,
            limit=limit,
            env=chaos.environment(**cluster.environment),
        )


def drained(cluster, how):
    """An administrator takes a node down and gives it back."""
    cluster.node_down("v5e-0") if how == "down" else cluster.node_up("v5e-0")


def power(cluster, how):
    """A node loses its power and gets it back."""
    cluster.kill_node("h200-0") if how == "down" else cluster.start_node("h200-0")


@pytest.mark.slow
def test_no_job_is_lost_or_run_twice_while_routers_are_killed_and_a_node_goes_down(tmp_path):
    outcome = wild(tmp_path, 40, 6, 7, drained, 300.0)
    assert outcome.problems == [] and outcome.kills >= 6 and outcome.states == {"succeeded": 40}, outcome.said[-3000:]


@pytest.mark.slow
def test_no_job_of_five_hundred_is_lost_or_run_twice(tmp_path):
    outcome = wild(tmp_path, 500, 30, 8, power, 560.0)
    assert outcome.problems == [] and outcome.kills >= 30 and outcome.states == {"succeeded": 500}, outcome.said[-3000:]
