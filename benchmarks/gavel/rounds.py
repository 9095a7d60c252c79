"""Replay of a Gavel trace in rounds: at each boundary a policy chooses what runs until the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import process_time

import numpy as np
from benchmarks.gavel.compiled import COMPILED, CompiledRoundScheduler
from benchmarks.gavel.scheduler import RoundScheduler
from benchmarks.gavel.simulator import RoundSimulator, refusals

from chipwise.errors import InputError, Refusal
from chipwise.route.cluster_state import Floats, Policy
from chipwise.route.policies import POLICIES, policy_named
from chipwise.route.simulate.gavel_trace import GavelTrace

GAVEL_REALLOCATE_S = 1920.0  # least time between two allocations in Gavel's simulator


@dataclass(frozen=True, slots=True)
class Fairness:
    """Completion times over those that 1/n of every pool would give, n jobs being open on average while it was."""

    worst_ratio: float
    mean_ratio: float
    jain: float  # Jain's index of the ratios: 1 is all alike


@dataclass(frozen=True, slots=True)
class Result:
    """What one policy made of the work. Times are in seconds; those of refused jobs are nan."""

    policy: str
    reallocate_s: float
    avg_jct_s: float
    median_jct_s: float
    p99_jct_s: float
    makespan_s: float
    cost_usd: float
    completed: int
    refused: tuple[tuple[str, str], ...]  # job and reason
    cpu_s: float  # of the process, for the replay alone: reading files, imports and compiling excluded
    utilization: float  # mean over chips of busy time / makespan
    deadline_misses: int
    with_deadline: int
    fairness: Fairness
    rounds: int
    decisions: int  # boundaries at which the allocation was computed again
    jct_s: Floats  # by job, in the order of the file


def replay(work: GavelTrace, policy: str, reallocate_s: float = 0.0, *, compiled: bool = True) -> Result:
    """Run a policy over the work.

    `reallocate_s`: least time between two allocations; 0: at every boundary since whose last jobs came or went.
    `compiled`: replay policies whose rules are compiled in one compiled loop; the result is the same.
    """
    if not 0 <= reallocate_s < np.inf:
        raise InputError("reallocate_s", reallocate_s, "seconds of at least 0")
    if policy == "least-energy":
        raise Refusal("least-energy can't be replayed: a Gavel trace has no watts", "choose another policy")
    function = policy_named(policy)
    fast = compiled and policy in COMPILED and function is POLICIES[policy]
    _warm(policy, function, fast)
    began = process_time()
    simulator = RoundSimulator(work)
    scheduler = _scheduler(simulator, policy, function, fast, reallocate_s)
    go(simulator, scheduler)
    return _result(work, simulator, policy, reallocate_s, scheduler.decisions, process_time() - began)


def _scheduler(
    simulator: RoundSimulator, policy: str, function: Policy, fast: bool, reallocate_s: float
) -> RoundScheduler:
    return (
        CompiledRoundScheduler(simulator, policy, function, reallocate_s)
        if fast
        else RoundScheduler(simulator, function, reallocate_s)
    )


@cache
def _warm(policy: str, function: Policy, fast: bool) -> None:
    """Compile, or load what was compiled, on a few small jobs: arrays of one would have other layouts."""
    jobs, pools = 3, 2
    each = np.ones(jobs)
    few = GavelTrace(
        "",
        tuple(map(str, range(jobs))),
        np.arange(float(jobs)),
        ("",) * jobs,
        np.ones(jobs, dtype=np.int64),
        each * 1000,
        each,
        np.full(jobs, np.inf),
        ("a", "b"),
        np.ones(pools, dtype=np.int64),
        np.ones(pools),
        np.ones((jobs, pools)),
    )
    simulator = RoundSimulator(few)
    go(simulator, _scheduler(simulator, policy, function, fast, 0.0))


def go(simulator: RoundSimulator, scheduler: RoundScheduler) -> None:
    """From the first arrival to the last completion."""
    changed = False
    while True:
        changed |= simulator.admit()
        if not len(simulator.open):
            if simulator.next_arrival == np.inf:
                return
            simulator.now = simulator.next_arrival
            continue
        before = scheduler.decisions
        steady = scheduler.choose(changed)
        if scheduler.decisions > before:
            changed = False
        until = simulator.now
        if steady:
            until = min(simulator.next_arrival, scheduler.due) if changed else simulator.next_arrival
        rounds = simulator.rounds
        changed |= simulator.run(scheduler.jobs, scheduler.pools, until)
        if simulator.rounds == rounds:  # nothing ran: the clock jumps
            if simulator.next_arrival == np.inf:
                if scheduler.decisions > before:
                    raise Refusal("the policy runs none of the jobs that are left")
                scheduler.hurry()
            else:
                simulator.now = simulator.next_arrival


def _result(
    work: GavelTrace, simulator: RoundSimulator, policy: str, reallocate_s: float, decisions: int, cpu_s: float
) -> Result:
    jct = simulator.jct()
    done = np.flatnonzero(~np.isnan(jct))
    refused = tuple((work.jobs[j], why) for j, why in refusals(work).items())
    took = jct[done]
    makespan = simulator.now
    dated = np.isfinite(work.slo)  # a refused job misses its deadline too
    stats = (took.mean(), np.median(took), np.percentile(took, 99)) if len(done) else (np.nan,) * 3
    return Result(
        policy=policy,
        reallocate_s=reallocate_s,
        avg_jct_s=float(stats[0]),
        median_jct_s=float(stats[1]),
        p99_jct_s=float(stats[2]),
        makespan_s=makespan,
        cost_usd=simulator.spent,
        completed=len(done),
        refused=refused,
        cpu_s=cpu_s,
        utilization=float((simulator.busy / makespan).sum() / work.count.sum()) if makespan else 0.0,
        deadline_misses=int((~(jct <= work.slo) & dated).sum()),
        with_deadline=int(dated.sum()),
        fairness=fairness(work, simulator),
        rounds=simulator.rounds,
        decisions=decisions,
        jct_s=jct,
    )


def fairness(work: GavelTrace, simulator: RoundSimulator) -> Fairness:
    """Finish times against an equal share: of the pools' chips over n jobs, at most one gang's worth."""
    jct = simulator.jct()
    done = np.flatnonzero(~np.isnan(jct))
    if not len(done):
        return Fairness(np.nan, np.nan, np.nan)
    arrival, finish = work.arrival[done], simulator.finish[done]
    # mean number of open jobs while each was open: the sum of overlaps over its own time
    overlap = np.minimum(finish[:, None], finish) - np.maximum(arrival[:, None], arrival)
    many = np.maximum(overlap, 0.0).sum(axis=1) / jct[done]
    share = work.count / (many[:, None] * work.chips[done][:, None])
    share = np.where(simulator.rate[done] > 0, share, 0.0)
    share /= np.maximum(share.sum(axis=1), 1.0)[:, None]
    ratio = jct[done] / (work.steps[done] / (share * simulator.rate[done]).sum(axis=1))
    return Fairness(float(ratio.max()), float(ratio.mean()), float(ratio.sum() ** 2 / (len(ratio) * (ratio**2).sum())))
