"""chipwise jobs: submit jobs, see where they stand and why, cancel them, try them again, wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli import jobs_render
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv, one_of
from chipwise.cli.router import LedgerOpt, complete_policies, complete_yaml
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
ENDED_OTHERWISE, TIMED_OUT = 1, 124  # 124: as timeout(1) leaves

app = typer.Typer(
    name="jobs",
    help="Submit jobs, see where they stand and why.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)
app.command("render", epilog=jobs_render.EXAMPLES)(jobs_render.render)
Id = Annotated[str, typer.Argument(metavar="ID", help="The number of a job.", show_default=False)]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Numbers of jobs.", show_default=False)]


@app.callback()
def jobs() -> None:
    """Submit jobs, see where they stand and why."""


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
    ledger: LedgerOpt = "",
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Say where this policy would send it first; the router's unless said.",
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
    import time

    from chipwise.cli import jobs_blocks, jobs_records
    from chipwise.io.atomic import check_writable
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.route import submit as use_case
    from chipwise.route.load import read_pools

    formats(output, "table", "json")
    check_writable(out)
    now = time.time()
    with progress("jobs submit") as line:
        submission = use_case.submit(
            use_case.read_jobs(files, now),
            read_pools(pools),
            ledger,
            policy=policy,
            compile=compile_,
            now=now,
            progress=line,
        )
    if output == "json":
        emit_json(jobs_records.submitted(submission), out)
    else:
        emit(jobs_blocks.submitted(submission), out)


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
    import time

    from chipwise.cli import jobs_blocks, jobs_records
    from chipwise.errors import InputError
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.route.ledger import open_ledger

    formats(output, "table", "json", "csv")
    if state is not None and state not in JOB_STATES:
        raise InputError("--state", state, f"one of {', '.join(JOB_STATES)}")
    with open_ledger(ledger, create=False) as book:
        rows = book.jobs(state, owner, name, limit)
        totals = {k: int(v) for k, v in book.totals()["jobs"].items()}
        where = book.where
    if output == "json":
        emit_json(jobs_records.listed(where, rows, totals), out)
    elif output == "csv":
        emit_csv(jobs_records.flat(rows), out)
    else:
        emit(jobs_blocks.listed(where, rows, totals, time.time()), out)


@app.command("show", epilog=ONE_EXAMPLES)
def show(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """One job: what it asks for, what it would take in each pool, its attempts."""
    import time

    from chipwise.cli import jobs_blocks, jobs_output, jobs_records
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.route.ledger import open_ledger

    formats(output, "table", "json")
    with open_ledger(ledger, create=False) as book:
        row, attempts = book.job(job), book.attempts(job)
        outputs = jobs_output.outputs(book, attempts)
    if output == "json":
        emit_json(jobs_records.shown(row, attempts, outputs), out)
    else:
        emit([*jobs_blocks.shown(row, attempts, time.time()), *jobs_output.blocks(attempts, outputs)], out)


@app.command("explain", epilog=ONE_EXAMPLES)
def explain(job: Id, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """The whole story of a job: predictions, every decision with its reason, every attempt, why it waits now."""
    import time

    from chipwise.cli import jobs_records, jobs_story
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.route.ledger import open_ledger

    formats(output, "table", "json")
    with open_ledger(ledger, create=False) as book:
        told = jobs_story.read(book, job, time.time())
    if output == "json":
        emit_json(jobs_records.explained(told), out)
    else:
        emit(jobs_story.blocks(told), out)


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
    import time

    from chipwise.cli import jobs_blocks, jobs_records
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.route import submit as use_case
    from chipwise.route.ledger import open_ledger
    from chipwise.route.ledger.records import OVER, SUCCEEDED
    from chipwise.units import parse_duration

    formats(output, "table", "json")
    until = None if timeout is None else time.monotonic() + parse_duration(timeout, "--timeout")
    with open_ledger(ledger, create=False) as book, progress("jobs wait") as line:
        rows = use_case.wait(book, jobs, until, lambda done: line(done, len(jobs), "are over"))
    if output == "json":
        emit_json(jobs_records.listed(book.where, rows, None, "jobs wait"), out)
    else:
        emit(jobs_blocks.listed(book.where, rows, None, time.time()), out)
    states = {row.state for row in rows}
    if states - OVER:
        raise typer.Exit(TIMED_OUT)
    if states != {SUCCEEDED}:
        raise typer.Exit(ENDED_OTHERWISE)


def _change(what: str, ids: list[str], ledger: str, output: str, out: Path | None) -> None:
    import time

    from chipwise.cli import jobs_blocks, jobs_records
    from chipwise.io.atomic import check_writable
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.route.ledger import open_ledger

    formats(output, "table", "json")
    check_writable(out)
    now = time.time()
    with open_ledger(ledger, create=False) as book:
        book.change(what, list(dict.fromkeys(ids)), now)
        rows = [book.job(job_id) for job_id in ids]
        where = book.where
    if output == "json":
        emit_json(jobs_records.listed(where, rows, None, f"jobs {what}"), out)
    else:
        emit(jobs_blocks.listed(where, rows, None, now), out)
