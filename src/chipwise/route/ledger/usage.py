"""What users and teams have used: chips at once, chip-hours and dollars of the month, against their quotas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from chipwise.errors import InputError
from chipwise.route.access.quota import Quota, Quotas, Usage, amount, month_of, within
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger.codec import decode
from chipwise.route.ledger.database import Database
from chipwise.route.ledger.error import BadRow
from chipwise.route.ledger.records import NewJob
from chipwise.route.ledger.rows import job_number, options_of
from chipwise.route.ledger.schema import SQL_UNDER_WAY, SQL_USER
from chipwise.route.option import Option

HOUR = 3600.0


def usage(db: Database, quotas: Quotas, now: float, under_way: bool = True) -> dict[str, Usage]:
    """What users and teams with quotas have used this month and hold now, by `user NAME` and `team NAME`."""
    used: dict[str, Usage] = {}
    for user, team, more in [*_ended(db, now), *(_under_way(db, now) if under_way else ())]:
        for name, _ in quotas.of(user, team):
            used[name] = used.get(name, Usage()) + more
    return used


def ended_usage(chips: int, started: float | None, ended: float, spent: float, month: tuple[float, float]) -> Usage:
    """What an attempt that has ended took of a month: the share of its time that lies in it.

    >>> ended_usage(4, 0.0, 7200.0, 10.0, (3600.0, 86400.0))
    Usage(chips=0.0, chip_hours=4.0, usd=5.0)
    """
    begun = ended if started is None else started
    share = within(begun, ended, *month)
    return Usage(0.0, chips * max(0.0, ended - begun) / HOUR * share, spent * share)


def running_usage(option: Option, begun: float, seen: float, month: tuple[float, float]) -> Usage:
    """What an attempt under way counts for: its chips, and what its run is expected to take, or was seen to if more."""
    before = max(0.0, month[0] - begun)
    seconds = max(option.seconds.value if isfinite(option.seconds.value) else 0.0, seen) - before
    hours = max(0.0, seconds) / HOUR
    return Usage(option.chips, option.chips * hours, option.usd_hour * hours + option.usd_once)


def least_usage(options: Iterable[Option]) -> Usage:
    """The least of each quantity that some way to run a job takes."""
    options = list(options)
    return Usage(
        min(option.chips for option in options),
        min(option.chips * option.seconds.value / HOUR for option in options),
        min(option.usd for option in options),
    )


def check(db: Database, jobs: Sequence[NewJob], quotas: Quotas, submitter: str, now: float) -> None:
    """Refuse jobs that take more, at the least, than a quota of their user or team leaves."""
    wanted: dict[str, Usage] = {}
    of: dict[str, Quota] = {}
    for new in jobs:
        need = least_usage(new.options)
        for name, quota in quotas.of(new.job.owner or submitter, new.team):
            of[name] = quota
            if need.chips > quota.chips:
                raise InputError(
                    f"job {new.job.name}: chips of {name}",
                    int(need.chips),
                    f"at most {amount('chips', quota.chips)} at once, by its quota",
                )
            wanted[name] = wanted.get(name, Usage()) + Usage(0.0, need.chip_hours, need.usd)
    used = usage(db, quotas, now) if any(isfinite(q.chip_hours) or isfinite(q.usd) for q in of.values()) else {}
    for name, need in wanted.items():
        before = used.get(name, Usage())
        part = of[name].over(Usage(0.0, before.chip_hours, before.usd), need)
        if part:
            limit, spent = getattr(of[name], part), getattr(before, part)
            raise InputError(
                f"{part} of {name}",
                amount(part, getattr(need, part)),
                f"at most {amount(part, max(0.0, limit - spent))}, which is left of {amount(part, limit)} this month",
            )


def _ended(db: Database, now: float) -> list[tuple[str, str, Usage]]:
    month = month_of(now)
    rows = db.all(
        f"SELECT {SQL_USER}, team, attempts.chips, attempts.started, attempts.ended, attempts.spent "
        "FROM attempts JOIN jobs ON jobs.id = job_id "
        f"WHERE attempts.ended > ? AND attempts.state NOT IN {SQL_UNDER_WAY}",
        month[0],
    )
    return [
        (user, team, ended_usage(chips, started, ended, spent, month))
        for user, team, chips, started, ended, spent in rows
    ]


def _under_way(db: Database, now: float) -> list[tuple[str, str, Usage]]:
    month = month_of(now)
    rows = db.all(
        f"SELECT {SQL_USER}, team, attempts.plan, coalesce(attempts.started, attempts.intended), attempts.chips, "
        f"attempts.seen FROM attempts JOIN jobs ON jobs.id = job_id WHERE attempts.state IN {SQL_UNDER_WAY}"
    )
    used = []
    for user, team, plan, begun, chips, seen in rows:
        try:
            more = running_usage(decode(Option, plan), begun, seen, month)
        except (ValueError, TypeError, KeyError, AttributeError):  # a row that can't be read: its chips count
            more = Usage(chips)
        used.append((user, team, more))
    return used


def within_quotas(
    db: Database, decisions: Sequence[Decision], quotas: Quotas, now: float, alone: bool
) -> list[Decision]:
    """The decisions without the starts that exceed a quota, by what the ledger itself holds.

    `alone`: no other router has started or ended anything since this one counted, so that chips alone are counted
    again: what the month's attempts took is a sum over all of them.
    """
    if not any(decision.kind == "start" for decision in decisions):
        return list(decisions)
    used: dict[str, Usage] = {}
    for user, team, more in [*(() if alone else _ended(db, now)), *_under_way(db, now)]:
        for name, _ in quotas.of(user, team):
            used[name] = used.get(name, Usage()) + (Usage(more.chips) if alone else more)
    kept, month = [], month_of(now)
    for decision in decisions:
        if decision.kind == "start":
            row = db.one(f"SELECT {SQL_USER}, team, options FROM jobs WHERE id = ?", job_number(decision.job))
            user, team, options = ("", "", "[]") if row is None else row
            need = _need(decision, options, now, month)
            limits = quotas.of(user, team)
            if need is None or any(quota.over(used.get(name, Usage()), need) for name, quota in limits):
                continue
            for name, _ in limits:
                used[name] = used.get(name, Usage()) + (Usage(need.chips) if alone else need)
        kept.append(decision)
    return kept


def _need(decision: Decision, options: str, now: float, month: tuple[float, float]) -> Usage | None:
    """What a start takes; None where its job has no such option, or none that can be read: it is not started."""
    try:
        ways = options_of(decision.job, options)
    except BadRow:
        return None
    way = next((way for way in ways if (way.pool, way.variant) == (decision.pool, decision.variant)), None)
    return None if way is None else running_usage(way, now, 0.0, month)


def totals(db: Database, owner: str | None) -> dict[str, dict[str, float]]:
    """Jobs and attempts by state, chips held and dollars spent by pool; of all jobs, or those of an owner."""
    mine, values = ("", ()) if owner is None else (f" AND {SQL_USER} = ?", (owner,))
    joined = "attempts" if owner is None else "attempts JOIN jobs ON jobs.id = job_id"

    def counted(what: str, tables: str, condition: str = "1 = 1") -> dict[str, float]:
        group = what.partition(",")[0]
        sql = f"SELECT {what} FROM {tables} WHERE {condition}{mine} GROUP BY {group} ORDER BY {group}"
        return dict(db.all(sql, *values))

    return {
        "jobs": counted("jobs.state, count(*)", "jobs"),
        "attempts": counted("attempts.state, count(*)", joined),
        "chips": counted(
            "attempts.pool, CAST(sum(attempts.chips) AS BIGINT)", joined, f"attempts.state IN {SQL_UNDER_WAY}"
        ),
        "spent": counted("attempts.pool, sum(attempts.spent)", joined),
    }
