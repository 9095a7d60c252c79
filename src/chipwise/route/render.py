"""Rendering of jobs: what each backend would be asked for, by the router's own way, without asking it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chipwise.errors import Refusal, UnknownName
from chipwise.route.backend import BackendRefused
from chipwise.route.backends.named import backend_name, backends_of
from chipwise.route.estimates import admit, estimator
from chipwise.route.job import Job
from chipwise.route.ledger.records import INTENDED, PENDING, AttemptRow, JobRow
from chipwise.route.load import Pools
from chipwise.route.option import Option
from chipwise.route.router.submitter import launch_of

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
    jobs: Sequence[Job],
    pools: Pools,
    now: float,
    *,
    pool: str | None = None,
    variant: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, many, what: None,
) -> list[Rendered]:
    """What jobs become in every pool where they can run, or in one; as every variant, or as one."""
    chosen = pools.pools if pool is None else (pools.pool(pool),)
    using = estimator()
    rendered: list[Rendered] = []
    for i, job in enumerate(jobs):
        progress(i + 1, len(jobs), job.name)
        if variant is not None and variant not in {v.name for v in job.variants}:
            raise UnknownName("--variant", variant, [v.name for v in job.variants])
        options = admit(job, *using.options(job, chosen), now).options
        rendered += [_rendered(job, option, pools) for option in options if variant in (None, option.variant)]
    if all(one.refused for one in rendered):
        raise Refusal(
            "; ".join(f"{one.job} in {one.option.pool}: {one.refused}" for one in rendered)
            or f"no pool runs variant {variant}",
            "",
        )
    return rendered


def _rendered(job: Job, option: Option, pools: Pools) -> Rendered:
    row = JobRow(JOB, job, PENDING, 0.0, (option,), ())
    pool = pools.pool(option.pool)
    name, folder = backend_name(pool), pools.folder_of(pool.backend) / LEDGER
    backend = backends_of([pool], {name: folder}, LEDGER)[name]
    attempt = AttemptRow(ATTEMPT, JOB, 1, pool.name, option.variant, option, INTENDED, "", 0.0)
    try:
        return Rendered(job.name, option, name, backend.render(launch_of(row, attempt, pool, folder)))
    except BackendRefused as refused:
        return Rendered(job.name, option, name, "", str(refused))
    finally:
        close = getattr(backend, "close", None)
        if close is not None:
            close()
