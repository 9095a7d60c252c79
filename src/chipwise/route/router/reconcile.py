"""Reconciliation of the ledger with what the backends show. Nothing here submits.

Of several jobs of a backend that carry the same attempt, the one with the claim is the attempt; the others have run
nothing and never will. An attempt that the ledger ends without the word of its backend has its claim revoked first:
so that a router which was only slow can't start it afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.route.backend import (
    CANCELLED,
    ENDED,
    LOST,
    PENDING,
    RUNNING,
    AttemptStatus,
    Backend,
    BackendDown,
    BackendRefused,
)
from chipwise.route.backends.named import attempt_folder
from chipwise.route.launch import claim_of, end_of, progress_of, revoke_claim
from chipwise.route.ledger import BadRow, Conflict, Ledger, LedgerError
from chipwise.route.ledger.records import INTENDED, SUBMITTED, UNDER_WAY, AttemptEnd, AttemptRow, JobRow
from chipwise.route.router import fallback

SETTLE_S = 15.0  # for which a backend may not list a job that it has; Slurm's own caches last seconds
MISSED_PASSES = 3  # in a row, before an attempt counts as lost: a backend that restarts lists a part at first


@dataclass(slots=True)
class Reconciliation:
    """What a pass over a backend's attempts has found."""

    ended: list[tuple[str, str]] = field(default_factory=list)  # attempt, end
    resubmit: list[AttemptRow] = field(default_factory=list)  # intended, and not on the backend
    stopped: list[str] = field(default_factory=list)  # backend ids that were told to stop
    unknown: list[str] = field(default_factory=list)  # attempts with our mark that the ledger doesn't know
    statuses: list[AttemptStatus] = field(default_factory=list)  # one for each attempt, the right one
    quarantined: list[tuple[str, str]] = field(default_factory=list)  # attempts left for the next pass, and why


def choose_status(
    statuses: Sequence[AttemptStatus], folder: Path, recorded: Mapping[str, str], unread: dict[str, str]
) -> tuple[dict[str, AttemptStatus], list[AttemptStatus]]:
    """One `AttemptStatus` for each attempt, and those that are to be stopped because another is the attempt.

    `recorded`: the backend's ids, as the ledger holds them, of the attempts that are asked for. Attempts whose claim
    can't be read now are added to `unread`, with the reason.
    """
    by_attempt: dict[str, list[AttemptStatus]] = {}
    for status in statuses:
        by_attempt.setdefault(status.attempt, []).append(status)
    status_of, others = {}, []
    for attempt, candidates in by_attempt.items():
        only = candidates[0] if len(candidates) == 1 else None
        if only is not None and (
            attempt not in recorded or (only.state in (PENDING, RUNNING) and only.backend_id == recorded[attempt])
        ):
            status_of[attempt] = only
            continue
        try:
            claim = claim_of(attempt_folder(folder, attempt))
        except BackendDown as error:
            unread[attempt] = str(error)
            continue
        claimants = [s for s in candidates if claim is not None and s.backend_id == claim.by]
        if not claimants and claim is not None and not claim.revoked:
            others += candidates  # whoever has the claim is not among these
            continue
        claimants = claimants or sorted(
            candidates, key=lambda s: (s.state in ENDED, s.backend_id != recorded.get(attempt, ""), s.backend_id)
        )
        status_of[attempt] = claimants[0]
        others += [s for s in candidates if s is not claimants[0]]
    return status_of, [s for s in others if s.state not in ENDED]


class Reconciler:
    """Brings one ledger up to date with what its backends show."""

    def __init__(self, ledger: Ledger, folder: Path, router: str) -> None:
        self.ledger, self.folder, self.router = ledger, folder, router
        # attempts that the backend doesn't show: when it was last asked, for how many seconds and passes so far
        self._missing: dict[str, tuple[float, float, int]] = {}
        self._doubles: set[str] = set()  # backend ids that were told to stop since another was the attempt

    def reconcile(
        self, backend: Backend, mine: Sequence[AttemptRow], jobs: Mapping[str, JobRow], now: float
    ) -> Reconciliation:
        """One pass over the attempts of a backend that this router looks after."""
        recorded = {a.id: a.backend_id for a in mine}
        statuses = backend.list()
        unread: dict[str, str] = {}  # attempts whose folder doesn't answer
        status_of, others = choose_status(statuses, self.folder, recorded, unread)
        absent = [(a.id, a.backend_id) for a in mine if a.id not in status_of and a.id not in unread]
        if absent:
            more_statuses, extra = choose_status(backend.status(absent), self.folder, recorded, unread)
            status_of |= {k: v for k, v in more_statuses.items() if k not in status_of}
            others += extra
        rest = [s for s in others if s.attempt not in status_of]
        reconciliation = Reconciliation(statuses=[*status_of.values(), *rest])
        self._missing = {a.id: self._missing[a.id] for a in mine if a.id in self._missing and a.id not in status_of}
        self._doubles &= {status.backend_id for status in (*reconciliation.statuses, *others)} | {*recorded.values()}
        for status in others:
            if status.attempt in recorded:  # those of other routers' attempts are theirs to choose from
                self._doubles.add(status.backend_id)
                self._stop(backend, status, reconciliation)
        for attempt in mine:
            if attempt.id not in unread:
                self._alone(backend, attempt, status_of.get(attempt.id), jobs.get(attempt.job_id), now, reconciliation)
        reconciliation.quarantined += [(attempt, why) for attempt, why in unread.items() if attempt in recorded]
        self._leftovers(backend, statuses, recorded, reconciliation)
        return reconciliation

    def _alone(
        self,
        backend: Backend,
        attempt: AttemptRow,
        current: AttemptStatus | None,
        row: JobRow | None,
        now: float,
        reconciliation: Reconciliation,
    ) -> None:
        """One attempt. Whatever is wrong with it is its own: it is left for the next pass, and the others go on.

        What the ledger says is about all of them, and ends the pass, unless it is about this one's values; so is a
        folder of attempts that is away.
        """
        try:
            if current is None:
                self._unseen(attempt, row, now, reconciliation)
            elif current.state in ENDED:
                self._ended(attempt, current, row, now, reconciliation)
            else:
                self._under_way(backend, attempt, current, row, now, reconciliation)
        except LedgerError as error:
            if not error.values:
                raise
            reconciliation.quarantined.append((attempt.id, str(error)))
        except Exception as error:
            down = isinstance(error, BackendDown)
            if down and not (self.folder / "attempts").is_dir():
                raise
            why = str(error) if down else f"{type(error).__name__}: {error}"
            reconciliation.quarantined.append((attempt.id, why))

    def conclude(self, attempt: AttemptRow, end: AttemptEnd, now: float, status: AttemptStatus | None = None) -> None:
        """Write the end of an attempt, unless another router has."""
        if status is not None:
            began, ended = fallback.span(attempt, status, now)
            end = replace(end, exit_code=status.exit_code, started=began, ended=ended, where=status.where)
        try:
            self.ledger.end(attempt.id, end, now)
        except Conflict:  # another router was faster; what it wrote stands
            if self.ledger.attempt(attempt.id).state in UNDER_WAY:
                raise

    def refuse(self, attempt: AttemptRow, row: JobRow, reason: str, now: float) -> bool:
        """End an attempt that no backend has taken; False where some process has claimed it after all."""
        if not revoke_claim(attempt_folder(self.folder, attempt.id), self.router):
            return False
        self.conclude(attempt, fallback.refused(row, attempt, reason, self.earlier(attempt), now), now)
        return True

    def earlier(self, attempt: AttemptRow) -> list[AttemptRow]:
        """The attempts before this one, since the job was last tried again by hand."""
        events = self.ledger.events(attempt.job_id)
        since = max((e.id for e in events if e.kind == "retried"), default=0)  # their order, whatever clocks said
        since_retry = {e.attempt for e in events if e.kind == "intended" and e.id > since}
        return [a for a in self.ledger.attempts(attempt.job_id) if a.number < attempt.number and a.id in since_retry]

    def _under_way(
        self,
        backend: Backend,
        attempt: AttemptRow,
        status: AttemptStatus,
        row: JobRow | None,
        now: float,
        reconciliation: Reconciliation,
    ) -> None:
        state = RUNNING if status.state == RUNNING else SUBMITTED
        unchanged = (
            attempt.state == state
            and attempt.backend_id == status.backend_id
            and attempt.restarts >= status.restarts
            and (not status.where or attempt.where == status.where)
            and attempt.reason == status.reason
        )
        if not unchanged:
            try:
                self.ledger.observe(attempt.id, status, now)
            except Conflict:  # ended by another router since they were listed
                return
        if attempt.stop:
            self._stop(backend, status, reconciliation)
        elif row is not None and fallback.over_budget(row, attempt):
            try:
                self.ledger.ask_stop(attempt.id, "budget", now)
            except Conflict:  # as above
                return
            self._stop(backend, status, reconciliation)

    def _ended(
        self, attempt: AttemptRow, status: AttemptStatus, row: JobRow | None, now: float, reconciliation: Reconciliation
    ) -> None:
        row = row or self.ledger.job(attempt.job_id)
        folder = attempt_folder(self.folder, attempt.id)
        claim = claim_of(folder)
        if claim is None and not revoke_claim(folder, self.router):
            return  # claimed since: the next pass sees it
        if status.state == CANCELLED and status.backend_id in self._doubles and not attempt.stop:
            # it made its claim just when it was told to stop as a double: nobody meant the attempt
            status = replace(status, state=LOST, reason="stopped by the router, which took it for a double")
        ending = fallback.concluded(row, attempt, status, self.earlier(attempt), now, progress_of(folder))
        self.conclude(attempt, ending, now, status)
        reconciliation.ended.append((attempt.id, ending.state))

    def _unseen(self, attempt: AttemptRow, row: JobRow | None, now: float, reconciliation: Reconciliation) -> None:
        """The backend doesn't know it: never submitted, forgotten after its end, or lost."""
        folder = attempt_folder(self.folder, attempt.id)
        claim, end = claim_of(folder), end_of(folder)
        if end is not None:
            status = AttemptStatus(
                attempt.id, end.by, end.state, end.exit_code, end.started, end.ended, reason=end.reason
            )
            self._ended(attempt, status, row, now, reconciliation)
            return
        row = row or self.ledger.job(attempt.job_id)
        if claim is None and attempt.state == INTENDED:
            if not attempt.stop:
                reconciliation.resubmit.append(attempt)
            elif self.refuse(attempt, row, "stopped before it was submitted", now):
                reconciliation.ended.append((attempt.id, "refused"))
            return
        if claim is not None and claim.revoked:  # the router that gave it up was killed before it said so
            self.conclude(attempt, fallback.refused(row, attempt, claim.by, self.earlier(attempt), now), now)
            reconciliation.ended.append((attempt.id, "refused"))
            return
        last, seconds, passes = self._missing.get(attempt.id, (now, 0.0, 0))
        seconds += min(max(0.0, now - last), SETTLE_S / 2)  # of one pass: a clock that is set is no time passed
        self._missing[attempt.id] = (now, seconds, passes + 1)
        if seconds < SETTLE_S or passes + 1 < MISSED_PASSES:
            return
        lost = AttemptStatus(
            attempt.id,
            attempt.backend_id,
            LOST,
            reason="its backend no longer knows it, and it left no end",
            started=None if claim is None else claim.at,
        )
        self._ended(attempt, lost, row, now, reconciliation)

    def _leftovers(
        self, backend: Backend, statuses: Sequence[AttemptStatus], mine: Collection[str], reconciliation: Reconciliation
    ) -> None:
        """Stop what runs on the backend though the ledger has ended it."""
        for status in statuses:
            if status.attempt in mine or status.state in ENDED:
                continue
            try:
                state = self.ledger.attempt(status.attempt).state
            except Conflict:
                reconciliation.unknown.append(status.attempt)
                continue
            except BadRow as error:  # whether it is to run can't be told: it is left alone
                reconciliation.quarantined.append((status.attempt, str(error)))
                continue
            if state not in UNDER_WAY:
                self._stop(backend, status, reconciliation)

    @staticmethod
    def _stop(backend: Backend, status: AttemptStatus, reconciliation: Reconciliation) -> None:
        """Tell one to stop. One that can't be told is its own trouble: it is told again in the next pass."""
        try:
            backend.cancel(status.backend_id)
        except (BackendDown, BackendRefused) as error:
            reconciliation.quarantined.append((status.attempt, f"{status.backend_id} can't be stopped: {error}"))
        else:
            reconciliation.stopped.append(status.backend_id)
