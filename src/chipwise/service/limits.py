"""Limits on what clients may do to the service: how many, how long, how large, how often they may fail."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits; the defaults serve hundreds of people and hold off one who means harm."""

    body_bytes: int = 8_000_000  # a job file may have 5 MB, and its workloads are in it
    connections: int = 128  # in all
    connections_each: int = 16  # of one user
    head_s: float = 10.0  # for the first line and the headers of a request
    body_s: float = 30.0  # for its body
    send_s: float = 30.0  # for the answer to be taken
    idle_s: float = 30.0  # between two requests of a connection
    failures: int = 10  # requests of one user without a role in `failures_s`; more are answered with 429
    failures_s: float = 60.0
    refusals: int = 100  # commands of one user that its role forbids, each an entry of the audit log, in `failures_s`


class Failures:
    """Counts what was refused by who sends it, in a window of time; keeps the latest few thousand names."""

    KEPT = 4096

    def __init__(self, most: int, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._window_s, self._clock, self._lock = most, window_s, clock, threading.Lock()
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait_s(self, who: str) -> float:
        """Seconds for which this one is not listened to; 0 where it is."""
        with self._lock:
            since, count = self._counts.get(who, (0.0, 0))
            left = since + self._window_s - self._clock()
            return left if count >= self._most and left > 0 else 0.0

    def note(self, who: str) -> None:
        """One more."""
        with self._lock:
            now = self._clock()
            since, count = self._counts.pop(who, (now, 0))
            if now - since > self._window_s:
                since, count = now, 0
            self._counts[who] = (since, count + 1)
            if len(self._counts) > self.KEPT:
                self._counts.popitem(last=False)


class Connections:
    """Counts connections, in all and by who has them."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, threading.Lock()
        self._count: dict[str, int] = {}

    @contextmanager
    def hold(self, who: str) -> Iterator[bool]:
        """Whether one more may be; it counts until the end of the block."""
        with self._lock:
            mine = self._count.get(who, 0)
            free = mine < self._limits.connections_each and sum(self._count.values()) < self._limits.connections
            if free:
                self._count[who] = mine + 1
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._count[who] -= 1
                    if not self._count[who]:
                        del self._count[who]


class DeadlineReader(io.RawIOBase):
    """Reads a socket until a moment: a client that sends a byte now and then is cut off as one that sends none."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until = float("inf")

    def allow(self, seconds: float) -> None:
        """Give so much time from now."""
        self.until = time.monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read what there is, or raise TimeoutError."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
