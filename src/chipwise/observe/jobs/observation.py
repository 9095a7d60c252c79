"""One job of a ledger as it really runs: its steps, what is wrong, where its time went, and how much is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.observe.against import Ratio
from chipwise.observe.goodput.from_ledger import spent_by, zone_of
from chipwise.observe.goodput.records import Account
from chipwise.observe.health.diagnosis import Setting, diagnose, unjudged
from chipwise.observe.health.records import Finding, Unjudged
from chipwise.observe.jobs.remaining import seconds_of_step
from chipwise.observe.log import Log
from chipwise.observe.pace import Pace, pace_of
from chipwise.observe.serving.expected import ServerLatencies
from chipwise.observe.serving.latency import MEAN, Latency
from chipwise.predict.estimate import Estimate
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import SUCCEEDED, UNDER_WAY, AttemptRow, JobRow
from chipwise.route.load.jobs import varied
from chipwise.workload.model import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one attempt of a job shows, and the account of the whole job."""

    job: JobRow
    attempt: AttemptRow | None  # None: it has none yet
    account: Account
    at: float  # seconds since 1970
    log: Log | None = None  # None: its output is not to be had here
    step: int | None = None  # the last that was told
    total_steps: int | None = None  # of the workload, else as the log says
    now: Estimate | None = None  # seconds of a step, all in all
    ratio: Ratio | None = None  # of a step: actual over predicted
    findings: Sequence[Finding] = ()
    unjudged: Sequence[Unjudged] = ()
    latencies: ServerLatencies | None = None  # of one that serves, by a store of telemetry
    problem: str = ""  # why its output is not to be had

    @property
    def running(self) -> bool:
        """Whether the attempt is under way."""
        return self.attempt is not None and self.attempt.state in UNDER_WAY

    @property
    def held_against(self) -> Ratio | Latency | None:
        """What says best how it runs against its prediction: a step, or the mean time of a server's later tokens."""
        if self.ratio is not None or self.latencies is None:
            return self.ratio
        means = {row.figure: row for row in self.latencies.rows if row.statistic == MEAN and row.predicted is not None}
        return means.get("tpot") or means.get("itl") or means.get("ttft")

    @property
    def remaining(self) -> Estimate | None:
        """Seconds that are left, at the pace of now."""
        if not self.running or self.step is None or self.total_steps is None or self.now is None:
            return None
        return self.now.scaled(max(0, self.total_steps - self.step))

    @property
    def remaining_usd(self) -> Estimate | None:
        """What those cost."""
        if self.remaining is None or self.attempt is None:
            return None
        return self.remaining.scaled(self.attempt.option.usd_hour / 3600)


def observe_job(
    book: LedgerView, job: JobRow, chosen: AttemptRow | None, logs: Mapping[int, Log], now: float
) -> Observation:
    """What an attempt shows; `logs` are what the job's attempts printed, by number."""
    account = Account()
    for spent in spent_by(book, [job], now, lambda attempt: logs.get(attempt.number)):
        account.add_account(spent.seconds, spent.chips, spent.usd_per_s)
    log = logs.get(chosen.number) if chosen is not None else None
    if chosen is None or log is None:
        return Observation(job=job, attempt=chosen, account=account, at=now, total_steps=_steps(job, chosen))
    pace = pace_of(log)
    total = _steps(job, chosen) or log.total_steps
    ratio = _against(log, pace, chosen, total)
    setting = _setting(log, chosen, ratio, now)
    return Observation(
        job=job,
        attempt=chosen,
        account=account,
        at=now,
        log=log,
        step=next((step.step for step in reversed(log.steps) if step.step is not None), None),
        total_steps=total,
        now=seconds_of_step(pace),
        ratio=ratio,
        findings=diagnose(log, setting),
        unjudged=unjudged(log, setting),
    )


def _setting(log: Log, attempt: AttemptRow, ratio: Ratio | None, now: float) -> Setting:
    """What a log is judged by: a run that is under way, or did not end well, is silent since its last line."""
    began = attempt.started if attempt.started is not None else attempt.intended
    ended = now if attempt.state in UNDER_WAY else attempt.ended
    zone = None if ended is None else zone_of(log, began, ended)
    silent = None if ended is None or zone is None or attempt.state == SUCCEEDED else ended - zone
    chips = attempt.option.chips
    return Setting(
        ratios=(ratio,) if ratio is not None else (),
        until=silent,
        chips=chips,
        usd_per_chip_hour=attempt.option.usd_hour / chips if chips else None,
    )


def _steps(job: JobRow, attempt: AttemptRow | None) -> int | None:
    """How many steps a job's workload has, as its variant runs it; None where none of training is described."""
    if not job.job.workload or attempt is None:
        return None
    variant = job.job.variant(attempt.variant)
    workload = varied(job.job.workload, variant.batch, variant.precision)
    return round(workload.train.steps) if isinstance(workload, Workload) else None


def _against(log: Log, pace: Pace, attempt: AttemptRow, total: int | None) -> Ratio | None:
    """A step against what was predicted of the attempt: its whole run over all its steps."""
    actual = log.typical("step_seconds") or pace.step_seconds
    if not actual or not total or not 0 < attempt.option.seconds.value < float("inf"):
        return None
    predicted = attempt.option.seconds.scaled(1 / total)
    return Ratio(figure="step", unit="s", actual=actual, predicted=predicted, larger_is_faster=False)
