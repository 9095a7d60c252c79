"""Discrete-event simulation of policies on one trace: the use case behind `chipwise simulate`.

Each policy meets the same arrivals, pools, prices and random events. Figures and assumptions come back as one frozen
`Simulation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Protocol, Self

from chipwise.errors import NOTHING, Conflict, InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.route.load import Pools, read_pools
from chipwise.route.load.pairs import Pairs, read_pairs
from chipwise.route.policies import DEFAULT_POLICY, check_weights, policy_named
from chipwise.route.policies.deadlines import DELAY
from chipwise.route.simulate.arrivals import Trace
from chipwise.route.simulate.events import TICK_S, ReplayOptions, replay
from chipwise.route.simulate.gavel_trace import read_gavel_trace
from chipwise.route.simulate.measures import measure
from chipwise.route.simulate.outcome import Outcome
from chipwise.route.simulate.policy_scheduler import PolicyScheduler
from chipwise.route.simulate.random_events import RandomEvents
from chipwise.route.simulate.trace import Say, read_trace
from chipwise.route.simulate.view import Simulation
from chipwise.units import DAY, format_seconds, parse_duration

WARM_JOBS = 3  # replayed first, so that compiling is not counted in a policy's CPU seconds
REPORT_EVERY = 64  # jobs that are over between two reports of progress


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """How policies are tried: what is drawn at random, how often they are asked, and the weights they read."""

    random_events: RandomEvents = field(default_factory=RandomEvents)
    tick_s: float = TICK_S  # between two scheduling passes while a job is pending and nothing happens
    weights: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, seed: int | None, failures: float, repair: str | float, tick: str | float, weights: Pairs) -> Self:
        """The options as people write them."""
        events = RandomEvents(seed, failures, _seconds(repair, "repair", 0.0))
        return cls(events, _seconds(tick, "tick", 1.0), read_pairs(weights, "weights", "cost=2"))


class Watcher(Protocol):
    """Told how a simulation is going."""

    def compiling(self, policy: str) -> AbstractContextManager[object]:
        """A policy is compiled where this machine has not done so yet."""

    def progress(self, policy: str, done: int, jobs: int) -> None:
        """So many of a trace's jobs are over."""

    def say(self, what: str) -> None:
        """A job of the trace is being estimated."""


class _Silent:
    def compiling(self, policy: str) -> AbstractContextManager[object]:
        return nullcontext()

    def progress(self, policy: str, done: int, jobs: int) -> None:
        pass

    def say(self, what: str) -> None:
        pass


def open_trace(
    path: Path,
    pools: str | Path | None,
    speed: Pairs = None,
    knowledge: Knowledge | None = None,
    watcher: Watcher | None = None,
) -> Trace:
    """The trace of a file in the pools of a pools file, or of a folder in Gavel's form, which has its own pools."""
    if path.is_dir() or not (path.suffix or pools or path.exists()):  # what is missing was meant as a folder
        for option, value in (("pools", pools), ("speed", speed)):
            if value:
                raise Conflict(option, "a Gavel trace", "its cluster.csv and throughput.csv say it")
        return load_gavel_trace(path)
    if pools is None:
        raise InputError("pools", NOTHING, "a pools file (YAML)")
    factors = read_pairs(speed, "speed", "h100=2.5")
    return load_trace(path, read_pools(pools, knowledge), factors, (watcher or _Silent()).say)


def load_trace(path: Path, pools: Pools, speed: Mapping[str, float] | None = None, say: Say | None = None) -> Trace:
    """The trace of a file in the pools of a pools file, with what both assume."""
    trace = read_trace(path, pools.pools, speed, say=say)
    notes = (line for line in pools.assumptions if not line.startswith("folder:"))  # nothing runs here
    return replace(trace, assumptions=(*trace.assumptions, *notes), weights=pools.weights)


def load_gavel_trace(folder: Path) -> Trace:
    """The trace of a folder in Gavel's form; its pools are those of cluster.csv."""
    return read_gavel_trace(folder).trace()


def simulate(
    trace: Trace,
    policies: Sequence[str] = (DEFAULT_POLICY,),
    options: SimulationOptions | None = None,
    watcher: Watcher | None = None,
) -> Simulation:
    """Try policies on a trace."""
    options, watcher = options or SimulationOptions(), watcher or _Silent()
    check_weights(policies, options.weights)
    if "least-energy" in policies and not any(o.watts for a in trace.arrivals for o in a.options):
        raise Refusal(f"least-energy can't be replayed: {trace.name} has no watts", "choose another policy")
    outcomes = tuple(_outcome(trace, name, options, watcher) for name in policies)
    return Simulation(
        trace.name,
        trace.kind,
        len(trace.arrivals),
        trace.arrivals[-1].at - trace.arrivals[0].at,
        options.random_events.seed,
        tuple(map(measure, outcomes)),
        (*trace.assumptions, *_assumptions(trace, options, policies)),
        outcomes,
    )


def _outcome(trace: Trace, policy: str, options: SimulationOptions, watcher: Watcher) -> Outcome:
    def scheduler() -> PolicyScheduler:
        return PolicyScheduler(policy, policy_named(policy), trace.pools, {**trace.weights, **options.weights})

    plain = ReplayOptions(options.random_events, options.tick_s)
    with watcher.compiling(policy):
        replay(replace(trace, arrivals=trace.arrivals[:WARM_JOBS]), scheduler(), plain)
    return replay(trace, scheduler(), replace(plain, say=partial(_report, watcher, policy)))


def _seconds(time: str | float, field: str, least: float) -> float:
    seconds = parse_duration(str(time), field)
    if not least <= seconds <= 365 * DAY:
        raise InputError(field, time, f"a time from {least:g} s to a year, such as 5min or 1920s")
    return seconds


def _report(watcher: Watcher, policy: str, done: int, jobs: int) -> None:
    if done % REPORT_EVERY == 0:
        watcher.progress(policy, done, jobs)


def _assumptions(trace: Trace, options: SimulationOptions, policies: Sequence[str]) -> list[str]:
    random = options.random_events
    spot = any(p.spot for p in trace.pools)
    lines: list[str] = []
    if random.seed is None:
        lines.append(
            "runs take exactly what was estimated"
            + (", spot interruptions as expected on average" if spot else "")
            + "; a seed draws them from their intervals"
        )
    else:
        lines.append(
            "run times are drawn for each job and pool from the estimate's interval, log-normal on either "
            "side, nine in ten inside; the same draws for every policy"
        )
        if spot:
            lines.append("spot chips are taken away at random at the pool's rate; others take their place at once")
    if random.failures:
        lines.append(
            f"nodes fail at random, {random.failures:g} an hour each, and are back after "
            f"{format_seconds(random.repair)}; the job on one goes on from its last checkpoint"
        )
    lines.append("chips are paid for while a job holds them, and draw power then alone; idle chips cost nothing here")
    if trace.kind != "gavel":
        lines.append(
            "a job that is stopped keeps what its last checkpoint holds; restarting takes the time its file says"
        )
    lines.append(
        f"a policy is asked at every arrival and end, and every {format_seconds(options.tick_s)} while a job is "
        "pending that could start or displace another; deciding and launching take no time"
    )
    lines.append(
        "fairness is Jain's index of how fast jobs were done: time of the fastest way alone over completion "
        "time; 1 is all alike"
    )
    weights = {**trace.weights, **options.weights}
    if DEFAULT_POLICY in policies and any(a.job.deadline == inf for a in trace.arrivals):
        lines.append(
            f"{DEFAULT_POLICY}: an hour until the end of a job without a deadline counts "
            f"{weights.get('delay', DELAY):g} USD times its priority (--weight delay=USD)"
        )
    if options.weights:
        lines.append("weights: " + ", ".join(f"{name} {value:g}" for name, value in options.weights.items()))
    return lines
