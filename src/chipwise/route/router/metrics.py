"""What a router tells Prometheus, in the text that prometheus-client writes from a registry of our own.

Written by the loop after a scheduling pass, read by the endpoint from another thread: a scrape never touches the
ledger. Importing this module imports prometheus-client: only a router with `--metrics` does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chipwise.route.ledger.records import ENDS, PENDING, UNDER_WAY, JobRow
from chipwise.route.names import JOB_STATES
from chipwise.route.pool import Pool
from chipwise.route.router.loop import TickReport

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # of a pass, up to a lease
Totals = Mapping[str, Mapping[str, float]]


class Metrics:
    """Counts kept over scheduling passes, and the text of the last."""

    def __init__(self, pools: Sequence[Pool], lease_s: float) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each, which nobody asked for
        self._lock = threading.Lock()
        self._text = ""
        self._registry = CollectorRegistry()
        self._ticks = Histogram(
            "chipwise_tick_seconds", "How long a scheduling pass took.", buckets=BUCKETS_S, registry=self._registry
        )
        self._decisions = Counter(
            "chipwise_decisions_total", "Decisions of this router.", ["kind"], registry=self._registry
        )
        for kind in ("start", "stop", "wait"):
            self._decisions.labels(kind)
        self._silent = Counter(
            "chipwise_backend_silent_ticks_total",
            "Scheduling passes in which a backend did not answer.",
            ["backend"],
            registry=self._registry,
        )
        lease = Gauge("chipwise_lease_seconds", "Lease timeout of this router.", registry=self._registry)
        lease.set(lease_s)
        price = Gauge(
            "chipwise_pool_usd_per_chip_hour",
            "What a chip of a pool costs, by the pools file.",
            ["pool"],
            registry=self._registry,
        )
        for pool in pools:
            price.labels(pool.name).set(pool.usd_per_chip_hour)
        self._last = _LastPass()
        self._registry.register(self._last)

    def count(self, report: TickReport) -> None:
        """Take a scheduling pass in."""
        self._ticks.observe(report.seconds)
        for kind, count in report.decisions.items():
            self._decisions.labels(kind).inc(count)
        for backend in report.down:
            self._silent.labels(backend).inc()

    def write(self, report: TickReport, rows: Iterable[JobRow], totals: Totals) -> None:
        """Write the text again; `report` is of the last scheduling pass."""
        self._last.families = list(_families(report, rows, totals))
        text = generate_latest(self._registry).decode()
        with self._lock:
            self._text = text

    def text(self) -> str:
        """The metrics of the last scheduling pass; nothing before the first."""
        with self._lock:
            return self._text


class _LastPass(Collector):
    """The families that are read from the ledger and the backends, as of the last scheduling pass."""

    def __init__(self) -> None:
        self.families: list[Metric] = []

    def collect(self) -> Iterator[Metric]:
        """What the registry writes."""
        yield from self.families


def _families(report: TickReport, rows: Iterable[JobRow], totals: Totals) -> Iterator[Metric]:
    pending = [row.submitted for row in rows if row.state == PENDING]
    oldest = report.at - min(pending) if pending else 0.0
    # an end that has not been is zero: where a series begins at one, its increase is not seen
    ended = {**dict.fromkeys(ENDS, 0.0), **{s: n for s, n in totals["attempts"].items() if s not in UNDER_WAY}}
    under_way = {state: totals["attempts"].get(state, 0.0) for state in UNDER_WAY}
    up = {**dict.fromkeys(report.up, 1.0), **dict.fromkeys(report.down, 0.0)}
    pools = report.pool_chips
    none = dict.fromkeys(pools, 0.0)
    yield _gauge("chipwise_jobs", "Jobs in the ledger.", "state", {**dict.fromkeys(JOB_STATES, 0.0), **totals["jobs"]})
    yield _gauge("chipwise_attempts_under_way", "Attempts under way.", "state", under_way)
    yield _counter("chipwise_attempts_total", "Attempts that have ended.", "end", ended)
    yield _gauge("chipwise_backend_up", "Whether a backend answered in the last scheduling pass.", "backend", up)
    yield _gauge("chipwise_pool_chips", "Chips that work.", "pool", {k: s.total for k, s in pools.items()})
    yield _gauge(
        "chipwise_pool_chips_free", "Chips that jobs could start on.", "pool", {k: s.free for k, s in pools.items()}
    )
    yield _gauge("chipwise_pool_chips_held", "Chips of attempts under way.", "pool", {**none, **totals["chips"]})
    yield _counter(
        "chipwise_spent_usd_total", "Dollars of attempts that have ended.", "pool", {**none, **totals["spent"]}
    )
    yield GaugeMetricFamily(
        "chipwise_oldest_wait_seconds", "Age of the oldest pending job; 0: none is pending.", max(0.0, oldest)
    )
    yield GaugeMetricFamily(
        "chipwise_last_tick_timestamp_seconds", "When the last scheduling pass began, since 1970.", report.at
    )


def _gauge(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family


def _counter(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family
