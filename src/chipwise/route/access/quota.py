"""Quotas of users and teams: chips at once, chip-hours and dollars in a calendar month (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf, isfinite

PARTS = ("chips", "chip_hours", "usd")
SLACK = 1 + 1e-9  # of a limit: sums of shares are not exact


@dataclass(frozen=True, slots=True)
class Usage:
    """What has been used, or would be."""

    chips: float = 0.0  # at once
    chip_hours: float = 0.0  # in the month
    usd: float = 0.0  # in the month

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.chips + other.chips, self.chip_hours + other.chip_hours, self.usd + other.usd)


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that may be used; inf: any amount."""

    chips: float = inf
    chip_hours: float = inf
    usd: float = inf

    @property
    def limited(self) -> bool:
        """Whether it limits anything."""
        return min(self.chips, self.chip_hours, self.usd) < inf

    def left(self, used: Usage) -> Usage:
        """What may still be used.

        >>> Quota(chips=8, usd=100).left(Usage(chips=6, usd=120))
        Usage(chips=2, chip_hours=inf, usd=0)
        """
        return Usage(
            max(0, self.chips - used.chips), max(0, self.chip_hours - used.chip_hours), max(0, self.usd - used.usd)
        )

    def over(self, used: Usage, more: Usage) -> str:
        """The first quota that would be exceeded by so much more; empty where none would.

        >>> quota = Quota(chips=8, usd=100)
        >>> quota.over(Usage(chips=6), Usage(chips=2, usd=100)), quota.over(Usage(chips=6), Usage(chips=4))
        ('', 'chips')
        """
        for part in PARTS:
            limit = getattr(self, part)
            if isfinite(limit) and getattr(used, part) + getattr(more, part) > limit * SLACK:
                return part
        return ""


NONE = Quota()


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a pools file."""

    each_user: Quota = NONE  # of users whom `users` does not name
    users: Mapping[str, Quota] = field(default_factory=dict)
    teams: Mapping[str, Quota] = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        """Whether there is any quota at all."""
        return any(quota.limited for quota in (self.each_user, *self.users.values(), *self.teams.values()))

    def of(self, user: str, team: str) -> list[tuple[str, Quota]]:
        """The quotas that a job falls under, each with whose it is: `user ada`, `team vision`."""
        pairs = [(f"user {user}", self.users.get(user, self.each_user))]
        if team:
            pairs.append((f"team {team}", self.teams.get(team, NONE)))
        return [(name, quota) for name, quota in pairs if quota.limited]


def month_of(now: float) -> tuple[float, float]:
    """The calendar month (UTC) that a moment lies in: its beginning and that of the next, in seconds since 1970.

    >>> [datetime.fromtimestamp(t, UTC).isoformat() for t in month_of(1798761600.0 - 1)]
    ['2026-12-01T00:00:00+00:00', '2027-01-01T00:00:00+00:00']
    """
    at = datetime.fromtimestamp(now, UTC)
    first = datetime(at.year, at.month, 1, tzinfo=UTC)
    after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
    return first.timestamp(), after.timestamp()


def within(start: float, end: float, since: float, until: float) -> float:
    """The share of an interval that lies in another.

    >>> within(0.0, 10.0, 5.0, 100.0), within(3.0, 3.0, 0.0, 4.0)
    (0.5, 1.0)
    """
    if end <= start:
        return float(since <= start < until)
    return max(0.0, min(end, until) - max(start, since)) / (end - start)


def of_limit(part: str, used: float, limit: float) -> str:
    """How much of a quota is used, in words.

    >>> of_limit("chips", 6, 8), of_limit("usd", 1.5, 1000)
    ('6 of 8 chips', '$1.50 of $1,000.00')
    """
    return f"{amount(part, used).partition(' ')[0]} of {amount(part, limit)}"


def amount(part: str, value: float) -> str:
    """A quantity of a quota in words.

    >>> amount("chips", 8), amount("chips", 1), amount("usd", 1.5), amount("chip_hours", 12.25)
    ('8 chips', '1 chip', '$1.50', '12.25 chip-hours')
    """
    if part == "usd":
        return f"${value:,.2f}"
    words = part.replace("_", "-")
    return f"{value:,.4g} {words[:-1] if value == 1 else words}"
