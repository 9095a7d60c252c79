"""Processes of this machine, so named that none is taken for another: by pid, start time and boot."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from functools import cache
from pathlib import Path

PROC = Path("/proc")


@cache
def host() -> str:
    """This machine."""
    return socket.gethostname()


@cache
def boot() -> str:
    """What tells this boot from others."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


@cache
def space() -> str:
    """The name space in which this process sees others by their pids; containers have one each."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def locked(path: Path) -> bool:
    """Whether some process of this machine, in whatever container, holds the lock of a file, as far as can be told."""
    try:
        lock = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # it is held; or there are no locks here, and nothing is known
        return True
    finally:
        os.close(lock)
    return False


def process_info(pid: int) -> tuple[str, int, int] | None:
    """State letter, session and start (ticks since boot) of a process; None where there is none."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), int(fields[3]), int(fields[19])


def alive(pid: int, start: int, booted: str) -> bool:
    """Whether that very process runs; one that has ended and waits to be waited for does not."""
    info = process_info(pid) if pid and booted == boot() else None
    return info is not None and info[0] not in "ZX" and info[2] == start


def left_behind(attempt: str, leader: int, start: int, booted: str) -> list[tuple[int, int]]:
    """(pid, start) of what an attempt's programs left running: of the leader's session, or with its variable."""
    if booted != boot():
        return []
    mark = b"\0CHIPWISE_ATTEMPT=" + attempt.encode() + b"\0"
    leader_info = process_info(leader)
    reused = leader_info is not None and leader_info[2] != start  # the pid is another's by now, and so is its session
    left = []
    for entry in os.scandir(PROC):
        if not entry.name.isdigit() or int(entry.name) in (leader, os.getpid()):
            continue
        info = process_info(int(entry.name))
        if info is None or info[0] in "ZX" or info[2] < start:
            continue
        if (info[1] == leader and not reused) or mark in b"\0" + _environ(int(entry.name)):
            left.append((int(entry.name), info[2]))
    return left


def send(pid: int, start: int, number: signal.Signals) -> None:
    """A signal to that very process; no error if it has ended."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        info = process_info(pid)
        if info is not None and info[2] == start:  # the handle is of the process that we looked at
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _environ(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "environ").read_bytes()
    except OSError:  # another's process, or one that has just ended
        return b""
