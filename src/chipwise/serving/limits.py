"""What a replica and its router can be set to; light, so that the command line can name it before any work."""

from __future__ import annotations

ROUTERS = ("round_robin", "least_loaded", "prefix")  # the scheduler has them by number
DEFAULT_ROUTER = "least_loaded"
LARGEST = 16_384  # tokens of an iteration there are times for
MOST_REPLICAS = 100_000
MOST_REQUESTS = 10_000_000  # that are simulated
