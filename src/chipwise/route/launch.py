"""From an attempt to what an engine gets: the program's environment and the files of its folder.

An attempt's folder holds, each written whole or not at all:

    launch.json   what to run: attempt, argv, environment, cwd           written by the router before it submits
    claim         who runs it: {"by": ENGINE ID, "pid", "at"}             made once, by the first that comes
    output        what the program printed
    end           how it ended: {"by", "exit_code", "started", "ended"}   absent: it runs, or was lost

The claim is what makes an attempt run once: whoever finds the claim of another leaves without running the program.
"""

from __future__ import annotations

from pathlib import Path

from chipwise.route.job import Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

FLAGS = {"gpu": "XLA_FLAGS", "tpu": "LIBTPU_INIT_ARGS", "cpu": "XLA_FLAGS"}  # where compilers look for options


def environment(job: Job, variant: Variant, pool: Pool, option: Option, attempt: str, number: int,
                folder: Path) -> dict[str, str]:
    """The variables that a program finds: the variant's own, its flags, and what it needs to know of its place."""
    told = {
        "CHIPWISE_ATTEMPT": attempt,
        "CHIPWISE_NUMBER": str(number),
        "CHIPWISE_JOB": job.name,
        "CHIPWISE_VARIANT": variant.name,
        "CHIPWISE_POOL": pool.name,
        "CHIPWISE_CHIP": pool.chip,
        "CHIPWISE_CHIPS": str(variant.chips),
        "CHIPWISE_TOPOLOGY": option.topology,
        "CHIPWISE_LAYOUT": variant.layout or option.layout,
        "CHIPWISE_BATCH": "" if variant.batch is None else str(variant.batch),
        "CHIPWISE_PRECISION": variant.precision,
        "CHIPWISE_CHECKPOINT": job.checkpoint.folder,
        "CHIPWISE_FOLDER": str(folder),
    }
    own = dict(variant.environment)
    if variant.flags:
        name = FLAGS[variant.family]
        own[name] = " ".join([*([own[name]] if own.get(name) else []), *variant.flags])
    return {k: v for k, v in told.items() if v} | own
