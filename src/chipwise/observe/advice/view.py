"""Advice on pools, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from chipwise.observe.advice.records import LeftOut, Replayed, State, Tried, Used, Wait
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import HOUR, format_money, format_seconds

UNKNOWN = (  # what no replay can say
    "jobs that nobody submitted because pools were full, and those that more chips would bring",
    "how people and their deadlines would have changed with other waits",
    "whether a cloud would have had the chips, and terms on which committed ones can be given back",
    "which other faults would have been met: what runs took has those of this span in it",
)
_REASONS = {
    LeftOut.NO_POOL: "can run in none of the pools of a mix",
    LeftOut.CANCELLED: "were cancelled before they held chips",
    LeftOut.FAILED: "failed by their own fault: what they would have taken is not known",
}


def _wait(wait: Wait | None) -> str:
    return "-" if wait is None else f"{format_seconds(wait.median_s)}, {format_seconds(wait.p90_s)}"


def _said(wait: Wait | None) -> str:
    if wait is None:
        return "of nobody"
    return f"of {format_seconds(wait.median_s)} at the median, {format_seconds(wait.p90_s)} at p90"


def _verdict(used: Used) -> str:
    return ", ".join(state.value for state in used.states)


POOL_COLUMNS: tuple[Column[Used], ...] = (
    Column("pool", lambda u: u.pool.name, "pool", words=True),
    Column("states", lambda u: [state.value for state in u.states], "is", _verdict, words=True, nested=True),
    Column("chip", lambda u: u.pool.chip, "chip", words=True),
    Column("terms", lambda u: u.pool.terms, "terms", words=True),
    Column("chips", lambda u: u.pool.count, "chips"),
    Column(
        "held_share", lambda u: u.share, "held", lambda u: f"{u.share:.0%}", help="of the chip-hours that there were"
    ),
    Column("full_share", lambda u: u.full_share, "full", lambda u: f"{u.full_share:.0%}", help="of the time"),
    Column("busy_chips", lambda u: u.busy_chips, "for 95 % of the time at most", help="chips that were held"),
    Column("most_chips", lambda u: u.most_chips, help="that were held at once"),
    Column("wait_p90_seconds", lambda u: u.wait.p90_s if u.wait else None),
    Column(
        "wait_median_seconds",
        lambda u: u.wait.median_s if u.wait else None,
        "waited: median, p90",
        lambda u: _wait(u.wait),
    ),
    Column("attempts", lambda u: u.attempts),
    Column("lost", lambda u: u.lost, "lost", help="attempts lost with their chips"),
    Column("usd", lambda u: u.usd, "paid", lambda u: format_money(u.usd), help="for all hours where it is committed"),
    Column("sick_nodes", lambda u: list(u.sick_nodes), nested=True),
)


def _changes(tried: Tried) -> str:
    return ", ".join(f"{pool} {before} to {after}" for pool, before, after in tried.mix.changes) or "-"


MIX_COLUMNS: tuple[Column[Tried], ...] = (
    Column("mix", lambda t: t.mix.name, "mix", words=True),
    Column(
        "changes",
        lambda t: [{"pool": pool, "before": before, "after": after} for pool, before, after in t.mix.changes],
        "chips",
        _changes,
        words=True,
        nested=True,
    ),
    Column("usd", lambda t: t.usd, "cost", lambda t: format_money(t.usd)),
    Column("done", lambda t: t.done, "done", help="jobs, some after the span"),
    Column("late", lambda t: t.late, "after the span", help="of those that are done"),
    Column("refused", lambda t: t.refused, "refused"),
    Column("missed", lambda t: t.missed, "deadlines missed"),
    Column("wait_p90_seconds", lambda t: t.wait.p90_s if t.wait else None),
    Column(
        "wait_median_seconds",
        lambda t: t.wait.median_s if t.wait else None,
        "waited: median, p90",
        lambda t: _wait(t.wait),
    ),
    Column("kwh", lambda t: t.kwh, "kWh", lambda t: "-" if t.kwh is None else f"{t.kwh:,.3g}"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PoolAdvice(Result):
    """What pools are worth, and what other mixes would have cost."""

    VERB: ClassVar[str] = "observe advice"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in POOL_COLUMNS if not column.nested)
    ledger: str
    span: tuple[float, float]
    pools: Sequence[Used]
    replayed: Replayed
    problems: Sequence[str] = ()  # of backends that don't tell their nodes
    told_nodes: bool = True  # there is a store of telemetry that tells of them

    @property
    def paid(self) -> float:
        """Dollars for the span."""
        return sum(one.usd for one in self.pools)

    @property
    def head(self) -> str:
        """Of what and when, in words."""
        days = (self.span[1] - self.span[0]) / HOUR / 24
        span = f"{_day(self.span[0])} to {_day(self.span[1])} ({days:.1f} days)"
        return f"ledger {safe(self.ledger)}: {span}, {format_money(self.paid)} paid for chips"

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        replay = self.replayed
        return {
            "ledger": self.ledger,
            "began": _day(self.span[0]),
            "ended": _day(self.span[1]),
            "usd": self.paid,
            "pools": [record(POOL_COLUMNS, one) for one in self.pools],
            "policy": replay.policy,
            "jobs": replay.jobs,
            "measured": replay.measured,
            "wait_median_seconds": replay.real_wait.median_s if replay.real_wait else None,
            "wait_p90_seconds": replay.real_wait.p90_s if replay.real_wait else None,
            "mixes": [record(MIX_COLUMNS, one) for one in replay.tried],
            "left_out": [{"reason": why.value, "jobs": many} for why, many in replay.left_out],
            "unknown": list(UNKNOWN),
            "problems": list(self.problems),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a pool."""
        return [flat(POOL_COLUMNS, one) for one in self.pools]

    def blocks(self) -> list[Block]:
        """For people."""
        out: list[Block] = [Text(self.head), table(POOL_COLUMNS, self.pools)]
        out += [Text(line) for line in self.sentences()]
        if self.replayed.tried:
            title = f"The same {plural(self.replayed.jobs, 'job')} on other pools, by {self.replayed.policy}"
            out.append(table(MIX_COLUMNS, self.replayed.tried, title=title))
        return [*out, *(Text(line) for line in self.notes()), *section("What a replay can't know", UNKNOWN)]

    def sentences(self) -> list[str]:
        """What to do about which pool, and the mix that would have paid."""
        out = [words for one in self.pools for words in _about(one)]
        if len(self.replayed.tried) < 2:
            return out
        now, *others = self.replayed.tried
        better = [
            one
            for one in others
            if one.usd < now.usd and one.refused <= now.refused and _p90(one.wait) <= _no_worse(now.wait)
        ]
        if not better:
            return [*out, "No mix that was tried would have cost less with waits no worse."]
        best = min(better, key=lambda one: one.usd)
        saved = f"{format_money(best.usd)} in place of {format_money(now.usd)}, with waits no worse"
        return [*out, f"{best.mix.name} ({_changes(best)}) would have cost {saved}"]

    def notes(self) -> list[str]:
        """How far the replay can be believed."""
        replay = self.replayed
        lines = []
        if replay.tried:
            (now, *_) = replay.tried
            lines.append(
                f"As it is, replayed: {format_money(now.usd)}, waits {_said(now.wait)}; really "
                f"{format_money(self.paid)}, waits {_said(replay.real_wait)}. "
                "What lies between is how far a replay can be believed."
            )
            lines.append(
                f"{plural(replay.measured, 'job')} of {replay.jobs} take what they took, over what was predicted, "
                "everywhere; the others as predicted"
            )
        lines += [f"Left out: {plural(many, 'job')} that {_REASONS[why]}" for why, many in replay.left_out]
        if not self.told_nodes:
            lines.append("Sick nodes are not known: there is no store of telemetry")
        return [*lines, *(f"Nodes are not known: {safe(problem)}" for problem in self.problems)]


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _p90(wait: Wait | None) -> float:
    return wait.p90_s if wait is not None else 0.0


def _no_worse(wait: Wait | None) -> float:
    """Waits up to here are no worse: a tenth, or a minute."""
    return max(_p90(wait) * 1.1, _p90(wait) + 60.0)


def _about(one: Used) -> list[str]:
    out = []
    name = safe(one.pool.name)
    if State.SICK in one.states:
        nodes = f"sick nodes: {', '.join(map(safe, one.sick_nodes))}" if one.sick_nodes else ""
        lost = f"{plural(one.lost, 'attempt')} lost with their chips, more than is assumed" if one.lost else ""
        out.append(f"{name} is sick ({'; '.join(filter(None, (nodes, lost)))}): mend it before more is bought of it")
    if State.SATURATED in one.states:
        out.append(f"{name} is saturated: full for {one.full_share:.0%} of the time, and waits were {_said(one.wait)}")
    if State.IDLE in one.states:
        out.append(
            f"{name} is idle: {one.share:.0%} of what is paid for was held; {one.busy_chips} of its {one.pool.count} "
            "chips would have done for 95 % of the time"
        )
    return out
