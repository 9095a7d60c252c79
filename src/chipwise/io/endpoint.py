"""/metrics over HTTP, or what is sent to it, in a thread of its own. Off loopback it needs the bearer token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.io.files import read_text

TOKEN = "CHIPWISE_METRICS_TOKEN"
MAX_TOKEN_BYTES = 10_000  # of a file that holds one: tokens of identity providers have some thousand
SLOW_S = 10.0  # for a client to say what it wants
SHORTEST = 16  # characters of a token off loopback: shorter ones can be guessed over a network
_ACCEPTED = "HOST:PORT such as 127.0.0.1:9464 or [::1]:9464"


MAX_POST_BYTES = 16 * 2**20
# path, headers in lower case, body, the sender's address: status, type, body
Take = Callable[[str, Mapping[str, str], bytes, str], tuple[int, str, bytes]]


class Endpoint:
    """A server of one page, or of one path that is sent to."""

    def __init__(self, address: str, token: str, text: Callable[[], str], take: Take | None = None) -> None:
        """Bind at once; `InputError` where that can't be, or where it may not be without a token."""
        host, port = parse_address(address)
        family, where, loopback = _resolved(address, host, port)
        if not loopback and not token:
            raise InputError(
                "metrics", address, f"a loopback address, or a bearer token beside it (--token-file or {TOKEN})"
            )
        if not loopback and len(token) < SHORTEST:
            raise InputError("token_file", f"a token of {len(token)} characters", f"one of at least {SHORTEST}")
        kind = type("Server", (ThreadingHTTPServer,), {"address_family": family, "daemon_threads": True})
        try:
            self.server: ThreadingHTTPServer = kind(where, _handler(token, text, take))
        except OSError as error:
            raise InputError("metrics", address, f"an address that is free ({error.strerror or error})") from None
        self.port = int(self.server.server_address[1])
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True, name="metrics")

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port.

    >>> parse_address("[::1]:9464"), parse_address("localhost:0")
    (('::1', 9464), ('localhost', 0))
    """
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError("metrics", address, _ACCEPTED)
    return host, int(port)


def read_token(file: Path | None) -> str:
    """The bearer token: of the file, else of the environment; empty where neither is given."""
    if file is None:
        return os.environ.get(TOKEN, "").strip()
    token = read_text(file, MAX_TOKEN_BYTES, "token_file").strip()
    if not token or not token.isprintable() or " " in token:
        raise InputError("token_file", str(file), "one word: the token")
    return token


def _resolved(address: str, host: str, port: int) -> tuple[int, Any, bool]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InputError("metrics", address, f"{_ACCEPTED} ({_why(error)})") from None
    family, _, _, _, where = addresses[0]
    loopback = all(ipaddress.ip_address(address_info[4][0]).is_loopback for address_info in addresses)
    return family, where, loopback


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _handler(token: str, text: Callable[[], str], take: Take | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SLOW_S
        server_version, sys_version = "chipwise", ""

        def do_GET(self) -> None:
            if not self._allowed():
                self._answer(401, "a bearer token is needed\n", ("WWW-Authenticate", "Bearer"))
            elif self.path.split("?")[0] != "/metrics":
                self._answer(404, "only /metrics is here\n")
            else:
                self._answer(200, text(), ("Content-Type", "text/plain; version=0.0.4; charset=utf-8"))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not self._allowed():
                self._answer(401, "a bearer token is needed\n", ("WWW-Authenticate", "Bearer"))
            elif take is None:
                self._answer(405, "nothing is sent here\n")
            elif not length.isascii() or not length.isdigit() or int(length) > MAX_POST_BYTES:
                self._answer(413, f"say how long it is, at most {MAX_POST_BYTES} bytes\n")
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(length))
                status, kind, answer = take(self.path, headers, body, self.client_address[0])
                self._send(status, answer, ("Content-Type", kind))

        def _allowed(self) -> bool:
            if not token:
                return True
            scheme, _, given = self.headers.get("Authorization", "").partition(" ")
            return (
                hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
                and scheme.lower() == "bearer"
            )

        def _answer(self, status: int, body: str, *headers: tuple[str, str]) -> None:
            self._send(status, body.encode("utf-8", "backslashreplace"), *headers)

        def _send(self, status: int, data: bytes, *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for key, value in headers:
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Scrapes are not logged: they would hide what matters."""

    return Handler
