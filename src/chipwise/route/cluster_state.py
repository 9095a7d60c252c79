"""`ClusterState`, which a policy reads, and `PolicyDecision`, its answer: arrays of jobs by pools, so that ten thousand
jobs are one pass.

A policy is one pure function, ``policy(state) -> PolicyDecision``: scores and an order. `allocate` turns them into
decisions: shapes, gangs, capacity, backfill, aging, fallback and preemption are the same for all policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Pending and running jobs, pools, and estimates, at one moment. Times are seconds since an epoch shared by all.

    Arrays are by job [J], by pool [P] or both [J, P]. Seconds, dollars and joules are those still to come: of the
    work that is left, from a start there. Where a job can't run, `seconds` is inf. A policy must not write to them.
    """

    now: float
    jobs: Sequence[str]
    pools: tuple[str, ...]
    # jobs
    arrival: Floats
    weight: Floats  # priority
    deadline: Floats  # inf: none
    confidence: Floats  # probability with which a deadline is to be met
    budget: Floats  # USD still to spend; inf: none
    restartable: Flags
    restart_cost_s: Floats  # seconds of work that preempting it now would repeat, restart included
    current_pool: Ints  # the pool in which it runs; -1: it is pending
    since: Floats  # when it began to run there; nan while it waits
    # jobs by pools
    seconds: Floats
    low: Floats  # 90 % interval of `seconds`
    high: Floats
    usd: Floats
    joules: Floats
    chips: Ints  # occupied there; 0 where it can't run
    variant_order: Ints  # rank of the variant in the job's own order; 0 is first
    last_failed: Flags  # failed there last: another is tried first
    start: Floats  # when it could start there as predicted; `now` where it fits
    served: Floats  # seconds it has run there so far
    # pools
    free: Ints  # chips
    total: Ints  # chips that work
    pool_facts: Mapping[str, Floats]  # every figure of the pools by its name in `Pool`: usd_per_chip_hour, ...
    weights: dict[str, float] = field(default_factory=dict)  # of the policies that read any, and users' own
    shares: Floats | None = None  # [J, P] shares of time still in force: a policy that shares only orders by them
    late: Floats | None = None  # [J, P] spread of log(seconds) on the late side, where it is kept; see policies.risk
    within: Floats | None = (
        None  # [J, P] times `seconds`: within which a run ends with the job's confidence, where kept
    )
    had: Floats | None = None  # [J] seconds it has run so far, in all pools, where they are kept
    shares_since: float = nan  # when they came into force
    shared: Floats | None = None  # [J, P] seconds that each job has run there since then

    @property
    def usd_per_chip_hour(self) -> Floats:
        """The pools' prices."""
        return self.pool_facts["usd_per_chip_hour"]

    @property
    def interruptions(self) -> Floats:
        """Of the pools' spot chips, a unit-hour."""
        return self.pool_facts["interruptions"]


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy wants: `allocate` takes jobs in `order`, each in the pool with its lowest finite `score`.

    A job whose best score lies in a pool without free capacity waits for it; scores of time-minded policies contain
    the wait, so that a worse pool with free capacity wins exactly when it pays. Pools within `tie` of the least score
    are equal: the job starts where it ends first, and waits for none of them beside another that is free. `order` may
    be by job [J] or by job and pool [J, P].
    """

    score: Floats  # [J, P]; lower is better; inf: never there
    order: Floats  # lower goes first
    unit: str  # what the score counts: "USD", "s", "J", ...
    preempts: bool = False  # jobs ahead in order may stop restartable ones behind
    moves: bool = False  # running restartable jobs may change pools, when that pays for the work repeated
    because: str = ""  # the rule in words, for `jobs explain`
    shares: Floats | None = None  # [J, P] share of time, of policies that share; None elsewhere
    wait: Floats | float = 0.0  # [J] or for all: what a second of waiting adds to the score
    tie: Floats | float = 0.0  # [J] or for all: share of the least score within which pools count as equal
    latest: Floats | None = None  # [J, P] start after which the score no longer holds: another pool is better
    wait_note: str = ""  # what the score of a job with a `wait` counts beside its unit, for the reasons
    notes: dict[str, str] = field(default_factory=dict)  # job -> what else its reason says


Policy = Callable[[ClusterState], PolicyDecision]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with one job, and why."""

    job: str
    kind: str  # "start", "wait" or "stop" (preempted, to wait again)
    pool: str = ""  # where it starts, or where it waits for capacity
    variant: str = ""
    reason: str = ""
    scores: dict[str, Any] = field(default_factory=dict)  # pool -> score, start and cost that were compared
