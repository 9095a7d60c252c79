"""One connection to the service: who is behind its socket is checked, whole answers have deadlines."""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from chipwise.errors import InputError
from chipwise.io.owner import others_can_replace
from chipwise.route.ledger.error import LedgerError

CONNECT_S = 10.0
MOST_BYTES = 256 * 1024 * 1024  # of an answer
_CREDENTIALS = struct.Struct("3i")


class Link:
    """HTTP to the service; the connection is kept between requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: HTTPConnection | None = None
        self._headers = {"Accept": "application/json", "User-Agent": "chipwise"}
        self._path = Path(url.removeprefix("unix://")).expanduser()
        if not self._path.is_absolute():
            raise InputError("ledger", url, "the whole path of a socket, such as unix:///run/chipwise/service.sock")

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, method: str, path: str, body: bytes | None, until: float) -> tuple[int, bytes]:
        """Send a request; status and body of the answer, within the deadline (of time.monotonic)."""
        kept = self._connection is not None
        try:
            return self._ask(method, path, body, until)
        except (ConnectionError, HTTPException) as error:
            self.close()
            # a connection that was kept may have been closed meanwhile; what may have been carried out is not repeated
            if not kept or method != "GET":
                raise self._down(error) from None
        except OSError as error:
            self.close()
            raise self._down(error) from None
        try:
            return self._ask(method, path, body, until)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._down(error) from None

    def _ask(self, method: str, path: str, body: bytes | None, until: float) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        link = self._connection.sock
        link.settimeout(_left(until))
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before its end: the answer is there
            self._connection.request(method, path, body, headers)
        data = bytearray()
        with self._connection.getresponse() as answer:
            while True:
                if self._connection.sock is not None:
                    self._connection.sock.settimeout(_left(until))
                piece = answer.read1(1 << 20)
                if not piece:
                    break
                data += piece
                if len(data) > MOST_BYTES:
                    raise OSError("its answer is too large")
        if answer.will_close:
            self.close()
        return answer.status, bytes(data)

    def _connect(self) -> HTTPConnection:
        connection = HTTPConnection("localhost")
        connection.sock = _socket(self._path, self.url)
        return connection

    def _down(self, error: Exception) -> LedgerError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return LedgerError(
            self.url,
            f"the service does not answer ({why})",
            "see that `chipwise service run` runs there, then try again",
        )


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


def _shared(folder: Path) -> str:
    """The folder above a socket in which anybody can make folders (such as /tmp): whoever came first may serve it."""
    real = folder.resolve()
    return next((str(place) for place in (real, *real.parents) if place.stat().st_mode & stat.S_IWOTH), "")


def _socket(path: Path, url: str) -> socket.socket:
    """The service's socket, refused where another user could have put theirs in its place."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(CONNECT_S)
        link.connect(str(path))
        _, server, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        at = path.lstat()
        if not stat.S_ISSOCK(at.st_mode) or at.st_uid != server:
            raise InputError("ledger", url, f"a socket of the user who serves it (user {server}, not {at.st_uid})")
        if trouble := others_can_replace(path.parent, server):
            raise InputError("ledger", url, f"a socket in a folder that only the service's user can write ({trouble})")
        if server not in (0, os.geteuid()) and (shared := _shared(path.parent)):
            accepted = (
                f"a socket of root's or your own, or one that is not below {shared}, where anybody can make folders"
            )
            raise InputError("ledger", url, accepted)
    except BaseException:
        link.close()
        raise
    return link
