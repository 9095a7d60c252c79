"""Round-based simulation by the rules of Gavel's simulator: what the chosen jobs do until the next boundary.

At a boundary a set of jobs is chosen. One that runs at a rate does as many whole steps as fit into `ROUND_S`, or those
it has left, and stops; the round ends when the last one stops, and the next begins at once. A job is done at its own
stop, inside the round. Stopping and moving cost nothing, and what is paid for is the time that chips were used.

No fastmath: equal input gives equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached_alloc
from chipwise.route.cluster_state import Flags, Floats, Ints
from chipwise.route.simulate.gavel_trace import GavelTrace

ROUND_S = 360.0  # nominal length of a round in Gavel's simulator


@jit_cached_alloc
def _run(
    now: float,
    until: float,
    jobs: Any,
    pools: Any,
    rate: Any,
    chips: Any,
    price: Any,
    left: Any,
    finish: Any,
    served: Any,
    busy: Any,
    spent: Any,
) -> tuple[float, int, bool]:
    """Rounds with the same jobs in the same pools, until one is done or a boundary is not before `until`."""
    rounds = 0
    while True:
        end, done = now, False
        for i in range(jobs.shape[0]):
            j, p = jobs[i], pools[i]
            if p < 0:
                continue
            r = rate[j, p]
            steps = min(np.floor(r * ROUND_S), left[j])
            took = steps / r
            left[j] -= steps
            served[j, p] += took
            busy[p] += chips[j] * took
            spent[0] += price[p] * chips[j] * took / 3600.0
            if left[j] <= 0:
                finish[j] = now + took
                done = True
            end = max(end, now + took)
        if end == now:
            return now, rounds, done
        rounds += 1
        now = end
        if done or now >= until:
            return now, rounds, done


def runs(work: GavelTrace) -> Flags:
    """Where each job can run [J, P]: its chips are there, and a round is time for a step."""
    return np.asarray(work.runs() & (work.rate * ROUND_S >= 1))


def refusals(work: GavelTrace) -> dict[int, str]:
    """The jobs that can run nowhere, with the reason of every pool."""
    return {int(j): _why(work, int(j)) for j in np.flatnonzero(~runs(work).any(axis=1))}


def _why(work: GavelTrace, job: int) -> str:
    slow = f"not one step in a round of {ROUND_S:g} s"
    parts = [f"{pool}: {work.infeasible(job, p) or slow}" for p, pool in enumerate(work.pools)]
    return f"{work.workload[job]} can run nowhere ({'; '.join(parts)})"


class RoundSimulator:
    """The state of a replay. Jobs are numbers in the order of the file."""

    def __init__(self, work: GavelTrace) -> None:
        n, pools = work.rate.shape
        self.work = work
        self.rate = np.where(runs(work), work.rate, 0.0)
        self.left = work.steps.copy()
        self.finish = np.full(n, np.nan)
        self.served = np.zeros((n, pools))
        self.busy, self._spent = np.zeros(pools), np.zeros(1)
        self.now, self.rounds = 0.0, 0
        self.coming = np.flatnonzero((self.rate > 0).any(axis=1))  # not here yet, in order of arrival; others refused
        self._arrivals = work.arrival[self.coming].tolist()
        self._next = 0
        self.open: Ints = np.empty(0, dtype=np.int64)  # here and not done, in order of arrival

    @property
    def spent(self) -> float:
        """Dollars so far."""
        return float(self._spent[0])

    @property
    def next_arrival(self) -> float:
        """When the next job comes; inf: none does."""
        return self._arrivals[self._next] if self._next < len(self._arrivals) else np.inf

    def admit(self) -> bool:
        """Take in who has come by now; whether anybody has."""
        first = self._next
        while self._next < len(self._arrivals) and self._arrivals[self._next] <= self.now:
            self._next += 1
        if self._next > first:
            self.open = np.concatenate([self.open, self.coming[first : self._next]])
        return self._next > first

    def run(self, jobs: Ints, pools: Ints, until: float) -> bool:
        """Run jobs in pools (-1: nowhere) for rounds until a boundary not before `until`, or one is done: whether."""
        work = self.work
        self.now, rounds, done = _run(
            self.now,
            until,
            jobs,
            pools,
            self.rate,
            work.chips,
            work.usd_per_chip_hour,
            self.left,
            self.finish,
            self.served,
            self.busy,
            self._spent,
        )
        self.rounds += rounds
        if done:
            self.open = self.open[self.left[self.open] > 0]
        return done

    def jct(self) -> Floats:
        """Completion time of every job, from its arrival; nan: refused."""
        return self.finish - self.work.arrival
