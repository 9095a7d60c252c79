"""Compiled programs kept on disk: each entry a folder that is whole or absent, one compile at a time per program.

::

    ROOT/entries/KEY/result.json     the outcome, and what it was made from
    ROOT/entries/KEY/module.hlo.gz   the optimized module, if there is one
    ROOT/sources/REQUEST.json        files and packages a program of the user's own was seen to use
    ROOT/locks/REQUEST.lock          held while that program is compiled
    ROOT/part-*                      entries being written or removed
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chipwise.compiled.worker.keys import SCHEMA, Sources
from chipwise.errors import BrokenFile, InputError
from chipwise.io.paths import cache_folder

DEFAULT_BYTES = 2_000_000_000
RESULT, MODULE = "result.json", "module.hlo.gz"
_STALE_SECONDS = 3600.0  # a part-* folder this old was left by a process that died
_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored outcome, for a report."""

    key: str
    program: str
    target: str
    outcome: str  # "compiled" or "refused"
    bytes: int
    used: float  # seconds since 1970 of the last use


class Cache:
    """A folder of entries."""

    def __init__(self, root: Path, limit_bytes: int = DEFAULT_BYTES) -> None:
        self.root, self.limit_bytes = root, limit_bytes

    def get(self, key: str) -> tuple[dict[str, Any] | None, str]:
        """What is stored under `key` or None, and a note if a broken entry was removed."""
        folder = self._folder(key)
        try:
            stored: dict[str, Any] = json.loads((folder / RESULT).read_bytes())
            if stored["schema"] != SCHEMA or not ("compiled" in stored or "refused" in stored):
                raise ValueError("not an entry of this version")
            if stored["module_bytes"] and (folder / MODULE).stat().st_size != stored["module_bytes"]:
                raise ValueError("its module is cut short")
        except OSError as error:
            if isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.exists():
                return None, ""
            return None, self._discard(folder, str(error.strerror))
        except (ValueError, KeyError, TypeError) as error:
            return None, self._discard(folder, str(error))
        with suppress(OSError):  # a read-only folder still answers
            os.utime(folder / RESULT)
        return stored, ""

    def module_text(self, key: str) -> str:
        """The optimized module of an entry; one that can't be read is removed."""
        try:
            with gzip.open(self._folder(key) / MODULE, "rt", encoding="utf-8") as file:
                return file.read()
        except (OSError, EOFError, gzip.BadGzipFile) as error:
            self._discard(self._folder(key), str(error))
            raise BrokenFile("cache", str(self._folder(key)), f"a module that can be read ({error})") from error

    def put(self, key: str, outcome: Mapping[str, Any], module: Path | None) -> str:
        """Store an outcome; returns "" or why it is not cached. Nothing half-written stays behind."""
        part: Path | None = None
        try:
            (self.root / "entries").mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix="part-", dir=self.root))
            size = 0
            if module is not None:
                shutil.copyfile(module, part / MODULE)
                _to_disk(part / MODULE)
                size = (part / MODULE).stat().st_size
            _write(part / RESULT, {"schema": SCHEMA, "module_bytes": size, **outcome})
            try:
                part.rename(self._folder(key))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return ""  # another process stored the same first
            self._evict(keep=key)
        except OSError as error:
            return f"not cached: {error.strerror} ({self.root})"
        finally:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
        return ""

    def replace_result(self, key: str, stored: Mapping[str, Any]) -> str:
        """Write an entry's result again beside its module; returns "" or why that failed."""
        folder = self._folder(key)
        new = folder / f"{RESULT}.{os.getpid()}"
        try:
            _write(new, stored)
            new.replace(folder / RESULT)
        except OSError as error:
            return f"not cached: {error.strerror} ({self.root})"
        finally:
            new.unlink(missing_ok=True)
        return ""

    def sources(self, request: str) -> Sources | None:
        """The sources a request was seen to use, or None if it was never compiled."""
        try:
            data = json.loads((self.root / "sources" / f"{request}.json").read_bytes())
            return Sources(tuple(data["files"]), tuple(data["packages"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # only costs a compile, which writes it again

    def put_sources(self, request: str, sources: Sources) -> str:
        """Remember the sources of a request; returns "" or why that failed."""
        new: Path | None = None
        try:
            (self.root / "sources").mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="part-", dir=self.root / "sources")
            os.close(handle)
            new = Path(name)
            _write(new, asdict(sources))
            new.replace(self.root / "sources" / f"{request}.json")
        except OSError as error:
            return f"not cached: {error.strerror} ({self.root})"
        finally:
            if new is not None:
                new.unlink(missing_ok=True)
        return ""

    def forget_sources(self, request: str) -> None:
        """Remove the list of sources of a request that has no entry."""
        with suppress(OSError):  # a read-only folder has nothing to remove
            (self.root / "sources" / f"{request}.json").unlink(missing_ok=True)

    @contextmanager
    def lock(self, request: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the request's lock; calls `waiting` again and again while another process has it.

        Where no lock can be had (a read-only folder, a system without them) nothing is locked: the work is done
        twice, and the second entry gives way to the first.
        """
        handle = self._locked(request, waiting)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)  # releases it, as the death of this process would

    def entries(self) -> list[Entry]:
        """Every entry, the most recently used first."""
        entries = []
        for folder in self._folders():
            try:
                stored = json.loads((folder / RESULT).read_bytes())
                outcome = "compiled" if "compiled" in stored else "refused"
                used = (folder / RESULT).stat().st_mtime
                entry = Entry(folder.name, stored["program"], stored["target"], outcome, _size(folder), used)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # `get` says so when it is asked for
            entries.append(entry)
        return sorted(entries, key=lambda entry: -entry.used)

    def remove(self, key: str) -> None:
        """Remove one entry, where that is allowed."""
        with suppress(OSError):
            self._remove(self._folder(key))

    def clear(self) -> int:
        """Remove every entry; returns how many bytes that freed. Locks stay: another process may hold one."""
        freed = 0
        for folder in self._folders():
            freed += _size(folder)
            self._remove(folder)
        shutil.rmtree(self.root / "sources", ignore_errors=True)
        self._sweep(0.0)
        return freed

    def _folder(self, key: str) -> Path:
        return self.root / "entries" / key

    def _folders(self) -> list[Path]:
        try:
            return list((self.root / "entries").iterdir())
        except OSError:
            return []

    def _discard(self, folder: Path, why: str) -> str:
        try:
            self._remove(folder)
        except OSError as error:
            return f"a broken cache entry could not be removed: {why}; {error.strerror} ({folder})"
        return f"a broken cache entry was removed: {why}"

    def _remove(self, folder: Path) -> None:
        """Take an entry away in one step, so that no reader sees half of it."""
        if not folder.is_dir():
            folder.unlink(missing_ok=True)
            return
        part = self.root / f"part-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):  # someone else removed it
            folder.rename(part)
        shutil.rmtree(part, ignore_errors=True)

    def _evict(self, keep: str) -> None:
        sized = []
        for folder in self._folders():
            with suppress(OSError):
                sized.append(((folder / RESULT).stat().st_mtime, _size(folder), folder))
        total = sum(size for _, size, _ in sized)
        for _, size, folder in sorted(sized, key=lambda entry: entry[0]):
            if total <= self.limit_bytes:
                break
            if folder.name != keep:
                self._remove(folder)
                total -= size
        self._sweep(_STALE_SECONDS)

    def _sweep(self, older_than: float) -> None:
        for part in [*self.root.glob("part-*"), *self.root.glob("sources/part-*")]:
            with suppress(OSError):
                if time.time() - part.stat().st_mtime >= older_than:
                    shutil.rmtree(part) if part.is_dir() else part.unlink()

    def _locked(self, request: str, waiting: Callable[[], None]) -> int | None:
        try:
            import fcntl  # noqa: F401 - Windows has none

            (self.root / "locks").mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / "locks" / f"{request}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (ImportError, OSError):
            return None
        try:
            while not _try_lock(handle):
                waiting()
                time.sleep(_WAIT_SECONDS)
        except _NoLocks:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return handle


class _NoLocks(Exception):
    """A file system without locks."""


def _try_lock(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _NoLocks from error
    return True


def default_cache() -> Cache:
    """The user's cache: $CHIPWISE_CACHE or the user's cache folder, $CHIPWISE_CACHE_BYTES or 2 GB."""
    named = os.environ.get("CHIPWISE_CACHE")
    limit = os.environ.get("CHIPWISE_CACHE_BYTES", str(DEFAULT_BYTES))
    if not limit.isdecimal():
        raise InputError("CHIPWISE_CACHE_BYTES", limit, "a whole number of bytes")
    return Cache(Path(named) if named else cache_folder() / "compiled", int(limit))


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, separators=(",", ":")))
    _to_disk(path)


def _to_disk(path: Path) -> None:
    """Some file systems only find out that they are full when they write back."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _size(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:
        return 0
