"""What the backends show, brought together with what the ledger holds. Nothing here submits.

Of several jobs of a backend that carry the same attempt, the one with the claim is the attempt; the others have run
nothing and never will. An attempt that the ledger ends without the word of its backend is buried first: the claim is
taken in its place, so that a router which was only slow can't start it afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.route.backend import CANCELLED, ENDED, LOST, PENDING, RUNNING, AttemptStatus, Backend, BackendDown
from chipwise.route.backends.named import attempt_folder
from chipwise.route.launch import claim_of, end_of, progress_of, revoke_claim
from chipwise.route.ledger import Conflict, Ledger
from chipwise.route.ledger.records import INTENDED, SUBMITTED, UNDER_WAY, AttemptEnd, AttemptRow, JobRow
from chipwise.route.router import fallback

SETTLE_S = 15.0  # for which a backend may not list a job that it has; Slurm's own caches last seconds
LOOKS = 3  # in a row at the least without it, before it counts as lost: a backend that restarts lists a part at first


@dataclass(slots=True)
class Reconciliation:
    """What a pass over a backend's attempts has found."""

    ended: list[tuple[str, str]] = field(default_factory=list)  # attempt, end
    resubmit: list[AttemptRow] = field(default_factory=list)  # intended, and not on the backend
    stopped: list[str] = field(default_factory=list)  # backend ids that were told to stop
    unknown: list[str] = field(default_factory=list)  # attempts with our mark that the ledger doesn't know
    seen: list[AttemptStatus] = field(default_factory=list)  # one for each attempt, the right one
    error: str = ""  # the first that was said when something was to be stopped


def chosen(
    shown: Sequence[AttemptStatus], folder: Path, recorded: Mapping[str, str]
) -> tuple[dict[str, AttemptStatus], list[AttemptStatus]]:
    """One `AttemptStatus` for each attempt, and those that are to be stopped because another is the attempt.

    `recorded`: the backend's ids, as the ledger holds them, of the attempts that are asked for.
    """
    by_attempt: dict[str, list[AttemptStatus]] = {}
    for seen in shown:
        by_attempt.setdefault(seen.attempt, []).append(seen)
    right, others = {}, []
    for attempt, candidates in by_attempt.items():
        only = candidates[0] if len(candidates) == 1 else None
        if only is not None and (
            attempt not in recorded or (only.state in (PENDING, RUNNING) and only.backend_id == recorded[attempt])
        ):
            right[attempt] = only
            continue
        claim = claim_of(attempt_folder(folder, attempt))
        mine = [s for s in candidates if claim is not None and s.backend_id == claim.by]
        if not mine and claim is not None and not claim.revoked:
            others += candidates  # whoever has the claim is not among these
            continue
        mine = mine or sorted(
            candidates, key=lambda s: (s.state in ENDED, s.backend_id != recorded.get(attempt, ""), s.backend_id)
        )
        right[attempt] = mine[0]
        others += [s for s in candidates if s is not mine[0]]
    return right, [s for s in others if s.state not in ENDED]


class Reconciler:
    """Brings one ledger up to date with what its backends show."""

    def __init__(self, ledger: Ledger, folder: Path, router: str) -> None:
        self.ledger, self.folder, self.router = ledger, folder, router
        self._missing: dict[str, tuple[float, int]] = {}  # attempts that the backend doesn't show: since when, looks
        self._doubles: set[str] = set()  # backend ids that were told to stop since another was the attempt

    def backend(
        self, backend: Backend, mine: Sequence[AttemptRow], jobs: Mapping[str, JobRow], now: float
    ) -> Reconciliation:
        """One pass over the attempts of a backend that this router looks after."""
        recorded = {a.id: a.backend_id for a in mine}
        shown = backend.list()
        right, others = chosen(shown, self.folder, recorded)
        absent = [(a.id, a.backend_id) for a in mine if a.id not in right]
        if absent:
            more, extra = chosen(backend.status(absent), self.folder, recorded)
            right |= {k: v for k, v in more.items() if k not in right}
            others += extra
        found = Reconciliation(seen=[*right.values(), *(s for s in others if s.attempt not in right)])
        self._missing = {a.id: self._missing[a.id] for a in mine if a.id in self._missing and a.id not in right}
        for seen in others:
            if seen.attempt in recorded:  # those of other routers' attempts are theirs to choose from
                self._doubles.add(seen.backend_id)
                self._stop(backend, seen, found)
        for attempt in mine:
            seen_now = right.get(attempt.id)
            if seen_now is None:
                self._unseen(attempt, jobs.get(attempt.job_id), now, found)
            elif seen_now.state in ENDED:
                self._ended(attempt, seen_now, jobs.get(attempt.job_id), now, found)
            else:
                self._under_way(backend, attempt, seen_now, jobs.get(attempt.job_id), now, found)
        self._leftovers(backend, shown, recorded, found)
        return found

    def conclude(self, attempt: AttemptRow, ending: AttemptEnd, now: float, seen: AttemptStatus | None = None) -> None:
        """Write the end of an attempt, unless another router has."""
        if seen is not None:
            ending = replace(ending, exit_code=seen.exit_code, started=seen.started, ended=seen.ended)
        try:
            self.ledger.end(attempt.id, ending, now)
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
        known = {e.attempt for e in events if e.kind == "intended" and e.id > since}
        return [a for a in self.ledger.attempts(attempt.job_id) if a.number < attempt.number and a.id in known]

    def _under_way(
        self,
        backend: Backend,
        attempt: AttemptRow,
        seen: AttemptStatus,
        row: JobRow | None,
        now: float,
        found: Reconciliation,
    ) -> None:
        state = RUNNING if seen.state == RUNNING else SUBMITTED
        same = (
            attempt.state == state
            and attempt.backend_id == seen.backend_id
            and attempt.restarts >= seen.restarts
            and (not seen.where or attempt.where == seen.where)
            and attempt.reason == seen.reason
        )
        if not same:
            try:
                self.ledger.seen(attempt.id, seen, now)
            except Conflict:  # ended by another router since we looked
                return
        if attempt.stop:
            self._stop(backend, seen, found)
        elif row is not None and row.spent + fallback.cost(attempt, attempt.started, now) > row.job.budget:
            try:
                self.ledger.ask_stop(attempt.id, "preempt", now)
            except Conflict:  # as above
                return
            self._stop(backend, seen, found)

    def _ended(
        self, attempt: AttemptRow, seen: AttemptStatus, row: JobRow | None, now: float, found: Reconciliation
    ) -> None:
        row = row or self.ledger.job(attempt.job_id)
        folder = attempt_folder(self.folder, attempt.id)
        claim = claim_of(folder)
        if claim is None and not revoke_claim(folder, self.router):
            return  # claimed since: look again
        if seen.state == CANCELLED and seen.backend_id in self._doubles and not attempt.stop:
            # it made its claim just when it was told to stop as a double: nobody meant the attempt
            seen = replace(seen, state=LOST, reason="stopped by the router, which took it for a double")
        ending = fallback.concluded(row, attempt, seen, self.earlier(attempt), now, progress_of(folder))
        self.conclude(attempt, ending, now, seen)
        found.ended.append((attempt.id, ending.state))

    def _unseen(self, attempt: AttemptRow, row: JobRow | None, now: float, found: Reconciliation) -> None:
        """The backend doesn't know it: never submitted, forgotten after its end, or lost."""
        folder = attempt_folder(self.folder, attempt.id)
        claim, end = claim_of(folder), end_of(folder)
        if end is not None:
            seen = AttemptStatus(
                attempt.id, end.by, end.state, end.exit_code, end.started, end.ended, reason=end.reason
            )
            self._ended(attempt, seen, row, now, found)
            return
        row = row or self.ledger.job(attempt.job_id)
        if claim is None and attempt.state == INTENDED:
            if not attempt.stop:
                found.resubmit.append(attempt)
            elif self.refuse(attempt, row, "stopped before it was submitted", now):
                found.ended.append((attempt.id, "refused"))
            return
        if claim is not None and claim.revoked:  # the router that gave it up was killed before it said so
            self.conclude(attempt, fallback.refused(row, attempt, claim.by, self.earlier(attempt), now), now)
            found.ended.append((attempt.id, "refused"))
            return
        first, looks = self._missing.get(attempt.id, (now, 0))
        first = min(first, now)  # a clock that was set back
        self._missing[attempt.id] = (first, looks + 1)
        if now - first < SETTLE_S or looks + 1 < LOOKS:
            return
        lost = AttemptStatus(
            attempt.id,
            attempt.backend_id,
            LOST,
            reason="its backend no longer knows it, and it left no end",
            started=None if claim is None else claim.at,
        )
        self._ended(attempt, lost, row, now, found)

    def _leftovers(
        self, backend: Backend, shown: Sequence[AttemptStatus], mine: Collection[str], found: Reconciliation
    ) -> None:
        """Stop what runs on the backend though the ledger has ended it."""
        for seen in shown:
            if seen.attempt in mine or seen.state in ENDED:
                continue
            try:
                state = self.ledger.attempt(seen.attempt).state
            except Conflict:
                found.unknown.append(seen.attempt)
                continue
            if state not in UNDER_WAY:
                self._stop(backend, seen, found)

    @staticmethod
    def _stop(backend: Backend, seen: AttemptStatus, found: Reconciliation) -> None:
        """Tell one to stop. One that can't be told doesn't keep the others from being looked at."""
        try:
            backend.cancel(seen.backend_id)
        except BackendDown as error:
            found.error = found.error or f"{seen.backend_id} can't be stopped: {error}"
        else:
            found.stopped.append(seen.backend_id)
