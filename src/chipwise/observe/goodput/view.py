"""Goodput as every face shows it: of one run, and of a ledger's jobs by job, pool, team, owner or month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.goodput.records import Account, Use
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import number, percent, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import format_money, format_seconds

_WORDS = {
    Use.PRODUCTIVE: "steps that count, at their usual pace",
    Use.WAITING: "no chips were held",
    Use.START_UP: "from the start of the program to its first step",
    Use.COMPILE: "what the first steps of a start took beyond a usual one",
    Use.DATA: "steps that waited for data, by what lines before them say",
    Use.CHECKPOINT: "saving checkpoints, by what lines say",
    Use.EVALUATION: "evaluating, by what lines say",
    Use.PAUSE: "between steps; no line says what for",
    Use.SLOW_DOWN: "steps slower than they had been",
    Use.STRAGGLER: "steps that waited for the slowest rank",
    Use.THROTTLING: "slower steps of devices that keep their clocks down",
    Use.HANG: "no step came any more",
    Use.LOST_WORK: "steps that were done again, or never kept",
    Use.RECOVERY: "from the last step before a restart to the first after it",
    Use.SHUT_DOWN: "after the last step",
    Use.OTHER: "nothing says",
}
_NAMES = {Use.START_UP: "start-up", Use.SHUT_DOWN: "shut-down", Use.SLOW_DOWN: "slow-down"}
MOST_NAMED = 3  # uses of a group's time that its row names
LEAST_NAMED = 0.005  # of what was held


def _name(use: Use) -> str:
    return _NAMES.get(use, use.replace("_", " "))


@dataclass(frozen=True, slots=True)
class UseRow:
    """A use of time, of an account."""

    use: Use
    account: Account

    @property
    def seconds(self) -> float:
        """Seconds."""
        return self.account.seconds[self.use]

    @property
    def share(self) -> float | None:
        """Of what was held; None where nothing is."""
        return self.account.share(self.use)

    @property
    def chip_hours(self) -> float | None:
        """Chip-hours, where chips are known."""
        seconds = self.account.chip_seconds.get(self.use)
        return None if seconds is None else seconds / 3600

    @property
    def usd(self) -> float | None:
        """Dollars, where a price is known."""
        return self.account.usd.get(self.use)


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share, 1)


USE_COLUMNS: tuple[Column[UseRow], ...] = (
    Column("use", lambda r: r.use, "where it went", lambda r: _name(r.use), words=True, help="productive, or a loss"),
    Column("seconds", lambda r: r.seconds, "time", lambda r: format_seconds(r.seconds), unit="s"),
    Column("share", lambda r: r.share, "share", lambda r: _share(r.share), help="of what was held"),
    Column("chip_hours", lambda r: r.chip_hours, "chip-hours", lambda r: _number(r.chip_hours)),
    Column("usd", lambda r: r.usd, "cost", lambda r: _money(r.usd), unit="USD"),
    Column("", None, "what", lambda r: _WORDS[r.use], words=True),
)


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def _money(usd: float | None) -> str:
    return "–" if usd is None else format_money(usd)


def use_rows(account: Account) -> list[UseRow]:
    """The uses of an account, productive first, then what took most."""
    return [
        UseRow(use, account)
        for use in sorted(account.seconds, key=lambda use: (use is not Use.PRODUCTIVE, -account.seconds[use]))
    ]


def account_record(account: Account) -> dict[str, Any]:
    """An account as JSON has it."""
    return {
        "goodput": account.goodput,
        "elapsed_seconds": account.elapsed,
        "chip_hours": sum(account.chip_seconds.values()) / 3600 if account.chip_seconds else None,
        "usd": sum(account.usd.values()) if account.usd else None,
        "uses": [record(USE_COLUMNS, row) for row in use_rows(account)],
    }


@dataclass(frozen=True, slots=True, repr=False)
class RunGoodput(Result):
    """Where the time of one run went."""

    VERB: ClassVar[str] = "observe goodput"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in USE_COLUMNS if column.key)
    source: str
    account: Account
    stamps: bool  # whether its lines have any: time between steps is known

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"source": self.source, "time_stamps": self.stamps, **account_record(self.account)}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a use."""
        return [flat(USE_COLUMNS, row) for row in use_rows(self.account)]

    def blocks(self) -> list[Block]:
        """For people."""
        good = _share(self.account.goodput)
        out: list[Block] = [Text(f"{self.source}: goodput {good} of {format_seconds(self.account.elapsed)}")]
        out.append(table(USE_COLUMNS, use_rows(self.account), title="Where the time went"))
        if not self.stamps:
            out.append(Text("Its lines have no time stamps: only what steps say they took is counted"))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Jobs that are counted together."""

    name: str
    jobs: int
    attempts: int
    account: Account

    @property
    def goodput(self) -> float | None:
        """Productive over held."""
        return self.account.goodput


GROUP_COLUMNS: tuple[Column[Group], ...] = (
    Column("name", lambda g: g.name, "", help="of the job, pool, team, owner or month"),
    Column("jobs", lambda g: g.jobs, "jobs"),
    Column("attempts", lambda g: g.attempts, "attempts"),
    Column("goodput", lambda g: g.goodput, "goodput", lambda g: _share(g.goodput), help="productive over held"),
    Column("", None, "chip-hours", lambda g: number(sum(g.account.chip_seconds.values()) / 3600)),
    Column("", None, "cost", lambda g: format_money(sum(g.account.usd.values()))),
    Column("", None, "waited", lambda g: format_seconds(g.account.seconds.get(Use.WAITING, 0.0))),
    Column("", None, "where the rest went", lambda g: _losses(g.account), words=True),
)


def _losses(account: Account) -> str:
    shares = [(share, use) for use in Use if use is not Use.PRODUCTIVE and (share := account.share(use))]
    named = [f"{_name(use)} {percent(share, 1)}" for share, use in sorted(shares, reverse=True) if share >= LEAST_NAMED]
    return ", ".join(named[:MOST_NAMED]) or "–"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FleetGoodput(Result):
    """Where the time of a ledger's jobs went."""

    VERB: ClassVar[str] = "observe goodput"
    CSV_HEADER: ClassVar[tuple[str, ...]] = (
        "name",
        "jobs",
        "attempts",
        "goodput",
        "use",
        "seconds",
        "chip_hours",
        "usd",
    )
    ledger: str
    by: str
    groups: Sequence[Group]
    total: Account
    jobs: int
    attempts: int
    logs_read: int  # attempts whose output was read
    logs_absent: int  # of those that should have been
    bad_rows: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        head = {"ledger": self.ledger, "by": self.by, "jobs": self.jobs, "attempts": self.attempts}
        head |= {"logs_read": self.logs_read, "logs_absent": self.logs_absent, "bad_rows": list(self.bad_rows)}
        groups = [
            {"name": g.name, "jobs": g.jobs, "attempts": g.attempts, **account_record(g.account)} for g in self.groups
        ]
        return {**head, **account_record(self.total), "groups": groups}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a group and use."""
        return [
            {"name": g.name, "jobs": g.jobs, "attempts": g.attempts, "goodput": g.account.goodput,
             **flat(USE_COLUMNS, row)}
            for g in self.groups for row in use_rows(g.account)
        ]  # fmt: skip

    def blocks(self) -> list[Block]:
        """For people."""
        where = f"ledger {safe(self.ledger)}"
        bad = [Text(f"left out: {safe(line)}") for line in self.bad_rows]
        if not self.groups:
            return [Text(f"{where}: no job"), *bad]
        out: list[Block] = [
            Text(
                f"{where}: goodput {_share(self.total.goodput)} of "
                f"{number(sum(self.total.chip_seconds.values()) / 3600)} chip-hours; {plural(self.jobs, 'job')}, "
                f"{plural(self.attempts, 'attempt')}"
            ),
            table((Column("", None, self.by, lambda g: safe(g.name), words=True), *GROUP_COLUMNS[1:]), self.groups),
            table(USE_COLUMNS, use_rows(self.total), title="Where the time went"),
        ]
        if self.logs_read or self.logs_absent:
            absent = f"; {plural(self.logs_absent, 'attempt')} without output that says so, by the ledger alone"
            out.append(
                Text(f"By the output of {plural(self.logs_read, 'attempt')}{absent if self.logs_absent else ''}")
            )
        else:
            out.append(
                Text("By the ledger alone; --logs reads what attempts printed: start-up, compiling, checkpoints")
            )
        return [*out, *bad]
