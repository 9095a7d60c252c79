"""Exponential backoff for backends: one that is down, slow or answers nonsense is left alone, longer each time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from chipwise.route.backend import Backend, BackendDown, BackendRefused
from chipwise.route.ledger import Ledger
from chipwise.route.ledger.records import BackendRow

FIRST_S, LONGEST_S = 1.0, 120.0  # until the next try, doubled each time: one that restarts is found within minutes
JITTER = 0.25  # of the wait, either way: routers don't knock all at once
T = TypeVar("T")


class Guarded:
    """A backend whose every failure but a refusal is `BackendDown`: one that answers nonsense must not stop others."""

    def __init__(self, name: str, backend: Backend) -> None:
        self.backend, self.name = backend, name
        self.queues = bool(getattr(backend, "queues", False))  # it has a queue of its own, and starts what waits there

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.backend, name)

        def guarded(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except (BackendDown, BackendRefused):
                raise
            except Exception as error:
                raise BackendDown(f"{type(error).__name__}: {error}") from error

        return guarded


class Health:
    """How the backends answer, kept in the ledger so that every router and `router status` know."""

    def __init__(self, ledger: Ledger, rng: random.Random) -> None:
        self.ledger, self.rng = ledger, rng
        self.rows: dict[str, BackendRow] = {}
        self.errors: dict[str, str] = {}  # of this tick
        self.asking: Callable[[], None] = lambda: None  # told before and after each call to a backend

    def refresh(self) -> None:
        """Read how backends have answered of late."""
        self.rows = {row.name: row for row in self.ledger.backends()}
        self.errors = {}

    def resting(self, name: str, now: float) -> bool:
        """Whether a backend is to be left alone still; not by the word of a clock that was wrong."""
        row = self.rows.get(name)
        return name in self.errors or (row is not None and not row.ok and now < row.next_try <= now + 2 * LONGEST_S)

    def ask(self, name: str, now: float, call: Callable[[], T]) -> T | None:
        """What a call to a backend gives; None, noted, where it doesn't answer. A refusal is an answer: raised."""
        self.asking()
        try:
            return call()
        except BackendDown as error:
            self.down(name, str(error), now)
        finally:
            self.asking()
        return None

    def well(self, name: str, now: float) -> None:
        """A backend has answered all that this tick asked of it."""
        row = self.rows.get(name)
        if row is None or not row.ok:
            self.rows[name] = self.ledger.backend_health(name, True, "", 0.0, now)

    def down(self, name: str, error: str, now: float) -> None:
        """A backend has not answered."""
        if name in self.errors:
            return
        self.errors[name] = error
        row = self.rows.get(name)
        failures = 1 + (row.failures if row is not None and not row.ok else 0)
        self.rows[name] = self.ledger.backend_health(name, False, error, now + self.pause(failures), now)

    def pause(self, failures: int) -> float:
        """Seconds to leave a backend alone after so many failures in a row."""
        longest = min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 30))
        return float(longest * (1 + JITTER * (2 * self.rng.random() - 1)))
