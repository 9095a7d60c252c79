"""One worker process: started, watched, told about, and killed with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Progress = Callable[[str, float], None]  # the stage, and seconds since the worker started

_TICK_SECONDS = 0.05
_LOOK_SECONDS = 0.25  # between two looks at memory
_TELL_SECONDS = 1.0  # between two reports of the same stage
_LOG_LINES = 40
# Flags for other uses of the compiler: a TPU flag in XLA_FLAGS ends the process, the rest would change the answer.
UNUSED_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
# What a JAX worker prints about accelerators it does not find.
_NOISE = (
    *("TPU_ACCELERATOR_TYPE", "TPU_WORKER_HOSTNAMES"),
    *("Logging before InitGoogle", "libtpu_init_utils", "Source Location Trace"),
    *("symbolize.stripped_domain", "coredump_hook", "Coroner"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a compile is stopped: wall-clock seconds and bytes of resident memory; None is no limit."""

    seconds: float | None = 1800.0
    bytes: int | None = field(default_factory=lambda: default_bytes())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker process ended."""

    code: int  # exit status; negative: the signal that ended it
    stage: str
    seconds: float
    peak_bytes: int  # 0 where memory can't be watched
    over: str  # "", "seconds" or "bytes": the limit it was killed for
    log: str  # the last lines it printed


def default_bytes() -> int | None:
    """Four fifths of this machine's memory, or of what its container may use; None where that is not known."""
    known = []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            known.append(int(Path(path).read_text()))
    with contextlib.suppress(OSError, ValueError):
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return int(0.8 * min(known)) if known else None


def worker_environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: no accelerator is looked for, and no flags leak in."""
    kept = {name: value for name, value in given.items() if name not in UNUSED_VARIABLES}
    package = str(Path(__file__).resolve().parents[3])
    path = [*filter(None, kept.get("PYTHONPATH", "").split(os.pathsep)), package]
    return kept | {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # else libtpu asks Google Cloud's metadata server which TPU this is
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # else a second process dies on a lock file
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }


def run_worker(arguments: list[str], folder: Path, limits: Limits, progress: Progress | None) -> Ended:
    """Run a worker to its end, or to a limit. What it prints goes to a file in `folder`."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    command = [sys.executable, "-P", "-m", "chipwise.compiled.worker.worker", *arguments]
    log = folder / "log.txt"
    with os.fdopen(reader, "rb", buffering=0) as told:
        try:
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [*command, str(writer), str(os.getpid())],
                    env=worker_environment(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writer,),
                    start_new_session=True,
                )
        finally:
            os.close(writer)
        watch = _Watch(process, limits, progress)
        try:
            over = watch.until_end(told.fileno())
        finally:
            kill_group(process.pid)  # also what a finished worker left running
            process.wait()
    seconds = time.monotonic() - watch.start
    return Ended(process.returncode, watch.stage, seconds, watch.peak_bytes, over, _last_lines(log))


def kill_group(group: int) -> None:
    """Kill a whole process group; it may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def group_bytes(group: int) -> int | None:
    """Resident bytes of every process of a group, or None where /proc does not tell."""
    page = os.sysconf("SC_PAGE_SIZE")
    total, seen = 0, False
    for stat in _stats():
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 21 and int(fields[2]) == group:
            total += int(fields[21]) * page
            seen = True
    return total if seen else None


def _stats() -> Iterator[str]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - twice as fast as Path.iterdir, and done often
    except OSError:
        return
    for name in names:
        if name.isdecimal():
            with contextlib.suppress(OSError):
                yield Path(f"/proc/{name}/stat").read_text(errors="replace")


class _Watch:
    """Follows a worker: its stage, its memory, its time."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits, progress: Progress | None) -> None:
        self.process, self.limits, self.progress = process, limits, progress
        self.start = time.monotonic()
        self.stage, self.peak_bytes = "starting", 0
        self._buffer, self._looked, self._told = b"", 0.0, 0.0

    def until_end(self, pipe: int) -> str:
        """Returns the limit that was passed, or "" once the process has ended by itself."""
        open_pipe = True
        while self.process.poll() is None:
            if open_pipe and select.select([pipe], [], [], _TICK_SECONDS)[0]:
                open_pipe = self._read(pipe)
            elif not open_pipe:
                time.sleep(_TICK_SECONDS)
            now = time.monotonic() - self.start
            if self.limits.seconds is not None and now > self.limits.seconds:
                return "seconds"
            if now - self._looked > _LOOK_SECONDS:
                self._looked = now
                self.peak_bytes = max(self.peak_bytes, group_bytes(self.process.pid) or 0)
                if self.limits.bytes is not None and self.peak_bytes > self.limits.bytes:
                    return "bytes"
            if now - self._told > _TELL_SECONDS:
                self._tell(now)
        self._read(pipe)
        return ""

    def _read(self, pipe: int) -> bool:
        """Take in what the worker said; False once it will say no more."""
        try:
            said = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        *lines, self._buffer = (self._buffer + said).split(b"\n")
        for line in lines:
            self.stage = str(json.loads(line)["stage"])
            self._tell(time.monotonic() - self.start)
        return bool(said)

    def _tell(self, now: float) -> None:
        self._told = now
        if self.progress is not None:
            self.progress(self.stage, now)


def _last_lines(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 20_000))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    wanted = [line.rstrip() for line in lines if line.strip() and not any(word in line for word in _NOISE)]
    return "\n".join(wanted[-_LOG_LINES:])
