"""Ends a router that makes no scheduling passes: one that hangs holds a name and a lock, and looks alive to nobody.

Whatever it hangs in (a disk, a database, a defect), its attempts are another's after a lease. Ended, it is started
again by whatever started it, and the ledger and the backends tell the next one all that it knew.
"""

from __future__ import annotations

import faulthandler
import os
import select
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

LEASES = 3  # without a pass
LEAST_S = 90.0  # the longest call to a backend takes 60 s, however short the lease
MARGIN_S = 30.0  # beyond the time that the pools file gives a backend for one call
STEP_S = 1.0  # between two looks; it counts its own looks, so that a process that was stopped is not to blame
TELL_S = 2.0  # for what it has to say
STDERR = 2
EXIT = 75  # EX_TEMPFAIL of sysexits.h: try again


class Watchdog:
    """Watches over one router, in a thread of its own, from `with` until its end."""

    def __init__(
        self, limit_s: float, name: str, end: Callable[[int], None] = os._exit, step_s: float = STEP_S
    ) -> None:
        self.limit_s, self.name, self._end, self._step_s = limit_s, name, end, step_s
        self._idle_s, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    @classmethod
    def of_lease(cls, lease_s: float, name: str, call_s: float = 0.0) -> Watchdog:
        """A watchdog that waits for three leases, and longer than any call to a backend may take."""
        return cls(max(LEAST_S, LEASES * lease_s, call_s + MARGIN_S), name)

    def passed(self) -> None:
        """A scheduling pass is done, or a call to a backend: those have ends of their own, and a slow one must not
        end a router that serves others."""
        self._idle_s = 0.0

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(self._step_s):
            now = time.monotonic()
            self._idle_s += min(now - last, 2 * self._step_s)
            last = now
            if self._idle_s > self.limit_s:
                line = (
                    f"chipwise: router {self.name} has made no scheduling pass for {self._idle_s:.0f} s, three leases "
                    "and more, and ends; what it hangs in follows. Start it again: nothing is lost"
                )
                _tell(line + "\n")
                self._end(EXIT)
                return


def _tell(line: str) -> None:
    """Write a line and where every thread is to stderr; in two seconds at most, since nobody may read it any more."""
    until = time.monotonic() + TELL_S
    with suppress(OSError, ValueError), tempfile.TemporaryFile() as traces:
        faulthandler.dump_traceback(file=traces, all_threads=True)
        traces.seek(0)
        data = line.encode("utf-8", "backslashreplace") + traces.read()
        while data and select.select([], [STDERR], [], max(0.0, until - time.monotonic()))[1]:
            data = data[os.write(STDERR, data[: select.PIPE_BUF]) :]
