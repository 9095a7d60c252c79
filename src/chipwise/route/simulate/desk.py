"""The router's own way of deciding, on the clock of a replay: board, policy, placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from chipwise.route.board import Board, Candidate
from chipwise.route.option import Option
from chipwise.route.place import place
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival
from chipwise.route.simulate.events import usable
from chipwise.route.view import Decision, Floats, Policy


class PolicyDesk:
    """A desk at which a policy decides."""

    def __init__(self, name: str, policy: Policy, pools: Sequence[Pool], weights: Mapping[str, float] | None = None,
                 recompute: float = 0.0) -> None:
        self.name, self.policy, self.weights, self.recompute = name, policy, dict(weights or {}), recompute
        self.moves = True  # until the policy has said otherwise
        self.board = Board(pools)
        self.total = {p.name: usable(p) for p in pools}
        self.free = dict(self.total)
        self.options: dict[str, Option] = {}
        self.waits: dict[str, str] = {}

    def arrive(self, arrival: Arrival) -> None:
        """A job has come."""
        job, keep = arrival.job, arrival.job.checkpoint
        self.board.add(Candidate(
            arrival.id, arrival.at, arrival.options, weight=job.priority, deadline=job.deadline,
            confidence=job.confidence, budget=job.budget, restartable=keep.restartable, every=keep.every,
            restart=keep.restart))

    def start(self, job: str, option: Option, now: float) -> None:
        """It runs."""
        self.options[job] = option
        self.free[option.pool] -= option.chips
        self.board.started(job, option.pool, now)

    def stop(self, job: str, now: float, kept: float, spent: float, failed: bool) -> None:
        """It waits again."""
        option = self._freed(job)
        self.board.stopped(job, now, kept, spent, (option.pool, option.variant) if failed else None)

    def leave(self, job: str) -> None:
        """It is done."""
        self._freed(job)
        self.board.remove(job)

    def _freed(self, job: str) -> Option:
        option = self.options.pop(job)
        self.free[option.pool] += option.chips
        return option

    def works(self, pool: str, chips: int) -> None:
        """So many chips of a pool work now."""
        self.free[pool] += chips - self.total[pool]
        self.total[pool] = chips

    def decide(self, now: float) -> Sequence[Decision]:
        """What to do now."""
        view = self.board.view(now, self.free, self.total, weights=self.weights)
        wishes = self.policy(view)
        self.moves = wishes.preempts or wishes.moves
        decisions = place(view, wishes)
        for decision in decisions:
            self.waits[decision.job] = decision.reason
        return decisions

    def why(self, job: str) -> str:
        """Why a job waits, as last decided."""
        return self.waits.get(job, "")
