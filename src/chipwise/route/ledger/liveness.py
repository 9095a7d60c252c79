"""Liveness of routers, by the heartbeats that they leave in the ledger."""

from __future__ import annotations

from typing import Literal

from chipwise.route.ledger.records import RouterRow

LEASE_S = 30.0  # without a word from a router, another takes its attempts over; many times a usual scheduling pass
SILENT_S = 2 * LEASE_S  # without a heartbeat, after which a router counts as dead; its attempts are another's by then


def liveness(row: RouterRow, now: float) -> Literal["alive", "dead", "stopped"]:
    """Whether a router lives, by its last heartbeat."""
    if row.stopped is not None:
        return "stopped"
    return "alive" if now - row.seen < SILENT_S else "dead"
