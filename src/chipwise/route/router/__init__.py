"""The router: a loop that anyone may kill at any moment."""

from chipwise.route.router.identity import Identity, identity
from chipwise.route.router.loop import LEASE_S, Router, TickReport, run

__all__ = ["LEASE_S", "Identity", "Router", "TickReport", "identity", "run"]
