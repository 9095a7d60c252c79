"""One scheduling pass of the router: the policy's decisions for the free capacity that the backends show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np

from chipwise.predict.estimate import Estimate
from chipwise.route.allocate import DEPTH, PATIENCE, allocate, queue_window
from chipwise.route.allocate.queue_order import SMALL
from chipwise.route.allocate.queue_window import is_windowed
from chipwise.route.allocate.reasons import NO_CHIPS
from chipwise.route.backend import BackendDown, BackendRefused
from chipwise.route.backends.named import backend_name
from chipwise.route.cluster_state import ClusterState, Decision, Policy
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.ledger.records import PENDING, SUBMITTED, AttemptRow
from chipwise.route.option import Option
from chipwise.route.router.capacity import DRAINED, PoolChips
from chipwise.route.router.health import Guarded
from chipwise.route.router.job_cache import JobCache
from chipwise.route.router.submitter import launch_of

PENDING_S = 60.0  # in a backend's own queue, after which a job may leave it for a pool with free chips
FULL_S = 60.0  # until a pool that others have just filled may have free chips: nothing is known, a minute is noticed
PREDICTED_S = 30.0  # for which a backend's predicted start holds; asking costs it a pass of its scheduler


class Told(BaseException):
    """The process was told to stop while it compiled; no `except Exception` of the compiler's keeps it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions, the capacity they were made for, and attempts that are to leave their backend's queue."""

    decisions: list[Decision]
    capacity: dict[str, int]
    moves: list[str] = field(default_factory=list)


class Planner:
    """Runs the policy over the job cache."""

    def __init__(
        self,
        cache: JobCache,
        policy: Policy,
        backends: Mapping[str, Guarded],
        folders: Mapping[str, Path],
        weights: Mapping[str, float],
    ) -> None:
        self.cache, self.policy, self.backends, self.folders = cache, policy, backends, folders
        self.weights = dict(weights)
        self._predicted: dict[str, tuple[float, float | None]] = {}  # by pool: when asked, the start predicted
        self._full: dict[str, float] = {}  # pools that others fill, since when
        self.warming = self.warmed = False  # whether it compiles now, or has

    def warm(self, step: Callable[[], None] = lambda: None) -> None:
        """Compile what passes compute with, where no earlier run has: a minute at most, better before the first lease.

        It rehearses passes over made-up jobs: one, some, and more than the queue's window, that wait, run and are
        overdue. `step` is called between them. `Told`, raised by a signal's handler, ends it.
        """
        if self.warmed:
            return
        try:
            self.warming = True
            for count in (1, 3, self._many()):  # arrays of one job have another layout than those of several
                for moment in (0.0, 3 * PATIENCE):
                    step()
                    self._rehearse(count, moment)
            self.warmed = True
        except Told:
            pass
        finally:
            self.warming = False

    def _many(self) -> int:
        """Jobs enough for every way through a pass: more than the window of policies that have one."""
        return DEPTH + 8 if is_windowed(self.policy) else 3 + 2 * SMALL // max(len(self.cache.pools), 1)

    def _rehearse(self, count: int, now: float) -> None:
        pools = self.cache.pools
        options = tuple(Option(pool.name, "", 1, "", Estimate(9.0, 8.0, 10.0, "bounded"), 1.0, 1.0) for pool in pools)
        jobs = [
            Candidate(str(k), float(k), options, deadline=1e9 if k % 2 else inf, restartable=k % 3 == 0)
            for k in range(count)
        ]
        table, total = JobTable(pools), {pool.name: pool.count for pool in pools}
        table.add_all(jobs[1:])
        table.add(jobs[0])
        for job in jobs[1 : 1 + min(count // 2, 4)]:
            table.started(job.id, pools[0].name, 0.0)
        if count > 2:
            table.stopped(jobs[1].id, now)
            table.replace(jobs[1])
        explain = [jobs[0].id]
        state = queue_window(table, self.policy, table.moment(now, total, total, weights=self.weights), explain=explain)
        for shown in (state, replace(state, restartable=state.restartable & True)):  # as where a pool is closed
            decision = self.policy(shown)
            allocate(shown, decision, table.option, explain=explain, heads=True)
            if self.cache.quotas.limited:  # which gives scores of another layout
                limited = replace(decision, score=np.where(shown.chips > count, inf, decision.score))
                allocate(shown, limited, table.option, explain=explain, heads=True)

    def plan(self, under_way: Sequence[AttemptRow], pool_chips: Mapping[str, PoolChips], now: float, most: int) -> Plan:
        """What is to be done; at most so many starts."""
        if not len(self.cache.table):
            return Plan([], {})
        free = {name: chips.free for name, chips in pool_chips.items()}
        total = {name: chips.total for name, chips in pool_chips.items()}
        capacity = {name: chips.ours for name, chips in pool_chips.items()}
        pending = self._pending(under_way, now)
        start = self._starts(pool_chips, [a.job_id for a in pending], now)
        quotas, table = self.cache.quotas, self.cache.table
        quotas.refresh(under_way, self.cache.rows, now)
        with self.cache.aside(pending, now):
            explain = self.cache.to_explain()
            state = _protect_closed_pools(
                self.cache.state(now, free, total, start, self.weights, self.policy, explain), pool_chips
            )
            decision = self.policy(state)
            self.cache.keep_shares(state, decision.shares)
            decision = quotas.limit(table, state, decision)
            decisions = allocate(state, decision, self.cache.table.option, explain=explain, heads=True)
        self.cache.explained(explain, now)
        own = {a.job_id: a for a in pending}
        moves = [own[d.job].id for d in decisions if d.kind == "start" and d.job in own and d.pool != own[d.job].pool]
        decisions = [d for d in decisions if d.job not in own]
        decisions = [_with_pool_notes(d, pool_chips) for d in self._queued(decisions, under_way, total, capacity)]
        return Plan(_at_most(quotas.keep_within(decisions, table, self.cache.rows), most), capacity, moves)

    def _pending(self, under_way: Sequence[AttemptRow], now: float) -> list[AttemptRow]:
        """Attempts that have been in a backend's own queue for long."""
        return [
            a
            for a in under_way
            if a.state == SUBMITTED
            and not a.stop
            and a.submitted is not None
            and now - a.submitted > PENDING_S
            and a.job_id in self.cache.rows
            and self._queues(a.pool)
        ]

    def _queues(self, pool: str) -> bool:
        name = next((backend_name(p) for p in self.cache.pools if p.name == pool), "")
        return name in self.backends and self.backends[name].queues

    def _starts(self, pool_chips: Mapping[str, PoolChips], pending: Sequence[str], now: float) -> dict[str, float]:
        """When pools that others fill have free chips, as their backends predict for the job that has waited longest.

        Where they can't tell: as long again as they have been full.
        """
        starts = {}
        for name, chips in pool_chips.items():
            if chips.free or chips.ours >= chips.total:  # none but our own jobs there: the table knows their ends
                self._full.pop(name, None)
                if not self._queues(name):
                    continue
            asked_at, predicted = self._predicted.get(name, (0.0, None))
            if self._queues(name) and chips.total and now - asked_at > PREDICTED_S:
                predicted = self._ask_start(name, chips.free, pending, now)
                self._predicted[name] = (now, predicted)
            if predicted is not None and predicted > now:
                starts[name] = predicted
            elif not chips.free and chips.ours < chips.total:
                starts[name] = now + max(FULL_S, now - self._full.setdefault(name, now))
        return starts

    def _ask_start(self, name: str, free: int, pending: Sequence[str], now: float) -> float | None:
        pool = next(p for p in self.cache.pools if p.name == name)
        for row in self.cache.rows.values():
            option = next((o for o in row.options if o.pool == name and o.chips > free), None)
            if option is None or (row.state != PENDING and row.id not in pending):
                continue
            attempt = f"{self.cache.ledger.uid}-{row.id}-0"
            trial = AttemptRow(attempt, row.id, 0, name, option.variant, option, "", "", now)
            backend = backend_name(pool)
            try:
                start: float | None = self.backends[backend].predicted_start(
                    launch_of(row, trial, pool, self.folders[backend])
                )
            except (BackendDown, BackendRefused):  # a prediction is a favour: its list says whether it is down
                return None
            return start
        return None

    def _queued(
        self,
        decisions: Sequence[Decision],
        under_way: Sequence[AttemptRow],
        total: Mapping[str, int],
        capacity: dict[str, int],
    ) -> list[Decision]:
        """Let the first job that waits for a full pool wait in the backend's own queue, where it has one."""
        queued = list(decisions)
        pools_taken = {a.pool for a in under_way if a.state != "running"} | {
            d.pool for d in decisions if d.kind == "start"
        }
        for k, decision in enumerate(queued):
            is_first = decision.kind == "wait" and decision.pool and decision.pool not in pools_taken
            if not is_first or not self._queues(decision.pool):
                continue
            option = self.cache.table.option(decision.job, decision.pool)
            if option.chips > total.get(decision.pool, 0):
                continue
            held = sum(a.option.chips for a in under_way if a.pool == decision.pool)
            capacity[decision.pool] = max(capacity.get(decision.pool, 0), held + option.chips)
            queued[k] = replace(
                decision, kind="start", variant=option.variant, reason=f"{decision.reason}, in the backend's own queue"
            )
            pools_taken.add(decision.pool)
        return queued


def _protect_closed_pools(state: ClusterState, pool_chips: Mapping[str, PoolChips]) -> ClusterState:
    """The state in which jobs that run in closed pools are neither stopped nor moved."""
    closed = np.array([pool_chips[name].closed for name in state.pools])
    if not closed.any():
        return state
    return replace(state, restartable=state.restartable & ~((state.current_pool >= 0) & closed[state.current_pool]))


def _with_pool_notes(decision: Decision, pool_chips: Mapping[str, PoolChips]) -> Decision:
    """A decision that waits for chips which don't work, with the reason: policies see only that."""
    if decision.kind != "wait" or not decision.reason.startswith(NO_CHIPS):
        return decision
    notes = {pool: pool_chips[pool].note for pool in decision.scores if pool in pool_chips and pool_chips[pool].note}
    if notes and len(notes) == len(decision.scores) and set(notes.values()) == {DRAINED}:
        explanation = f"{', '.join(notes)} {'is' if len(notes) == 1 else 'are'} drained"
    elif notes:
        explanation = f"{NO_CHIPS} ({'; '.join(f'{pool}: {note}' for pool, note in notes.items())})"
    else:
        return decision
    return replace(decision, reason=decision.reason.replace(NO_CHIPS, explanation, 1))


def _at_most(decisions: Sequence[Decision], most: int) -> list[Decision]:
    """The decisions with at most so many starts; the others are made again in the next tick."""
    kept, starts = [], 0
    for decision in decisions:
        starts += decision.kind == "start"
        if decision.kind != "start" or starts <= most:
            kept.append(decision)
    return kept
