"""The open jobs as the router keeps them: read from the ledger once, then only what has changed; shown as a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from chipwise.route.board import Board, Candidate
from chipwise.route.ledger import Ledger
from chipwise.route.ledger.records import OVER, WAITING, AttemptRow, JobRow
from chipwise.route.ledger.states import come
from chipwise.route.pool import Pool
from chipwise.route.view import Floats, View

EXPLAINED = 200  # waiting jobs whose reason is written in one tick: those not told for longest
SHARES_S = 60.0  # for which shares of time hold while no job comes or goes: each time, a program is solved for them


class Desk:
    """Open jobs with their board."""

    def __init__(self, ledger: Ledger, pools: Sequence[Pool]) -> None:
        self.ledger, self.pools = ledger, tuple(pools)
        self.board = Board(self.pools)
        self.rows: dict[str, JobRow] = {}
        self.later: dict[str, float] = {}  # jobs that must wait until then before they are tried
        self.told: dict[str, float] = {}  # when the reason of a waiting job was last written
        self.running: set[str] = set()  # on the board as such
        self._changed: float | None = None
        self._shares: tuple[float, dict[str, Floats]] = (0.0, {})

    def look(self, under_way: Sequence[AttemptRow], now: float) -> None:
        """Take in what has changed."""
        changed = self.ledger.open_jobs(self._changed)
        self._changed = max((row.changed for row in changed), default=self._changed or 0.0)
        attempts = {a.job_id: a for a in under_way}
        for row in changed:
            if row.state in OVER:
                self._drop(row.id)
                continue
            self.rows[row.id] = row
            self._show(row, attempts.get(row.id), now)
        for job in [job for job, when in self.later.items() if come(when, now)]:
            del self.later[job]
            self._show(self.rows[job], attempts.get(job), now)

    def view(self, now: float, free: Mapping[str, int], total: Mapping[str, int], start: Mapping[str, float],
             weights: Mapping[str, float]) -> View:
        """The board as policies see it."""
        at, known = self._shares
        shares = None
        bare = self.board.view(now, free, total, start=start or None, weights=weights)
        if now - at < SHARES_S and bare.jobs and all(job in known for job in bare.jobs):
            shares = np.array([known[job] for job in bare.jobs])
        return bare if shares is None else self.board.view(now, free, total, start=start or None, weights=weights,
                                                           shares=shares)

    @contextmanager
    def aside(self, attempts: Sequence[AttemptRow], now: float) -> Iterator[None]:
        """Show some jobs that are under way as if they waited: those that engines leave pending."""
        taken = [a for a in attempts if a.job_id in self.running]
        for each in taken:
            self.board.stopped(each.job_id, now, done=self.rows[each.job_id].done)
        try:
            yield
        finally:
            for each in taken:
                self.board.started(each.job_id, each.pool, each.started or each.submitted or each.intended)

    def keep_shares(self, view: View, shares: Floats | None) -> None:
        """Remember what shares a policy gave, unless it was given them."""
        if shares is not None and view.shares is None:
            self._shares = (view.now, dict(zip(view.jobs, shares.copy(), strict=True)))

    def to_explain(self) -> list[str]:
        """Waiting jobs whose reason is to be written now."""
        waiting = [job for job in self.rows if job not in self.running and job not in self.later]
        if len(waiting) > EXPLAINED:
            waiting.sort(key=lambda job: self.told.get(job, 0.0))
        return waiting[:EXPLAINED]

    def explained(self, jobs: Sequence[str], now: float) -> None:
        """Their reasons have been written."""
        self.told.update(dict.fromkeys(jobs, now))

    def _drop(self, job: str) -> None:
        self.rows.pop(job, None)
        self.later.pop(job, None)
        self.told.pop(job, None)
        self.running.discard(job)
        if job in self.board:
            self.board.remove(job)

    def _show(self, row: JobRow, attempt: AttemptRow | None, now: float) -> None:
        """Put a job on the board as it is now, or take it off while it must wait."""
        self.later.pop(row.id, None)
        if row.state == WAITING and not come(row.not_before, now):
            self.later[row.id] = row.not_before
            self.running.discard(row.id)
            if row.id in self.board:
                self.board.remove(row.id)
            return
        if row.id not in self.board:
            self.board.add(candidate(row))
            if row.spent or row.failures or row.failed_at or attempt is not None:
                self._replay(row)
        here = attempt if attempt is not None and row.state != WAITING and attempt.pool in self.board.pools else None
        if row.id in self.running and here is None:
            self.board.stopped(row.id, now, done=row.done, spent=row.spent, barred=row.failed_at)
            self.running.discard(row.id)
        self.board.replace(candidate(row))
        if row.state != WAITING and here is None:  # under way where this router has no pool
            self.board.remove(row.id)
        elif here is not None and row.id not in self.running:
            self.board.started(row.id, here.pool, here.started or here.submitted or here.intended)
            self.running.add(row.id)

    def _replay(self, row: JobRow) -> None:
        """What a job has been served so far."""
        for each in self.ledger.attempts(row.id):
            if each.started is not None and each.ended is not None and each.pool in self.board.pools:
                self.board.started(row.id, each.pool, each.started)
                self.board.stopped(row.id, each.ended, done=row.done, spent=row.spent)


def candidate(row: JobRow) -> Candidate:
    """A job of the ledger as the board takes it."""
    job = row.job
    return Candidate(row.id, row.submitted, row.options, weight=job.priority, deadline=job.deadline,
                     confidence=job.confidence, budget=job.budget, restartable=job.checkpoint.restartable,
                     every=job.checkpoint.every, restart=job.checkpoint.restart, done=row.done, spent=row.spent,
                     barred=row.failed_at)
