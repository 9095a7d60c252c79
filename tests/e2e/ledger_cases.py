"""Jobs, options and decisions for tests of the ledger."""

from math import inf

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import NewJob
from chipwise.route.option import Infeasible, Option

POOLS = {"h100": 8, "v5e": 4}


def job(name="train", key="", **more):
    variants = (
        Variant("gpu", "gpu", 2, command=("python", "train.py")),
        Variant("tpu", "tpu", 4, command=("python", "tpu.py")),
    )
    return Job(name, variants, key=key, **more)


def options():
    seconds = Estimate(3600.0, 3000.0, 4200.0, "modelled", "from 12 published steps")
    return (
        Option("h100", "gpu", 2, "", seconds, 6.0, 1400.0, layout="fsdp=2"),
        Option("v5e", "tpu", 4, "2x2", seconds, 4.8, 800.0, note="given"),
    )


def submission(name="train", key="", **more):
    return NewJob(
        job(name, key, **more),
        options(),
        (Infeasible("h100", "tpu", "h100 is no TPU"), Infeasible("v5e", "gpu", "v5e is no GPU")),
    )


def start(job_id, pool="h100"):
    variant = {"h100": "gpu", "v5e": "tpu"}[pool]
    return Decision(
        job_id,
        "start",
        pool,
        variant,
        "cheapest with room",
        {"h100": {"score": 6.0, "start": 0.0}, "v5e": {"score": inf}},
    )
