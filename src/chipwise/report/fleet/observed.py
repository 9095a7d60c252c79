"""Pools as they were really used, and other mixes of them that the same jobs were replayed on."""

from __future__ import annotations

from chipwise.observe.advice.view import MIX_COLUMNS, POOL_COLUMNS, UNKNOWN, PoolAdvice
from chipwise.present.columns import table
from chipwise.present.numbers import plural
from chipwise.report.parts import Part, Points, Prose, Section


def observed_section(advice: PoolAdvice | None) -> Section:
    """What was idle, saturated or sick, and what a changed mix would have cost; empty where nobody observed."""
    if advice is None:
        return Section("observed", "Pools as they were used", ())
    replay = advice.replayed
    parts: list[Part] = [
        Prose(advice.head),
        table(POOL_COLUMNS, advice.pools, title="What was held of what there was"),
        Points("What to do", tuple(advice.sentences()) or ("Every pool is as it should be.",)),
    ]
    if replay.tried:
        title = f"The same {plural(replay.jobs, 'job')} on other pools, by {replay.policy}"
        parts.append(table(MIX_COLUMNS, replay.tried, title=title))
    parts += [Points("How far to believe it", tuple(advice.notes())), Points("What a replay can't know", UNKNOWN)]
    return Section("observed", "Pools as they were used", tuple(parts))
