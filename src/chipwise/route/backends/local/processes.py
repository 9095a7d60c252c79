"""Processes of this machine, so named that none is taken for another: by pid, start time and boot."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROC = Path("/proc")
# the variables by which what a program leaves behind is found; ledgers that are copies have attempts of the same name
ATTEMPT, SHIM = b"CHIPWISE_ATTEMPT=", b"CHIPWISE_SHIM="


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


@dataclass(frozen=True, slots=True)
class Process:
    """A process that runs."""

    pid: int
    session: int
    start: int  # ticks since boot
    attempts: tuple[bytes, ...]  # those named by its environment; one, but for what a program may do
    shims: tuple[bytes, ...]  # folders of the shims that it is of; none where an older version started it

    def of(self, folder: Path) -> bool:
        """Whether its environment says that it is of the attempt in that folder."""
        own = os.fsencode(os.path.abspath(folder))  # noqa: PTH100 - as the shim has it, which resolves no links
        return folder.name.encode() in self.attempts and (not self.shims or own in self.shims)


def running() -> list[Process]:
    """All processes of this machine that run, but this one."""
    found = []
    for entry in os.scandir(PROC):
        info = process_info(int(entry.name)) if entry.name.isdigit() and int(entry.name) != os.getpid() else None
        if info is not None and info[0] not in "ZX":
            words = _environ(int(entry.name)).split(b"\0")
            attempts, shims = (
                tuple(word[len(mark) :] for word in words if word.startswith(mark)) for mark in (ATTEMPT, SHIM)
            )
            found.append(Process(int(entry.name), info[1], info[2], attempts, shims))
    return found


def left_behind(
    folder: Path, leader: int, start: int, booted: str, among: Sequence[Process] | None = None
) -> list[tuple[int, int]]:
    """(pid, start) of what the programs of the attempt in a folder left running: of the leader's session, or by name.

    `among`: those that were running after the leader was seen to be gone; by default, those that run now.
    """
    if booted != boot():
        return []
    leader_info = process_info(leader)
    reused = leader_info is not None and leader_info[2] != start  # the pid is another's by now, and so is its session
    return [
        (process.pid, process.start)
        for process in (running() if among is None else among)
        if process.pid != leader
        and process.start >= start
        and ((leader and process.session == leader and not reused) or process.of(folder))
    ]


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


def end_scope(path: str) -> bool:
    """Kill what is left in a cgroup, and remove it once it is empty; whether something is left."""
    if not path:
        return False
    try:
        left = bool(Path(path, "cgroup.procs").read_bytes().strip())
        if left:
            Path(path, "cgroup.kill").write_text("1")
        else:
            Path(path).rmdir()
    except OSError:  # its shim has removed it, or it is not ours
        return False
    return left


def _environ(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "environ").read_bytes()
    except OSError:  # another's process, or one that has just ended
        return b""
