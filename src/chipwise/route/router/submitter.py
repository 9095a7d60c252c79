"""Submits intended attempts to their backends. A router may be killed at any line of this.

The attempt is in the ledger before its launch file is written, and that is there before the backend hears of it. Killed
before the submission: the next router finds the backend without it, and submits. Killed after: the next one finds it on
the backend, and takes it as it is. Whoever submits it twice all the same finds it claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chipwise.route.backend import Backend, BackendRefused, Launch
from chipwise.route.backends.named import attempt_folder
from chipwise.route.launch import REVOKED, environment, write_launch
from chipwise.route.ledger import Conflict, Ledger
from chipwise.route.ledger.records import UNDER_WAY, AttemptRow, JobRow
from chipwise.route.pool import Pool
from chipwise.route.router.fallback import time_limit
from chipwise.route.router.health import Health
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


def submitted(backend: Backend, launch: Launch) -> str:
    """Write what is to run, then tell the backend; its id of it."""
    write_launch(launch)
    return backend.submit(launch)


class Submitter:
    """Submits attempts."""

    def __init__(self, ledger: Ledger, health: Health, clock: Callable[[], float]) -> None:
        self.ledger, self.health, self.clock = ledger, health, clock

    def submit(self, backend: Backend, own: Reconciler, attempt: AttemptRow, row: JobRow, pool: Pool) -> str:
        """Submit one attempt; what came of it: "submitted", "refused", "down" or "gone"."""
        name = backend.name
        try:
            launch = launch_of(row, attempt, pool, own.folder)
            backend_id = self.health.ask(name, self.clock(), lambda: submitted(backend, launch))
        except BackendRefused as error:
            refused = str(error)
            revoked = self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, refused, self.clock()))
            return "refused" if revoked else "down"
        if backend_id is None:
            return "down"
        if backend_id.startswith(REVOKED):  # another router has given it up, and says so in a moment
            return "gone"
        try:
            self.ledger.mark_submitted(attempt.id, backend_id, self.clock())
        except Conflict:
            if self.ledger.attempt(attempt.id).state in UNDER_WAY:
                return "gone"  # another router has seen it run there already
            self.health.ask(name, self.clock(), lambda: backend.cancel(backend_id))  # ended meanwhile
            return "gone"
        return "submitted"

    def give_up(self, name: str, own: Reconciler, attempt: AttemptRow, row: JobRow) -> bool:
        """Let a job whose backend has not answered for long go elsewhere; True if that is safe and was done."""
        if self.clock() - attempt.intended < DOWN_S:
            return False
        error = self.health.rows[name].error if name in self.health.rows else ""
        why = f"backend {name} does not answer: {error}"
        return bool(self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, why, self.clock())))
