"""What users of a server were to see at the load that it had: latencies as they were, beside those predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.errors import InputError, Refusal
from chipwise.observe.learn.runs import read_split
from chipwise.observe.serving.counters import ServerCounters
from chipwise.observe.serving.latency import Latency, histograms, latencies
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates.predicted import accelerators
from chipwise.route.ledger.records import AttemptRow, JobRow
from chipwise.route.load.jobs import varied
from chipwise.route.pool import Pool
from chipwise.serving.requests import OPEN
from chipwise.serving.service import Served, run, service, serving_target
from chipwise.workload.serve import ServingWorkload

WINDOW_S = 3600.0  # the last of an attempt: a load is steady for an hour, hardly for a day (own, 2026-11-19)
REQUESTS = 3000  # that are simulated: thirty lie above p99


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLatencies:
    """What users of an attempt saw in its last hour."""

    rows: Sequence[Latency] = ()
    requests_per_s: float | None = None
    began: float = 0.0
    ended: float = 0.0
    unpredicted: str = ""  # why nothing is predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where attempts serve, and what a store has of them."""

    pools: Mapping[str, Pool]
    counters: ServerCounters
    calibration: Calibration

    def latencies(self, job: JobRow, attempt: AttemptRow, now: float) -> ServerLatencies | None:
        """Those of an attempt; None where it does not serve, or no histogram of its engines says enough."""
        if job.id not in self.counters.jobs or attempt.started is None:
            return None
        ended = attempt.ended if attempt.ended is not None else now
        began = max(attempt.started, ended - WINDOW_S)
        engines = self.counters.engines_of(attempt, (began, ended))
        of = histograms(self.counters.telemetry, engines, began, ended)
        if not of:
            return None
        rows = latencies(of)
        counts = [of[figure].count for figure in ("ttft", "e2e", "tpot") if figure in of]
        rate = counts[0] / (ended - began) if counts else None
        answer = ServerLatencies(rows=rows, requests_per_s=rate, began=began, ended=ended)
        try:
            served = self._served(job, attempt, rate, len(engines))
        except Refusal as refusal:
            return replace(answer, unpredicted=str(refusal))
        return replace(answer, rows=[_beside(row, served) for row in rows])

    def _served(self, job: JobRow, attempt: AttemptRow, rate: float | None, engines: int) -> Served:
        pool = self.pools.get(attempt.pool)
        if pool is None:
            raise Refusal(f"pool {attempt.pool} is not in the pools file", "the pools file of its router")
        variant = job.job.variant(attempt.variant)
        workload = varied(job.job.workload, variant.batch, variant.precision)
        assert isinstance(workload, ServingWorkload)
        if workload.serve.arrival.kind not in OPEN or rate is None:
            raise Refusal(
                "the load is not known as requests a second", f"a workload whose arrival is one of {', '.join(OPEN)}"
            )
        on = accelerators(pool, variant.chips, attempt.option.topology)
        try:
            split = read_split(attempt.option.layout or None, _chips_of_one(on, engines))
        except InputError as error:
            raise Refusal(f"its layout is not a server's: {error}", "a layout such as tp=2 x 4") from None
        replicas = on.count // split.chips
        if replicas * split.chips != on.count:
            raise Refusal(f"{on} are no replicas of {split}", "a layout that its chips divide by")
        served = run(
            service(serving_target(workload, on.chip, self.calibration), split, replicas),
            count=REQUESTS,
            rate=rate,
            settle=True,
        )
        if served.measures.saturated:
            raise Refusal(f"at {rate:.3g} requests/s: {served.measures.saturated}", "a load that its chips are to bear")
        return served


def _chips_of_one(on: Accelerators, engines: int) -> int:
    return on.count // engines if engines and on.count % engines == 0 else on.count


def _beside(row: Latency, served: Served) -> Latency:
    spread = getattr(served, row.figure)
    predicted: Estimate | None = None if spread is None else getattr(spread, row.statistic)
    return replace(row, predicted=predicted)
