"""Submission of jobs: each is estimated in every pool, admitted or refused, and written to the ledger, all or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from chipwise.errors import InputError
from chipwise.io.jit import interpreted
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import duration, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.estimates import Admitted, admit, estimator
from chipwise.route.job import Job
from chipwise.route.job_columns import NAME, feasibility, job_columns, job_record, money
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.ledger import Ledger, NewJob, RemoteLedger, open_ledger
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.codec import unpack
from chipwise.route.ledger.records import JobRow
from chipwise.route.load import Pools, load_jobs
from chipwise.route.load.jobs import job_documents
from chipwise.route.names import DEFAULT_POLICY
from chipwise.route.option import Option
from chipwise.route.policies import policy_named

FEW = 500  # jobs times pools: up to there Python decides sooner than compiled code is loaded, 0.8 s
Progress = Callable[[int, int, str], None]  # told (jobs so far, jobs, what is being done)


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job in the ledger, with the warnings of its admission and where the policy would send it first."""

    row: JobRow
    warnings: tuple[str, ...]
    first_pool: str | None  # if every pool were free; None where the policy is known to another machine alone

    @property
    def first(self) -> Option | None:
        """What it would take there."""
        return next((option for option in self.row.options if option.pool == self.first_pool), None)


SUBMITTED_COLUMNS: tuple[Column[SubmittedJob], ...] = (
    Column("", None, "id", lambda s: s.row.id),
    Column("", None, "name", lambda s: safe(s.row.job.name, NAME), words=True),
    Column("", None, "state", lambda s: s.row.state, words=True),
    Column("", None, "can run in", lambda s: plural(len({o.pool for o in s.row.options}), "pool"), words=True),
    Column("first", lambda s: s.first_pool, "first", lambda s: s.first_pool or "-", words=True),
    Column("", None, "time", lambda s: "-" if s.first is None else duration(s.first.seconds.value)),
    Column("", None, "cost", lambda s: "-" if s.first is None else money(s.first.usd)),
    Column("warnings", lambda s: s.warnings),
)


@dataclass(frozen=True, slots=True, repr=False)
class Submission(Result):
    """Jobs that were written to a ledger, with what each would take where."""

    VERB: ClassVar[str] = "jobs submit"
    ledger: str
    jobs: tuple[SubmittedJob, ...]
    policy: str
    policy_source: str  # whose policy that is
    assumptions: tuple[str, ...]
    at: float  # seconds since 1970

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ledger": self.ledger,
            "policy": self.policy,
            "policy_source": self.policy_source,
            "jobs": [
                {**job_record(job.row), **feasibility(job.row), **record(SUBMITTED_COLUMNS, job)} for job in self.jobs
            ],
            "assumptions": self.assumptions,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job."""
        return [flat(job_columns(self.at), job.row) | flat(SUBMITTED_COLUMNS, job) for job in self.jobs]

    def blocks(self) -> list[Block]:
        """For people."""
        return [
            Text(f"ledger {safe(self.ledger)}"),
            table(SUBMITTED_COLUMNS, self.jobs),
            Text(f"first: by policy {safe(self.policy)} ({safe(self.policy_source)}), if every pool were free"),
            *(Text(f"warning: job {job.row.id}: {safe(line)}") for job in self.jobs for line in job.warnings),
            *(Text(f"assumed: {safe(line)}") for line in self.assumptions),
        ]


def read_jobs(files: Sequence[Path], now: float) -> list[Job]:
    """The jobs of job files; of several, an error names the file that it is in."""
    return [job for file in files for job in _of_file(file, len(files) > 1, lambda path: load_jobs(path, now))]


def submit(
    jobs: Sequence[Job],
    pools: Pools,
    ledger: str = "",
    *,
    policy: str | None = None,
    compile: bool = False,
    now: float | None = None,
    progress: Progress | None = None,
) -> Submission:
    """Write jobs to a ledger, all or none, and say what each would take where.

    `policy`: whose first choice is told; default: that of the router that runs on the ledger. `compile`: programs
    that were not checked yet are compiled for every pool. A job that can run in no pool is a `Refusal`.
    """
    now = time.time() if now is None else now
    with interpreted() if len(jobs) * len(pools.pools) <= FEW else nullcontext():
        admitted = _admitted(jobs, pools, policy, compile, now, progress)
        with open_ledger(ledger) as book:
            teams = [pools.access.team_of(job.owner or book.actor.who) for job in jobs]
            return _write(book, admitted, pools, Submitter(book.actor, teams), policy, now)


@dataclass(frozen=True, slots=True)
class Submitter:
    """Who submits jobs, as proven, and the team of each job's owner."""

    actor: Actor
    teams: Sequence[str]
    scoped: bool = False  # keys are each owner's own


def submit_to(
    ledger: Ledger, jobs: Sequence[Job], pools: Pools, submitter: Submitter, *, policy: str | None, now: float
) -> Submission:
    """Write jobs to a ledger that is open, for somebody else."""
    return _write(ledger, _admitted(jobs, pools, policy, False, now, None), pools, submitter, policy, now)


def submit_remotely(files: Sequence[Path], ledger: str, policy: str | None = None) -> Submission:
    """Send the jobs of job files to a service, which checks and estimates them by its own pools."""
    documents = [document for file in files for document in _of_file(file, len(files) > 1, job_documents)]
    with RemoteLedger(ledger) as service:
        return replace(unpack(Submission, service.submit(documents, policy)), ledger=service.where)


def _write(
    book: Ledger, admitted: Sequence[Admitted], pools: Pools, submitter: Submitter, policy: str | None, now: float
) -> Submission:
    followed, source = (policy, "as asked") if policy else followed_policy(book)
    first = [first_pool(one, pools, followed, now) for one in admitted]  # a policy may fail: before anything is written
    new = [
        NewJob(one.job, one.options, one.infeasible, team, submitter.scoped)
        for one, team in zip(admitted, submitter.teams, strict=True)
    ]
    ids = book.submit(new, now, submitter.actor, pools.access.quotas)
    rows = [book.job(job_id) for job_id in ids]
    taken = tuple(SubmittedJob(row, one.warnings, pool) for row, one, pool in zip(rows, admitted, first, strict=True))
    return Submission(book.where, taken, followed, source, tuple(pools.assumptions), now)


def followed_policy(ledger: Ledger) -> tuple[str, str]:
    """The policy that decides, as far as the ledger tells, and whose it is."""
    router = next((row for row in ledger.routers() if row.stopped is None), None)
    if router is None:
        return DEFAULT_POLICY, "assumed: no router runs"
    return router.policy, f"of router {router.id}"


def first_pool(admitted: Admitted, known: Pools, policy: str, now: float) -> str | None:
    """The pool that a policy chooses for a job if every pool were free; None where it can't be told here."""
    pools = known.pools
    names = {pool.name for pool in pools}
    options = tuple(option for option in admitted.options if option.pool in names)
    try:
        score_of = policy_named(policy)
    except InputError:  # a policy of the router's own machine
        return None
    if not options:
        return None
    job = admitted.job
    table = JobTable(pools)
    table.add(Candidate("1", now, options, job.priority, job.deadline, job.confidence, job.budget))
    free = {pool.name: pool.count for pool in pools}
    state = table.state(now, free, free, weights=known.weights)
    decision = score_of(state)
    score = np.where(np.isfinite(state.seconds[0]), decision.score[0], np.inf)
    least = float(score.min())
    if not np.isfinite(least):
        return None
    equal = score <= least + float(np.max(decision.tie)) * abs(least)
    return state.pools[int(np.argmin(np.where(equal, state.seconds[0], np.inf)))]  # the earliest end, as all are free


def _admitted(
    jobs: Sequence[Job],
    pools: Pools,
    policy: str | None,
    compile_programs: bool,
    now: float,
    progress: Progress | None,
) -> list[Admitted]:
    if policy is not None:
        policy_named(policy)
    tell = progress or (lambda done, many, what: None)
    admitted: list[Admitted] = []
    using = estimator(
        compile_programs,
        lambda chips, stage, seconds: tell(len(admitted) + 1, len(jobs), f"{chips}: {stage}, {seconds:.0f} s"),
    )
    for i, job in enumerate(jobs):
        tell(i + 1, len(jobs), job.name)
        admitted.append(admit(job, *using.options(job, pools.pools), now))
    if policy is not None and admitted:  # it may fail: before a ledger is made
        first_pool(admitted[0], pools, policy, now)
    return admitted


T = TypeVar("T")


def _of_file(file: Path, several: bool, read: Callable[[Path], list[T]]) -> list[T]:
    try:
        return read(file)
    except InputError as error:
        if not several or str(file) in (error.field, error.value):
            raise
        inside = error.field.removeprefix(file.name).strip()
        raise error.under(f"{file}: {inside}" if inside else str(file)) from None
