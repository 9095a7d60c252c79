"""The identity of a router: the first free name on this machine, so that one that was killed comes back as itself.

The name is a lock on a file in the ledger's state folder; it ends with the process, however that ends. A router that
comes back has its attempts at once, without waiting for a lease to run out.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.launch import create_atomically

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
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            create_atomically(uuid.uuid4().hex.encode(), folder / "home")
        return (folder / "home").read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError("folder", str(folder), f"a folder that can be written ({why})") from None


def identity(folder: Path) -> Identity:
    """The first free name of this machine."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "host"
    locks = folder / "routers"
    try:
        locks.mkdir(parents=True, exist_ok=True)
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
