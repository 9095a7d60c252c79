"""chipwise jobs render: what each backend would be asked for, without asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.options import OutFile, one_of
from chipwise.cli.pools import complete_pools
from chipwise.cli.router import complete_yaml

EXAMPLES = """\b
Examples:
  chipwise jobs render examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs render examples/jobs/images.yaml --pools examples/pools/kubernetes.yaml --pool v5e
  chipwise jobs render examples/jobs/fallback.yaml --pools examples/pools/slurm.yaml -o json
"""


def render(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A job file (YAML).", autocompletion=complete_yaml, show_default=False),
    ],
    pools: Annotated[
        Path,
        typer.Option(
            "--pools",
            metavar="FILE",
            envvar="CHIPWISE_POOLS",
            show_envvar=False,
            show_default=False,
            help="The pools file (YAML; CHIPWISE_POOLS).",
            autocompletion=complete_yaml,
        ),
    ],
    pool: Annotated[
        str | None,
        typer.Option(
            "--pool",
            metavar="NAME",
            help="Only in this pool; default: in all where the job can run.",
            autocompletion=complete_pools,
            show_default=False,
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="Only as this variant.", show_default=False)
    ] = None,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help="text or json.", autocompletion=one_of("text", "json")),
    ] = "text",
    out: OutFile = None,
) -> None:
    """Show what each backend would be asked for: a batch script, an object for Kubernetes, an actor of Ray, a process.

    No backend is asked and nothing is written. The ledger gives attempts their ids; `ledger-1-1` stands for one here.
    """
    import time

    from chipwise.present import output as present
    from chipwise.present.progress import progress
    from chipwise.route import render as room
    from chipwise.route.load import load_jobs, read_pools

    present.formats(output, "text", "json")
    now = time.time()
    read = read_pools(pools)
    jobs = load_jobs(file, now)
    with progress("jobs render") as line:
        rendering = room.render(jobs, read, now, pool=pool, variant=variant, progress=line)
    if output == "json":
        present.show(rendering, output, out)
    else:
        present.write(rendering.text(), out)
