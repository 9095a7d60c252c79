"""A worker process that reports over a pipe: started, listened to, and killed with everything it started.

Both ends are here. The parent starts ``python -m MODULE ARGUMENTS... PIPE PARENT`` in a session of its own, its output
in a log file, and reads messages, a line of JSON each. The child calls `connect` with the last two arguments: it
then dies with its parent (PR_SET_PDEATHSIG), and has a function that sends messages.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

TICK_SECONDS = 0.05  # the longest wait between two looks at a worker
_PR_SET_PDEATHSIG = 1
_LOG_BYTES = 20_000

Message = dict[str, Any]
Send = Callable[..., None]


def with_package(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a worker imports this very chipwise, wherever it starts."""
    package = str(Path(__file__).resolve().parents[2])
    path = [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), package]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


class Worker:
    """The parent's end of a worker process; at the end of the `with` block nothing of it is left running."""

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log, self._open = log, True
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        try:
            with log.open("wb") as out:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, *arguments, str(writer), str(os.getpid())],
                    env=with_package(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writer,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # also what a finished worker left running
        self._process.wait()
        os.close(self._reader)

    @property
    def group(self) -> int:
        """The process group of the worker and of what it started."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, negative for the signal that ended it; None while it runs."""
        return self._process.returncode

    @property
    def closed(self) -> bool:
        """Whether the worker has closed its pipe: it has sent all it ever will."""
        return not self._open

    def messages(self) -> Iterator[Message | None]:
        """Each message as it comes, and None whenever a tick passed without one; ends with the process."""
        buffer = b""
        while self._process.poll() is None:
            if not self._open:
                time.sleep(TICK_SECONDS)
            elif select.select([self._reader], [], [], TICK_SECONDS)[0]:
                *lines, buffer = (buffer + self._read()).split(b"\n")
                yield from map(json.loads, lines)
            yield None
        while self._open and select.select([self._reader], [], [], 0)[0]:
            *lines, buffer = (buffer + self._read()).split(b"\n")
            yield from map(json.loads, lines)

    def _read(self) -> bytes:
        try:
            data = os.read(self._reader, 65536)
        except BlockingIOError:
            return b""
        self._open = bool(data)
        return data

    def last_lines(self, count: int, noise: Sequence[str] = ()) -> str:
        """The last lines that the worker printed, without empty ones and those that hold a word of `noise`."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _LOG_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        kept = [line.rstrip() for line in lines if line.strip() and not any(word in line for word in noise)]
        return "\n".join(kept[-count:])


def signal_name(number: int) -> str:
    """A signal as people know it.

    >>> signal_name(9), signal_name(1000)
    ('SIGKILL', 'signal 1000')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def connect(pipe: str, parent: str) -> Send:
    """The child's end: from now on it dies when its parent does; returns the function that sends a message."""
    _end_with(int(parent))
    handle = int(pipe)

    def send(**message: Any) -> None:
        os.write(handle, json.dumps(message).encode() + b"\n")

    return send


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before that took hold
        os._exit(1)


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
