"""When a line was printed, by the time stamp that it carries.

Stamps of Python's logging, Megatron, ISO 8601, absl and glog, vLLM, syslog and MLPerf. A stamp without a zone is taken
as UTC and one without a year as the latest that is not to come: within one log only differences count.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from chipwise.errors import InputError
from chipwise.io.clock import day_of_asking

_SEARCHED = 240  # characters of a line in which its stamp stands
_TIME = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_FULL = re.compile(rf"(\d{{4}})[-/](\d\d)[-/](\d\d)[T ]{_TIME}\s?(Z\b|[+-]\d\d:?\d\d\b)?")
_GLOG = re.compile(rf"(?:^|\s)[IWEF](\d\d)(\d\d) {_TIME}")
_SHORT = re.compile(rf"\b(\d\d)-(\d\d) {_TIME}")  # vLLM's
_SYSLOG = re.compile(rf"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+(\d{{1,2}}) {_TIME}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MILLISECONDS = re.compile(r'"time_ms":\s*(\d{12,14})\b')
_AHEAD = timedelta(days=2)  # zones and clocks that run ahead
_NEW_YEAR = 180 * 86400.0  # a stamp without a year that jumps back so far is of the next


class Clock:
    """Reads the stamps of a log, line after line."""

    def __init__(self, today: date | None = None) -> None:
        self._today = today or day_of_asking()
        self._years = 0
        self._last: float | None = None

    def read(self, line: str) -> float | None:
        """Seconds since 1970 of a line's stamp; None where it has none.

        >>> clock = Clock(date(2026, 11, 18))
        >>> clock.read("[titan] 2026-11-02 10:01:17,500 - root - INFO - step: 10"), clock.read("step: 11")
        (1793613677.5, None)
        >>> clock.read("I1102 10:01:18.500000 7 metric_logger.py:226] completed step: 1")
        1793613678.5
        """
        if ":" not in line:
            return None
        head = line[:_SEARCHED]
        if match := _FULL.search(head):
            return _seconds(int(match[1]), int(match[2]), int(match[3]), match.groups()[3:7], match[8])
        if match := _MILLISECONDS.search(line):
            return int(match[1]) / 1e3
        if match := _GLOG.search(head) or _SHORT.search(head):
            return self._without_year(int(match[1]), int(match[2]), match.groups()[2:6])
        if match := _SYSLOG.search(head):
            return self._without_year(_MONTHS.index(match[1]) + 1, int(match[2]), match.groups()[2:6])
        return None

    def _without_year(self, month: int, day: int, time: tuple[str | None, ...]) -> float | None:
        year = self._today.year + self._years
        at = _seconds(year, month, day, time, None)
        if at is None:
            return None
        latest = datetime.combine(self._today, datetime.min.time(), UTC) + _AHEAD
        if self._last is None and at > latest.timestamp():
            self._years, at = self._years - 1, _seconds(year - 1, month, day, time, None)
        elif self._last is not None and at < self._last - _NEW_YEAR:
            self._years, at = self._years + 1, _seconds(year + 1, month, day, time, None)
        self._last = at if at is not None else self._last
        return at


def _seconds(year: int, month: int, day: int, time: tuple[str | None, ...], zone: str | None) -> float | None:
    hour, minute, second, part = time
    try:
        moment = datetime(year, month, day, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
    except ValueError:  # such as 02-30: no stamp
        return None
    fraction = float(f"0.{part}") if part else 0.0
    return moment.timestamp() + fraction - _offset(zone)


def _offset(zone: str | None) -> float:
    if not zone or zone == "Z":
        return 0.0
    sign = -1.0 if zone[0] == "-" else 1.0
    return sign * (int(zone[1:3]) * 3600.0 + int(zone[-2:]) * 60.0)


def read_moment(text: str, field: str, now: float) -> float:
    """Seconds since 1970 of a moment as people write it: now, or a date with its time.

    >>> read_moment("2026-11-02 10:01:17", "until", 0.0), read_moment("now", "until", 5.0)
    (1793613677.0, 5.0)
    """
    if text.strip().lower() == "now":
        return now
    match = _FULL.fullmatch(text.strip())
    at = _seconds(int(match[1]), int(match[2]), int(match[3]), match.groups()[3:7], match[8]) if match else None
    if at is None:
        raise InputError(field, text, "now, or a moment such as 2026-11-02T10:01:17Z")
    return at
