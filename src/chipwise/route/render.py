"""Rendering of jobs: what each backend would be asked for, by the router's own way, without asking it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import Refusal, UnknownName
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record
from chipwise.present.numbers import plural
from chipwise.present.result import Result
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

    def __str__(self) -> str:
        """As a comment and the text, such as a file for kubectl has them."""
        option = self.option
        shape = f" as {option.topology}" if option.topology else ""
        first = (
            f"# {self.job!r} as {option.variant}, {plural(option.chips, 'chip')}{shape} of pool {option.pool}, "
            f"through {self.backend}"
        )
        return f"{first}: refused: {self.refused}\n" if self.refused else f"{first}\n{self.text.rstrip()}\n"


COLUMNS: tuple[Column[Rendered], ...] = (
    Column("job", lambda r: r.job),
    Column("pool", lambda r: r.option.pool),
    Column("variant", lambda r: r.option.variant),
    Column("backend", lambda r: r.backend),
    Column("chips", lambda r: r.option.chips),
    Column("topology", lambda r: r.option.topology or None),
    Column("text", lambda r: r.text or None),
    Column("refused", lambda r: r.refused or None),
)


@dataclass(frozen=True, slots=True, repr=False)
class Rendering(Result):
    """What each backend would be asked for."""

    VERB: ClassVar[str] = "jobs render"
    rendered: tuple[Rendered, ...]
    assumptions: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"rendered": [record(COLUMNS, one) for one in self.rendered], "assumptions": self.assumptions}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job, pool and variant."""
        return [flat(COLUMNS, one) for one in self.rendered]

    def text(self) -> str:
        """All of it in the backends' own languages, to the letter."""
        return "\n".join(map(str, self.rendered))

    def blocks(self) -> list[Block]:
        """For people."""
        return [Text(line) for line in self.text().splitlines()]


def render(
    jobs: Sequence[Job],
    pools: Pools,
    now: float,
    *,
    pool: str | None = None,
    variant: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, many, what: None,
) -> Rendering:
    """What jobs become in every pool where they can run, or in one; as every variant, or as one."""
    chosen = pools.pools if pool is None else (pools.pool(pool),)
    using = estimator()
    rendered: list[Rendered] = []
    for i, job in enumerate(jobs):
        progress(i + 1, len(jobs), job.name)
        if variant is not None and variant not in {v.name for v in job.variants}:
            raise UnknownName("variant", variant, [v.name for v in job.variants])
        options = admit(job, *using.options(job, chosen), now).options
        rendered += [_rendered(job, option, pools) for option in options if variant in (None, option.variant)]
    if all(one.refused for one in rendered):
        raise Refusal(
            "; ".join(f"{one.job} in {one.option.pool}: {one.refused}" for one in rendered)
            or f"no pool runs variant {variant}",
            "",
        )
    return Rendering(tuple(rendered), pools.assumptions)


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
