"""chipwise jobs: submit jobs, see where they stand and why, cancel them, try them again, wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.pools import complete_pools
from chipwise.cli.router import LedgerOpt, PoolsFile, complete_policies, complete_yaml
from chipwise.route.names import JOB_STATES

EXAMPLES = """\b
Examples:
  chipwise jobs submit examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs list --state pending
  chipwise jobs explain 1
  chipwise jobs wait 1 2 --timeout 1h
"""
SUBMIT_EXAMPLES = """\b
Examples:
  chipwise jobs submit examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs submit nightly/*.yaml --ledger postgresql://ann@db/chipwise -o json
"""
LIST_EXAMPLES = """\b
Examples:
  chipwise jobs list
  chipwise jobs list --state failed --owner ada -o csv
"""
ONE_EXAMPLES = """\b
Examples:
  chipwise jobs show 1
  chipwise jobs explain 1
  chipwise jobs explain 1 -o json
"""
CHANGE_EXAMPLES = """\b
Examples:
  chipwise jobs cancel 1
  chipwise jobs retry 1 2
"""
WAIT_EXAMPLES = """\b
Examples:
  chipwise jobs wait 1
  chipwise jobs wait 1 2 3 --timeout 12h
"""
RENDER_EXAMPLES = """\b
Examples:
  chipwise jobs render examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs render examples/jobs/images.yaml --pools examples/pools/kubernetes.yaml --pool v5e
  chipwise jobs render examples/jobs/fallback.yaml --pools examples/pools/slurm.yaml -o json
"""
ENDED_OTHERWISE, TIMED_OUT = 1, 124  # 124: as timeout(1) leaves

app = typer.Typer(
    name="jobs",
    help="Submit jobs, see where they stand and why.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The number of a job.", show_default=False)]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Numbers of jobs.", show_default=False)]


@app.callback()
def jobs() -> None:
    """Submit jobs, see where they stand and why."""


@app.command("render", epilog=RENDER_EXAMPLES)
def render(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A job file (YAML).", autocompletion=complete_yaml, show_default=False),
    ],
    pools: PoolsFile,
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


@app.command("submit", epilog=SUBMIT_EXAMPLES)
def submit(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Job files (YAML); several jobs a file under `jobs:`.",
            autocompletion=complete_yaml,
            show_default=False,
        ),
    ],
    pools: PoolsFile,
    ledger: LedgerOpt = "",
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Say where this policy would send it first. Default: the router's.",
            autocompletion=complete_policies,
            show_default=False,
        ),
    ] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile programs that were not checked yet, for every pool (minutes).")
    ] = False,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Write jobs into the ledger, all or none, and say what each would take where.

    Every variant is predicted in every pool. A job that can run in none is refused with the reason per pool, and
    nothing is written. A job with a `key` that is in the ledger already is not written again.
    """
    from chipwise import api
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.present.progress import progress

    present.formats(output, "table", "json")
    check_writable(out)
    with progress("jobs submit") as line:
        submission = api.submit(files, pools, ledger=ledger, policy=policy, compile=compile_, progress=line)
    present.show(submission, output, out)


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    ledger: LedgerOpt = "",
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"Only {', '.join(JOB_STATES)} ones.",
            autocompletion=one_of(*JOB_STATES),
            show_default=False,
        ),
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME", help="Only of this owner.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Only of this name.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The newest so many.")] = 100,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Jobs, the newest first: where each stands and why."""
    from chipwise.present import output as present
    from chipwise.route.job_view import list_jobs

    present.formats(output, "table", "json", "csv")
    present.show(list_jobs(ledger, state, owner, name, limit), output, out)


@app.command("show", epilog=ONE_EXAMPLES)
def show(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """One job: what it asks for, what it would take in each pool, its attempts."""
    from chipwise.present import output as present
    from chipwise.route.job_view import show_job

    present.formats(output, "table", "json")
    present.show(show_job(ledger, job), output, out)


@app.command("explain", epilog=ONE_EXAMPLES)
def explain(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """The whole story of a job: predictions, every decision with its reason, every attempt, why it waits now."""
    from chipwise.present import output as present
    from chipwise.route.explain_job import explain_job

    present.formats(output, "table", "json")
    present.show(explain_job(ledger, job), output, out)


@app.command("cancel", epilog=CHANGE_EXAMPLES)
def cancel(jobs: Ids, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """Cancel jobs: at once, or once the backend has stopped what runs."""
    _change("cancel", jobs, ledger, output, out)


@app.command("retry", epilog=CHANGE_EXAMPLES)
def retry(jobs: Ids, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """Let jobs that failed or were cancelled wait again, with all their retries."""
    _change("retry", jobs, ledger, output, out)


@app.command("wait", epilog=WAIT_EXAMPLES)
def wait(
    jobs: Ids,
    ledger: LedgerOpt = "",
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Leave with 124 after so long: 90s, 12h.", show_default=False),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Wait until jobs are over. Exit status: 0 all succeeded, 1 one failed or was cancelled, 124 time is up."""
    from chipwise.present import output as present
    from chipwise.present.progress import progress
    from chipwise.route.job_view import wait_for_jobs
    from chipwise.units import parse_duration

    present.formats(output, "table", "json")
    seconds = None if timeout is None else parse_duration(timeout, "--timeout")
    with progress("jobs wait") as line:
        waited = wait_for_jobs(ledger, jobs, seconds, lambda done: line(done, len(jobs), "are over"))
    present.show(waited, output, out)
    if not waited.over:
        raise typer.Exit(TIMED_OUT)
    if not waited.succeeded:
        raise typer.Exit(ENDED_OTHERWISE)


def _change(change: str, jobs: list[str], ledger: str, output: str, out: Path | None) -> None:
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.route.job_view import change_jobs

    present.formats(output, "table", "json")
    check_writable(out)
    present.show(change_jobs(ledger, change, jobs), output, out)
