"""Runs one attempt on the node where its backend put it, once: ``python3 shim.py FOLDER BY``.

FOLDER is the attempt's (see `chipwise.route.launch`), BY is the backend's id of this job. The first that comes makes
the claim and runs the program; whoever finds the claim of another leaves with `TAKEN` and runs nothing. The same BY may
come again when its backend restarts the job: what a signal ended then goes on, what ended by itself stays ended, and
where CHIPWISE_ONCE is set nothing is run again (`ONCE`). A backend may put words before those of the program (srun, a
container): before.json. Standard library alone, Python 3.8 or newer: nodes need no chipwise.

No shell is involved: the program gets its arguments and variables byte for byte. Secrets are variables of this process,
put there by the backend; they are handed on and never written. A SIGTERM or SIGINT is handed on to the program, which
has `grace` seconds to save its work. A program that was told to stop and leaves with 0 has finished; one that has only
saved its work must leave with another status (143 is the custom).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any

# statuses of its own; outside those of sysexits.h (64-78) and of shells (126 and up)
TAKEN, UNREADABLE, ONCE = 79, 80, 81
NOT_FOUND, NOT_STARTED, BY_SIGNAL = 127, 126, 128  # as shells have it
GRACE_S = 30.0  # between SIGTERM and SIGKILL where launch.json doesn't say; Slurm's KillWait is 30 s too
# what the backend handed out is not the job's to change
BACKENDS_OWN = ("CHIPWISE_CHIP_IDS", "CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS")
ALIVE = "alive"  # locked in an attempt's folder while its shim lives
PATIENCE_S = 600.0  # for which it tries to write the end: people free space on disks
LOCK_TRIES = 100  # over five seconds; those who check hold it for microseconds
LOCK = "CHIPWISE_LOCK_FD"  # a lock of the backend's that this process holds until the claim is made


def atomic_write(path: str, value: dict[str, Any], replace: bool = True) -> None:
    """Write a file that is whole or absent; without `replace`, FileExistsError if it is there."""
    draft = f"{path}.{socket.gethostname()}.{os.getpid()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(json.dumps(value).encode("ascii") + b"\n")
            out.flush()
            os.fsync(out.fileno())
        if replace:
            os.replace(draft, path)
        else:
            link_new(draft, path)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:  # folders of some network file systems can't be synchronised
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            raise
    finally:
        os.close(folder)


def link_new(draft: str, path: str) -> None:
    """Give a file its name, unless another has it: atomic, with its contents, also on NFS."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)  # no hard links: its contents come after
        with open(draft, "rb") as drafted, os.fdopen(handle, "wb") as out:
            out.write(drafted.read())
            out.flush()
            os.fsync(out.fileno())


def read(path: str) -> dict[str, Any] | None:
    """A JSON object; None where there is no such file."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def myself() -> dict[str, Any]:
    """This process so that no other is taken for it: pid, start in ticks since boot, boot, host."""
    process: dict[str, Any] = {"pid": os.getpid(), "host": socket.gethostname()}
    try:
        with open("/proc/self/stat", "rb") as file:
            process["start"] = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/sys/kernel/random/boot_id") as file:
            process["boot"] = file.read().strip()
        process["space"] = os.readlink("/proc/self/ns/pid")  # a pid is one of its own name space, as containers have
    except (OSError, ValueError, IndexError):  # no /proc: the backend itself must know whether it runs
        pass
    return process


def claim(folder: str, by: str) -> dict[str, Any] | bool:
    """Make the claim. True: run it; an `end` of one's own: it has ended already; False: another has it."""
    path, now = os.path.join(folder, "claim"), time.time()
    placement = {"pool": os.environ.get("CHIPWISE_POOL", ""), "chips": os.environ.get("CHIPWISE_CHIP_IDS", "")}
    mine = dict(myself(), by=by, at=now, restarts=0, **placement)
    try:
        atomic_write(path, mine, replace=False)
        return True
    except FileExistsError:
        pass
    existing = read(path) or {}
    if existing.get("by") != by:
        return False
    end = read(os.path.join(folder, "end"))
    if end is not None and not (end.get("exit_code") and (end.get("told") or end["exit_code"] > BY_SIGNAL)):
        return end
    if os.environ.get("CHIPWISE_ONCE"):
        return {"exit_code": ONCE}
    atomic_write(path, dict(mine, restarts=int(existing.get("restarts", 0)) + 1))
    if end is not None:
        os.unlink(os.path.join(folder, "end"))
    return True


def hold_lock(folder: str) -> None:
    """Hold a lock for as long as this process lives: whoever can't see its pid can still tell that it does."""
    try:
        lock = os.open(os.path.join(folder, ALIVE), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:  # a full disk: the program may run all the same
        return None
    for _ in range(LOCK_TRIES):
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # someone checks it just now
            time.sleep(0.05)
        except OSError:  # a file system without locks
            return None
    return None


def mine_still(folder: str, by: str) -> bool:
    """Whether the claim is this process's: its backend may have given up this node and started the job on another."""
    claim_now, me = read(os.path.join(folder, "claim")) or {}, myself()
    return claim_now.get("by") == by and all(claim_now.get(key) == me[key] for key in ("pid", "host"))


def octets(words: list[str]) -> list[bytes]:
    """Strings as the bytes that they stand for."""
    return [word.encode("utf-8", "surrogateescape") for word in words]


def variables(launch: dict[str, Any]) -> dict[bytes, bytes]:
    """The program's environment: this process's, then the launch's, then what the backend handed out."""
    environment = dict(os.environb)
    environment.pop(LOCK.encode(), None)
    declared = {octets([k])[0]: octets([v])[0] for k, v in launch["environment"].items()}
    fixed = {k.encode(): os.environb[k.encode()] for k in BACKENDS_OWN if k in os.environ}
    fixed[b"CHIPWISE_ATTEMPT"] = octets([launch["attempt"]])[0]  # by which what a program leaves behind is found
    environment.update(declared)
    environment.update(fixed)
    return environment


class Program:
    """The program as a child in a process group of its own."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.launch, self.output = launch, -1
        self.pid, self.stop_signal, self.why = 0, 0, ""
        self.grace = float(launch.get("grace") or GRACE_S)
        signal.signal(signal.SIGALRM, self.on_alarm)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_stop)

    def tell(self, number: int, why: str) -> None:
        """Hand a signal on; SIGKILL follows after the grace."""
        if not self.stop_signal:
            self.stop_signal, self.why = number, why
            signal.setitimer(signal.ITIMER_REAL, max(self.grace, 0.001))
        self.send(number)

    def send(self, number: int) -> None:
        """A signal to the whole group."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):  # it has ended; macOS says it the second way
                os.killpg(self.pid, number)

    def on_stop(self, number: int, frame: FrameType | None) -> None:
        """Handler of SIGTERM and SIGINT."""
        self.tell(number, f"told to stop by signal {number}")

    def on_alarm(self, number: int, frame: FrameType | None) -> None:
        """Handler of the alarm: the time limit, then the end of the grace."""
        if self.stop_signal:
            self.send(signal.SIGKILL)
            signal.setitimer(signal.ITIMER_REAL, 1.0)  # until nothing is left
        else:
            self.tell(signal.SIGTERM, f"time limit of {self.launch['time_limit']:g} s")

    def start(self) -> tuple[int, str] | None:
        """Start it; the error's (status, words) if that can't be."""
        blocked = {signal.SIGTERM, signal.SIGINT, signal.SIGALRM}
        argv, environment = octets(self.launch["argv"]), variables(self.launch)
        reader, writer = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)  # whoever tells it to stop finds it started, or not at all
        if self.stop_signal:
            return BY_SIGNAL + self.stop_signal, ""
        if self.launch.get("time_limit"):
            signal.setitimer(signal.ITIMER_REAL, float(self.launch["time_limit"]))
        self.pid = os.fork()
        if not self.pid:
            self._become(argv, environment, writer, blocked)
        with suppress(OSError):  # it has done so itself, or has ended
            os.setpgid(self.pid, self.pid)
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        error = b""
        while True:
            part = os.read(reader, 4096)
            if not part:
                break
            error += part
        os.close(reader)
        if error:
            os.waitpid(self.pid, 0)
            self.pid = 0
            number, _, words = error.decode("utf-8", "replace").partition(" ")
            return int(number), words
        return None

    def _become(
        self, argv: list[bytes], environment: dict[bytes, bytes], writer: int, blocked: set[signal.Signals]
    ) -> None:
        try:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(self.output, 1)
            os.dup2(self.output, 2)
            os.chdir(self.launch["cwd"])
            for number in blocked | {signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE)}:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            os.execvpe(argv[0], argv, environment)
        except BaseException as error:
            status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            words = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            os.write(writer, f"{status} {self.launch['argv'][0]!r}: {words}".encode("utf-8", "replace")[:4000])
        finally:
            os._exit(NOT_STARTED)

    def wait(self) -> int:
        """Its status as shells write it. What it left running in its group is ended with it."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self.send(signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.pid = 0
        return BY_SIGNAL + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run(folder: str, by: str, program: Program) -> int:
    """Run a program and write its end; its status."""
    program.output = os.open(os.path.join(folder, "output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    started, failed = time.time(), program.start()
    status, reason = failed if failed else (program.wait(), "")
    end = {
        "by": by,
        "exit_code": status,
        "started": started,
        "ended": time.time(),
        "told": program.stop_signal,
        "reason": program.why or reason,
    }
    until = time.monotonic() + PATIENCE_S
    while mine_still(folder, by):
        try:
            atomic_write(os.path.join(folder, "end"), end)
            break
        except OSError:  # a full disk, a server that is away: without its end, work that is done is done again
            if time.monotonic() > until:
                raise
            time.sleep(1.0)
    return status


def main(arguments: list[str]) -> int:
    """Claim, run, write the end. The status is the program's, or one of this file's own."""
    folder, by = os.path.abspath(arguments[0]), arguments[1]
    launch = read(os.path.join(folder, "launch.json")) or {}
    try:
        before = read(os.path.join(folder, "before.json"))
        launch["argv"] = [*(before["argv"] if before is not None else ()), *launch["argv"]]
        octets(launch["argv"])
        variables(launch)
        os.fspath(launch["cwd"])
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        sys.stderr.write(f"shim: {folder}: no launch that can be read ({error!r})\n")
        return UNREADABLE
    program = Program(launch)  # from here on it can be told to stop
    mine = claim(folder, by)
    if os.environ.get(LOCK):
        os.close(int(os.environ.pop(LOCK)))
    if mine is False:
        sys.stderr.write(f"shim: {folder}: another has the claim; nothing was run\n")
        return TAKEN
    if mine is not True:
        return int(mine.get("exit_code", UNREADABLE))
    hold_lock(folder)
    return run(folder, by, program)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
