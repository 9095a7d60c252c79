"""The router: a loop that anyone may kill at any moment."""

from chipwise.route.router.identity import Identity, identity
from chipwise.route.router.loop import Router, RouterOptions, TickReport, run

__all__ = ["Identity", "Router", "RouterOptions", "TickReport", "identity", "run"]
