"""chipwise deploy: a decision as the files that put its machines up, and why jobs wait there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import OutFile, TableJsonCsv
from chipwise.deploy.targets.names import TARGETS
from chipwise.errors import InputError

EXAMPLES = """\b
Examples:
  chipwise deploy write examples/pools/kubernetes.yaml --to cluster
  chipwise deploy check cluster
  chipwise deploy explain examples/deploy/pending.json
"""
WRITE_EXAMPLES = """\b
Examples:
  chipwise deploy write examples/pools/kubernetes.yaml --to cluster
  chipwise deploy write examples/pools/kubernetes.yaml --to cluster --topology v5e=4x4 --zone us-central1-a
  chipwise deploy write examples/deploy/pretrain.json --to pretrain --term spot
  chipwise deploy write examples/deploy/pretrain.json --to reserved --term reserved --reservation v5p=research
  chipwise deploy write examples/pools/kubernetes.yaml --target slurm --zone us-central1-a --to lab
"""
EXPLAIN_EXAMPLES = """\b
Examples:
  chipwise deploy explain examples/deploy/pending.json
  chipwise deploy explain examples/deploy/pending.json --job llama-pretrain -o json
  chipwise deploy explain examples/deploy/squeue.json
"""
CHECK_EXAMPLES = """\b
Examples:
  chipwise deploy check cluster
  chipwise deploy check cluster -o json
"""
BY_POOL = "POOL=VALUE"

app = group(
    "deploy",
    "Write a decision as the files that put its machines up, check them, and say why jobs wait there.",
    EXAMPLES,
)


@app.command("write", epilog=WRITE_EXAMPLES)
def write(
    source: Annotated[Path, argument("FROM", "A pools file, or what `compare -o json` or `fleet plan -o json` saved.")],
    to: Annotated[Path, option("--to", "DIR", "A folder: new, empty, or one that was written before.")],
    target: Annotated[
        str, option("--target", "TARGET", f"What to write: {', '.join(TARGETS)}.", one_of(*TARGETS))
    ] = "gke",
    name: Annotated[str | None, option("--name", "NAME", "What to call it. Default: the source's name.")] = None,
    only: Annotated[str | None, option("--only", "LIST", "These pools alone: v5e,v5e-spot.")] = None,
    region: Annotated[str | None, option("--region", "REGION", "Where. Default: the source's region.")] = None,
    zone: Annotated[
        str | None, option("--zone", "ZONE", "The zone of the machines. Default: asked when applied.")
    ] = None,
    term: Annotated[
        list[str] | None,
        option("--term", "TERM", "ondemand, spot, reserved or flex-start, of all pools or POOL=TERM; repeatable."),
    ] = None,
    topology: Annotated[
        list[str] | None,
        option(
            "--topology",
            "POOL=SHAPE",
            "The slices of a pool: v5e=4x4; repeatable. Default: the largest that divide it.",
        ),
    ] = None,
    reservation: Annotated[
        list[str] | None, option("--reservation", "POOL=NAME", "The reservation that a pool is taken of; repeatable.")
    ] = None,
    row: Annotated[str | None, option("--row", "CHIPS", "The row of a comparison: v5p:64. Default: its pick.")] = None,
    period: Annotated[
        str | None, option("--period", "PERIOD", "The period of a fleet plan: '2028 Q3'. Default: the first.")
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Write a pools file, a comparison or a fleet plan as the files that put its machines up.

    A plain tree that needs no chipwise to be applied: Terraform of a GKE cluster with its queues and templates, or the
    configuration of a Slurm cluster with the programs for its cloud nodes; the router's pools file for the same
    machines; a README with the steps. Nothing is written that can't work as a whole: a chip the provider has not, a
    count that is not whole slices or hosts, terms on which a machine is not to be had, a reservation without its name
    are refused.
    """
    from chipwise import api
    from chipwise.present.output import show

    answer = api.deploy_write(
        source,
        to,
        target=target,
        name=name,
        only=[pool.strip() for pool in only.split(",")] if only else (),
        region=region,
        zone=zone,
        term=_terms(term or []),
        topology=_by_pool(topology or [], "topology"),
        reservation=_by_pool(reservation or [], "reservation"),
        row=row,
        period=period,
    )
    show(answer, output, out)


@app.command("check", epilog=CHECK_EXAMPLES)
def check(
    folder: Annotated[Path, argument("DIR", "A folder that `deploy write` wrote.")],
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Check a tree as a whole before it is applied: a line for each finding, and exit status 1 where there is one.

    Every argument of Terraform against the provider's schema, every manifest against the fields of its kind, and the
    chain that no other tool checks as a whole: topology, hosts and chips divide, a reservation is named and no
    autoscaler gives it back, queues cover all that pods ask for, labels, tolerations, priorities and accounts are
    there, and it costs no more than was decided. Says which checks ran.
    """
    from chipwise import api
    from chipwise.present.output import show

    answer = api.deploy_check(folder)
    show(answer, output, out)
    if not answer.good:
        raise typer.Exit(1)


@app.command("explain", epilog=EXPLAIN_EXAMPLES)
def explain(
    files: Annotated[
        list[Path], argument("FILE...", "What `kubectl get ... -o json` or `squeue --json` printed; several together.")
    ],
    job: Annotated[str | None, option("--job", "NAME", "This job alone.")] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Say why jobs wait, each in one line: what is missing, in whose words, and what to do.

    Reads pods, jobs, job sets, workloads of Kueue, provisioning requests and events of Kubernetes
    (kubectl get pods,jobs,jobsets,workloads,provisioningrequests,events -A -o json), and the queue of Slurm
    (squeue --json). Events of one file tell of pods of another.
    """
    from chipwise import api
    from chipwise.present.output import show

    show(api.deploy_explain(*files, job=job), output, out)


def _terms(words: list[str]) -> dict[str, str]:
    """Terms by pool; one without a pool is that of all."""
    split = [word.rpartition("=") for word in words]
    return {pool: word for pool, _, word in split}


def _by_pool(words: list[str], field: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for word in words:
        pool, equals, value = word.partition("=")
        if not (pool and equals and value):
            raise InputError(field, word, BY_POOL)
        chosen[pool] = value
    return chosen
