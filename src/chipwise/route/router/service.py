"""A router as a service: its identity, the folders it answers for, its scheduling passes, its metrics."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Self

from chipwise.errors import Conflict, InputError
from chipwise.route.backend import LONGEST_LISTING_S
from chipwise.route.backends.named import backend_name, backends_of
from chipwise.route.ledger import Ledger, LedgerError
from chipwise.route.ledger.liveness import LEASE_S, SILENT_S, liveness
from chipwise.route.load import Pools
from chipwise.route.load.pairs import Pairs, read_pairs
from chipwise.route.policies import DEFAULT_POLICY, check_weights, policy_named
from chipwise.route.pool import Pool
from chipwise.route.router.identity import identity, mark_of
from chipwise.route.router.loop import Router, RouterOptions, TickReport, run
from chipwise.route.router.watchdog import Watchdog
from chipwise.units import format_seconds, parse_duration

if TYPE_CHECKING:
    from chipwise.route.router.metrics import Metrics

INTERVAL_S = 2.0  # between two scheduling passes; a backend's answer is about that old anyway
METRICS_S = 5.0  # between two writings of the metrics: Prometheus scrapes every 15 s and more


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How a router runs."""

    policy: str = DEFAULT_POLICY
    interval_s: float = INTERVAL_S
    lease_s: float = LEASE_S
    keep_s: float = inf  # for which folders of attempts are kept once their jobs are over
    weights: Mapping[str, float] = field(default_factory=dict)
    once: bool = False
    until_idle: bool = False

    def __post_init__(self) -> None:
        policy_named(self.policy)
        check_weights([self.policy], self.weights)

    @classmethod
    def read(
        cls, policy: str, interval: str, lease: str, keep: str, weights: Pairs, once: bool, until_idle: bool
    ) -> Self:
        """The options as people write them; `keep` may be ``forever``."""
        if once and until_idle:
            raise Conflict("once", "until_idle")
        every, leased = _seconds(interval, "interval", 0.01, 3600.0), _seconds(lease, "lease", 1.0, 86_400.0)
        if leased < 2 * every:
            raise InputError("lease", lease, f"at least twice the interval of {interval}")
        kept = inf if keep == "forever" else _seconds(keep, "keep", 3600.0, 3.2e9)
        return cls(policy, every, leased, kept, read_pairs(weights, "weights", "cost=2"), once, until_idle)


@contextmanager
def router_of(ledger: Ledger, pools: Pools, options: ServiceOptions) -> Iterator[Router]:
    """A router of this machine on a ledger, known to it; its identity is released at the end."""
    _check_one_machine(ledger, pools)
    ledger.check_sound()
    own = identity(pools.folder / ledger.uid)
    try:
        folders = {backend_name(pool): pools.folder_of(pool.backend) / ledger.uid for pool in pools.pools}
        backends = backends_of(pools.pools, folders, ledger.uid)
        marked = {**folders, f"routers of {socket.gethostname()}": pools.folder / ledger.uid}
        _settle(ledger, own.name, options.policy, marked)
        yield Router(
            ledger,
            backends,
            pools.pools,
            policy_named(options.policy),
            folders=folders,
            name=own.name,
            options=RouterOptions(
                options.policy,
                options.lease_s,
                {**pools.weights, **options.weights},
                quotas=pools.access.quotas,
                keep_s=options.keep_s,
            ),
        )
    finally:
        own.release()


def serve(
    router: Router,
    options: ServiceOptions,
    after: Callable[[TickReport], None] = lambda report: None,
    metrics: Metrics | None = None,
    trouble: Callable[[LedgerError, float], None] = lambda error, wait: None,
) -> int:
    """Scheduling passes until the router is told to stop; how many there were. `after` is told of each, `trouble` of
    a ledger that does not answer.

    A watchdog ends the process, with status 75, where it hangs: no pass, and no try of the ledger, for three leases.
    """
    written = -inf
    watchdog = Watchdog.of_lease(options.lease_s, router.name, _longest_call(router.pools))
    router.health.asking = watchdog.passed

    def passed(report: TickReport) -> None:
        nonlocal written
        watchdog.passed()
        after(report)
        if metrics is None:
            return
        metrics.count(report)
        if time.monotonic() - written > min(METRICS_S, options.interval_s):
            written = time.monotonic()
            metrics.write(report, router.cache.rows.values(), router.ledger.totals())

    def troubled(error: LedgerError, wait: float) -> None:
        watchdog.passed()  # it does not hang: it tries again, and can be told to stop
        trouble(error, wait)

    with watchdog:
        return run(
            router, options.interval_s, once=options.once, until_idle=options.until_idle, after=passed, trouble=troubled
        )


def _longest_call(pools: Sequence[Pool]) -> float:
    """The most seconds that one call to a backend of these pools may take."""
    longest = LONGEST_LISTING_S if any(pool.backend == "kubernetes" for pool in pools) else 0.0
    for pool in pools:
        with suppress(ValueError):  # a backend of someone else's, whose words these are
            longest = max(longest, float(pool.setting("timeout") or 0.0))
    return longest if isfinite(longest) else 0.0


def _seconds(text: str, field: str, least: float, most: float) -> float:
    seconds = parse_duration(text, field)
    if not least <= seconds <= most:
        raise InputError(field, text, f"{format_seconds(least)} to {format_seconds(most)}")
    return seconds


def _settle(ledger: Ledger, name: str, policy: str, folders: Mapping[str, Path]) -> None:
    marks = {backend: (mark_of(folder), str(folder)) for backend, folder in folders.items()}
    ledger.settle(marks, name, socket.gethostname(), os.getpid(), policy, time.time(), SILENT_S)


def _check_one_machine(ledger: Ledger, pools: Pools) -> None:
    """Local pools are of one machine: a router elsewhere would take their processes for lost."""
    now, here = time.time(), socket.gethostname()
    others = [row for row in ledger.routers() if row.host != here and liveness(row, now) == "alive"]
    if others and pools.of("local"):
        raise InputError(
            "pools",
            pools.path,
            f"no local pools: router {others[0].id} works on this ledger on another "
            "machine, and local pools are processes of one",
        )
