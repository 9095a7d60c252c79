"""The router: one tick, and ticks until someone says stop. Whatever it knows is in the ledger and on the backends."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path

from chipwise.route.access import Quotas
from chipwise.route.backend import ENDED, AttemptStatus, Backend, Capacity, Together
from chipwise.route.backends.named import backend_name
from chipwise.route.cluster_state import Policy
from chipwise.route.ledger import Conflict, Ledger, LedgerError
from chipwise.route.ledger.liveness import LEASE_S
from chipwise.route.ledger.records import INTENDED, AttemptRow, JobRow
from chipwise.route.pool import Pool
from chipwise.route.router.capacity import PoolChips, count_chips
from chipwise.route.router.health import Guarded, Health
from chipwise.route.router.job_cache import JobCache
from chipwise.route.router.plan import Planner
from chipwise.route.router.reconcile import Reconciler, Reconciliation
from chipwise.route.router.retention import EVERY_S, remove_old
from chipwise.route.router.submitter import Start, Submitter

MOST_STARTS = 100  # in one tick: it stays short, and the backends are listed again
LEDGER_S = 15.0  # at most between two tries of a ledger that does not answer: half a lease


@dataclass(slots=True)
class TickReport:
    """What a scheduling pass has done."""

    at: float
    seconds: float = 0.0
    open_jobs: int = 0
    ended: list[tuple[str, str]] = field(default_factory=list)  # attempt, end
    started: list[str] = field(default_factory=list)  # attempts submitted
    refused: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)  # backend ids told to stop
    moved: list[str] = field(default_factory=list)  # attempts asked to leave a backend's queue
    unknown: list[str] = field(default_factory=list)  # attempts on a backend that the ledger does not know
    orphaned: list[str] = field(default_factory=list)  # attempts in pools that this router does not know
    quarantined: dict[str, str] = field(default_factory=dict)  # what was left for the next pass, and why: "job 7"
    removed: list[str] = field(default_factory=list)  # attempts whose folders were removed
    decisions: dict[str, int] = field(default_factory=dict)  # by kind
    pool_chips: dict[str, PoolChips] = field(default_factory=dict)
    down: dict[str, str] = field(default_factory=dict)  # backends that did not answer, with their error
    up: list[str] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        """Whether anything moved: there may be more to do at once."""
        return bool(self.ended or self.started or self.refused)


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """How a router decides and what it leaves behind."""

    policy_name: str = ""  # default: the policy's own
    lease_s: float = LEASE_S
    weights: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None  # of the pauses before a backend is asked again
    quotas: Quotas = field(default_factory=Quotas)  # of users and teams
    keep_s: float = inf  # for how long folders of attempts are kept once their jobs are over
    monotonic: Callable[[], float] = time.monotonic


class Router:
    """One router of a ledger."""

    def __init__(
        self,
        ledger: Ledger,
        backends: Mapping[str, Backend],
        pools: Sequence[Pool],
        policy: Policy,
        clock: Callable[[], float] = time.time,
        *,
        folders: Mapping[str, Path],
        name: str,
        options: RouterOptions | None = None,
    ) -> None:
        """`folders`: of each backend, where this ledger's attempts lie. `name`: the router's; see `identity`.

        `clock` tells the time of day, which someone may set; `options.monotonic` how much of it has passed.
        """
        options = options or RouterOptions()
        self.ledger, self.pools, self.clock, self.name, self.lease_s = (
            ledger,
            tuple(pools),
            clock,
            name,
            options.lease_s,
        )
        self.policy_name = options.policy_name or getattr(policy, "__name__", "policy")
        self.backends: dict[str, Guarded] = {key: Guarded(key, backend) for key, backend in backends.items()}
        self.health = Health(ledger, random.Random(options.seed))
        self.reconcilers = {key: Reconciler(ledger, folders[key], name) for key in backends}
        self.submitter = Submitter(ledger, self.health, clock)
        self.cache, self.quotas = JobCache(ledger, self.pools, options.quotas), options.quotas
        self.planner = Planner(self.cache, policy, self.backends, folders, options.weights)
        self.by_name = {pool.name: pool for pool in self.pools}
        self.stopping = threading.Event()
        self.folders, self.keep_s = dict(folders), options.keep_s
        self._renewed = 0.0
        self._monotonic, self._looked = options.monotonic, -inf  # when attempts were last taken, by it
        self._kept = -inf  # when old folders were last removed

    def tick(self) -> TickReport:
        """One scheduling pass: reconcile, decide, submit."""
        start, now = time.perf_counter(), self.clock()
        report = TickReport(now)
        self.ledger.heartbeat(self.name, socket.gethostname(), os.getpid(), self.policy_name, now)
        self.health.refresh()
        self._avoid_nodes()
        mine = self._take_attempts(now)
        self.cache.refresh(self.ledger.attempts(under_way=True), now)
        capacities, statuses, again = self._reconcile(mine, now, report)
        under_way = self.ledger.attempts(under_way=True)
        self.cache.refresh(under_way, now)
        report.orphaned = [a.id for a in under_way if a.pool not in self.by_name]
        report.pool_chips = count_chips(self.pools, capacities, under_way, statuses, self.ledger.drained())
        fresh = self._decide(under_way, now, report)
        self._submit_all([*again, *fresh], report)
        if isfinite(self.keep_s) and abs(now - self._kept) > EVERY_S:
            self._kept = now
            self._remove_old(statuses, now, report)
        report.quarantined.update(self.cache.quarantined)
        report.quarantined.update((what, str(error)) for what, error in self.ledger.bad_rows.items())
        report.open_jobs, report.seconds = len(self.cache.rows), time.perf_counter() - start
        return report

    def _avoid_nodes(self) -> None:
        """Let this pass count no chips of drained nodes, and start nothing there."""
        nodes: dict[str, list[str]] = {}
        for row in self.ledger.nodes():
            if row.drained:
                nodes.setdefault(row.pool, []).append(row.node)
        self.pools = tuple(replace(pool, avoid=tuple(nodes.get(pool.name, ()))) for pool in self.pools)
        self.by_name = {pool.name: pool for pool in self.pools}

    def warm(self) -> None:
        """Compile what passes compute with, unless told to stop; the ledger hears that this router lives."""
        if not self.stopping.is_set():
            self.planner.warm(self._beat)

    def _beat(self) -> None:
        self.ledger.heartbeat(self.name, socket.gethostname(), os.getpid(), self.policy_name, self.clock())

    def forget(self) -> None:
        """Drop what was read from the ledger: a pass that broke off may have left it half taken in."""
        self.cache = self.planner.cache = JobCache(self.ledger, self.pools, self.quotas)

    def stopped(self) -> None:
        """Say that this router leaves in good order."""
        self.ledger.heartbeat(self.name, socket.gethostname(), os.getpid(), self.policy_name, self.clock(), True)

    def _take_attempts(self, now: float) -> list[AttemptRow]:
        self._renewed, before, self._looked = now, self._looked, self._monotonic()
        passed = self._looked - before
        seen = passed if passed < self.lease_s else 0.0  # beyond its lease it has not looked, but been away
        return self.ledger.take(self.name, now, self.lease_s, tuple(self.by_name), seen)

    def _reconcile(
        self, mine: Sequence[AttemptRow], now: float, report: TickReport
    ) -> tuple[dict[str, Capacity], list[AttemptStatus], list[AttemptRow]]:
        """Reconcile with every backend that answers."""
        capacities: dict[str, Capacity] = {}
        statuses: list[AttemptStatus] = []
        resubmit: list[AttemptRow] = []
        for name, backend in self.backends.items():
            pools = [p for p in self.pools if backend_name(p) == name]
            theirs = [a for a in mine if a.pool in {p.name for p in pools}]
            answer = (
                None
                if self.health.resting(name, now)
                else self.health.ask(
                    name,
                    now,
                    lambda e=backend, n=name, t=theirs, p=pools: self._ask(e, n, t, p, now),  # type: ignore[misc]
                )
            )
            if answer is None:
                report.down[name] = self.health.rows[name].error
                self._give_up(name, theirs, report)
                continue
            reconciliation, capacity = answer
            self.health.well(name, now)
            report.up.append(name)
            capacities.update(capacity)
            statuses += reconciliation.statuses
            resubmit += reconciliation.resubmit
            report.ended += reconciliation.ended
            report.stopped += reconciliation.stopped
            report.unknown += reconciliation.unknown
            report.quarantined.update((f"attempt {a}", why) for a, why in reconciliation.quarantined)
        return capacities, statuses, resubmit

    def _ask(
        self, backend: Backend, name: str, theirs: Sequence[AttemptRow], pools: Sequence[Pool], now: float
    ) -> tuple[Reconciliation, Mapping[str, Capacity]]:
        reconciliation = self.reconcilers[name].reconcile(backend, theirs, self.cache.rows, now)
        return reconciliation, backend.capacity(pools)

    def _give_up(self, name: str, theirs: Sequence[AttemptRow], report: TickReport) -> None:
        for attempt in theirs:
            row = self.cache.rows.get(attempt.job_id)
            if attempt.state != INTENDED or row is None:
                continue
            if self.submitter.give_up(name, self.reconcilers[name], attempt, row):
                report.refused.append(attempt.id)

    def _decide(self, under_way: Sequence[AttemptRow], now: float, report: TickReport) -> list[AttemptRow]:
        plan = self.planner.plan(under_way, report.pool_chips, now, MOST_STARTS)
        for attempt in plan.moves:
            with suppress(Conflict):  # another router has ended it meanwhile
                self.ledger.ask_stop(attempt, "move", now)
                report.moved.append(attempt)
        for decision in plan.decisions:
            report.decisions[decision.kind] = report.decisions.get(decision.kind, 0) + 1
        if not plan.decisions:
            return []
        return self.ledger.decide(
            self.name, self.policy_name, plan.decisions, now, self.lease_s, plan.capacity, self.quotas
        )

    def _remove_old(self, statuses: Sequence[AttemptStatus], now: float, report: TickReport) -> None:
        """Remove old folders of backends that have answered: only they know what is still under way."""
        running = {status.attempt for status in statuses if status.state not in ENDED}
        for name in report.up:
            removed = self.health.ask(
                name,
                now,
                lambda folder=self.folders[name]: remove_old(  # type: ignore[misc]
                    self.ledger, folder, self.keep_s, now, running
                ),
            )
            report.removed += removed or []

    def _submit_all(self, attempts: Sequence[AttemptRow], report: TickReport) -> None:
        """Submit attempts: together where a backend need not wait for each, else one after the other.

        Whatever is wrong with one is its own: it is left for the next pass.
        """
        together: dict[str, list[Start]] = {}
        for attempt in attempts:
            if self.stopping.is_set():
                return  # intended, not submitted: whoever comes next does it
            pool = self.by_name[attempt.pool]
            name = backend_name(pool)
            try:
                row = self._startable(attempt, name)
            except LedgerError:
                raise
            except Exception as error:
                self._submitted(attempt, error, report)
                continue
            if row is None:
                continue
            if isinstance(self.backends[name].backend, Together):
                together.setdefault(name, []).append(Start(attempt, row, pool))
            else:
                self._submit(name, [Start(attempt, row, pool)], report)
        for name, starts in together.items():
            self._submit(name, starts, report)

    def _submit(self, backend: str, starts: Sequence[Start], report: TickReport) -> None:
        outcomes = self.submitter.submit(self.backends[backend], self.reconcilers[backend], starts)
        for start, outcome in zip(starts, outcomes, strict=True):
            self._submitted(start.attempt, outcome, report)

    def _startable(self, attempt: AttemptRow, backend: str) -> JobRow | None:
        """The job of an attempt that is still to be submitted, by this router and now; None where it is not."""
        now = self.clock()
        if now - self._renewed > self.lease_s / 3:
            self._take_attempts(now)
        if self.health.resting(backend, now):
            return None
        current = self.ledger.attempt(attempt.id)
        if current.router != self.name or current.state != INTENDED or current.stop:
            return None  # another looks after it by now, or its owner has cancelled it: the next pass says
        return self.cache.rows.get(attempt.job_id) or self.ledger.job(attempt.job_id)

    @staticmethod
    def _submitted(attempt: AttemptRow, outcome: str | Exception, report: TickReport) -> None:
        if isinstance(outcome, Exception):
            report.quarantined[f"attempt {attempt.id}"] = f"{type(outcome).__name__}: {outcome}"
        elif outcome == "submitted":
            report.started.append(attempt.id)
        elif outcome == "refused":
            report.refused.append(attempt.id)


def run(
    router: Router,
    interval: float = 2.0,
    *,
    once: bool = False,
    until_idle: bool = False,
    after: Callable[[TickReport], None] = lambda report: None,
    trouble: Callable[[LedgerError, float], None] = lambda error, wait: None,
) -> int:
    """Tick until told to stop (`router.stopping`), once, or until no job is open; how many ticks there were.

    A ledger that does not answer is tried again, with `trouble` told of it and of the wait: whatever was decided is
    written, whatever was not is decided again. What else the ledger raises ends the loop.
    """
    router.warm()
    router.ledger.hurry_when(router.stopping.is_set)
    ticks = failures = 0
    while not router.stopping.is_set():
        try:
            report = router.tick()
            ticks += 1
            after(report)
        except LedgerError as error:
            if once or not error.temporary or router.stopping.is_set():
                raise
            failures += 1
            wait = min(router.health.pause(failures), LEDGER_S)
            trouble(error, wait)
            router.forget()
            router.stopping.wait(wait)
            continue
        failures = 0
        if once or (until_idle and not report.open_jobs):
            break
        router.stopping.wait(min(interval, 0.05) if report.busy else interval)
    router.stopped()
    return ticks
