"""The router: one tick, and ticks until someone says stop. Whatever it knows is in the ledger and on the backends."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path

from chipwise.route.backend import ENDED, AttemptStatus, Backend, Capacity
from chipwise.route.backends.named import backend_name
from chipwise.route.cluster_state import Policy
from chipwise.route.ledger import Conflict, Ledger
from chipwise.route.ledger.liveness import LEASE_S
from chipwise.route.ledger.records import INTENDED, AttemptRow
from chipwise.route.pool import Pool
from chipwise.route.router.capacity import Space, spaces
from chipwise.route.router.health import Guarded, Health
from chipwise.route.router.job_cache import JobCache
from chipwise.route.router.plan import Planner
from chipwise.route.router.reconcile import Reconciler, Reconciliation
from chipwise.route.router.retention import EVERY_S, remove_old
from chipwise.route.router.submitter import Submitter

MOST_STARTS = 50  # in one tick: it stays short, and the backends are looked at again


@dataclass(slots=True)
class TickReport:
    """What a tick has found and done."""

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
    removed: list[str] = field(default_factory=list)  # attempts whose folders were removed
    decisions: dict[str, int] = field(default_factory=dict)  # by kind
    spaces: dict[str, Space] = field(default_factory=dict)
    down: dict[str, str] = field(default_factory=dict)  # backends that did not answer, with what they said
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
    keep_s: float = inf  # for how long folders of attempts are kept once their jobs are over


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
        """`folders`: of each backend, where this ledger's attempts lie. `name`: the router's; see `identity`."""
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
        self.cache = JobCache(ledger, self.pools)
        self.planner = Planner(self.cache, policy, self.backends, folders, options.weights)
        self.by_name = {pool.name: pool for pool in self.pools}
        self.stopping = threading.Event()
        self.folders, self.keep_s = dict(folders), options.keep_s
        self._renewed = 0.0
        self._kept = -inf  # when old folders were last removed

    def tick(self) -> TickReport:
        """Look, decide, act."""
        begun, now = time.perf_counter(), self.clock()
        report = TickReport(now)
        self.ledger.heartbeat(self.name, socket.gethostname(), os.getpid(), self.policy_name, now)
        self.health.refresh()
        mine = self._mine(now)
        self.cache.refresh(self.ledger.attempts(under_way=True), now)
        rooms, shown, again = self._look(mine, now, report)
        under_way = self.ledger.attempts(under_way=True)
        self.cache.refresh(under_way, now)
        report.orphaned = [a.id for a in under_way if a.pool not in self.by_name]
        report.spaces = spaces(self.pools, rooms, under_way, shown, self.ledger.drained())
        fresh = self._decide(under_way, now, report)
        for attempt in [*again, *fresh]:
            if self.stopping.is_set():
                break  # intended, not submitted: whoever comes next does it
            self._hand_over(attempt, report)
        if isfinite(self.keep_s) and abs(now - self._kept) > EVERY_S:
            self._kept = now
            self._remove_old(shown, now, report)
        report.open_jobs, report.seconds = len(self.cache.rows), time.perf_counter() - begun
        return report

    def stopped(self) -> None:
        """Say that this router leaves in good order."""
        self.ledger.heartbeat(self.name, socket.gethostname(), os.getpid(), self.policy_name, self.clock(), True)

    def _mine(self, now: float) -> list[AttemptRow]:
        self._renewed = now
        return self.ledger.take(self.name, now, self.lease_s, tuple(self.by_name))

    def _look(
        self, mine: Sequence[AttemptRow], now: float, report: TickReport
    ) -> tuple[dict[str, Capacity], list[AttemptStatus], list[AttemptRow]]:
        """Reconcile with every backend that answers."""
        rooms: dict[str, Capacity] = {}
        shown: list[AttemptStatus] = []
        again: list[AttemptRow] = []
        for name, backend in self.backends.items():
            pools = [p for p in self.pools if backend_name(p) == name]
            theirs = [a for a in mine if a.pool in {p.name for p in pools}]
            found = (
                None
                if self.health.resting(name, now)
                else self.health.ask(
                    name,
                    now,
                    lambda e=backend, n=name, t=theirs, p=pools: self._ask(e, n, t, p, now),  # type: ignore[misc]
                )
            )
            if found is None:
                report.down[name] = self.health.rows[name].error
                self._give_up(name, theirs, report)
                continue
            seen, room = found
            if seen.error:
                self.health.down(name, seen.error, now)
                report.down[name] = seen.error
            else:
                self.health.well(name, now)
                report.up.append(name)
                rooms.update(room)
            shown += seen.seen
            again += seen.resubmit
            report.ended += seen.ended
            report.stopped += seen.stopped
            report.unknown += seen.unknown
        return rooms, shown, again

    def _ask(
        self, backend: Backend, name: str, theirs: Sequence[AttemptRow], pools: Sequence[Pool], now: float
    ) -> tuple[Reconciliation, Mapping[str, Capacity]]:
        found = self.reconcilers[name].backend(backend, theirs, self.cache.rows, now)
        return found, backend.capacity(pools)

    def _give_up(self, name: str, theirs: Sequence[AttemptRow], report: TickReport) -> None:
        for attempt in theirs:
            row = self.cache.rows.get(attempt.job_id)
            if attempt.state != INTENDED or row is None:
                continue
            if self.submitter.give_up(name, self.reconcilers[name], attempt, row):
                report.refused.append(attempt.id)

    def _decide(self, under_way: Sequence[AttemptRow], now: float, report: TickReport) -> list[AttemptRow]:
        plan = self.planner.plan(under_way, report.spaces, now, MOST_STARTS)
        for attempt in plan.moves:
            with suppress(Conflict):  # another router has ended it meanwhile
                self.ledger.ask_stop(attempt, "move", now)
                report.moved.append(attempt)
        for decision in plan.decisions:
            report.decisions[decision.kind] = report.decisions.get(decision.kind, 0) + 1
        if not plan.decisions:
            return []
        return self.ledger.decide(self.name, self.policy_name, plan.decisions, now, self.lease_s, plan.room)

    def _remove_old(self, shown: Sequence[AttemptStatus], now: float, report: TickReport) -> None:
        """Remove old folders of backends that have answered: only they know what is still under way."""
        running = {seen.attempt for seen in shown if seen.state not in ENDED}
        for name in report.up:
            removed = self.health.ask(
                name,
                now,
                lambda folder=self.folders[name]: remove_old(  # type: ignore[misc]
                    self.ledger, folder, self.keep_s, now, running
                ),
            )
            report.removed += removed or []

    def _hand_over(self, attempt: AttemptRow, report: TickReport) -> None:
        now = self.clock()
        if now - self._renewed > self.lease_s / 3:
            self._mine(now)
        pool = self.by_name[attempt.pool]
        name = backend_name(pool)
        if self.health.resting(name, now):
            return
        there = self.ledger.attempt(attempt.id)
        if there.router != self.name or there.state != INTENDED or there.stop:
            return  # another looks after it by now, or its owner has cancelled it: the next pass says
        row = self.cache.rows.get(attempt.job_id) or self.ledger.job(attempt.job_id)
        said = self.submitter.submit(self.backends[name], self.reconcilers[name], attempt, row, pool)
        if said == "submitted":
            report.started.append(attempt.id)
        elif said == "refused":
            report.refused.append(attempt.id)


def run(
    router: Router,
    interval: float = 2.0,
    *,
    once: bool = False,
    until_idle: bool = False,
    after: Callable[[TickReport], None] = lambda report: None,
) -> int:
    """Tick until told to stop (`router.stopping`), once, or until no job is open; how many ticks there were.

    What the ledger raises ends the loop: whatever was decided is written, whatever was not is decided again.
    """
    router.planner.warm()
    ticks = 0
    while not router.stopping.is_set():
        report = router.tick()
        ticks += 1
        after(report)
        if once or (until_idle and not report.open_jobs):
            break
        router.stopping.wait(min(interval, 0.05) if report.busy else interval)
    router.stopped()
    return ticks
