"""Runs one attempt on the node where its backend put it, once: ``python3 shim.py FOLDER BY``.

FOLDER is the attempt's (see `chipwise.route.launch`), BY is the backend's id of this job. The first that comes makes
the claim and runs the program; whoever finds the claim of another leaves with `TAKEN` and runs nothing. The same BY may
come again when its backend restarts the job: what a signal ended then goes on, what ended by itself stays ended, and
where CHIPWISE_ONCE is set nothing is run again (`ONCE`). A backend may put words before those of the program (srun, a
container): before.json. Standard library alone, Python 3.8 or newer: nodes need no chipwise.

What a program starts ends with it, wherever it has moved to: it runs in a cgroup of its own where this process may make
one, its orphans become children of this process, and all of them are killed before the end is written. If this process
is killed, the kernel kills the program: nobody would learn how it ended.

No shell is involved: the program gets its arguments and variables byte for byte. Secrets are variables of this process,
put there by the backend; they are handed on and never written. A SIGTERM or SIGINT is handed on to the program, which
has `grace` seconds to save its work. A program that was told to stop and leaves with 0 has finished; one that has only
saved its work must leave with another status (143 is the custom).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import socket
import stat
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
MOST_BYTES = 16 * 2**20  # of a file that is read; Linux bounds arguments and environment at 6 MiB
# SHA-256 of launch.json and before.json as the router wrote them: nothing else is run. It keeps them in the ledger
DIGEST, BEFORE_DIGEST = "CHIPWISE_DIGEST", "CHIPWISE_BEFORE_DIGEST"
# a file of the backend's own that gets a copy of the claim and of the end: in the attempt's folder a program can write
RECORD = "CHIPWISE_RECORD"
LOCK = "CHIPWISE_LOCK_FD"  # a lock of the backend's that this process holds until the claim is made


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
RESERVED_BYTES = 4096  # for an end; it has some hundred, and the smallest block of most disks is as large
REAP_S = 10.0  # for which it kills what a program has left; nothing that isn't stuck in the kernel lives so long


def prctl(option: int, value: int) -> None:
    """Ask the kernel for something; where it has no such call, go without."""
    with suppress(ImportError, OSError, AttributeError, ValueError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Scope:
    """A cgroup (version 2) of the program's own: what is in it can be killed at once, whatever it forks meanwhile."""

    def __init__(self, attempt: str = "", folder: str = "") -> None:
        self.path = ""
        if not attempt:
            return
        with suppress(OSError, ValueError, IndexError, StopIteration):  # no cgroup, or not ours to divide
            with open("/proc/self/cgroup") as file:
                own = next(line for line in file if line.startswith("0::"))[3:].strip()
            with open("/proc/self/mountinfo") as file:
                mounts = [line.split() for line in file if " - cgroup2 " in line]
            name = "chipwise-" + "".join(c for c in attempt if c.isalnum() or c == "-")
            name += "-" + hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]  # two ranks may share a node
            path = mounts[0][4] + own.rstrip("/") + "/" + name
            with suppress(FileExistsError):  # of a start before this one
                os.mkdir(path, 0o700)
            self.path = path
            if not os.path.exists(path + "/cgroup.kill"):  # Linux before 5.14
                self.leave()
                self.path = ""
            self.kill()

    def enter(self) -> None:
        """Move this process into it."""
        if self.path:
            with open(self.path + "/cgroup.procs", "w") as file:
                file.write("0")

    def kill(self) -> None:
        """Kill all that is in it."""
        if self.path:
            with suppress(OSError), open(self.path + "/cgroup.kill", "w") as file:
                file.write("1")

    def leave(self) -> None:
        """Remove it, once it is empty."""
        if self.path:
            with suppress(OSError):
                os.rmdir(self.path)
                self.path = ""


def descendants(of: int) -> list[int]:
    """The processes below one, children first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                children.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found = list(children.get(of, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def atomic_write(path: str, value: dict[str, Any], replace: bool = True, sync: bool = True) -> None:
    """Write a file that is whole or absent; without `replace`, FileExistsError if it is there.

    The draft's name can't be foreseen: a pipe in its place would be written to without end. `sync`: it outlives a
    crash of the machine.
    """
    parent, name = os.path.split(path)
    draft = os.path.join(parent, f".{name}.{os.urandom(8).hex()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(json.dumps(value).encode("ascii") + b"\n")
            out.flush()
            if sync:
                os.fsync(out.fileno())
        if replace:
            os.replace(draft, path)
        else:
            link_new(draft, path)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    if sync:
        sync_folder(parent)


class Reserved:
    """Disk space for the end of a program, taken before it starts: who waits for space then may be killed first."""

    def __init__(self, folder: str) -> None:
        self.path, self.handle = os.path.join(folder, f".end.{os.urandom(8).hex()}"), -1
        with suppress(OSError):  # a full disk: the end waits until there is space
            self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.write(self.handle, b" " * RESERVED_BYTES)
            os.fsync(self.handle)

    def fill(self, path: str, value: dict[str, Any]) -> bool:
        """Write a value there and give it its name; False where that can't be: a program may have removed it."""
        data = json.dumps(value).encode("ascii") + b"\n"
        try:
            mine = os.fstat(self.handle)
            if len(data) > mine.st_size or not os.path.samestat(mine, os.lstat(self.path)):
                return False
            os.pwrite(self.handle, data, 0)
            os.ftruncate(self.handle, len(data))
            os.fsync(self.handle)
            os.replace(self.path, path)
            sync_folder(os.path.dirname(path))
        except OSError:
            return False
        return True

    def leave(self) -> None:
        """Give it back where it was not needed."""
        with suppress(OSError):
            os.close(self.handle)
            os.unlink(self.path)


def sync_folder(path: str) -> None:
    """See that the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
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
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # no hard links: its contents come after
        with open(draft, "rb") as drafted, os.fdopen(handle, "wb") as out:
            out.write(drafted.read())
            out.flush()
            os.fsync(out.fileno())


def read(path: str, digest: str = "") -> dict[str, Any] | None:
    """A JSON object; None where there is no such file. The program may have put anything in the place of a file.

    `digest`: the SHA-256 that the file must have; ValueError where it has another.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return {}
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return {}
        try:
            data = file.read(MOST_BYTES)
        except OSError:
            return {}
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{path} is not what the router wrote")
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
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


def claim_by(by: str) -> dict[str, Any]:
    """The claim that this process makes."""
    placement = {"pool": os.environ.get("CHIPWISE_POOL", ""), "chips": os.environ.get("CHIPWISE_CHIP_IDS", "")}
    return dict(myself(), by=by, at=time.time(), restarts=0, **placement)


def claim(folder: str, mine: dict[str, Any]) -> dict[str, Any] | bool:
    """Make the claim. True: run it; an `end` of one's own: it has ended already; False: another has it."""
    path = os.path.join(folder, "claim")
    try:
        atomic_write(path, mine, replace=False)
        return True
    except FileExistsError:
        pass
    existing = read(path) or {}
    if existing.get("by") != mine["by"]:
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
        lock = os.open(os.path.join(folder, ALIVE), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
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
    """Whether the claim is this process's: its backend may have given up this node and started the job on another.

    One that is gone was removed by the program: nobody else has made one.
    """
    claim_now, me = read(os.path.join(folder, "claim")), myself()
    if claim_now is None:
        return True
    return claim_now.get("by") == by and all(claim_now.get(key) == me[key] for key in ("pid", "host"))


def open_output(path: str) -> int:
    """The file that the program prints to; what an earlier start of it put in its place is set aside."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        handle = os.open(path, flags, 0o600)
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.set_blocking(handle, True)
            return handle
        os.close(handle)
    os.rename(path, f"{path}.{os.urandom(8).hex()}")
    return os.open(path, flags | os.O_EXCL, 0o600)


def octets(words: list[str]) -> list[bytes]:
    """Strings as the bytes that they stand for."""
    return [word.encode("utf-8", "surrogateescape") for word in words]


def variables(launch: dict[str, Any], folder: str) -> dict[bytes, bytes]:
    """The program's environment: this process's, then the launch's, then what the backend handed out."""
    environment = dict(os.environb)
    environment.pop(LOCK.encode(), None)
    declared = {octets([k])[0]: octets([v])[0] for k, v in launch["environment"].items()}
    fixed = {k.encode(): os.environb[k.encode()] for k in BACKENDS_OWN if k in os.environ}
    # by which what a program leaves behind is found
    fixed.update({b"CHIPWISE_ATTEMPT": octets([launch["attempt"]])[0], b"CHIPWISE_SHIM": os.fsencode(folder)})
    environment.update(declared)
    environment.update(fixed)
    return environment


class Program:
    """The program as a child in a process group of its own."""

    def __init__(self, launch: dict[str, Any], folder: str) -> None:
        self.launch, self.folder, self.output = launch, folder, -1
        self.pid, self.stop_signal, self.why = 0, 0, ""
        self.grace = float(launch.get("grace") or GRACE_S)
        self.scope = Scope()
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

    def kill(self) -> None:
        """Kill the program and all that it has started, in whatever group and session."""
        self.send(signal.SIGKILL)
        self.scope.kill()
        for pid in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def on_stop(self, number: int, frame: FrameType | None) -> None:
        """Handler of SIGTERM and SIGINT."""
        self.tell(number, f"told to stop by signal {number}")

    def on_alarm(self, number: int, frame: FrameType | None) -> None:
        """Handler of the alarm: the time limit, then the end of the grace."""
        if self.stop_signal:
            self.kill()
            signal.setitimer(signal.ITIMER_REAL, 1.0)  # until nothing is left
        else:
            self.tell(signal.SIGTERM, f"time limit of {self.launch['time_limit']:g} s")

    def start(self) -> tuple[int, str] | None:
        """Start it; the error's (status, words) if that can't be."""
        blocked = {signal.SIGTERM, signal.SIGINT, signal.SIGALRM}
        argv, environment = octets(self.launch["argv"]), variables(self.launch, self.folder)
        reader, writer = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)  # whoever tells it to stop finds it started, or not at all
        if self.stop_signal:
            return BY_SIGNAL + self.stop_signal, ""
        if self.launch.get("time_limit"):
            signal.setitimer(signal.ITIMER_REAL, float(self.launch["time_limit"]))
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        shim = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            self._become(argv, environment, writer, blocked, shim)
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
        self, argv: list[bytes], environment: dict[bytes, bytes], writer: int, blocked: set[signal.Signals], shim: int
    ) -> None:
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != shim:  # killed before the kernel was told
                os._exit(NOT_STARTED)
            os.setpgid(0, 0)
            with suppress(OSError):
                self.scope.enter()
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
        """Its status as shells write it. What it left running is ended with it."""
        while True:
            child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if child is None or child.si_pid == self.pid:
                break
            os.waitpid(child.si_pid, 0)  # an orphan of the program's
        self.kill()
        _, status = os.waitpid(self.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.pid = 0
        self._end_all()
        return BY_SIGNAL + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _end_all(self) -> None:
        """Kill what is left until nothing is: each that dies may leave children, which are this process's then."""
        until = time.monotonic() + REAP_S
        while time.monotonic() < until:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:  # no child is left, and so no descendant
                break
            self.kill()
            time.sleep(0.002)


def run(folder: str, by: str, program: Program, record: dict[str, Any]) -> int:
    """Run a program and write its end; its status. `record`: what its backend keeps of it, empty where it doesn't."""
    program.output, reserved = open_output(os.path.join(folder, "output")), Reserved(folder)
    started, before, failed = time.time(), time.monotonic(), program.start()
    status, reason = failed if failed else (program.wait(), "")
    program.scope.leave()
    end = {
        "by": by,
        "exit_code": status,
        "started": started,
        "ended": started + time.monotonic() - before,  # how long it ran, whoever set the clock meanwhile
        "told": program.stop_signal,
        "reason": program.why or reason,
    }
    until, kept = time.monotonic() + PATIENCE_S, False
    while record or mine_still(folder, by):
        try:
            if record and not kept:
                atomic_write(record["path"], dict(record["claim"], end=end), sync=False)
                kept = True
            os.makedirs(folder, 0o700, exist_ok=True)  # a program may have removed it
            if not reserved.fill(os.path.join(folder, "end"), end):
                atomic_write(os.path.join(folder, "end"), end)
            break
        except OSError:  # a full disk, a server that is away: without its end, work that is done is done again
            if kept:
                break  # the backend knows
            if time.monotonic() > until:
                raise
            time.sleep(1.0)
    reserved.leave()
    return status


def main(arguments: list[str]) -> int:
    """Claim, run, write the end. The status is the program's, or one of this file's own."""
    folder, by = os.path.abspath(arguments[0]), arguments[1]
    recorded = os.environ.pop(RECORD, "")
    try:
        launch = read(os.path.join(folder, "launch.json"), os.environ.pop(DIGEST, "")) or {}
        before = read(os.path.join(folder, "before.json"), os.environ.pop(BEFORE_DIGEST, ""))
        launch["argv"] = [*(before["argv"] if before is not None else ()), *launch["argv"]]
        octets(launch["argv"])
        variables(launch, folder)
        os.fspath(launch["cwd"])
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        sys.stderr.write(f"shim: {folder}: no launch that can be read ({error!r})\n")
        return UNREADABLE
    program = Program(launch, folder)  # from here on it can be told to stop
    me = claim_by(by)
    mine = claim(folder, me)
    record: dict[str, Any] = {}
    if mine is True:
        program.scope = Scope(str(launch["attempt"]), folder)
        if recorded:
            record = {"path": recorded, "claim": dict(me, grace=program.grace, scope=program.scope.path)}
            atomic_write(recorded, record["claim"], sync=False)
    if os.environ.get(LOCK):
        os.close(int(os.environ.pop(LOCK)))
    if mine is False:
        sys.stderr.write(f"shim: {folder}: another has the claim; nothing was run\n")
        return TAKEN
    if mine is not True:
        return int(mine.get("exit_code", UNREADABLE))
    hold_lock(folder)
    return run(folder, by, program, record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
