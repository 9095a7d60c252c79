"""The identity of a router: the first free name on this machine, so that one that was killed comes back as itself.

The name is a lock on a file in the ledger's state folder; it ends with the process, however that ends. A router that
comes back has its attempts at once, without waiting for a lease to run out.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InputError
from chipwise.io.owner import others_can_replace
from chipwise.route.attempt_files import read_bounded
from chipwise.route.launch import create_atomically, private_folder

MOST = 64  # routers of one ledger on one machine


@dataclass(frozen=True, slots=True)
class Identity:
    """A router's name, and the lock that makes it its own."""

    name: str
    lock: int

    def release(self) -> None:
        """Let another have it."""
        with suppress(OSError):
            os.close(self.lock)


def mark_of(folder: Path) -> str:
    """What tells this folder from all others, however it is mounted: a word in the file `home`, made once."""
    try:
        _check_own(folder)
        with suppress(FileExistsError):
            create_atomically(uuid.uuid4().hex.encode(), folder / "home")
        return (read_bounded(folder / "home", 64) or b"").decode("ascii")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError("folder", str(folder), f"a folder that can be written ({why})") from None


def _check_own(folder: Path) -> None:
    """Make a ledger's folder, and the folder of attempts in it: the router's own, and nobody else's to read or write.

    What lies there is run as the router's user: whoever could put something there, or another folder in its place,
    could run anything.
    """
    for place in (folder, folder / "attempts"):
        private_folder(place)
        at = place.lstat()
        if stat.S_ISDIR(at.st_mode) and at.st_uid == os.geteuid() and at.st_mode & 0o077:
            place.chmod(0o700)  # of an older version, whose folders all could read
        if stat.S_ISLNK(at.st_mode) and at.st_uid not in (os.geteuid(), 0):
            why = f"{place} is a link of user {at.st_uid}"
        else:
            why = others_can_replace(place)
        if why:
            raise InputError("folder", str(folder), f"a folder that nobody else can write or replace: {why}")


def identity(folder: Path) -> Identity:
    """The first free name of this machine."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "host"
    locks = folder / "routers"
    try:
        _check_own(folder)
        private_folder(locks)
        for number in range(1, MOST + 1):
            name = f"{host}-{number}"
            lock = os.open(locks / name, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            return Identity(name, lock)
    except OSError as error:
        raise InputError("folder", str(folder), f"a folder that can be written ({error.strerror or error})") from None
    raise InputError("folder", str(folder), f"fewer than {MOST} routers on this machine")
