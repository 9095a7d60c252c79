"""Discrete-event simulation of a trace under one policy: the clock jumps from event to event.

Events are arrivals, ends, chips taken away, nodes that fail and come back, and ticks while a job waits beside free
chips. At each the policy decides through the router's own job table and allocation.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf
from time import process_time
from typing import Protocol

from chipwise.errors import Refusal
from chipwise.route.cluster_state import Decision
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace
from chipwise.route.simulate.outcome import FAILED, INTERRUPTED, PREEMPTED, SUCCEEDED, Fate, Outcome, PoolUse, Run
from chipwise.route.simulate.random_events import RandomEvents
from chipwise.units import HOUR, MINUTE

# in the order in which events of one moment are handled: capacity is freed before it is allocated
_END, _LOSS, _BACK, _NODE, _ARRIVE, _TICK = range(6)
TICK_S = 5 * MINUTE  # between two scheduling passes while nothing happens but time
MOST_STOPS = 1000  # of one job in a row that kept nothing, after which its policy is said never to end it
MOST_LOST = 20  # runs in a row that lost their chips before a checkpoint: then a job fails, as in the router
CLOSE = 1e-9  # share of a checkpoint interval that rounding may hide


@dataclass(slots=True)
class _Live:
    """A job on its way."""

    index: int  # in the trace
    arrival: Arrival
    kept: float = 0.0  # share of the work that checkpoints hold
    attempt: int = 0
    option: Option | None = None  # while it runs
    since: float = 0.0
    pace: float = 1.0  # seconds that the whole work really takes there
    warming: float = 0.0  # seconds of this attempt before it works
    spent: float = 0.0
    vain: int = 0  # runs in a row that kept nothing
    first: float | None = None
    end: float | None = None
    refused: str = ""
    paid_once: set[str] = field(default_factory=set)  # pools to which its data were moved


class Scheduler(Protocol):
    """Who decides: told of everything that happens, asked what to start and what to preempt."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def moves(self) -> bool:
        """Whether jobs that run might be stopped: then it must be asked without free chips too."""

    def arrive(self, arrival: Arrival) -> None:
        """A job has come."""

    def start(self, job: str, option: Option, now: float) -> None:
        """It runs."""

    def stop(self, job: str, now: float, kept: float, spent: float, failed: bool) -> None:
        """It waits again, with so much of its work kept and so much money spent; `failed`: its chips were lost."""

    def leave(self, job: str) -> None:
        """It is done."""

    def works(self, pool: str, chips: int) -> None:
        """So many chips of a pool work now."""

    def decide(self, now: float) -> Sequence[Decision]:
        """What to do now: stops come before the starts that need their chips."""

    def why(self, job: str) -> str:
        """Why a job waits, as last decided."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a replay is done."""

    random_events: RandomEvents = field(default_factory=RandomEvents)
    tick: float = TICK_S
    say: Callable[[int, int], None] | None = None  # told (jobs that are over, jobs)


def replay(trace: Trace, scheduler: Scheduler, options: ReplayOptions | None = None) -> Outcome:
    """What a policy makes of a trace."""
    return _Replay(trace, scheduler, options or ReplayOptions()).run()


class _Replay:
    """One replay; used once."""

    def __init__(self, trace: Trace, scheduler: Scheduler, options: ReplayOptions) -> None:
        self.trace, self.scheduler, self.options, self.random_events = trace, scheduler, options, options.random_events
        self.pools: dict[str, Pool] = {p.name: p for p in trace.pools}
        self.usable = {p.name: usable(p) for p in trace.pools}
        self.held = dict.fromkeys(self.pools, 0)
        self.down = dict.fromkeys(self.pools, 0)
        self.jobs = [_Live(i, within_power(a, self.usable)) for i, a in enumerate(trace.arrivals)]
        self.by_id = {a.id: live for a, live in zip(trace.arrivals, self.jobs, strict=True)}
        self.running: dict[str, dict[int, _Live]] = {name: {} for name in self.pools}
        self.pending: dict[int, _Live] = {}
        self.sizes: dict[str, Counter[int]] = {name: Counter() for name in self.pools}  # chips that waiting jobs need
        self.heap: list[tuple[float, int, int, int, int, str]] = []
        self.number = 0
        self.runs: list[Run] = []
        self.decisions = self.downs = self.over = 0
        self.next_tick = inf

    def run(self) -> Outcome:
        """Every event in its order, then what is left."""
        began = process_time()
        for live in self.jobs:
            self._later(live.arrival.at, _ARRIVE, live.index)
        first = self.jobs[0].arrival.at if self.jobs else 0.0
        for name in self.pools:
            self._next_failure(name, first, 0)
        while self.heap and self.over < len(self.jobs):
            now = self.heap[0][0]
            while self.heap and self.heap[0][0] <= now:
                _, kind, _, a, b, name = heapq.heappop(self.heap)
                self._happen(now, kind, a, b, name)
            if self.pending or self.scheduler.moves:
                self._decide(now)
            if self.options.say is not None:
                self.options.say(self.over, len(self.jobs))
        self._strand()
        return self._outcome(process_time() - began)

    def _later(self, when: float, kind: int, a: int, b: int = 0, name: str = "") -> None:
        if when < inf:
            self.number += 1
            heapq.heappush(self.heap, (when, kind, self.number, a, b, name))

    # -- what happens

    def _happen(self, now: float, kind: int, a: int, b: int, name: str) -> None:
        if kind == _ARRIVE:
            self._arrive(self.jobs[a])
        elif kind in (_END, _LOSS):
            live = self.jobs[a]
            if live.option is not None and live.attempt == b:  # else: that attempt is over already
                self._stop(live, now, SUCCEEDED if kind == _END else INTERRUPTED)
        elif kind == _NODE:
            self._fail(now, name, a)
        elif kind == _BACK:
            self.down[name] -= a
            self.scheduler.works(name, self.usable[name] - self.down[name])
        elif kind == _TICK and now >= self.next_tick:
            self.next_tick = inf

    def _arrive(self, live: _Live) -> None:
        arrival = live.arrival
        live.refused = arrival.refusal()
        if live.refused:
            self.over += 1
            return
        self._wait(live)
        self.scheduler.arrive(arrival)

    def _wait(self, live: _Live) -> None:
        self.pending[live.index] = live
        for option in live.arrival.options:
            self.sizes[option.pool][option.chips] += 1

    def _start(self, live: _Live, option: Option, now: float) -> None:
        arrival, pool = live.arrival, self.pools[option.pool]
        del self.pending[live.index]
        for alternative in arrival.options:
            self.sizes[alternative.pool][alternative.chips] -= 1
        live.attempt += 1
        live.option, live.since = option, now
        live.first = now if live.first is None else live.first
        index = arrival.options.index(option)
        live.pace = self._pace(arrival, index)
        restarts = live.attempt > 1 and arrival.job.checkpoint.restartable
        live.warming = arrival.job.checkpoint.restart if restarts else 0.0
        self.held[pool.name] += option.chips
        self.running[pool.name][live.index] = live
        self.scheduler.start(arrival.id, option, now)
        self._later(now + live.warming + (1 - live.kept) * live.pace, _END, live.index, live.attempt)
        lost = self.random_events.interruption(pool, option.chips, arrival.id, live.attempt)
        self._later(now + lost, _LOSS, live.index, live.attempt)

    def _pace(self, arrival: Arrival, index: int) -> float:
        """Seconds of the whole work there: as estimated, or drawn, then without the interruptions in expectation."""
        option = arrival.options[index]
        drawn = self.random_events.seed is not None and arrival.calm
        return self.random_events.seconds(arrival.calm[index] if drawn else option.seconds, arrival.id, option.pool)

    def _stop(self, live: _Live, now: float, how: str) -> None:
        """Free a job's chips, count what it took, and see what it keeps of its work."""
        option = live.option
        assert option is not None
        length = now - live.since
        saved = length - live.warming if how == SUCCEEDED else self._saved(live, length - live.warming)
        usd = option.usd_hour * length / HOUR + (0.0 if option.pool in live.paid_once else option.usd_once)
        live.paid_once.add(option.pool)
        live.spent += usd
        live.kept = 1.0 if how == SUCCEEDED else min(1.0, live.kept + saved / live.pace)
        live.vain = 0 if saved > 0 else live.vain + 1
        self.runs.append(
            Run(
                live.index,
                option.pool,
                option.variant,
                option.chips,
                live.since,
                now,
                how,
                usd,
                option.watts * length,
                length - saved,
            )
        )
        self.held[option.pool] -= option.chips
        del self.running[option.pool][live.index]
        live.option = None
        if how == SUCCEEDED:
            live.end = now
            self.over += 1
            self.scheduler.leave(live.arrival.id)
        elif how != PREEMPTED and live.vain > MOST_LOST:
            live.refused = (
                f"failed: {live.vain} runs in a row lost their chips before a checkpoint, the last in {option.pool}"
            )
            self.over += 1
            self.scheduler.leave(live.arrival.id)
        else:
            self._wait(live)
            self.scheduler.stop(live.arrival.id, now, live.kept, live.spent, how != PREEMPTED)

    @staticmethod
    def _saved(live: _Live, worked: float) -> float:
        """Seconds of this attempt's work that its last checkpoint holds."""
        checkpoint = live.arrival.job.checkpoint
        if not checkpoint.restartable or checkpoint.every == inf or worked <= 0:
            return 0.0
        if checkpoint.every <= 0:
            return worked
        return floor(worked / checkpoint.every + CLOSE) * checkpoint.every

    def _next_failure(self, name: str, now: float, number: int) -> None:
        wait, _ = self.random_events.failure(self.pools[name], self.usable[name], number)
        self._later(now + wait, _NODE, number, 0, name)

    def _fail(self, now: float, name: str, number: int) -> None:
        """A node fails: the job on it stops, and its chips are gone until it is back."""
        pool = self.pools[name]
        self._next_failure(name, now, number + 1)
        lost = min(pool.unit, self.usable[name] - self.down[name])
        if not lost:
            return
        _, where = self.random_events.failure(pool, self.usable[name], number)
        chip, chips_before = where * self.usable[name], 0
        for live in list(self.running[name].values()):
            assert live.option is not None
            chips_before += live.option.chips
            if chip < chips_before:
                self._stop(live, now, FAILED)
                break
        lost = min(lost, self.usable[name] - self.down[name] - self.held[name])
        if not lost:  # what failed was down already
            return
        self.downs += 1
        self.down[name] += lost
        self.scheduler.works(name, self.usable[name] - self.down[name])
        self._later(now + self.random_events.repair, _BACK, lost, 0, name)

    # -- what is decided

    def _decide(self, now: float) -> None:
        if not self.scheduler.moves and not self._could():
            return
        self.decisions += 1
        acted = False
        for decision in self.scheduler.decide(now):
            live = self.by_id[decision.job]
            acted = acted or decision.kind != "wait"
            if decision.kind == "stop":
                if live.vain > MOST_STOPS:
                    raise Refusal(
                        f"{self.scheduler.name} has stopped {live.arrival.id} {MOST_STOPS:,} times before a "
                        "checkpoint: it never ends",
                        "checkpoints that are nearer, or another policy",
                    )
                self._stop(live, now, PREEMPTED)
            elif decision.kind == "start":
                self._start(live, self._option(live, decision), now)
        if self.pending and self.next_tick == inf and (self.scheduler.moves or self._could()):
            if not acted and self._idle():
                self._strand()
                return
            self.next_tick = now + self.options.tick
            self._later(self.next_tick, _TICK, 0)

    def _could(self) -> bool:
        """Whether some job that waits would fit into free chips."""
        for name, sizes in self.sizes.items():
            free = self.usable[name] - self.down[name] - self.held[name]
            if free > 0 and any(count and chips <= free for chips, count in sizes.items()):
                return True
        return False

    @staticmethod
    def _option(live: _Live, decision: Decision) -> Option:
        return next(o for o in live.arrival.options if (o.pool, o.variant) == (decision.pool, decision.variant))

    def _idle(self) -> bool:
        """Nothing runs, nothing arrives and everything works, and still the policy starts nothing: it never will."""
        return (
            not any(self.running.values())
            and not any(self.down.values())
            and not any(kind == _ARRIVE for _, kind, *_ in self.heap)
        )

    def _strand(self) -> None:
        for live in self.pending.values():
            live.refused = (
                f"{self.scheduler.name} never starts it: {self.scheduler.why(live.arrival.id) or 'no reason given'}"
            )
            self.over += 1
        self.pending.clear()

    def _outcome(self, cpu_s: float) -> Outcome:
        fates = tuple(
            Fate(a.id, a.at, a.job.owner, a.job.deadline, a.alone, live.end, live.refused, live.first, a.job.priority)
            for a, live in zip(self.trace.arrivals, self.jobs, strict=True)
        )
        pools = tuple(PoolUse(p.name, p.chip, self.usable[p.name], p.usd_per_chip_hour) for p in self.trace.pools)
        return Outcome(self.scheduler.name, fates, tuple(self.runs), pools, cpu_s, self.decisions, self.downs)


def usable(pool: Pool) -> int:
    """Chips of a pool that may run at once: all, or what its power cap feeds, in whole units.

    >>> usable(Pool("a", "local", "h100", "gpu", 64, unit=8, watts_chip=1000.0, power_cap=20_500.0))
    16
    """
    if pool.power_cap == inf or pool.watts_chip <= 0:
        return pool.count
    return min(pool.count, int(pool.power_cap / pool.watts_chip) // pool.unit * pool.unit)


def within_power(arrival: Arrival, usable_chips: Mapping[str, int]) -> Arrival:
    """An arrival without the options for which a pool's power never is enough."""
    if all(o.chips <= usable_chips[o.pool] for o in arrival.options):
        return arrival
    fitting = [i for i, o in enumerate(arrival.options) if o.chips <= usable_chips[o.pool]]
    too_large = tuple(
        Infeasible(o.pool, o.variant, f"{o.chips} chips at once; its power cap feeds {usable_chips[o.pool]}")
        for o in arrival.options
        if o.chips > usable_chips[o.pool]
    )
    return replace(
        arrival,
        options=tuple(arrival.options[i] for i in fitting),
        infeasible=arrival.infeasible + too_large,
        calm=tuple(arrival.calm[i] for i in fitting) if arrival.calm else (),
    )
