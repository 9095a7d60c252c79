"""What a job printed, to its end now or as it comes: `jobs logs`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Text
from chipwise.present.result import Result
from chipwise.route.attempt_log import PART, Lines, LogPart, absent, attempt_of, read_log
from chipwise.route.ledger import LedgerView, open_view
from chipwise.route.ledger.records import OVER, UNDER_WAY, AttemptRow

MOST_LINES = 100_000  # of one answer as JSON or in Python; a stream has no bound
PAUSE_S = 0.5  # between two looks at what runs
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobLog(Result):
    """The last lines that an attempt of a job printed."""

    VERB: ClassVar[str] = "jobs logs"
    job: str
    attempt: int
    state: str  # of the attempt
    path: str
    size: int  # bytes of the file
    lines: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        names = ("job", "attempt", "state", "path", "size")
        return {**{name: getattr(self, name) for name in names}, "lines": list(self.lines)}

    def blocks(self) -> list[Block]:
        """For people: as it was printed."""
        return [Text(line) for line in self.lines]


def job_log(ledger: str, job: str, attempt: int | None = None, tail: int = MOST_LINES) -> JobLog:
    """What the newest attempt of a job printed last, or the one of a number."""
    with open_view(ledger, create=False) as book:
        chosen = attempt_of(book.job(job), book.attempts(job), attempt)
        reader, lines, path, size = Lines(), deque[str](maxlen=min(tail, MOST_LINES)), "", 0
        for part in _parts(book, chosen, _start_of_last(book, chosen, min(tail, MOST_LINES))):
            lines.extend(reader.of(part.data))
            path, size = part.path, part.size
        lines.extend(reader.last())
    return JobLog(
        job=chosen.job_id, attempt=chosen.number, state=chosen.state, path=path, size=size, lines=tuple(lines)
    )


def log_lines(
    ledger: str,
    job: str,
    attempt: int | None = None,
    tail: int | None = None,
    follow: bool = False,
    tell: Tell = lambda words: None,
) -> Iterator[str]:
    """The lines of the newest attempt of a job, or of the one of a number, as they are read.

    With `follow` what comes is waited for, over attempts that follow, until the job is over; `tell` hears of those.
    """
    with open_view(ledger, create=False) as book:
        chosen = _awaited(book, job, 0, tell) if follow and attempt is None else None
        if follow and attempt is None and chosen is None:
            return
        chosen = chosen or attempt_of(book.job(job), book.attempts(job), attempt)
        while True:
            yield from _attempt_lines(book, chosen, tail, follow)
            following = _awaited(book, job, chosen.number, tell) if follow and attempt is None else None
            if following is None:
                return
            chosen, tail = following, None
            tell(f"attempt {chosen.number} in {chosen.pool}")


def _attempt_lines(book: LedgerView, attempt: AttemptRow, tail: int | None, follow: bool) -> Iterator[str]:
    place = (
        0 if tail is None or (follow and read_log(book, attempt, 0) is None) else _start_of_last(book, attempt, tail)
    )
    reader, first = Lines(), deque[str](maxlen=tail)
    for part in _parts(book, attempt, place, absent_is_empty=follow):
        place = part.end
        if tail is None:
            yield from reader.of(part.data)
        else:
            first.extend(reader.of(part.data))
    if not follow and tail is not None:
        first.extend(reader.last())
    yield from first
    while follow:
        running = _state(book, attempt) in UNDER_WAY  # before the file is read: what it printed last is there then
        for part in _parts(book, attempt, place, absent_is_empty=True):
            place = part.end
            yield from reader.of(part.data)
        if not running:
            break
        time.sleep(PAUSE_S)
    yield from reader.last()


def _parts(book: LedgerView, attempt: AttemptRow, start: int, absent_is_empty: bool = False) -> Iterator[LogPart]:
    """The parts of an attempt's output from a byte on, to where it ends now."""
    while True:
        part = read_log(book, attempt, start)
        if part is None:
            if absent_is_empty:
                return
            raise absent(attempt)
        yield part
        start = part.end
        if len(part.data) < PART:
            return


def _start_of_last(book: LedgerView, attempt: AttemptRow, lines: int) -> int:
    """A byte from which on there are so many lines at least; the first where there are fewer."""
    part = read_log(book, attempt, -1)
    place, count = part.size if part is not None else 0, 0
    while place > 0 and count <= lines:
        begin = max(0, place - PART)
        part = read_log(book, attempt, begin)
        data = part.data[: place - begin] if part is not None else b""
        count, place = count + data.count(b"\n"), begin
    return place


def _awaited(book: LedgerView, job: str, number: int, tell: Tell) -> AttemptRow | None:
    """The first attempt of a job after one, or where that is none yet the newest; None once the job is over without."""
    told = False
    while True:
        row = book.job(job)  # before its attempts: those of one that is over are all there
        attempts = [attempt for attempt in book.attempts(job) if attempt.number > number]
        if attempts:
            return attempts[0] if number else attempts[-1]
        if row.state in OVER:
            return None
        if not told:
            tell(f"job {row.id} is {row.state}" + (f": {row.reason}" if row.reason else ""))
            told = True
        time.sleep(PAUSE_S)


def _state(book: LedgerView, attempt: AttemptRow) -> str:
    return next((each.state for each in book.attempts(attempt.job_id) if each.id == attempt.id), "")
