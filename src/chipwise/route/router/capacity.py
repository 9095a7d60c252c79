"""Free capacity: how many chips of each pool attempts of this ledger may hold. Pure.

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
class PoolChips:
    """The chips of a pool as the router counts them."""

    total: int  # that work
    ours: int  # that attempts of this ledger may hold in all, those under way included
    free: int  # of those, not held
    note: str = ""  # why it is less than there is
    closed: bool = False  # to new jobs alone: what runs there goes on, and nothing is known that would speak against it


def count_chips(
    pools: Sequence[Pool],
    capacities: Mapping[str, Capacity],
    under_way: Sequence[AttemptRow],
    shown: Sequence[AttemptStatus],
    drained: Collection[str],
) -> dict[str, PoolChips]:
    """The chips of each pool whose backend has answered; none where it has not."""
    running = {status.attempt for status in shown if status.state == RUNNING}
    chips = {}
    for pool in pools:
        held = sum(a.option.chips for a in under_way if a.pool == pool.name)
        running_chips = sum(a.option.chips for a in under_way if a.pool == pool.name and a.id in running)
        chips[pool.name] = _pool_chips(pool, capacities.get(pool.name), held, running_chips, pool.name in drained)
    return chips


def powered(pool: Pool) -> int:
    """Chips that the pool's power allows at once.

    >>> powered(Pool("a", "local", "h100", "gpu", 8, watts_chip=1000.0, power_cap=3500.0))
    3
    """
    if not isfinite(pool.power_cap) or pool.watts_chip <= 0:
        return pool.count
    return min(pool.count, int(pool.power_cap // pool.watts_chip))


def _pool_chips(pool: Pool, capacity: Capacity | None, held: int, running_chips: int, drained: bool) -> PoolChips:
    if capacity is None:
        return PoolChips(0, 0, 0, "its backend has not answered", closed=True)
    total = min(capacity.total, pool.count)
    if drained:
        return PoolChips(0, 0, 0, DRAINED, closed=True)
    ours = min(capacity.free + running_chips, total, powered(pool))
    note = capacity.note
    if powered(pool) < total:
        note = f"its power cap allows {powered(pool)} chips at once"
    elif capacity.down:
        note = note or f"{capacity.down} chips are down"
    return PoolChips(total, ours, max(0, ours - held), note)
