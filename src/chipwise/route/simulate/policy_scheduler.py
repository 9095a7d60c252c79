"""The router's own scheduling pass on the clock of a replay: job table, policy, allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chipwise.route.allocate import allocate
from chipwise.route.cluster_state import Decision, Policy
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.option import Option
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival
from chipwise.route.simulate.events import usable


class PolicyScheduler:
    """A scheduler that follows a policy."""

    def __init__(
        self, name: str, policy: Policy, pools: Sequence[Pool], weights: Mapping[str, float] | None = None
    ) -> None:
        self.name, self.policy, self.weights, self.now = name, policy, dict(weights or {}), 0.0
        self.stops = True  # whether it may stop jobs: until the policy has said otherwise
        self.soft = 0  # running jobs that can be stopped
        self.table = JobTable(pools)
        self.total = {p.name: usable(p) for p in pools}
        self.free = dict(self.total)
        self.options: dict[str, Option] = {}

    @property
    def moves(self) -> bool:
        """Whether there is something that the policy might stop."""
        return self.stops and self.soft > 0

    def arrive(self, arrival: Arrival) -> None:
        """A job has come."""
        self.table.add(Candidate.of(arrival.job, arrival.id, arrival.at, arrival.options))

    def start(self, job: str, option: Option, now: float) -> None:
        """It runs."""
        self.options[job] = option
        self.free[option.pool] -= option.chips
        self.soft += self.table.candidate(job).restartable
        self.table.started(job, option.pool, now)

    def stop(self, job: str, now: float, kept: float, spent: float, failed: bool) -> None:
        """It waits again."""
        option = self._freed(job)
        self.table.stopped(job, now, kept, spent, (option.pool, option.variant) if failed else None)

    def leave(self, job: str) -> None:
        """It is done."""
        self._freed(job)
        self.table.remove(job)

    def _freed(self, job: str) -> Option:
        option = self.options.pop(job)
        self.soft -= self.table.candidate(job).restartable
        self.free[option.pool] += option.chips
        return option

    def works(self, pool: str, chips: int) -> None:
        """So many chips of a pool work now."""
        self.free[pool] += chips - self.total[pool]
        self.total[pool] = chips

    def decide(self, now: float) -> Sequence[Decision]:
        """What to do now."""
        return self._decided(now, ())

    def _decided(self, now: float, waits: Sequence[str]) -> Sequence[Decision]:
        self.now = now
        state = self.table.state(now, self.free, self.total, weights=self.weights)
        decision = self.policy(state)
        self.stops = decision.preempts or decision.moves
        return allocate(state, decision, self.table.option, explain=waits)

    def why(self, job: str) -> str:
        """Why a job waits, as last decided."""
        return next((d.reason for d in self._decided(self.now, [job]) if d.job == job), "")
