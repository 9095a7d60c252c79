"""Jobs that wait, as every face shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.deploy.explain.records import WaitingJob
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

COLUMNS: tuple[Column[WaitingJob], ...] = (
    Column("kind", lambda j: j.kind, "kind", words=True),
    Column("namespace", lambda j: j.namespace or None, words=True),
    Column("name", lambda j: j.name, "job", words=True),
    Column("wait", lambda j: str(j.wait), "waits for", words=True),
    Column("because", lambda j: j.because, "because", help="in the engine's words", words=True),
    Column("remedy", lambda j: j.remedy or None, "what to do", words=True),
    Column("pods", lambda j: j.pods, "parts", help="pods that wait so"),
    Column("since", lambda j: j.since.isoformat() if j.since else None, help="when it was made"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WaitingJobs(Result):
    """Every job that waits, and for what."""

    VERB: ClassVar[str] = "deploy explain"
    jobs: Sequence[WaitingJob]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"jobs": [record(COLUMNS, job) for job in self.jobs]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job."""
        return [flat(COLUMNS, job) for job in self.jobs]

    def blocks(self) -> list[Block]:
        """For people: a line a job, and what to do."""
        if not self.jobs:
            return [Text("Nothing waits.")]
        return [Text(_line(job)) for job in self.jobs]


def _line(job: WaitingJob) -> str:
    name = f"{job.namespace}/{job.name}" if job.namespace else job.name
    parts = f" ({plural(job.pods, 'pod')})" if job.pods > 1 else ""
    since = f", since {job.since:%Y-%m-%d %H:%M} UTC" if job.since else ""
    remedy = f" -> {job.remedy}" if job.remedy else ""
    return safe(f"{job.kind} {name}{parts} waits for {job.wait}{since}: {job.because}{remedy}")
