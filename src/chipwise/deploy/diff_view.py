"""What a new decision changes, as every face shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.deploy.diff import Change, Effect, PoolChange
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import format_money

CHANGE_COLUMNS: tuple[Column[PoolChange], ...] = (
    Column("pool", lambda c: c.pool, "pool", lambda c: safe(c.pool), words=True),
    Column("effect", lambda c: str(c.effect), "effect", words=True, help="of applying it"),
    Column("chips_before", lambda c: c.chips_before, "chips"),
    Column("chips_after", lambda c: c.chips_after, "then"),
    Column("usd_month_before", lambda c: c.usd_month_before, "a month", lambda c: format_money(c.usd_month_before)),
    Column("usd_month_after", lambda c: c.usd_month_after, "then", lambda c: format_money(c.usd_month_after)),
    Column("drain", lambda c: c.drain, help="whether jobs on it end when it is applied"),
    Column("fields", lambda c: list(c.fields), "what", lambda c: safe("; ".join(c.fields)) or "–", words=True),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeploymentDiff(Result):
    """A tree and what a new decision changes of it."""

    VERB: ClassVar[str] = "deploy diff"
    folder: Path
    change: Change

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        change = self.change
        return {
            "folder": str(self.folder),
            "name": change.name,
            "source": change.source,
            "whole": list(change.whole),
            "usd_month_before": change.usd_month_before,
            "usd_month_after": change.usd_month_after,
            "pools": [record(CHANGE_COLUMNS, pool) for pool in change.pools],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a pool."""
        return [flat(CHANGE_COLUMNS, pool) for pool in self.change.pools]

    def blocks(self) -> list[Block]:
        """For people."""
        change = self.change
        counts = [
            f"{plural(n, 'pool')} {effect}"
            for effect in Effect
            if (n := sum(pool.effect is effect for pool in change.pools))
        ]
        money = f"{format_money(change.usd_month_before)} a month before, {format_money(change.usd_month_after)} after"
        whole = [Text(f"The cluster itself is put up again: {'; '.join(change.whole)}")] if change.whole else []
        return [
            Text(f"{safe(str(self.folder))} -> {change.source}: {', '.join(counts)}; {money}, all up"),
            *whole,
            table(CHANGE_COLUMNS, change.pools),
            *section("First", list(self._drains())),
        ]

    def _drains(self) -> Iterator[str]:
        for pool in self.change.pools:
            if pool.drain:
                why = "fewer chips" if pool.effect is Effect.IN_PLACE else str(pool.effect)
                command = f'chipwise pools drain {safe(pool.pool)} --reason "{why}"'
                yield f"{command} --pools {safe(str(self.folder))}/pools.yaml, and wait for its jobs (`chipwise jobs`)"
