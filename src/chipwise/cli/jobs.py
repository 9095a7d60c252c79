"""chipwise jobs: submit jobs, see where they stand and why, cancel them, try them again, wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli import jobs_render
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv, one_of
from chipwise.cli.router import LedgerOpt, complete_policies, complete_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chipwise.route.estimates import Admitted
    from chipwise.route.job import Job
    from chipwise.route.ledger import Ledger
    from chipwise.route.ledger.records import JobRow
    from chipwise.route.pool import Pool

EXAMPLES = """\b
Examples:
  chipwise jobs submit examples/jobs/hello.yaml --pools examples/pools/local.yaml
  chipwise jobs list --state waiting
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
STATES = ("pending", "running", "succeeded", "failed", "cancelled")
ENDED_OTHERWISE, TIMED_OUT = 1, 124  # 124: as timeout(1) leaves
FALLBACK_POLICY = "cheapest-within-deadline"  # shown at submission where no router has said which one it follows

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
    from chipwise.cli.pricing import read_pools
    from chipwise.io.atomic import check_writable
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.route.estimates import admit, estimator
    from chipwise.route.ledger import Submission, open_ledger
    from chipwise.route.policies import policy_named

    formats(output, "table", "json")
    check_writable(out)
    if policy is not None:
        policy_named(policy)
    now = time.time()
    read = read_pools(pools)
    wanted = [job for file in files for job in _jobs_of(file, now, len(files) > 1)]
    with progress("jobs submit") as line:
        using = estimator(compile_, lambda chips, stage, seconds: line.say(f"{chips}: {stage}, {seconds:.0f} s"))
        admitted = []
        for i, job in enumerate(wanted):
            line(i + 1, len(wanted), job.name)
            admitted.append(admit(job, *using.options(job, read.pools), now))
    first = [] if policy is None else [_first(one, read.pools, policy, now) for one in admitted]
    with open_ledger(ledger) as book:
        followed, why = (policy, "as asked") if policy else _followed(book)
        first = first or [_first(one, read.pools, followed, now) for one in admitted]  # may fail: before it is written
        ids = book.submit([Submission(a.job, a.options, a.unable) for a in admitted], now)
        rows = [book.job(job_id) for job_id in ids]
        where = book.where
    taken = list(zip(rows, admitted, strict=True))
    told = jobs_blocks.Submitted(where, taken, first, followed, why, read.said, now)
    if output == "json":
        emit_json(jobs_records.submitted(told), out)
    else:
        emit(jobs_blocks.submitted(told), out)


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    ledger: LedgerOpt = "",
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"Only {', '.join(STATES)} ones.",
            autocompletion=one_of(*STATES),
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
    if state is not None and state not in STATES:
        raise InputError("--state", state, f"one of {', '.join(STATES)}")
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
    from chipwise.route.ledger import open_ledger
    from chipwise.units import parse_duration

    formats(output, "table", "json")
    until = None if timeout is None else time.monotonic() + parse_duration(timeout, "--timeout")
    with open_ledger(ledger, create=False) as book, progress("jobs wait") as line:
        rows = _wait(book, jobs, until, lambda done: line(done, len(jobs), "are over"))
    if output == "json":
        emit_json(jobs_records.listed(book.where, rows, None, "jobs wait"), out)
    else:
        emit(jobs_blocks.listed(book.where, rows, None, time.time()), out)
    states = {row.state for row in rows}
    if states & {"pending", "running"}:
        raise typer.Exit(TIMED_OUT)
    if states != {"succeeded"}:
        raise typer.Exit(ENDED_OTHERWISE)


def _wait(book: Ledger, ids: list[str], until: float | None, said: Callable[[int], None]) -> list[JobRow]:
    import time

    from chipwise.route.ledger.records import OVER

    pause = 0.1
    while True:
        rows = [book.job(job_id) for job_id in ids]
        over = sum(row.state in OVER for row in rows)
        left = None if until is None else until - time.monotonic()
        if over == len(rows) or (left is not None and left <= 0):
            return rows
        said(over)
        time.sleep(pause if left is None else min(pause, left))
        pause = min(2.0, 1.5 * pause)  # jobs last minutes: two seconds late is soon enough, and spares the ledger


def _jobs_of(file: Path, now: float, several: bool) -> list[Job]:
    """The jobs of a file; of several, what is wrong is said with the file that it is in."""
    from chipwise.errors import InputError
    from chipwise.route.load import load_jobs

    try:
        return load_jobs(file, now)
    except InputError as error:
        if not several or str(file) in (error.field, error.value):
            raise
        inside = error.field.removeprefix(file.name).strip()
        raise InputError(f"{file}: {inside}" if inside else str(file), error.value, error.accepted) from None


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


def _followed(book: Ledger) -> tuple[str, str]:
    """The policy that decides, as far as the ledger tells."""
    found = next((row for row in book.routers() if row.stopped is None), None)
    if found is None:
        return FALLBACK_POLICY, "assumed: no router runs"
    return found.policy, f"of router {found.id}"


def _first(one: Admitted, pools: Sequence[Pool], policy: str, now: float) -> str | None:
    """The pool that a policy likes best for a job if there were room everywhere; None where it can't be told here."""
    import numpy as np

    from chipwise.errors import InputError
    from chipwise.route.job_table import Candidate, JobTable
    from chipwise.route.policies import policy_named

    names = {pool.name for pool in pools}
    options = tuple(option for option in one.options if option.pool in names)
    try:
        wanted = policy_named(policy)
    except InputError:  # a policy of the router's own machine
        return None
    if not options:
        return None
    board = JobTable(pools)
    job = one.job
    board.add(Candidate("1", now, options, job.priority, job.deadline, job.confidence, job.budget))
    room = {pool.name: pool.count for pool in pools}
    view = board.view(now, room, room)
    score = np.where(np.isfinite(view.seconds[0]), wanted(view).score[0], np.inf)
    best = int(np.argmin(score))
    return view.pools[best] if np.isfinite(score[best]) else None
