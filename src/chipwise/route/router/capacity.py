"""How many chips of each pool attempts of this ledger may hold. Pure.

A backend says what is free now; what our own running attempts hold comes on top, since the ledger counts those itself
when it checks, inside its transaction, that a decision still fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from chipwise.route.backend import RUNNING, AttemptStatus, Capacity
from chipwise.route.ledger.records import AttemptRow
from chipwise.route.pool import Pool

DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Space:
    """The chips of a pool as the router counts them."""

    total: int  # that work
    ours: int  # that attempts of this ledger may hold in all, those under way included
    free: int  # of those, not held
    note: str = ""  # why it is less than there is
    closed: bool = False  # to new jobs alone: what runs there goes on, and nothing is known that would speak against it


def spaces(
    pools: Sequence[Pool],
    rooms: Mapping[str, Capacity],
    under_way: Sequence[AttemptRow],
    shown: Sequence[AttemptStatus],
    drained: Collection[str],
) -> dict[str, Space]:
    """The chips of each pool whose backend has answered; none where it has not."""
    running = {seen.attempt for seen in shown if seen.state == RUNNING}
    found = {}
    for pool in pools:
        held = sum(a.option.chips for a in under_way if a.pool == pool.name)
        there = sum(a.option.chips for a in under_way if a.pool == pool.name and a.id in running)
        found[pool.name] = _space(pool, rooms.get(pool.name), held, there, pool.name in drained)
    return found


def powered(pool: Pool) -> int:
    """Chips that the pool's power allows at once.

    >>> powered(Pool("a", "local", "h100", "gpu", 8, watts_chip=1000.0, power_cap=3500.0))
    3
    """
    if not isfinite(pool.power_cap) or pool.watts_chip <= 0:
        return pool.count
    return min(pool.count, int(pool.power_cap // pool.watts_chip))


def _space(pool: Pool, room: Capacity | None, held: int, there: int, drained: bool) -> Space:
    if room is None:
        return Space(0, 0, 0, "its backend has not answered", closed=True)
    total = min(room.total, pool.count)
    if drained:
        return Space(0, 0, 0, DRAINED, closed=True)
    ours = min(room.free + there, total, powered(pool))
    note = room.note
    if powered(pool) < total:
        note = f"its power cap allows {powered(pool)} chips at once"
    elif room.down:
        note = note or f"{room.down} chips are down"
    return Space(total, ours, max(0, ours - held), note)
