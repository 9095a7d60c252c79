"""Folders of attempts that ended long ago, removed. Those of jobs that may go on are kept, whatever their age.

A folder is moved aside before it is emptied: a router that is killed in between leaves nothing that looks like an
attempt, and the next one removes the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from zlib import crc32

from chipwise.route.backend import BackendDown
from chipwise.route.ledger import Ledger

KEEP_S = 30 * 86_400.0  # a month: long enough to look into what went wrong; --keep says otherwise
EVERY_S = 600.0  # between two passes: folders are removed days after their end, minutes don't matter
MOST = 200  # folders in one pass: a tick stays short
LOOKED_AT = 5_000  # folders in one pass: of 100,000 kept, each is looked at every few hours


def remove_old(ledger: Ledger, folder: Path, keep_s: float, now: float, under_way: Collection[str]) -> list[str]:
    """Remove folders of attempts that ended over `keep_s` ago and whose jobs are over; their names.

    `under_way`: attempts that the backend shows as under way, whatever the ledger says: theirs are kept.
    """
    attempts, aside = folder / "attempts", folder / "removed"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        turn = _in_turn(os.listdir(attempts), now)  # noqa: PTH208  # no path of each: there may be a hundred thousand
        old = [name for name in turn if name not in under_way and _folder_before(f"{attempts}/{name}", now - keep_s)]
        names = ledger.over_before(sorted(old), now - keep_s)[:MOST]
        if names:
            aside.mkdir(exist_ok=True)
        for name in names:
            with suppress(FileNotFoundError):  # another router was faster
                (attempts / name).rename(aside / f"{name}.{os.getpid()}")
        shutil.rmtree(aside, ignore_errors=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BackendDown(f"{folder}: {error.strerror or error}") from None
    return names


def _in_turn(names: Sequence[str], now: float) -> Sequence[str]:
    """The folders whose turn it is: all, or of many a part by their names, another each time."""
    parts = -(-len(names) // LOOKED_AT)
    turn = int(now // EVERY_S)
    return names if parts < 2 else [name for name in names if crc32(os.fsencode(name)) % parts == turn % parts]


def _folder_before(path: str, when: float) -> bool:
    """Whether it is a folder that was last written to before a moment."""
    with suppress(FileNotFoundError):  # another router was faster
        status = os.lstat(path)
        return S_ISDIR(status.st_mode) and status.st_mtime < when
    return False
