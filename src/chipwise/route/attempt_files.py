"""Reads what a job's program can write: a bounded part of a regular file, without waiting and not through a link.

A program owns its attempt's folder. It may put a pipe, a device, a link or nonsense in the place of any file, and none
of it may hold up, fill or end whoever reads it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from chipwise.route.backend import BackendDown

MOST_BYTES = 65_536  # of a claim, an end, a share of progress: what the shim writes has some hundred
MOST_LAUNCH = 16 * 2**20  # of a launch file: arguments and environment, which Linux bounds at 6 MiB
MOST_LINE = 4096
# errors of a disk or a file server that is away; every other is of what a program has put there
AWAY = frozenset(
    {
        errno.EIO,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENOTCONN,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
    }
)


class Unreadable(ValueError):
    """No regular file of a sensible size, or no JSON object in it."""


def read_bounded(path: Path, most: int = MOST_BYTES, last: bool = False) -> bytes | None:
    """A file's bytes, or with `last` its last `most` ones; None where there is none. `Unreadable` for all else."""
    part = read_part(path, -most if last else 0, most if last else most + 1)
    if part is None:
        return None
    if len(part[1]) > most:
        raise Unreadable(f"{path} is larger than {most:,} bytes")
    return part[1]


def read_part(path: Path, start: int, most: int) -> tuple[int, bytes, int] | None:
    """At most so many bytes of a file: where they begin, they, and the file's size; None where there is none.

    A `start` below 0 counts from the end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError as error:
        _refuse(path, error)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable(f"{path} is no file")
        begin = max(0, info.st_size + start) if start < 0 else start
        os.lseek(handle, begin, os.SEEK_SET)
        return begin, _read(handle, most), info.st_size
    except OSError as error:
        _refuse(path, error)
    finally:
        os.close(handle)


def last_line(path: Path) -> str:
    """The last line of what a shim or a backend wrote to a log; "" where it wrote nothing that can be read."""
    try:
        data = read_bounded(path, MOST_LINE, last=True) or b""
    except (Unreadable, BackendDown):
        return ""
    return data.decode("utf-8", "replace").strip().rpartition("\n")[2]


def locked(path: Path) -> bool | None:
    """Whether some process holds the lock of a file, in whatever container; None where that can't be told."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(lock)
    return False


def read_object(path: Path, most: int = MOST_BYTES) -> dict[str, Any] | None:
    """The JSON object of a file; None where there is no file."""
    data = read_bounded(path, most)
    if data is None:
        return None
    try:
        document = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path}: {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise Unreadable(f"{path} holds no object")
    return document


def _read(handle: int, most: int) -> bytes:
    parts, left = [], most
    while left and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _refuse(path: Path, error: OSError) -> NoReturn:
    if error.errno in AWAY or (error.errno == errno.ENOTDIR and not path.parent.parent.is_dir()):
        raise BackendDown(f"{path}: {error.strerror or error}") from None
    raise Unreadable(f"{path}: {error.strerror or error}") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
