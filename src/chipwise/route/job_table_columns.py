"""The columns of the job table: what is kept of each job, and of each job in each pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from chipwise.route.cluster_state import Floats
from chipwise.route.option import Option
from chipwise.route.pool import Pool

# by job: what is kept, and what an empty row holds
BY_JOB: dict[str, Any] = {
    "arrival": 0.0,
    "weight": 1.0,
    "deadline": inf,
    "confidence": 0.9,
    "budget": inf,
    "restartable": False,
    "restart_cost_s": 0.0,
    "current_pool": -1,
    "since": np.nan,
    "done": 0.0,
    "base": 0.0,
    "every": inf,
    "restart": 0.0,
    "progress_time": 0.0,
    "had": 0.0,
    "fresh": False,
    "ahead": 0.0,
    "where": -1,
    "behind": 0.0,
    "warming": 0.0,
    "account": -1,
    "counted": False,
    "least_chips": 0.0,
    "least_chip_hours": 0.0,
    "least_usd": 0.0,
}
# by job and pool: what a state shows, and what the whole run takes, of which that is the part to come
BY_BOTH: dict[str, Any] = {
    "seconds": inf,
    "high": inf,
    "usd": inf,
    "chips": 0,
    "variant_order": 0,
    "last_failed": False,
    "served": 0.0,
    "before": 0.0,
    "all_seconds": inf,
    "all_low": inf,
    "all_high": inf,
    "usd_hour": 1.0,
    "usd_once": 0.0,
    "watts": 1.0,
    "late": 0.0,
    "within": 1.0,
}
# as the kernels of those names take them
SCALED = (
    *("done", "all_seconds", "all_high", "usd_hour", "usd_once"),
    *("seconds", "high", "usd"),
)
ADVANCED = (
    *("current_pool", "base", "progress_time", "since", "every", "restart", "warming", "all_seconds"),
    *("before", "done", "served", "had", "restart_cost_s"),
)
Way = tuple[int, Option, bool]  # the rank of an option among a job's, itself, whether it failed last
# by job and pool, what an option that is taken there says
CHOSEN: dict[str, Callable[[Way], float]] = {
    "variant_order": lambda way: way[0],
    "last_failed": lambda way: way[2],
    "chips": lambda way: way[1].chips,
    "all_seconds": lambda way: way[1].seconds.value,
    "all_low": lambda way: way[1].seconds.low,
    "all_high": lambda way: way[1].seconds.high,
    "usd_hour": lambda way: way[1].usd_hour,
    "usd_once": lambda way: way[1].usd_once,
    "watts": lambda way: way[1].watts,
}
# of a candidate
WRITTEN = ("arrival", "weight", "deadline", "confidence", "restartable", "done", "every", "restart", "account")
FOLLOWS = ("seconds", "high", "usd", "late", "within")  # from these and what is done


def pool_facts(pools: Sequence[Pool]) -> dict[str, Floats]:
    """The figures of the pools, by name, in the order of the pools; no policy may write to them."""
    by_pool = [pool.facts() for pool in pools]
    facts = {name: np.array([one[name] for one in by_pool]) for name in (by_pool[0] if by_pool else ())}
    for array in facts.values():
        array.flags.writeable = False
    return facts
