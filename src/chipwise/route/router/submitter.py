"""Intended attempts handed over to their engines. A router may be killed at any line of this.

The attempt is in the ledger before its launch file is written, and that is there before the engine hears of it. Killed
before the submission: the next router finds the engine without it, and submits. Killed after: the next one finds it on
the engine, and takes it as it is. Whoever submits it twice all the same finds it claimed.
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

DOWN_S = 120.0  # that an attempt waits for an engine that does not answer, before its job may go elsewhere


def launch_of(row: JobRow, attempt: AttemptRow, pool: Pool, folder: Path) -> Launch:
    """An attempt as engines take it."""
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


def submitted(engine: Backend, launch: Launch) -> str:
    """Write what is to run, then tell the engine; its id of it."""
    write_launch(launch)
    return engine.submit(launch)


class Submitter:
    """Hands attempts over."""

    def __init__(self, ledger: Ledger, health: Health, clock: Callable[[], float]) -> None:
        self.ledger, self.health, self.clock = ledger, health, clock

    def over(self, engine: Backend, own: Reconciler, attempt: AttemptRow, row: JobRow, pool: Pool) -> str:
        """Hand one attempt over; what came of it: "handed over", "refused", "down" or "gone"."""
        name = engine.name
        try:
            launch = launch_of(row, attempt, pool, own.folder)
            engine_id = self.health.ask(name, self.clock(), lambda: submitted(engine, launch))
        except BackendRefused as error:
            refused = str(error)
            buried = self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, refused, self.clock()))
            return "refused" if buried else "down"
        if engine_id is None:
            return "down"
        if engine_id.startswith(REVOKED):  # another router has given it up, and says so in a moment
            return "gone"
        try:
            self.ledger.handed_over(attempt.id, engine_id, self.clock())
        except Conflict:
            if self.ledger.attempt(attempt.id).state in UNDER_WAY:
                return "gone"  # another router has seen it run there already
            self.health.ask(name, self.clock(), lambda: engine.cancel(engine_id))  # ended meanwhile
            return "gone"
        return "handed over"

    def give_up(self, name: str, own: Reconciler, attempt: AttemptRow, row: JobRow) -> bool:
        """Let a job whose engine has not answered for long go elsewhere; True if that is safe and was done."""
        if self.clock() - attempt.intended < DOWN_S:
            return False
        error = self.health.rows[name].error if name in self.health.rows else ""
        why = f"engine {name} does not answer: {error}"
        return bool(self.health.ask(name, self.clock(), lambda: own.refuse(attempt, row, why, self.clock())))
