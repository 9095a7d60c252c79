"""Deadlines for calls as a whole, whatever they wait for: a name, a connection, an answer that trickles in."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_time(call: Callable[[], T], seconds: float, give_up: Callable[[], None] = lambda: None) -> T:
    """What a call gives or raises; a `TimeoutError` after so many seconds.

    Time-outs of sockets bound each wait, not their sum. The call runs in a thread; one that is late is left to itself,
    and `give_up` is to close what it waits for.
    """
    outcome: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # raised again below, in the thread that asked
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not outcome:
        give_up()
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    return outcome[0]


def run_in_time(
    argv: Sequence[str], environment: Mapping[str, str], text: bytes, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that reads `text`; a `TimeoutError` after so many seconds, when all that it started is killed."""
    with subprocess.Popen(
        list(argv),
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, to be killed as a whole
    ) as process:
        try:
            out, err = process.communicate(text, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        finally:
            if process.returncode is None:
                kill_group(process)
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its own group, and the others of the group, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
