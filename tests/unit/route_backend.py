"""A backend that does as it is told, for what real ones do only on bad days."""

import itertools
from dataclasses import replace

from chipwise.route.backend import CANCELLED, PENDING, RUNNING, AttemptStatus, BackendDown, Capacity


class Scripted:
    """Jobs are rows that a test may change; `fails` holds what the next calls of a method raise."""

    def __init__(self, name="scripted", counts=None, queues=False):
        self.name, self.counts, self.queues = name, counts or {}, queues
        self.jobs: dict[str, AttemptStatus] = {}
        self.launches = {}
        self.fails: dict[str, Exception | None] = {}
        self.calls: list[tuple[str, object]] = []
        self.starts: dict[str, float] = {}  # predicted, by pool
        self.state = RUNNING  # of new jobs
        self.foreign: dict[str, int] = {}  # chips that others hold
        self._ids = itertools.count(1)

    def _said(self, method, what=None):
        self.calls.append((method, what))
        if self.fails.get(method) is not None:
            raise self.fails[method]

    def down(self, words="it does not answer"):
        self.fails = dict.fromkeys(("submit", "list", "status", "cancel", "capacity"), BackendDown(words))

    def up(self):
        self.fails = {}

    def render(self, launch):
        return launch.attempt

    def submit(self, launch):
        self._said("submit", launch.attempt)
        backend_id = str(next(self._ids))
        self.launches[backend_id] = launch
        self.jobs[backend_id] = AttemptStatus(launch.attempt, backend_id, self.state)
        return backend_id

    def list(self):
        self._said("list")
        return list(self.jobs.values())

    def status(self, attempts):
        self._said("status", attempts)
        return []

    def cancel(self, backend_id):
        self._said("cancel", backend_id)
        if self.jobs[backend_id].state in (PENDING, RUNNING):
            self.set(backend_id, state=CANCELLED)

    def capacity(self, pools):
        self._said("capacity")
        held = dict.fromkeys((p.name for p in pools), 0)
        for backend_id, seen in self.jobs.items():
            if seen.state == RUNNING:
                held[self.launches[backend_id].pool.name] += self.launches[backend_id].option.chips
        return {p.name: Capacity(p.count, max(0, p.count - held[p.name] - self.foreign.get(p.name, 0))) for p in pools}

    def predicted_start(self, launch):
        self._said("predicted_start", launch.pool.name)
        return self.starts.get(launch.pool.name)

    def set(self, backend_id, **more):
        """Change what the backend shows of a job."""
        self.jobs[backend_id] = replace(self.jobs[backend_id], **more)
