"""Replay of neutral work in rounds: at each boundary a policy chooses what runs until the next."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from chipwise.route.simulate.neutral import Neutral
from chipwise.route.view import Floats

ROUND_S = 360.0  # nominal length of a round, as in Gavel's simulator


@dataclass(frozen=True, slots=True)
class Fairness:
    """Finish times against those of an equal share of every pool (1/n of it while n jobs are open)."""

    worst_ratio: float = nan  # largest completion time / that of the equal share
    mean_ratio: float = nan
    jain: float = nan  # Jain's index of the ratios' inverses: 1 is all alike


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
    decisions: int  # boundaries at which the policy was asked
    jct_s: Floats  # by job, in the order of the file


def replay(neutral: Neutral, policy: str, recompute_s: float = 0.0) -> Result:
    """Run a policy over the work. `recompute_s`: least time between two askings; 0: at every boundary with a change."""
    raise NotImplementedError
