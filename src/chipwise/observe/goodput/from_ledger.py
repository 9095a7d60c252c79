"""Where the time of a router's jobs went: by the ledger's attempts, and by what those printed where that is read.

By the ledger alone an attempt that succeeded, or still runs, was productive but for its restart; of another what its
checkpoints kept was, and the rest is lost work. Until an attempt starts its job waits, and no chips are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from chipwise.observe.goodput.from_log import Span, seconds_by_use
from chipwise.observe.goodput.records import Use
from chipwise.observe.log import Log
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import PENDING, SUCCEEDED, UNDER_WAY, AttemptRow, JobRow

ZONE_S = 1800.0  # clocks of zones differ by whole half hours, but for two islands' and Nepal's
FARTHEST_ZONE_S = 14 * 3600.0  # of Kiribati
NEAR_S = 60.0  # by which a machine's clock may be wrong, and a log begin before its attempt is seen to run
ReadLog = Callable[[AttemptRow], Log | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time of a job: what it was used for, from when to when, and what was held."""

    job: JobRow
    attempt: AttemptRow | None  # None: it waits and has none under way
    pool: str
    began: float  # seconds since 1970
    ended: float
    seconds: Mapping[Use, float]
    usd_per_s: float = 0.0  # of all chips
    from_log: bool = False

    @property
    def chips(self) -> int:
        """Chips that were held."""
        return self.attempt.option.chips if self.attempt is not None else 0


def spent_by(book: LedgerView, jobs: Iterable[JobRow], now: float, read: ReadLog | None = None) -> Iterator[Spent]:
    """The time of jobs, in the order in which it went by; `read` gives what an attempt printed."""
    for job in jobs:
        yield from _of_job(book, job, book.attempts(job.id), now, read)


def _of_job(
    book: LedgerView, job: JobRow, attempts: Sequence[AttemptRow], now: float, read: ReadLog | None
) -> Iterator[Spent]:
    done = _done_after(book, job, attempts)
    logs = {attempt.number: log for attempt in attempts if read is not None and (log := read(attempt)) is not None}
    free, before = job.submitted, 0.0
    for place, attempt in enumerate(attempts):
        ended = attempt.ended if attempt.ended is not None else now
        began = min(ended, attempt.started if attempt.started is not None else ended)
        yield _waiting(job, attempt, attempt.pool, free, began)
        held = max(0.0, ended - began)
        after = done.get(attempt.id, before)
        if held > 0.0:
            log = logs.get(attempt.number)
            following = logs.get(attempts[place + 1].number) if place + 1 < len(attempts) else None
            by_log = _by_log(log, attempt, began, ended, place > 0, following) if log is not None else None
            paid = attempt.ended is not None and attempt.spent > 0.0
            yield Spent(
                job=job,
                attempt=attempt,
                pool=attempt.pool,
                began=began,
                ended=ended,
                seconds=by_log or _by_ledger(job, attempt, held, before, after),
                usd_per_s=attempt.spent / held if paid else attempt.option.usd_hour / 3600,
                from_log=by_log is not None,
            )
        free, before = max(free, ended), after
    if job.state == PENDING:
        yield _waiting(job, None, "", free, now)


def _waiting(job: JobRow, attempt: AttemptRow | None, pool: str, began: float, ended: float) -> Spent:
    seconds = {Use.WAITING: max(0.0, ended - began)}
    return Spent(job=job, attempt=attempt, pool=pool, began=min(began, ended), ended=ended, seconds=seconds)


def _done_after(book: LedgerView, job: JobRow, attempts: Sequence[AttemptRow]) -> dict[str, float]:
    """The share of the job's work that was kept when each attempt had ended."""
    if all(attempt.state in (SUCCEEDED, *UNDER_WAY) for attempt in attempts):
        return {}
    return {
        event.attempt: float(event.data.get("done") or 0.0) for event in book.events(job.id) if event.kind == "ended"
    }


def _by_ledger(job: JobRow, attempt: AttemptRow, held: float, before: float, after: float) -> dict[Use, float]:
    recovery = min(held, job.job.checkpoint.restart) if before > 0.0 else 0.0
    rest = held - recovery
    if attempt.state == SUCCEEDED or attempt.state in UNDER_WAY:
        return {Use.RECOVERY: recovery, Use.PRODUCTIVE: rest}
    whole = attempt.option.seconds.value
    saved_s = min(rest, max(0.0, after - before) * whole) if isfinite(whole) else 0.0
    return {Use.RECOVERY: recovery, Use.PRODUCTIVE: saved_s, Use.LOST_WORK: rest - saved_s}


def _by_log(
    log: Log, attempt: AttemptRow, began: float, ended: float, goes_on: bool, following: Log | None
) -> dict[Use, float] | None:
    zone = zone_of(log, began, ended)
    next_step = following.steps[0].step if following is not None and following.steps else None
    span = Span(
        began=None if zone is None else began - zone,
        ended=None if zone is None else ended - zone,
        goes_on=goes_on,
        redone_from=next_step,
        stopped=attempt.state not in (SUCCEEDED, *UNDER_WAY),
    )
    seconds = seconds_by_use(log, span)
    if seconds is None:
        return None
    held, by_log = ended - began, sum(seconds.values())
    if by_log > held:  # by clocks that differ
        return {use: amount * held / by_log for use, amount in seconds.items()}
    return {**seconds, Use.OTHER: seconds.get(Use.OTHER, 0.0) + held - by_log}


def zone_of(log: Log, began: float, ended: float) -> float | None:
    """Seconds by which the clock of a log's stamps is behind UTC: whole half hours, none where it need not be.

    A stamp without a zone is read as UTC; the ledger knows when the attempt ran. None: the log's stamps are of another
    time, whatever the zone.
    """
    if log.began is None or log.ended is None:
        return None
    if began - NEAR_S <= log.began and log.ended <= ended + NEAR_S:
        return 0.0
    zone = ceil((began - NEAR_S - log.began) / ZONE_S) * ZONE_S
    return zone if abs(zone) <= FARTHEST_ZONE_S and log.ended + zone <= ended + NEAR_S else None
