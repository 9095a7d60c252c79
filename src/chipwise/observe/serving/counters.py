"""What the servers of attempts counted: requests, and tokens read and written, by hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chipwise.errors import ChipwiseError
from chipwise.observe.serving.engines import Engine, engines_in, engines_of
from chipwise.observe.serving.rises import Rise, by_hour, rises
from chipwise.observe.store.schema import SAMPLES
from chipwise.observe.store.store import TelemetryStore
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import AttemptRow, JobRow
from chipwise.units import HOUR
from chipwise.workload.load import load_any
from chipwise.workload.serve import ServingWorkload

REQUESTS, WRITTEN, READ = "serving_requests", "serving_generated_tokens", "serving_prompt_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What all engines of an attempt counted together, by hours since 1970, and for how long they told of each."""

    amounts: Mapping[str, Mapping[int, float]]  # by series
    seconds: Mapping[int, float]


@dataclass(slots=True)
class ServerCounters:
    """The engines of a store, read once a host and span."""

    telemetry: TelemetryStore
    jobs: Mapping[str, JobRow]
    attempts: Sequence[AttemptRow]  # that serve
    engines: list[Engine] = field(init=False)

    def __post_init__(self) -> None:
        self.engines = engines_in(self.telemetry)

    def engines_of(self, attempt: AttemptRow, span: tuple[float, float]) -> list[Engine]:
        """Those of an attempt in a span."""
        return engines_of(self.engines, attempt, self.jobs[attempt.job_id], self._rivals(attempt, span))

    def counted(self, attempt: AttemptRow, span: tuple[float, float]) -> Counted | None:
        """What an attempt's engines counted in a span; None where none of them was heard of."""
        amounts: dict[str, dict[int, float]] = {}
        all_rises: list[Rise] = []
        for engine in self.engines_of(attempt, span):
            for series, theirs in self._rises(engine, span).items():
                all_rises += theirs
                sums = amounts.setdefault(series, {})
                for hour, amount in by_hour(theirs, *span).items():
                    sums[hour] = sums.get(hour, 0.0) + amount
        return Counted(amounts=amounts, seconds=by_hour(_covered(all_rises), *span)) if all_rises else None

    def _rivals(self, attempt: AttemptRow, span: tuple[float, float]) -> list[AttemptRow]:
        return [
            other
            for other in self.attempts
            if other.id != attempt.id
            and other.started is not None
            and other.started < span[1]
            and (other.ended is None or other.ended > span[0])
        ]

    def _rises(self, engine: Engine, span: tuple[float, float]) -> dict[str, list[Rise]]:
        begin, end = int(span[0]), int(span[1]) + 1
        resolution = self.telemetry.finest(begin)
        width = 0.0 if resolution is SAMPLES else float(resolution.seconds)
        numbers = {number: name for name in (REQUESTS, WRITTEN, READ) for number, _ in engine.series.get(name, ())}
        points = self.telemetry.points(engine.host, begin, end, engine.device, resolution, list(numbers))
        out: dict[str, list[Rise]] = {}
        for number in np.unique(points.series).tolist():
            out.setdefault(numbers[number], []).extend(rises(points[points.series == number], width))
        return out


def _covered(all_rises: Sequence[Rise]) -> list[Rise]:
    """The time of which anything was told, once: a rise of a second a second."""
    out: list[Rise] = []
    end = float("-inf")
    for rise in sorted(all_rises, key=lambda rise: rise.began):
        if rise.ended > end:
            out.append(Rise(max(rise.began, end), rise.ended, rise.ended - max(rise.began, end)))
            end = rise.ended
    return out


def requests_per_s(counted: Counted, written: float, read: float) -> dict[int, float]:
    """Requests a second of each hour: by their counter, else by tokens over those of a request."""
    for series, tokens in ((REQUESTS, 1.0), (WRITTEN, written), (READ, read)):
        if series in counted.amounts and tokens > 0:
            return {
                hour: amount / tokens / counted.seconds[hour]
                for hour, amount in counted.amounts[series].items()
                if counted.seconds.get(hour, 0.0) > HOUR / 60
            }
    return {}


def server_counters(telemetry: TelemetryStore, book: LedgerView) -> ServerCounters:
    """The counters of all attempts of a ledger that serve."""
    jobs = {job.id: job for job in book.jobs() if _serves(job)}
    return ServerCounters(telemetry, jobs, [attempt for attempt in book.attempts() if attempt.job_id in jobs])


def _serves(job: JobRow) -> bool:
    try:
        return bool(job.job.workload) and isinstance(load_any(job.job.workload), ServingWorkload)
    except ChipwiseError:  # one that this release can't read: `observe job` says so
        return False
