"""Files that are whole or absent: written under a temporary name and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path

from chipwise.errors import InputError


def check_writable(path: Path | None, field: str = "out") -> None:
    """Refuse a file that `atomic_write` could not write, before something is done that can't be undone."""
    if path is None:
        return
    try:
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder")
        if not target.exists() or target.is_file():
            draft = target.parent / f".{target.name}.{os.getpid()}"
            draft.touch()
            draft.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(field, str(path), f"a file that can be written ({reason})") from None


def atomic_write(data: bytes, path: Path, field: str = "out") -> None:
    """Write a file. A link is followed; a device or a pipe is written to as it is."""
    target = path.resolve()
    draft = target.parent / f".{target.name}.{os.getpid()}"
    try:
        if target.is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder")
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                device.write(data)
            return
        draft.write_bytes(data)
        draft.replace(target)
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            draft.unlink()
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(field, str(path), f"a file that can be written ({reason})") from None


@contextmanager
def atomic_draft(path: Path, field: str = "out") -> Iterator[Path]:
    """The name under which a file is written until the `with` ends well; what is too large to be held meanwhile."""
    check_writable(path, field)
    target = path.resolve()
    draft = target.parent / f".{target.name}.{os.getpid()}"
    try:
        yield draft
        draft.replace(target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise InputError(field, str(path), f"a file that can be written ({reason})") from None
        raise
