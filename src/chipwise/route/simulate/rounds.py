"""Replay of neutral work in rounds: at each boundary a policy chooses what runs until the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import process_time

import numpy as np

from chipwise.errors import InputError, Refusal
from chipwise.route.cluster_state import Floats, Policy
from chipwise.route.policies import POLICIES, policy_named
from chipwise.route.simulate.asked import Asked
from chipwise.route.simulate.course import Course
from chipwise.route.simulate.neutral import ROUND_S, Neutral
from chipwise.route.simulate.swift import SWIFT, Swift

__all__ = ["GAVEL_RECOMPUTE_S", "ROUND_S", "Fairness", "Result", "replay"]

GAVEL_RECOMPUTE_S = 1920.0  # least time between two allocations in Gavel's simulator


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
    recompute_s: float
    avg_jct_s: float
    median_jct_s: float
    p99_jct_s: float
    makespan_s: float
    cost_usd: float
    completed: int
    refused: tuple[tuple[str, str], ...]  # job and reason
    cpu_s: float  # of the process, for the replay alone: reading files, imports and compiling excluded
    utilisation: float  # mean over chips of busy time / makespan
    deadline_misses: int
    with_deadline: int
    fairness: Fairness
    rounds: int
    decisions: int  # boundaries at which the allocation was made anew
    jct_s: Floats  # by job, in the order of the file


def replay(work: Neutral, policy: str, recompute_s: float = 0.0, *, compiled: bool = True) -> Result:
    """Run a policy over the work.

    `recompute_s`: least time between two allocations; 0: at every boundary since whose last jobs came or went.
    `compiled`: replay policies whose rules are compiled in one compiled loop; the result is the same.
    """
    if not 0 <= recompute_s < np.inf:
        raise InputError("recompute_s", recompute_s, "seconds of at least 0")
    if policy == "least-energy":
        raise Refusal("least-energy can't be replayed: neutral work has no watts", "choose another policy")
    function = policy_named(policy)
    swift = compiled and policy in SWIFT and function is POLICIES[policy]
    _warm(policy, function, swift)
    began = process_time()
    course = Course(work)
    asked = _asked(course, policy, function, swift, recompute_s)
    go(course, asked)
    return _result(work, course, policy, recompute_s, asked.decisions, process_time() - began)


def _asked(course: Course, policy: str, function: Policy, swift: bool, recompute_s: float) -> Asked:
    return Swift(course, policy, function, recompute_s) if swift else Asked(course, function, recompute_s)


@cache
def _warm(policy: str, function: Policy, swift: bool) -> None:
    """Compile, or load what was compiled, on a few small jobs: arrays of one would have other layouts."""
    jobs, pools = 3, 2
    each = np.ones(jobs)
    few = Neutral(
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
    course = Course(few)
    go(course, _asked(course, policy, function, swift, 0.0))


def go(course: Course, asked: Asked) -> None:
    """From the first arrival to the last completion."""
    changed = False
    while True:
        changed |= course.admit()
        if not len(course.open):
            if course.next_arrival == np.inf:
                return
            course.now = course.next_arrival
            continue
        before = asked.decisions
        steady = asked.choose(changed)
        if asked.decisions > before:
            changed = False
        until = course.now
        if steady:
            until = min(course.next_arrival, asked.due) if changed else course.next_arrival
        rounds = course.rounds
        changed |= course.run(asked.jobs, asked.pools, until)
        if course.rounds == rounds:  # nothing ran: the clock jumps
            if course.next_arrival == np.inf:
                if asked.decisions > before:
                    raise Refusal("the policy runs none of the jobs that are left")
                asked.hurry()
            else:
                course.now = course.next_arrival


def _result(work: Neutral, course: Course, policy: str, recompute_s: float, decisions: int, cpu_s: float) -> Result:
    jct = course.jct()
    done = np.flatnonzero(~np.isnan(jct))
    refused = tuple((work.jobs[j], why) for j, why in work.refusals().items())
    took = jct[done]
    makespan = course.now
    dated = np.isfinite(work.slo)  # a refused job misses its deadline too
    return Result(
        policy, recompute_s, *((float(took.mean()), float(np.median(took)), float(np.percentile(took, 99)))
                               if len(done) else (np.nan,) * 3),
        makespan, course.spent, len(done), refused, cpu_s,
        float((course.busy / makespan).sum() / work.count.sum()) if makespan else 0.0,
        int((~(jct <= work.slo) & dated).sum()), int(dated.sum()), fairness(work, course), course.rounds, decisions,
        jct,
    )  # fmt: skip


def fairness(work: Neutral, course: Course) -> Fairness:
    """Finish times against an equal share: of the pools' chips over n jobs, at most one gang's worth."""
    jct = course.jct()
    done = np.flatnonzero(~np.isnan(jct))
    if not len(done):
        return Fairness(np.nan, np.nan, np.nan)
    arrival, finish = work.arrival[done], course.finish[done]
    # mean number of open jobs while each was open: the sum of overlaps over its own time
    overlap = np.minimum(finish[:, None], finish) - np.maximum(arrival[:, None], arrival)
    many = np.maximum(overlap, 0.0).sum(axis=1) / jct[done]
    share = work.count / (many[:, None] * work.chips[done][:, None])
    share = np.where(course.rate[done] > 0, share, 0.0)
    share /= np.maximum(share.sum(axis=1), 1.0)[:, None]
    ratio = jct[done] / (work.steps[done] / (share * course.rate[done]).sum(axis=1))
    return Fairness(float(ratio.max()), float(ratio.mean()), float(ratio.sum() ** 2 / (len(ratio) * (ratio**2).sum())))
