"""What attempts print, part by part: `jobs logs` reads it here, or from the service whose folders these are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InputError, Refusal
from chipwise.present.safe import safe
from chipwise.route.attempt_files import Unreadable, read_part
from chipwise.route.attempt_output import ESCAPES
from chipwise.route.backend import BackendDown
from chipwise.route.backends.named import attempt_folder
from chipwise.route.ledger import Ledger, LedgerView, RemoteLedger
from chipwise.route.ledger.records import AttemptRow, JobRow

PART = 256 * 1024  # bytes read at once, and of one answer of a service


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some bytes of an attempt's output."""

    path: str
    start: int  # of the first of them, in the file
    data: bytes
    size: int  # of the file

    @property
    def end(self) -> int:
        """Where the next part begins."""
        return self.start + len(self.data)


def read_log(ledger: LedgerView, attempt: AttemptRow, start: int, most: int = PART) -> LogPart | None:
    """At most so many bytes of an attempt's output; None where no folder that is seen from here holds it.

    A `start` below 0 counts from the end. A program may have put anything in the file's place.
    """
    if isinstance(ledger, RemoteLedger):
        answer = ledger.log(attempt.job_id, attempt.number, start)
        return None if answer is None else LogPart(*answer)
    assert isinstance(ledger, Ledger)
    for folder in dict.fromkeys(ledger.backend_folders().values()):
        path = attempt_folder(Path(folder), attempt.id) / "output"
        try:
            part = read_part(path, start, most)
        except (Unreadable, BackendDown) as error:
            what = f"the output of attempt {attempt.number} of job {attempt.job_id} can't be read"
            raise Refusal(what, str(error)) from None
        if part is not None:
            return LogPart(str(path), *part)
    return None


def attempt_of(job: JobRow, attempts: list[AttemptRow], number: int | None) -> AttemptRow:
    """The attempt of a job by its number, or the newest."""
    if not attempts:
        raise Refusal(
            f"job {job.id} has printed nothing: it is {job.state} and has no attempt", "following it waits for one"
        )
    if number is None:
        return attempts[-1]
    chosen = next((attempt for attempt in attempts if attempt.number == number), None)
    if chosen is None:
        numbers = ", ".join(str(attempt.number) for attempt in attempts)
        raise InputError("attempt", str(number), f"one of job {job.id}: {numbers}")
    return chosen


def absent(attempt: AttemptRow) -> Refusal:
    """Why there is no output to show."""
    name = f" as {safe(attempt.backend_id)}" if attempt.backend_id else ""
    which = f"attempt {attempt.number} of job {attempt.job_id}, in pool {safe(attempt.pool)}"
    return Refusal(
        f"no output of {which}, is on this machine",
        f"it has printed nothing yet, its folder was removed, or its backend, which knows it{name}, keeps it elsewhere",
    )


class Lines:
    """Bytes as they come, as lines that no terminal obeys: colors are dropped, progress bars end at their returns."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[str]:
        """The lines that are whole by now."""
        whole, self._rest = _cut(self._rest + data)
        yield from _lines(whole)

    def last(self) -> Iterator[str]:
        """The line that did not end."""
        rest, self._rest = self._rest, b""
        yield from _lines(rest)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """What ends with a line's end, and the rest; a line beyond all bounds is cut."""
    place = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
    return (data, b"") if len(data) - place > PART else (data[:place], data[place:])


def _lines(data: bytes) -> Iterator[str]:
    text = ESCAPES.sub("", data.decode("utf-8", "replace"))
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line:
            yield safe(line)
