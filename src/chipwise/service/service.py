"""The service put together: its socket, who is behind it, and the API."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from chipwise.errors import InputError
from chipwise.io.owner import others_can_replace
from chipwise.route.access import Identity
from chipwise.route.ledger import open_ledger
from chipwise.route.load import Pools, read_pools
from chipwise.service.api import Api
from chipwise.service.limits import Failures, Limits
from chipwise.service.peer import Peer
from chipwise.service.server import Denied, Server

LEDGERS = 8  # connections to the ledger: so many requests at once
SOCKET_MODE = 0o666  # everybody may connect: the kernel says who does, and roles say what they may
LONGEST_SOCKET = 107  # bytes of a socket's path (unix(7))


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What a service is made of."""

    pools: Path
    socket: Path
    ledger: str = ""
    limits: Limits = field(default_factory=Limits)


class PoolsFile:
    """The pools file, read again when it changes: roles and quotas count from then on. A broken one changes nothing."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say, self._lock = path, say, threading.Lock()
        self.changed: Callable[[str], None] = lambda line: None  # told when the file counts again
        self._stamp = self._stamp_now()
        self._pools = read_pools(path)

    def __call__(self) -> Pools:
        """The pools as they are now."""
        with self._lock:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._pools = read_pools(self._path)
                    self._say(f"pools file {self._path} read again")
                    self.changed(f"{self._path} read again")
                except InputError as error:
                    self._say(f"pools file {self._path} can't be used, the one before counts: {error}")
            return self._pools

    def _stamp_now(self) -> tuple[int, ...]:
        try:
            at = self._path.stat()
        except OSError:
            return ()
        return at.st_ino, at.st_mtime_ns, at.st_size


class Identifier:
    """Who a request is from: the user at the other end of the socket, with the role that the pools file gives."""

    def __init__(self, pools: Callable[[], Pools]) -> None:
        self._pools, self._trusted = pools, frozenset({0, os.geteuid()})

    def __call__(self, peer: Peer) -> Identity:
        """The identity, or `Denied`."""
        identity = self._pools().access.os_user(peer.user, peer.groups, peer.uid, self._trusted)
        if not identity.role:
            raise Denied(f"{identity.user!r} has no role here; expected one of `access` in the pools file")
        return identity


class Service:
    """The running service. It answers from `start` on, until the block it is opened in ends."""

    def __init__(self, options: ServiceOptions, say: Callable[[str], None] = lambda line: None) -> None:
        self._closing = ExitStack()
        try:
            pools = PoolsFile(options.pools, say)
            listening = self._closing.enter_context(_unix_socket(options.socket))
            self._closing.callback(_remove, options.socket, options.socket.stat().st_ino)
            self.address = f"unix://{options.socket}"
            # last: a service that can't be is refused before it makes a ledger
            ledgers = [self._closing.enter_context(open_ledger(options.ledger)) for _ in range(LEDGERS)]
            self.ledger = ledgers[0].where
            refusals = Failures(options.limits.refusals, options.limits.failures_s)
            api = Api(ledgers, pools, socket.gethostname(), say=say, refusals=refusals)
            self._note_beginnings(api, pools)
            self._server = Server(listening, api, Identifier(pools), options.limits)
        except BaseException:
            self._closing.close()
            raise

    def _note_beginnings(self, api: Api, pools: PoolsFile) -> None:
        """Let the audit log tell whom this service lets in, and when that changes."""
        api.note("service run", self.address)
        pools.changed = lambda line: api.note("pools file", line)
        self._closing.callback(api.close)  # before the ledgers are closed

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._closing.close()


def _unix_socket(path: Path) -> socket.socket:
    """A socket in a folder in which nobody else can put another in its place."""
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise InputError("socket", str(path), f"a path of at most {LONGEST_SOCKET} bytes")
    if trouble := others_can_replace(path.parent, os.geteuid()):
        raise InputError("socket", str(path), f"a path in a folder of your own that others can't write ({trouble})")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise InputError("socket", str(path), "a path at which nothing is but a socket")
            if _answers(path):
                raise InputError("socket", str(path), "a path at which no service answers already")
            path.unlink()
        before = os.umask(0o177)  # nobody else until its mode is what it is to be
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        path.chmod(SOCKET_MODE)
    except OSError as error:
        listening.close()
        raise InputError("socket", str(path), f"a path that can be written ({error.strerror or error})") from None
    except BaseException:
        listening.close()
        raise
    return listening


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _remove(path: Path, inode: int) -> None:
    """Take our own socket away, and nobody else's."""
    with suppress(OSError):
        if path.lstat().st_ino == inode:
            path.unlink()
