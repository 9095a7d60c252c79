"""How long a fleet plan takes: 24 months, 30 offers and 20 workloads to a proved gap of 1 %.

    python benchmarks/fleet.py [--seeds 8] [--first 0] [--gap 0.01] [--threads 2] [--limit 60]

Prints for each seed the size of the program, seconds, CPU seconds (a busy machine shows in the difference), the cost
and the gap proved. The instances are random but shaped like real ones: a chip costs what it carries, give or take a
third; commitments are 25-60 % off; services grow and have a daily peak; runs have deadlines; there are quotas, the
power of a site and budgets.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from chipwise.fleet.model import build
from chipwise.fleet.planner import plan
from chipwise.fleet.problem import Block, Limit, Option, Period, Pool, Problem, Run, Service, Supply

MONTHS, SERVICES, RUNS = 24, 10, 10
YEAR = 12


def instance(seed: int) -> Problem:
    """24 months; nine cloud pools with three kinds of terms, two of spot and one site: 30 offers; 20 workloads."""
    rng = np.random.default_rng(seed)
    periods = tuple(Period(f"{2027 + t // 12}-{t % 12 + 1:02}", 730.0) for t in range(MONTHS))
    pools, supplies, speed = [], [], {}
    for k in range(9):
        name, fast = f"cloud{k}", float(np.exp(rng.normal(0, 0.6)))
        pools.append(Pool(name, f"chip{k % 6}", "tpu" if k % 3 == 0 else "gpu", 8))
        price = 25.0 * fast * float(np.exp(rng.normal(0, 0.25)))
        speed[name] = fast
        quota = int(rng.integers(20, 90))
        supplies += [
            Supply(f"{name} on demand", name, "ondemand", price, limit=quota),
            Supply(f"{name} 1 year", name, "year1", price * rng.uniform(0.6, 0.75), YEAR, limit=quota),
            Supply(f"{name} 3 years", name, "year3", price * rng.uniform(0.4, 0.55), 3 * YEAR, limit=quota),
        ]
        if k < 2:
            pools.append(Pool(f"{name} spot", f"chip{k}", "gpu", 8))
            supplies.append(Supply(f"{name} spot", f"{name} spot", "spot", price * 0.4, limit=quota))
            speed[f"{name} spot"] = fast
    pools.append(Pool("site", "chip1", "gpu", 8, "site", 3_000, 10_000, 0.1, 0.3))
    speed["site"] = 1.2
    supplies.append(
        Supply(
            "servers",
            "site",
            "owned",
            capex=300_000,
            resale=270_000,
            keeps=0.967,
            usd_period=2_500,
            rack_units=8,
            lead=3,
        )
    )
    runs = [_run(rng, r, pools, speed) for r in range(RUNS)]
    services = [_service(rng, s, pools, speed) for s in range(SERVICES)]
    limits = (
        Limit("power of the site", "kw", 200.0, ("servers",)),
        Limit("budget of a month", "usd", 12e6),
        Limit("budget", "usd", 90e6, total=True),
    )
    return Problem(
        periods,
        (Block("base", 0.625), Block("peak", 0.375)),
        tuple(pools),
        tuple(supplies),
        tuple(runs),
        tuple(services),
        limits,
    )


def _run(rng: np.random.Generator, r: int, pools: list[Pool], speed: dict[str, float]) -> Run:
    first = int(rng.integers(0, 16))
    last = min(MONTHS - 1, first + int(rng.integers(1, 8)))
    size = float(rng.uniform(4, 24))
    hours = float(rng.uniform(0.2, 0.7)) * (last - first + 1) * 730
    options = []
    for pool in pools:
        if rng.random() < 0.2:
            continue
        units = max(1, round(size / speed[pool.id]))
        took = hours * size / units / speed[pool.id] * float(rng.uniform(0.8, 1.2))
        hourly = f"{pool.id} on demand"
        if pool.id.endswith("spot"):
            options.append(Option(pool.id, pool.id, units, took * 1.1))
            continue
        options.append(Option(pool.id, "", units, took))
        if pool.id != "site":
            options.append(Option(pool.id, hourly, units, took))
    return Run(f"run {r}", first, last, tuple(options))


def _service(rng: np.random.Generator, s: int, pools: list[Pool], speed: dict[str, float]) -> Service:
    start, growth, peak = rng.uniform(2, 12), rng.uniform(1.0, 1.06), rng.uniform(1.3, 2.5)
    load = tuple((start * growth**t, start * growth**t * peak) for t in range(MONTHS))
    carries = tuple(
        (p.id, speed[p.id] * float(rng.uniform(0.7, 1.3)))
        for p in pools
        if not p.id.endswith("spot") and rng.random() < 0.8
    )
    return Service(f"service {s}", load, carries, spare_share=0.1)


def main() -> None:
    """Solve the instances and print how long each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0)
    args = parser.parse_args()
    for seed in range(args.first, args.first + args.seeds):
        problem = instance(seed)
        program = build(problem).program
        wall, cpu = time.perf_counter(), time.process_time()
        timed_out = False
        try:
            best = plan(problem, args.gap, args.limit, args.threads)
        except TimeoutError:
            best, timed_out = None, True
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        offers, work = len(problem.supplies), len(problem.runs) + len(problem.services)
        size = f"{len(program.cost):,} columns ({sum(program.integer):,} whole), {len(program.low):,} rows"
        none = f"no plan within {args.limit:g} s" if timed_out else "infeasible"
        result = f"${best.usd:,.0f}, gap {best.gap:.2%}" if best else none
        print(
            f"seed {seed}: {MONTHS} months, {offers} offers, {work} workloads; {size}; "
            f"{wall:.1f} s ({cpu:.1f} CPU s); {result}",
            flush=True,
        )


if __name__ == "__main__":
    main()
