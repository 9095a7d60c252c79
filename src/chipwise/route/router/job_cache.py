"""The open jobs as the router keeps them: read from the ledger once, then only what has changed; shown as a table."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from chipwise.route.access import Quotas
from chipwise.route.allocate import queue_window
from chipwise.route.cluster_state import ClusterState, Floats, Policy
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.ledger import Ledger, LedgerError
from chipwise.route.ledger.records import OVER, PENDING, AttemptRow, JobRow
from chipwise.route.ledger.states import is_due
from chipwise.route.pool import Pool
from chipwise.route.router.quotas import QuotaKeeper

EXPLAINED = 50  # pending jobs whose reason is written in one pass, longest ago first: 10,000 in 7 minutes
SHARES_S = 60.0  # for which shares of time hold while no job comes or goes: each time, a program is solved for them


class JobCache:
    """Open jobs with their table."""

    def __init__(self, ledger: Ledger, pools: Sequence[Pool], quotas: Quotas | None = None) -> None:
        self.ledger, self.pools = ledger, tuple(pools)
        self.quotas = QuotaKeeper(quotas or Quotas(), ledger)
        self.table = JobTable(self.pools)
        self.rows: dict[str, JobRow] = {}
        self.not_before: dict[str, float] = {}  # jobs that must wait until then before they are tried
        self.explained_at: dict[str, float] = {}  # when the reason of each job was last written, longest ago first
        self.running: set[str] = set()  # on the table as such
        self.quarantined: dict[str, str] = {}  # jobs that the table can't hold, and why: "job 7"
        self._changed: float | None = None
        self._epoch = ledger.epoch
        self._shares: tuple[float, dict[str, Floats]] = (0.0, {})

    def _forget(self) -> None:
        """Read all jobs again: what the ledger's server had told before it crashed may be no more."""
        for job in list(self.rows):
            self._drop(job)
        self._changed, self._epoch = None, self.ledger.epoch

    def refresh(self, under_way: Sequence[AttemptRow], now: float) -> None:
        """Take in what has changed."""
        if self._epoch != self.ledger.epoch:
            self._forget()
        with _uncollected(self._changed is None):
            self._take_in(self.ledger.open_jobs(self._changed), under_way, now)

    def _take_in(self, changed: Sequence[JobRow], under_way: Sequence[AttemptRow], now: float) -> None:
        self._changed = max((row.changed for row in changed), default=self._changed or 0.0)
        attempts = {a.job_id: a for a in under_way}
        new: list[JobRow] = []
        for row in changed:
            if row.state in OVER:
                self._drop(row.id)
                continue
            if row.id not in self.rows:
                self.explained_at[row.id] = 0.0
            self.rows[row.id] = row
            if row.id not in self.table and row.id not in attempts and _untried(row):
                new.append(row)
            else:
                self._show_alone(row, attempts.get(row.id), now)
        self._show_new(new, now)
        for job in [job for job, when in self.not_before.items() if is_due(when, now)]:
            del self.not_before[job]
            self._show_alone(self.rows[job], attempts.get(job), now)

    def _show_new(self, rows: Sequence[JobRow], now: float) -> None:
        """Put jobs that wait for the first time on the table, all at once unless something is wrong with one."""
        try:
            self.table.add_all([self._candidate(row) for row in rows])
        except Exception:  # each alone says which it is
            for row in rows:
                self._show_alone(row, None, now)
            return
        for row in rows:
            self.quarantined.pop(f"job {row.id}", None)

    def _show_alone(self, row: JobRow, attempt: AttemptRow | None, now: float) -> None:
        """Show one job. Whatever is wrong with it is its own: it waits, and the others are scheduled."""
        self.quarantined.pop(f"job {row.id}", None)
        try:
            self._show(row, attempt, now)
        except LedgerError:
            raise
        except Exception as error:
            self._drop(row.id)
            self.quarantined[f"job {row.id}"] = f"{type(error).__name__}: {error}"

    def state(
        self,
        now: float,
        free: Mapping[str, int],
        total: Mapping[str, int],
        start: Mapping[str, float],
        weights: Mapping[str, float],
        policy: Policy,
        explain: Sequence[str] = (),
    ) -> ClusterState:
        """The table as a policy sees it: of a long queue the window, with the jobs to explain."""
        since, shares = self._shares
        moment = self.table.moment(now, free, total, start=start or None, weights=weights)
        state = queue_window(self.table, policy, moment, explain=explain, held=self.quotas.held(self.table))
        complete = len(state.jobs) == len(self.table)
        if shares and complete and now - since < SHARES_S and all(job in shares for job in state.jobs):
            return self.table.part(moment, None, np.array([shares[job] for job in state.jobs]))
        return state

    @contextmanager
    def aside(self, attempts: Sequence[AttemptRow], now: float) -> Iterator[None]:
        """Show some jobs that are under way as if they waited: those that backends leave pending."""
        shown_pending = [a for a in attempts if a.job_id in self.running]
        for attempt in shown_pending:
            self.table.stopped(attempt.job_id, now, done=self.rows[attempt.job_id].done)
        try:
            yield
        finally:
            for attempt in shown_pending:
                self.table.started(attempt.job_id, attempt.pool, _begun(attempt))

    def keep_shares(self, state: ClusterState, shares: Floats | None) -> None:
        """Remember what shares a policy gave, unless it was given them."""
        if shares is not None and state.shares is None:
            self._shares = (state.now, dict(zip(state.jobs, shares.copy(), strict=True)))

    def to_explain(self) -> list[str]:
        """Waiting jobs whose reason is to be written now."""
        jobs: list[str] = []
        for job in self.explained_at:  # those explained longest ago come first
            if job not in self.running and job not in self.not_before:
                jobs.append(job)
                if len(jobs) == EXPLAINED:
                    break
        return jobs

    def explained(self, jobs: Sequence[str], now: float) -> None:
        """Their reasons have been written."""
        for job in jobs:
            if self.explained_at.pop(job, None) is not None:
                self.explained_at[job] = now

    def _drop(self, job: str) -> None:
        self.rows.pop(job, None)
        self.quarantined.pop(f"job {job}", None)
        self.not_before.pop(job, None)
        self.explained_at.pop(job, None)
        self.running.discard(job)
        if job in self.table:
            self.table.remove(job)

    def _show(self, row: JobRow, attempt: AttemptRow | None, now: float) -> None:
        """Put a job on the table as it is now, or take it off while it must wait."""
        self.not_before.pop(row.id, None)
        if row.state == PENDING and not is_due(row.not_before, now):
            self.not_before[row.id] = row.not_before
            self.running.discard(row.id)
            if row.id in self.table:
                self.table.remove(row.id)
            return
        new = row.id not in self.table
        if new:
            self.table.add(self._candidate(row, attempt))
            if row.spent or row.failures or row.failed_at or attempt is not None:
                self._replay(row)
        current = attempt if attempt is not None and row.state != PENDING and attempt.pool in self.table.pools else None
        if row.id in self.running and current is None:
            self.table.stopped(row.id, now, done=row.done, spent=row.spent, last_failed=row.failed_at)
            self.running.discard(row.id)
        if not new or row.done or row.spent or row.failed_at:
            self.table.replace(self._candidate(row, attempt))
        if row.state != PENDING and current is None:  # under way where this router has no pool
            self.table.remove(row.id)
        elif current is not None and row.id not in self.running:
            self.table.started(row.id, current.pool, _begun(current))
            self.running.add(row.id)

    def _candidate(self, row: JobRow, attempt: AttemptRow | None = None) -> Candidate:
        return candidate(row, self.quotas.account(row), attempt)

    def _replay(self, row: JobRow) -> None:
        """What a job has been served so far."""
        for attempt in self.ledger.attempts(row.id):
            if attempt.started is not None and attempt.ended is not None and attempt.pool in self.table.pools:
                self.table.started(row.id, attempt.pool, attempt.started)
                self.table.stopped(row.id, attempt.ended, done=row.done, spent=row.spent)


@contextmanager
def _uncollected(first: bool) -> Iterator[None]:
    """Read thousands of jobs for the first time without looking for garbage among them, nor ever after: there is none,
    and each search goes through all of them (half the time of the reading, and more than a decision later on)."""
    if not first or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _untried(row: JobRow) -> bool:
    """Whether a job waits for the first time: nothing of what it has had is to be shown."""
    return row.state == PENDING and not (row.done or row.spent or row.failures or row.failed_at or row.not_before)


def _begun(attempt: AttemptRow) -> float:
    return attempt.started or attempt.submitted or attempt.intended


def candidate(row: JobRow, account: int = -1, attempt: AttemptRow | None = None) -> Candidate:
    """A job of the ledger as the table takes it; where it runs, as its own steps tell, if they do."""
    options = row.options
    if attempt is not None and attempt.expected is not None and row.done < 1:
        whole = attempt.expected.scaled(1 / (1 - row.done))  # an attempt does what checkpoints did not hold
        place = (attempt.pool, attempt.variant)
        options = tuple(
            replace(option, seconds=whole) if (option.pool, option.variant) == place else option for option in options
        )
    history = {"done": row.done, "spent": row.spent, "last_failed": row.failed_at}
    return Candidate.of(row.job, row.id, row.submitted, options, account=account, **history)
