"""One compile in a worker process: its environment, its limits of time and memory, and how it ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chipwise.io.worker import Worker, with_package

Progress = Callable[[str, float], None]  # the stage, and seconds since the worker started

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
    limits = []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text()))
    with contextlib.suppress(OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return int(0.8 * min(limits)) if limits else None


def worker_environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: no accelerator is looked for, and no flags leak in."""
    return with_package({name: value for name, value in given.items() if name not in UNUSED_VARIABLES}) | {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # else libtpu asks Google Cloud's metadata server which TPU this is
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # else a second process dies on a lock file
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }


def run_worker(arguments: list[str], folder: Path, limits: Limits, progress: Progress | None) -> Ended:
    """Run a worker to its end, or to a limit. What it prints goes to a file in `folder`."""
    log, environment = folder / "log.txt", worker_environment(os.environ)
    with Worker("chipwise.compiled.worker.worker", arguments, environment, log) as worker:
        watch = _Watch(worker, limits, progress)
        over = watch.until_end()
    seconds = time.monotonic() - watch.start
    assert worker.status is not None
    return Ended(worker.status, watch.stage, seconds, watch.peak_bytes, over, worker.last_lines(_LOG_LINES, _NOISE))


def group_bytes(group: int) -> int | None:
    """Resident bytes of every process of a group, or None where /proc does not tell."""
    page = os.sysconf("SC_PAGE_SIZE")
    total, readable = 0, False
    for stat in _stats():
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 21 and int(fields[2]) == group:
            total += int(fields[21]) * page
            readable = True
    return total if readable else None


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

    def __init__(self, worker: Worker, limits: Limits, progress: Progress | None) -> None:
        self.worker, self.limits, self.progress = worker, limits, progress
        self.start = time.monotonic()
        self.stage, self.peak_bytes = "starting", 0
        self._looked, self._reported = 0.0, 0.0

    def until_end(self) -> str:
        """Returns the limit that was passed, or "" once the process has ended by itself."""
        for message in self.worker.messages():
            now = time.monotonic() - self.start
            if message is not None:
                self.stage = str(message["stage"])
                self._tell(now)
                continue
            if self.limits.seconds is not None and now > self.limits.seconds:
                return "seconds"
            if now - self._looked > _LOOK_SECONDS:
                self._looked = now
                self.peak_bytes = max(self.peak_bytes, group_bytes(self.worker.group) or 0)
                if self.limits.bytes is not None and self.peak_bytes > self.limits.bytes:
                    return "bytes"
            if now - self._reported > _TELL_SECONDS:
                self._tell(now)
        return ""

    def _tell(self, now: float) -> None:
        self._reported = now
        if self.progress is not None:
            self.progress(self.stage, now)
