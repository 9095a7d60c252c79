"""chipwise jobs: submit jobs, see where they stand and why, cancel them, try them again, wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_policies, complete_yaml, one_of
from chipwise.cli.declare import argument, group, option, output_format
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.pools import complete_pools
from chipwise.cli.router import LedgerOpt, PoolsFile, PoolsOpt
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
  chipwise jobs submit nightly/*.yaml --pools pools.yaml --ledger postgresql://ann@db/chipwise -o json
  chipwise jobs submit nightly/*.yaml --ledger unix:///run/chipwise/service.sock
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
LOGS_EXAMPLES = """\b
Examples:
  chipwise jobs logs 1
  chipwise jobs logs 1 -f
  chipwise jobs logs 1 --attempt 1 --tail 20
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

app = group("jobs", "Submit jobs, see where they stand and why.", EXAMPLES)
Id = Annotated[str, argument("ID", "The number of a job.")]
Ids = Annotated[list[str], argument("ID...", "Numbers of jobs.")]


@app.command("render", epilog=RENDER_EXAMPLES)
def render(
    file: Annotated[Path, argument("FILE", "A job file (YAML).", complete_yaml)],
    pools: PoolsFile,
    pool: Annotated[
        str | None,
        option("--pool", "NAME", "Only in this pool; default: in all where the job can run.", complete_pools),
    ] = None,
    variant: Annotated[str | None, option("--variant", "NAME", "Only as this variant.")] = None,
    output: Annotated[str, output_format("text or json.", "text", "json")] = "text",
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
        list[Path], argument("FILE...", "Job files (YAML); several jobs a file under `jobs:`.", complete_yaml)
    ],
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    policy: Annotated[
        str | None,
        option(
            "--policy", "NAME", "Say where this policy would send it first. Default: the router's.", complete_policies
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
    nothing is written. A job with a `key` that is in the ledger already is not written again. A service (--ledger
    unix:///PATH) estimates by its own pools file, and the job's owner is who you are to it.
    """
    from chipwise import api
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.present.progress import progress

    check_writable(out)
    with progress("jobs submit") as line:
        submission = api.submit(files, pools, ledger=ledger, policy=policy, compile=compile_, progress=line)
    present.show(submission, output, out)


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    ledger: LedgerOpt = "",
    state: Annotated[
        str | None, option("--state", "STATE", f"Only {', '.join(JOB_STATES)} ones.", one_of(*JOB_STATES))
    ] = None,
    owner: Annotated[str | None, option("--owner", "NAME", "Only of this owner.")] = None,
    name: Annotated[str | None, option("--name", "NAME", "Only of this name.")] = None,
    limit: Annotated[int, option("--limit", "N", "The newest so many.", min=1)] = 100,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Jobs, the newest first: where each stands and why."""
    from chipwise.present import output as present
    from chipwise.route.job_view import list_jobs

    present.show(list_jobs(ledger, state, owner, name, limit), output, out)


@app.command("show", epilog=ONE_EXAMPLES)
def show(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """One job: what it asks for, what it would take in each pool, its attempts."""
    from chipwise.present import output as present
    from chipwise.route.job_view import show_job

    present.show(show_job(ledger, job), output, out)


@app.command("explain", epilog=ONE_EXAMPLES)
def explain(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """The whole story of a job: predictions, every decision with its reason, every attempt, why it waits now."""
    from chipwise.present import output as present
    from chipwise.route.explain_job import explain_job

    present.show(explain_job(ledger, job), output, out)


@app.command("logs", epilog=LOGS_EXAMPLES)
def logs(
    job: Id,
    ledger: LedgerOpt = "",
    attempt: Annotated[int | None, option("--attempt", "N", "Of this attempt; default: the newest.", min=1)] = None,
    tail: Annotated[int | None, option("--tail", "N", "The last so many lines.", min=1)] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, attempt after attempt, until the job is over.")
    ] = False,
    output: Annotated[str, output_format("text or json.", "text", "json")] = "text",
    out: OutFile = None,
) -> None:
    """What a job printed. Colors are dropped, and whatever a terminal might obey is written as escapes.

    Output is read where the backend keeps it, as far as this machine sees the folder; a service (--ledger unix:///PATH)
    reads it for you.
    """
    from chipwise.errors import InputError
    from chipwise.present import output as present
    from chipwise.route.job_log import MOST_LINES, job_log, log_lines

    if output == "json" or out is not None:
        if follow:
            raise InputError("--follow", "-o json" if output == "json" else "--out", "text on the terminal")
        log = job_log(ledger, job, attempt, MOST_LINES if tail is None else tail)
        if output == "json":
            present.show(log, output, out)
        else:
            present.write("\n".join(log.lines) + "\n", out)
        return
    for line in log_lines(
        ledger, job, attempt, tail, follow, lambda words: typer.echo(f"jobs logs: {words}", err=True)
    ):
        present.write(line + "\n", None)


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
    timeout: Annotated[str | None, option("--timeout", "TIME", "Leave with 124 after so long: 90s, 12h.")] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Wait until jobs are over. Exit status: 0 all succeeded, 1 one failed or was cancelled, 124 time is up."""
    from chipwise.present import output as present
    from chipwise.present.progress import progress
    from chipwise.route.job_view import wait_for_jobs
    from chipwise.units import parse_duration

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

    check_writable(out)
    present.show(change_jobs(ledger, change, jobs), output, out)
