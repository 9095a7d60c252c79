"""chipwise jobs render: what each backend would be asked for, without asking it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, one_of
from chipwise.cli.pools import complete_pools
from chipwise.cli.router import complete_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.route.job import Job
    from chipwise.route.load import Pools
    from chipwise.route.option import Option

EXAMPLES = """\b
Examples:
  chipwise jobs render examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs render examples/jobs/images.yaml --pools examples/pools/kubernetes.yaml --pool v5e
  chipwise jobs render examples/jobs/fallback.yaml --pools examples/pools/slurm.yaml -o json
"""
# stand for what the ledger gives: its own name, and the first attempt at its first job
LEDGER, JOB, ATTEMPT = "ledger", "1", "ledger-1-1"


@dataclass(frozen=True, slots=True)
class Rendered:
    """What one backend would be asked for."""

    job: str
    option: Option
    backend: str
    text: str  # in the backend's own language; empty where it would refuse
    refused: str = ""


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
            help="Only in this pool; in all where the job can run unless said.",
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

    from chipwise.cli.pricing import read_pools
    from chipwise.cli.records import head
    from chipwise.errors import Refusal, UnknownName
    from chipwise.present.output import emit_json, formats, write
    from chipwise.present.progress import progress
    from chipwise.route.estimates import admit, estimator
    from chipwise.route.load import load_jobs

    formats(output, "text", "json")
    now = time.time()
    read = read_pools(pools)
    chosen = read.pools if pool is None else (read.pool(pool),)
    jobs = load_jobs(file, now)
    found: list[Rendered] = []
    with progress("jobs render") as line:
        using = estimator()
        for i, job in enumerate(jobs):
            line(i + 1, len(jobs), job.name)
            if variant is not None and variant not in {v.name for v in job.variants}:
                raise UnknownName("--variant", variant, [v.name for v in job.variants])
            options = admit(job, *using.options(job, chosen), now).options
            found += _rendered(job, [o for o in options if variant in (None, o.variant)], read)
    if all(each.refused for each in found):
        raise Refusal(
            "; ".join(f"{each.job} in {each.option.pool}: {each.refused}" for each in found)
            or f"no pool runs variant {variant}",
            "",
        )
    if output == "json":
        emit_json(
            {**head("jobs render"), "rendered": [_record(each) for each in found], "assumptions": list(read.said)}, out
        )
    else:
        write("\n".join(_text(each) for each in found), out)


def _rendered(job: Job, options: Sequence[Option], read: Pools) -> list[Rendered]:
    """What a job's options become, by the way that the router goes."""
    from chipwise.route.backend import BackendRefused
    from chipwise.route.backends.named import backend_name, backends_of
    from chipwise.route.ledger.records import AttemptRow, JobRow
    from chipwise.route.router.submitter import launch_of

    row = JobRow(JOB, job, "pending", 0.0, tuple(options), ())
    found = []
    for option in options:
        pool = read.pool(option.pool)
        name, folder = backend_name(pool), read.folder_of(pool.backend) / LEDGER
        backend = backends_of([pool], {name: folder}, LEDGER)[name]
        attempt = AttemptRow(ATTEMPT, JOB, 1, pool.name, option.variant, option, "intended", "", 0.0)
        try:
            found.append(Rendered(job.name, option, name, backend.render(launch_of(row, attempt, pool, folder))))
        except BackendRefused as refused:
            found.append(Rendered(job.name, option, name, "", str(refused)))
        finally:
            close = getattr(backend, "close", None)
            if close is not None:
                close()
    return found


def _text(each: Rendered) -> str:
    option = each.option
    chips = f"{option.chips} chip{'' if option.chips == 1 else 's'}"
    shape = f" as {option.topology}" if option.topology else ""
    first = f"# {each.job!r} as {option.variant}, {chips}{shape} of pool {option.pool}, through {each.backend}"
    return f"{first}: refused: {each.refused}\n" if each.refused else f"{first}\n{each.text.rstrip()}\n"


def _record(each: Rendered) -> dict[str, Any]:
    return {
        "job": each.job,
        "pool": each.option.pool,
        "variant": each.option.variant,
        "backend": each.backend,
        "chips": each.option.chips,
        "topology": each.option.topology or None,
        "text": each.text or None,
        "refused": each.refused or None,
    }
