"""Launches for the tests of Slurm."""

import sys
from dataclasses import replace
from pathlib import Path

from chipwise.predict.estimate import Estimate
from chipwise.route.backend import Launch
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.launch import digest_of, environment, launch_file, write_launch
from chipwise.route.option import Option
from chipwise.route.pool import Pool

GPU = Pool(
    "h200",
    "slurm",
    "h200",
    "gpu",
    16,
    address=(("chips_per_node", "8"), ("partition", "gpu"), ("python", sys.executable)),
)
TPU = Pool(
    "v5e",
    "slurm",
    "v5e",
    "tpu",
    8,
    unit=4,
    address=(("partition", "tpu"), ("python", sys.executable), ("secrets", "A_TOKEN,MISSING_TOKEN")),
)


def launch(
    folder,
    attempt,
    command,
    pool=TPU,
    chips=None,
    restartable=False,
    time_limit=None,
    image="",
    variables=(),
    secrets=(),
    name="a job",
    write=True,
):
    """An attempt with its folder and launch file."""
    chips = chips or pool.unit
    variant = Variant(
        pool.family,
        pool.family,
        chips,
        command=tuple(command),
        image=image,
        environment=tuple(variables),
        secrets=tuple(secrets),
    )
    job = Job(name, (variant,), checkpoint=Checkpoint(restartable, 1.0, str(folder / "checkpoints")))
    option = Option(pool.name, variant.name, chips, "", Estimate(60.0, 50.0, 70.0, "measured"), 1.0, 100.0)
    own = Path(folder) / "attempts" / attempt
    made = Launch(
        attempt,
        1,
        attempt.split("-")[1],
        job,
        variant,
        pool,
        option,
        own,
        environment(job, variant, pool, option, attempt, 1, own),
        time_limit,
    )
    if write:
        data = launch_file(made)
        write_launch(own, data)
        made = replace(made, digest=digest_of(data))
    return made
