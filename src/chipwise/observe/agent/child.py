"""A program of its own that answers one line with one line, within a time limit: for libraries that abort or hang."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence

from chipwise.bench.reading import Unreadable

LONGEST_LINE = 1 << 20
_ASK = b"\n"


class Child:
    """The program, started when it is first asked and again after it died, but not more often than it is worth."""

    def __init__(self, argv: Sequence[str], limit_s: float, again_s: float) -> None:
        """`limit_s` for an answer, its start included; `again_s` between two starts."""
        self._argv, self._limit_s, self._again_s = list(argv), limit_s, again_s
        self._process: subprocess.Popen[bytes] | None = None
        self._began = float("-inf")
        self._last = ""  # how it ended

    def ask(self) -> bytes:
        """Its next line; `Unreadable` where it has died, takes too long, or died too lately to be started again."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        deadline = time.monotonic() + self._limit_s
        try:
            process.stdin.write(_ASK)
            process.stdin.flush()
        except OSError:
            raise Unreadable(self._ended()) from None
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise Unreadable(self._given_up(f"no answer within {self._limit_s:g} s"))
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                raise Unreadable(self._ended())
            line += piece
            if len(line) > LONGEST_LINE:
                raise Unreadable(self._given_up("an answer without an end"))
        return line

    def close(self) -> None:
        """End it with all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        if time.monotonic() - self._began < self._again_s:
            wait = self._again_s - (time.monotonic() - self._began)
            raise Unreadable(f"{self._last or 'it died'}; it is tried again in {wait:.0f} s")
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        return self._process

    def _given_up(self, why: str) -> str:
        self.close()
        self._last = why
        return why

    def _ended(self) -> str:
        status = self._process.wait() if self._process is not None else 0
        return self._given_up(f"it ended by signal {-status}" if status < 0 else f"it ended with status {status}")
