"""Small random planning problems: every kind of supply, work and limit turns up in some of them."""

from __future__ import annotations

import numpy as np
from fleet_enumeration import Enumeration

from chipwise.fleet.problem import Block, Exclusive, Limit, Option, Period, Pool, Problem, Run, Service, Supply

LARGEST = 20_000  # starts and places of runs to try


def random_problem(seed: int) -> Problem:
    """A problem small enough to try everything."""
    rng = np.random.default_rng(seed)
    while True:
        problem = _random(rng)
        if Enumeration(problem).size() <= LARGEST:
            return problem


def _random(rng: np.random.Generator) -> Problem:
    """Every kind of supply, work and limit turns up in some of them."""
    periods = tuple(Period(f"m{t}", float(rng.integers(600, 745))) for t in range(int(rng.integers(2, 4))))
    blocks = (Block("all", 1.0),) if rng.random() < 0.5 else (Block("base", 0.6), Block("peak", 0.4))
    cloud = Pool("cloud", "v5e", "tpu", 8, watts_idle=300, watts_busy=float(rng.integers(800, 2000)), kg_per_kwh=0.4)
    site = Pool("site", "h100", "gpu", 8, "home", 1000, 9000, 0.1, 0.1)
    price = float(rng.uniform(10, 40))
    limit = None if rng.random() < 0.5 else int(rng.integers(0, 4))
    supplies = [Supply("cloud od", "cloud", "ondemand", price, limit=limit, lead=int(rng.random() < 0.15))]
    if rng.random() < 0.6:
        supplies.append(
            Supply(
                "cloud y",
                "cloud",
                "year1",
                price * float(rng.uniform(0.4, 0.8)),
                term=int(rng.integers(2, 4)),
                lead=int(rng.random() < 0.2),
            )
        )
    if rng.random() < 0.6:
        supplies.append(
            Supply(
                "own",
                "site",
                "owned",
                capex=float(rng.uniform(8e3, 4e4)),
                resale=7e3,
                keeps=float(rng.uniform(0.5, 1.0)),
                usd_period=500,
                rack_units=8,
                lead=int(rng.integers(0, 2)),
                limit=int(rng.integers(1, 3)),
            )
        )
    if rng.random() < 0.4:
        supplies.append(
            Supply("there", "site", "existing", 5.0, existing=tuple(int(rng.integers(0, 2)) for _ in periods))
        )
    runs = tuple(_run(rng, r, periods, supplies) for r in range(int(rng.integers(0, 3))))
    services = tuple(_service(rng, periods, blocks) for _ in range(int(rng.integers(0 if runs else 1, 2))))
    return Problem(
        periods,
        blocks,
        (cloud, site),
        tuple(supplies),
        runs,
        services,
        _limits(rng, supplies, price),
        _exclusives(rng, supplies),
        prorate=bool(rng.random() < 0.3),
    )


def _run(rng: np.random.Generator, r: int, periods: tuple[Period, ...], supplies: list[Supply]) -> Run:
    first = int(rng.integers(0, len(periods)))
    last = int(rng.integers(first, len(periods)))
    hours = float(rng.uniform(0.2, 0.9)) * sum(p.hours for p in periods[first : last + 1])
    options = [
        Option(
            "cloud",
            "cloud od",
            int(rng.integers(1, 3)),
            hours,
            int(rng.random() < 0.2),
            0.9 if rng.random() < 0.3 else 1.0,
        ),
        Option("cloud", "", int(rng.integers(1, 3)), hours * 0.8),
        Option("site", "", int(rng.integers(1, 3)), hours * 0.6),
    ]
    keep = [o for o in options if rng.random() < 0.8] or options[:1]
    split = bool(rng.random() < 0.25) and (last - first) < 2 and len(keep) < 3
    return Run(f"r{r}", first, last, tuple(keep), split, "q" if rng.random() < 0.4 else "")


def _service(rng: np.random.Generator, periods: tuple[Period, ...], blocks: tuple[Block, ...]) -> Service:
    load = tuple(tuple(float(rng.uniform(0.2, 2.0)) for _ in blocks) for _ in periods)
    return Service(
        "s",
        load,
        (("cloud", float(rng.uniform(0.8, 1.5))), ("site", float(rng.uniform(0.8, 3.0)))),
        0.1 if rng.random() < 0.5 else 0.0,
        int(rng.random() < 0.25),
        (("site", 2),) if rng.random() < 0.2 else (),
    )


def _limits(rng: np.random.Generator, supplies: list[Supply], price: float) -> tuple[Limit, ...]:
    some = []
    if rng.random() < 0.3:
        some.append(Limit("power", "kw", float(rng.uniform(8, 30)), tuple(s.id for s in supplies if s.pool == "site")))
    if rng.random() < 0.2:
        some.append(Limit("racks", "rack_units", 8.0))
    if rng.random() < 0.2:
        some.append(Limit("units", "units", float(rng.integers(1, 4)), periods=(0,)))
    if rng.random() < 0.2:
        some.append(Limit("quota", "chips", 8.0 * int(rng.integers(1, 4)), ("cloud od", "cloud y")))
    if rng.random() < 0.25:
        some.append(Limit("budget", "usd", price * 730 * float(rng.uniform(1, 6)), total=bool(rng.random() < 0.5)))
    if rng.random() < 0.25:
        some.append(Limit("carbon", "kg", float(rng.uniform(300, 2500)), total=bool(rng.random() < 0.5)))
    return tuple(some)


def _exclusives(rng: np.random.Generator, supplies: list[Supply]) -> tuple[Exclusive, ...]:
    begun = {s.id for s in supplies if s.started}
    if len(begun) < 2 or rng.random() < 0.5:
        return ()
    there = ("there",) if rng.random() < 0.3 else ()  # a contract under way keeps its side
    return (Exclusive("one of", (("cloud y",), ("own", *there))),)
