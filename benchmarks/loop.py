"""Predictions in the loop: `cheapest-within-deadline` against rankings by price per hour, on h100, v5e and v5p pools.

Traces of mixed training jobs, made from seeds: presets scaled to hours, deadlines for most. Every policy meets the same
jobs, pools, prices and luck: run times are drawn from the predictions' intervals. Rankings take the pools by price, of
a chip-hour or of the job's hour, first come first served or by deadline; they wait for the cheapest, or take the first
with room. The best of them: the fewest deadlines missed, then the least cost. All of them are printed for every price
setting. A trace is won where ours costs less than the best at as many missed deadlines or fewer; open where ours costs
more and misses fewer, so that no ranking keeps as many promises at any price; lost where some ranking, the best or not,
costs no more and misses no more than ours.

    python benchmarks/loop.py [seeds] [jobs]
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from time import process_time

import numpy as np

from chipwise.route.cluster_state import ClusterState, Policy, PolicyDecision
from chipwise.route.estimates import Estimator
from chipwise.route.job import Job
from chipwise.route.load.jobs import jobs_of
from chipwise.route.load.pools import pools_of
from chipwise.route.policies import policy_named
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace, in_order
from chipwise.route.simulate.events import ReplayOptions, replay
from chipwise.route.simulate.measures import Measures, measure
from chipwise.route.simulate.policy_scheduler import PolicyScheduler
from chipwise.route.simulate.random_events import RandomEvents
from chipwise.units import HOUR

LM = {"precision": "bf16", "steps": 1000}
WORK: dict[str, tuple[int, dict]] = {  # chips, workload; steps are scaled to hours below
    "llama-3.1-8b": (16, {"model": "llama-3.1-8b", "train": {**LM, "global_batch": 64, "sequence": 4096}}),
    "llama-3.1-8b-lora": (
        8,
        {"model": "llama-3.1-8b", "train": {**LM, "global_batch": 64, "sequence": 4096, "lora": {"rank": 16}}},
    ),
    "bert-large": (8, {"model": "bert-large", "train": {**LM, "global_batch": 256, "sequence": 512}}),
    "resnet-50": (8, {"model": "resnet-50", "train": {**LM, "global_batch": 1024}}),
    "vit-b/16": (8, {"model": "vit-b/16", "train": {**LM, "global_batch": 1024}}),
    "gpt2": (4, {"model": "gpt2", "train": {**LM, "global_batch": 64, "sequence": 1024}}),
    "dit-xl/2": (8, {"model": "dit-xl/2", "train": {**LM, "global_batch": 256}}),
    "mixtral-8x7b-lora": (
        16,
        {"model": "mixtral-8x7b", "train": {**LM, "global_batch": 32, "sequence": 4096, "lora": {"rank": 16}}},
    ),
}
PRICES = {"list prices of one cloud (gcp)": "gcp", "h100 of a GPU cloud (runpod), TPUs of gcp": "runpod"}
# deadlines after arrival, uniformly, but never sooner than twice the fastest run
DEADLINES = {"within the day: 6 to 24 h": (6.0, 24.0), "in a hurry: 2 to 8 h": (2.0, 8.0)}
SOONEST = 2.0
GAP_H = 0.4  # mean hours between arrivals: the cheapest pool is full, the others are used in part
PROMISED = 0.8  # share of jobs with a deadline
LENGTH_H = (0.4, 3.0)  # hours of the fastest run, log-uniform


def pools(h100_cloud: str) -> tuple[Pool, ...]:
    one = {"backend": "kubernetes", "terms": "ondemand"}
    return pools_of(
        {
            "pools": [
                {**one, "name": "h100", "chip": "h100", "count": 32, "cloud": h100_cloud},
                {**one, "name": "v5e", "chip": "v5e", "count": 64, "cloud": "gcp"},
                {**one, "name": "v5p", "chip": "v5p", "count": 32, "cloud": "gcp"},
            ]
        },
        Path(),
    ).pools


def kinds(where: tuple[Pool, ...]) -> list[tuple[Job, tuple, tuple]]:
    estimator, out = Estimator(), []
    for name, (chips, workload) in WORK.items():
        [job] = jobs_of(
            {
                "name": name.replace("/", "-"),
                "command": ["true"],
                "chips": chips,
                "workload": workload,
                "checkpoint": {"every": "15min", "restart": "3min"},
            },
            Path(),
            0.0,
        )
        options, unable = estimator.options(job, where)
        out.append((job, tuple(options), tuple(unable)))
    return out


def made(
    seed: int, jobs: int, where: tuple[Pool, ...], known: list[tuple[Job, tuple, tuple]], due_h: tuple[float, float]
) -> Trace:
    """A trace: arrivals at random at a rate that keeps the cheapest pool busy and the others partly so."""
    dice, at, out = Random(f"loop/{seed}"), 0.0, []
    for i in range(jobs):
        at += dice.expovariate(1 / (GAP_H * HOUR))
        job, options, unable = dice.choice(known)
        fastest = min(o.seconds.value for o in options)
        hours = LENGTH_H[0] * (LENGTH_H[1] / LENGTH_H[0]) ** dice.random()
        scale = hours * HOUR / fastest
        after = max(dice.uniform(*due_h), SOONEST * hours) * HOUR
        due = at + after if dice.random() < PROMISED else inf
        out.append(
            Arrival(
                f"{job.name}#{i}",
                at,
                replace(job, deadline=due),
                tuple(replace(o, seconds=o.seconds.scaled(scale)) for o in options),
                unable,
            )
        )
    return Trace(f"seed {seed}", "jobs", in_order(out), where)


def by_price(view: ClusterState, *, of_job: bool, waits: bool, by_deadline: bool) -> PolicyDecision:
    """What schedulers do without predictions: the cheapest hour first."""
    price = np.where(view.chips > 0, view.usd_per_chip_hour * (view.chips if of_job else 1), np.inf)
    second = 0.0 if waits else 1e6  # a second of waiting outweighs every price: the first pool with room
    score = price + second * (np.maximum(view.start, view.now) - view.now)
    order = np.where(np.isfinite(view.deadline), view.deadline, view.now + 1e9) if by_deadline else view.arrival
    return PolicyDecision(score, order, "USD/h", wait=second, because="the least price of an hour")


RANKINGS: dict[str, Policy] = {
    f"{'job' if of_job else 'chip'}-hour, {'waits' if waits else 'first with room'}, "
    f"{'by deadline' if due else 'in order'}": partial(by_price, of_job=of_job, waits=waits, by_deadline=due)
    for of_job in (False, True)
    for waits in (False, True)
    for due in (False, True)
}
OURS = "cheapest-within-deadline"
ENDS = {
    "won": "costs less than the best ranking at as many missed deadlines or fewer",
    "open": "costs more and misses fewer than any ranking",
    "lost": "a ranking costs no more at as many missed or fewer",
}


def figures(trace: Trace, name: str, policy: Policy, seed: int) -> Measures:
    return measure(replay(trace, PolicyScheduler(name, policy, trace.pools), ReplayOptions(RandomEvents(seed))))


def stopping(view: ClusterState) -> PolicyDecision:
    """Ours, were it to stop and move jobs."""
    return replace(policy_named(OURS)(view), preempts=True, moves=True)


def main(seeds: int = 10, jobs: int = 100) -> None:
    begun, tally = process_time(), Counter[str]()
    for words, cloud in PRICES.items():
        where = pools(cloud)
        known = kinds(where)
        print(f"\n{words}: " + ", ".join(f"{p.count} {p.name} at ${p.usd_per_chip_hour:.2f}" for p in where))
        for job, options, _ in known:
            least = min(o.usd for o in options)
            print(
                f"  {job.name:18} USD over the cheapest: "
                + ", ".join(f"{o.pool}:{o.chips} {o.usd / least:.2f}" for o in options)
            )
        for when, due in DEADLINES.items():
            found = compared(f"{words}; deadlines {when}", seeds, jobs, where, known, due)
            print(f"  {told(found)}")
            tally += found
    print(f"\n{OURS} on all {tally.total()} traces: {told(tally)}; {process_time() - begun:.0f} CPU seconds")


def told(tally: Counter[str]) -> str:
    """How often, in words."""
    return "; ".join(f"{words}: {tally[name]}" for name, words in ENDS.items())


def judged(ours: Measures, best: Measures, others: list[Measures]) -> str:
    """What became of one trace, by cost and deadlines missed."""
    if any(m.cost_usd <= ours.cost_usd and m.deadline_misses <= ours.deadline_misses for m in others):
        return "lost"
    return "won" if ours.cost_usd < best.cost_usd and ours.deadline_misses <= best.deadline_misses else "open"


def compared(
    words: str,
    seeds: int,
    jobs: int,
    where: tuple[Pool, ...],
    known: list[tuple[Job, tuple, tuple]],
    due: tuple[float, float],
) -> Counter[str]:
    """One setting, seed by seed: how often ours won, lost, or neither."""
    print(f"\n{words}\n{'seed':>4}  {'ours':>9} missed  {'best ranking':>12} missed  {'less':>6}  which")
    sums: dict[str, list[float]] = {}
    tally: Counter[str] = Counter()
    for seed in range(seeds):
        trace = made(seed, jobs, where, known, due)
        ours = figures(trace, OURS, policy_named(OURS), seed)
        others = [figures(trace, name, policy, seed) for name, policy in RANKINGS.items()]
        extra = figures(trace, f"({OURS}, were it to stop and move jobs)", stopping, seed)
        assert all(m.completed == jobs for m in (ours, extra, *others)), "a job was not completed"
        best = min(others, key=lambda m: (m.deadline_misses, m.cost_usd))
        end = judged(ours, best, others)
        tally[end] += 1
        for m in (ours, extra, *others):
            both = sums.setdefault(m.policy, [0.0, 0.0])
            both[0], both[1] = both[0] + m.cost_usd, both[1] + m.deadline_misses
        print(
            f"{seed:4}  {ours.cost_usd:9,.0f} {ours.deadline_misses:6}  {best.cost_usd:12,.0f} "
            f"{best.deadline_misses:6}  {1 - ours.cost_usd / best.cost_usd:6.1%}  {best.policy}"
            + ("" if end == "won" else f"  ({end})"),
            flush=True,
        )
    print("sums over the seeds, USD and deadlines missed:")
    for name, (usd, missed) in sorted(sums.items(), key=lambda each: (each[1][1], each[1][0])):
        print(f"  {usd:10,.0f} {missed:5.0f}  {name}")
    return tally


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
