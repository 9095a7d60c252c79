"""A folder of its own for each run of the tests, and what is still there when the run has ended.

The run's home, temporary files and caches lie in one folder, so that a run neither needs nor changes what earlier ones
left on the machine. `left_behind` names processes, folders, shared memory and files of the checkout that outlived it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "CHIPWISE_TEST_RUN"  # names the run's folder; every process that a test starts inherits it
# made by the run itself or by caches of libraries that no variable moves, and removed with the run
ALLOWED = re.compile(r"home|pytest-of-.+|torchinductor_.+")
LONGEST = 24  # of the name of a temporary folder: sockets below it have 107 bytes, and Ray's own part takes 62
TICK_S = 0.02  # the file system's clock is the kernel's, which goes in steps
PATIENCE_S = 20.0  # for processes that were told to end
USERS_OWN = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "RAY_TMPDIR", "NUMBA_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class Span:
    """When a test ran."""

    test: str
    start: float
    stop: float


@dataclass
class Run:
    """One run of the tests: its folder, and what was there before it."""

    folder: Path
    untracked: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    started: float = field(default_factory=time.time)

    @classmethod
    def begin(cls) -> Run:
        """Make the folder and turn this process's environment, and so that of all it starts, towards it."""
        base = Path(tempfile.gettempdir())
        shared = all(each.stat().st_mode & 0o001 for each in (base, *base.parents))  # PostgreSQL runs as another user
        folder = Path(tempfile.mkdtemp(prefix="cw", dir=base if shared and len(str(base)) <= LONGEST else "/tmp"))
        folder.chmod(0o755)
        (folder / "home").mkdir()
        os.environ |= {
            VARIABLE: str(folder),
            "TMPDIR": str(folder),
            "HOME": str(folder / "home"),
            "CHIPWISE_WARM": "0",
            "ONEDNN_JIT_PROFILE": "0",  # or it leaves a map of its code in /tmp for each process
            "OMP_NUM_THREADS": "1",  # or threads of matrix products wait for each other: there is a process for every core
        }
        for variable in USERS_OWN:
            os.environ.pop(variable, None)
        tempfile.tempdir = None  # asks the environment again
        return cls(folder, frozenset(untracked()), frozenset(shared_memory()))

    def left_behind(self, tests: Sequence[Span] = ()) -> list[str]:
        """What outlived the run, a line each; processes among it are killed. Files with the tests that ran beside them."""
        end = time.monotonic() + PATIENCE_S
        while (alive := list(processes(self.folder))) and time.monotonic() < end:
            time.sleep(0.2)
        for pid, _ in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        found = [f"process {pid}: {words}" for pid, words in alive]
        found += [
            described(entry, tests) for entry in sorted(self.folder.iterdir()) if not ALLOWED.fullmatch(entry.name)
        ]
        found += [f"shared memory: {name}" for name in sorted(shared_memory() - self.shared - mapped())]
        return found + [f"in the checkout: {name}" for name in sorted(untracked() - self.untracked)]

    def end(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def described(entry: Path, tests: Sequence[Span]) -> str:
    """A file or folder: what is in it, and which tests ran when it was last changed."""
    inside = [path.name for path in sorted(entry.iterdir())] if entry.is_dir() else []
    changed = entry.lstat().st_mtime
    beside = dict.fromkeys(span.test for span in tests if span.start - TICK_S <= changed <= span.stop)
    parts = [
        f"in the temporary folder: {entry.name}{'/' * entry.is_dir()}",
        f" with {', '.join(inside[:3])}{' and more' * (len(inside) > 3)}" if inside else "",
        f", changed during {', '.join(beside)}" if beside else "",
    ]
    return "".join(parts)


def processes(folder: Path) -> Iterator[tuple[int, str]]:
    """Processes that inherited the run's environment or work in its folder, with their command and the test."""
    mark, inside = f"{VARIABLE}={folder}\0".encode(), str(folder)
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if not command or "multiprocessing.resource_tracker" in command:
                continue  # ended, and not waited for by whoever started it; or Python's own, which ends with this process
            # Ray's processes write their titles over their environment, but keep their logs in the folder
            if mark in environment or inside in command or any(_opened(entry, inside)):
                test = re.search(rb"PYTEST_CURRENT_TEST=([^\0]*)", environment)
                yield int(entry.name), command[:200] + (f" (started by {test[1].decode()})" if test else "")


def _opened(entry: Path, inside: str) -> Iterator[bool]:
    yield str((entry / "cwd").readlink()).startswith(inside)
    for descriptor in (entry / "fd").iterdir():
        with suppress(OSError):
            yield str(descriptor.readlink()).startswith(inside)


def shared_memory() -> set[str]:
    """Segments that no process has attached and objects of those that the tests start, by name."""
    with suppress(OSError):
        rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
        objects = {
            entry.name for pattern in ("PostgreSQL*", "plasma*", "psm_*") for entry in Path("/dev/shm").glob(pattern)
        }
        return {f"segment {row[1]}" for row in rows if row[6] == "0"} | objects
    return set()


def mapped() -> set[str]:
    """Objects of shared memory that some process has mapped: of other runs on this machine, once this one's are gone."""
    names: set[str] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            names.update(re.findall(r"/dev/shm/(\S+)", (entry / "maps").read_text()))
    return names


def untracked() -> set[str]:
    """Files in the checkout that git neither knows nor ignores; none where there is no git or no checkout."""
    line = ["git", "-C", str(ROOT), "-c", "safe.directory=*", "ls-files", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(line, capture_output=True, check=False)
    except FileNotFoundError:
        return set()
    return set(filter(None, done.stdout.decode().split("\0")))


def short_folder(name: str) -> Path:
    """A new folder with a short path, for sockets: `name` and a number, in the run's folder."""
    for number in range(10_000):
        with suppress(FileExistsError):
            folder = Path(tempfile.gettempdir(), f"{name}{number}")
            folder.mkdir(mode=0o755)
            return folder
    raise RuntimeError(f"no free name for {name} in {tempfile.gettempdir()}")
