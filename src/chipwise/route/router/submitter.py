"""Submits intended attempts to their backends. A router may be killed at any line of this.

The attempt is in the ledger before its launch file is written, and that is there before the backend hears of it. Killed
before the submission: the next router finds the backend without it, and submits. Killed after: the next one finds it on
the backend, and takes it as it is. Whoever submits it twice all the same finds it claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chipwise.route.backend import Backend, BackendDown, BackendRefused, Launch, Together
from chipwise.route.backends.named import attempt_folder
from chipwise.route.launch import REVOKED, environment, planned_launch, write_launch
from chipwise.route.ledger import Conflict, Ledger
from chipwise.route.ledger.records import UNDER_WAY, AttemptRow, JobRow
from chipwise.route.pool import Pool
from chipwise.route.router.fallback import time_limit
from chipwise.route.router.health import Guarded, Health
from chipwise.route.router.reconcile import Reconciler

DOWN_S = 120.0  # that an attempt waits for a backend that does not answer, before its job may go elsewhere


def launch_of(row: JobRow, attempt: AttemptRow, pool: Pool, folder: Path) -> Launch:
    """An attempt as backends take it."""
    variant = row.job.variant(attempt.variant)
    own = attempt_folder(folder, attempt.id)
    variables = environment(row.job, variant, pool, attempt.option, attempt.id, attempt.number, own)
    return Launch(
        attempt.id,
        attempt.number,
        row.id,
        row.job,
        variant,
        pool,
        attempt.option,
        own,
        variables,
        time_limit(row, attempt, pool.max_seconds),
    )


@dataclass(frozen=True, slots=True)
class Start:
    """An attempt that is to be submitted, with its job and pool."""

    attempt: AttemptRow
    row: JobRow
    pool: Pool


Answer = str | BackendDown | BackendRefused | None  # the backend's id of an attempt, or what is wrong; None: no answer


class Submitter:
    """Submits attempts."""

    def __init__(self, ledger: Ledger, health: Health, clock: Callable[[], float]) -> None:
        self.ledger, self.health, self.clock = ledger, health, clock

    def submit(self, backend: Guarded, own: Reconciler, starts: Sequence[Start]) -> list[str | Exception]:
        """Submit attempts; what came of each: "submitted", "refused", "down" or "gone", or what is wrong with it alone.

        Several go to a backend at once where it need not wait for each.
        """
        launches: dict[str, Launch | Exception] = self._launches(own, starts)
        ready = [launch for launch in launches.values() if isinstance(launch, Launch)]
        answers = self._ask(backend, ready) if ready else {}
        outcomes: list[str | Exception] = []
        for start in starts:
            launch = launches[start.attempt.id]
            answer = answers[start.attempt.id] if isinstance(launch, Launch) else launch
            if isinstance(answer, BackendDown):
                self.health.down(backend.name, str(answer), self.clock())
                answer = None
            if isinstance(answer, Exception) and not isinstance(answer, BackendRefused):
                outcomes.append(answer)
            else:
                outcomes.append(self._settle(backend, own, start.attempt, start.row, answer))
        return outcomes

    def _launches(self, own: Reconciler, starts: Sequence[Start]) -> dict[str, Launch | Exception]:
        """Write down what is to run: its digest in the ledger, then the launch files."""
        launches: dict[str, Launch | Exception] = {}
        files: dict[str, bytes] = {}
        digests: dict[str, str] = {}
        for start in starts:
            attempt = start.attempt
            try:
                launch = launch_of(start.row, attempt, start.pool, own.folder)
                files[attempt.id], digest = planned_launch(launch, attempt.digest)
                launches[attempt.id] = replace(launch, digest=digest)
            except Exception as error:
                launches[attempt.id] = error
                continue
            if digest != attempt.digest:
                digests[attempt.id] = digest
        self.ledger.record_digests(digests)
        for name, data in files.items():
            try:
                write_launch(attempt_folder(own.folder, name), data)
            except Exception as error:
                launches[name] = error
        return launches

    def _ask(self, backend: Guarded, launches: Sequence[Launch]) -> dict[str, Answer]:
        """What a backend answers to launches."""
        if isinstance(backend.backend, Together):
            together = self.health.ask(backend.name, self.clock(), lambda: backend.submit_all(launches))
            answers: Sequence[Answer] = together or [None] * len(launches)
            return {launch.attempt: answer for launch, answer in zip(launches, answers, strict=True)}
        answers_one: dict[str, Answer] = {}
        for launch in launches:
            try:
                answers_one[launch.attempt] = self.health.ask(
                    backend.name,
                    self.clock(),
                    lambda one=launch: backend.submit(one),  # type: ignore[misc]
                )
            except BackendRefused as error:
                answers_one[launch.attempt] = error
        return answers_one

    def _settle(
        self, backend: Backend, own: Reconciler, attempt: AttemptRow, row: JobRow, answer: str | BackendRefused | None
    ) -> str:
        """Write down what a backend has answered to a submission; nothing, where it has not."""
        name = backend.name
        if isinstance(answer, BackendRefused):
            refused = str(answer)
            revoked = self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, refused, self.clock()))
            return "refused" if revoked else "down"
        if answer is None:
            return "down"
        if answer.startswith(REVOKED):  # another router has given it up, and says so in a moment
            return "gone"
        try:
            self.ledger.mark_submitted(attempt.id, answer, self.clock())
        except Conflict:
            if self.ledger.attempt(attempt.id).state in UNDER_WAY:
                return "gone"  # another router has seen it run there already
            self.health.ask(name, self.clock(), lambda: backend.cancel(answer))  # ended meanwhile
            return "gone"
        return "submitted"

    def give_up(self, name: str, own: Reconciler, attempt: AttemptRow, row: JobRow) -> bool:
        """Let a job whose backend has not answered for long go elsewhere; True if that is safe and was done."""
        if self.clock() - attempt.intended < DOWN_S:
            return False
        error = self.health.rows[name].error if name in self.health.rows else ""
        why = f"backend {name} does not answer: {error}"
        return bool(self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, why, self.clock())))
