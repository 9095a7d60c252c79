"""Open what a user points at: a regular file, never waited for, read no further than a limit.

A pipe, a device or a socket in a file's place would be waited for without end, or never come to one.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from chipwise.errors import BrokenFile, NoSuchFile

MAX_LINE_BYTES = 1_000_000  # of a table's line: cells hold at most 131,072 characters (csv.field_size_limit)
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "a device"),
)


def size_words(limit: int) -> str:
    """A limit as messages state it.

    >>> size_words(10_000_000), size_words(100_000), size_words(256 * 2**20)
    ('10 MB', '100 kB', '256 MiB')
    """
    if limit % 2**20 == 0:
        return f"{limit // 2**20} MiB"
    return f"{limit // 1_000_000} MB" if limit >= 1_000_000 else f"{limit // 1000} kB"


@contextmanager
def opened(path: Path, field: str = "file", packed: bool = False) -> Iterator[BinaryIO]:
    """A regular file, open to be read, unpacked if it is `packed`; what goes wrong while it is read is one line too."""
    try:
        with os.fdopen(_handle(path, field), "rb") as file:
            if not packed:
                yield file
                return
            with gzip.open(file) as inner:
                yield inner  # type: ignore[misc]  # gzip's files are no BinaryIO to mypy
    except FileNotFoundError:
        raise NoSuchFile(field, str(path)) from None
    except (OSError, EOFError, zlib.error) as error:  # not gzip, damaged or cut short
        reason = getattr(error, "strerror", None) or str(error)
        raise BrokenFile(field, str(path), f"a readable file ({reason})") from None


def read_bytes(path: Path, limit: int, field: str = "file", packed: bool = False) -> bytes:
    """The bytes of a file, unpacked if it is `packed`; one of more than the limit is refused."""
    with opened(path, field, packed) as file:
        if not packed and os.fstat(file.fileno()).st_size > limit:
            raise _too_large(path, field, limit)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise _too_large(path, field, limit)
    return data


def text_lines(path: Path, field: str = "file", packed: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 file of any size, one after another, each of at most `MAX_LINE_BYTES`."""
    with opened(path, field, packed) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise BrokenFile(field, str(path), f"lines of at most {size_words(MAX_LINE_BYTES)} (line {number})")
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise BrokenFile(field, str(path), f"UTF-8 text (line {number} is not)") from None


def check_regular(path: Path, limit: int, field: str = "file") -> None:
    """Refuse what `read_bytes` would: for files that somebody else's code is to read."""
    with opened(path, field) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise _too_large(path, field, limit)


def _handle(path: Path, field: str) -> int:
    """Looked at before it is opened, since opening some devices does something, and after, lest it was replaced."""
    try:
        _check(path, field, path.stat().st_mode)
        handle = os.open(path, _FLAGS)
    except ValueError as error:  # a NUL inside the path
        raise BrokenFile(field, str(path), f"a readable file ({error})") from None
    try:
        _check(path, field, os.fstat(handle).st_mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check(path: Path, field: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for holds, name in _KINDS if holds(mode)), "something else")
    raise BrokenFile(field, str(path), f"a file, not {kind}")


def _too_large(path: Path, field: str, limit: int) -> BrokenFile:
    return BrokenFile(field, str(path), f"at most {size_words(limit)}")
