"""Pages of metrics for Prometheus, written anew for each look.

Importing this module imports prometheus-client: only what serves a page does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


def exposition(families: Iterable[Metric]) -> str:
    """The page of some metrics."""
    registry = CollectorRegistry()
    registry.register(_Page(list(families)))
    return generate_latest(registry).decode()


class _Page(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self.families = families

    def collect(self) -> Iterator[Metric]:
        """What the registry writes."""
        yield from self.families
