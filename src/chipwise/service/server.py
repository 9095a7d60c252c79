"""The service's socket: a unix socket whose peers the kernel names, within limits."""

from __future__ import annotations

import io
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

from chipwise.route.access import Identity
from chipwise.service.api import Api
from chipwise.service.limits import Connections, DeadlineReader, Failures, Limits
from chipwise.service.peer import Peer, peer_of
from chipwise.service.requests import ApiError, ApiRequest, ApiResponse, refused

SMALL_BYTES, DISCARD_S = 65_536, 1.0  # of a body that is read over for strangers; for all reading over
Identify = Callable[[Peer], Identity]  # who a peer stands for, or `Denied`


class Denied(ApiError):
    """A user who has no role here."""

    def __init__(self, message: str) -> None:
        super().__init__(403, message)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The socket of the service. Each connection has a thread, a place among the connections, and deadlines."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, listening: socket.socket, api: Api, identify: Identify, limits: Limits) -> None:
        """`listening`: bound; it is listened on from here on."""
        self.api, self.identify, self.limits = api, identify, limits
        self.failures, self.connections = Failures(limits.failures, limits.failures_s), Connections(limits)
        super().__init__("", Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_address = listening.getsockname()
        self.server_activate()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True, name="service")

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, in its thread."""
        try:
            peer = peer_of(request)
            with self.connections.hold(f"uid {peer.uid}") as free:
                if free:
                    Handler(request, peer, self)
                else:
                    _turn_away(request)
        except (OSError, ValueError):  # the client went away, was too slow, or speaks something else
            pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A defect in one connection: said without what it sent, and no other connection hears of it."""
        import sys

        kind = sys.exc_info()[0]
        self.api.say(f"a request failed: unexpected {kind.__name__ if kind else 'error'}; this is a defect")


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 on one connection: JSON in, JSON out."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "chipwise", ""

    def setup(self) -> None:
        """Read by deadlines; write as a whole."""
        self.connection = self.request
        self._reader = DeadlineReader(self.connection)
        self.rfile = self._buffered = io.BufferedReader(self._reader)
        self.wfile = io.BytesIO()
        client: Any = self.client_address
        self.peer: Peer = client  # as `Server.finish_request` gives it
        self.who = f"uid {self.peer.uid}"
        self._unread = False  # a body was refused before it was read

    def finish(self) -> None:
        """Nothing is left to send."""
        self.rfile.close()

    def handle(self) -> None:
        """Requests, one after another, until either side has had enough."""
        self.close_connection = False
        first = True
        while not self.close_connection:
            self._reader.allow(self.server.limits.head_s if first else self.server.limits.idle_s)
            first = False
            try:
                if not self._buffered.peek(1):
                    return
                self._reader.allow(self.server.limits.head_s)
                self.handle_one_request()
                self._flush()
                if self._unread:
                    self._drain()
            except (OSError, ValueError):
                return

    def handle_expect_100(self) -> bool:
        """Let a client go on that asks before it sends a body."""
        self.send_response_only(100)
        self.end_headers()
        self._flush()
        return True

    def do_GET(self) -> None:
        """Answer a read."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a command."""
        self._answer()

    def _answer(self) -> None:
        try:
            length = self._length()
            try:
                identity = self._identity()  # before the body: nothing of strangers is kept or parsed
            except ApiError:
                self._discard(length)
                raise
            response = self.server.api.answer(self._request(identity, self._body(length)))
        except ApiError as error:
            response = refused(error)
            if error.status in (400, 403, 408, 411, 413, 429):
                self.close_connection = True  # what was sent may not have been read to its end
        self._send(response)

    def _request(self, identity: Identity, body: Any) -> ApiRequest:
        path, _, query = self.path.partition("?")
        try:
            pairs = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=20))
        except ValueError:
            raise ApiError(400, "the query of the path can't be read") from None
        return ApiRequest(self.command, path, identity, pairs, body)

    def _identity(self) -> Identity:
        try:
            return self.server.identify(self.peer)
        except Denied as error:
            wait = self.server.failures.wait_s(self.who)
            if wait > 0:  # and no line of the log
                headers = {"Retry-After": str(int(wait) + 1)}
                raise ApiError(429, "too many requests without a role; try again later", headers) from None
            self.server.failures.note(self.who)
            self.server.api.say(f"refused {self.who}: {error}")
            raise

    def _length(self) -> int | None:
        """The bytes of the body; None where there is none."""
        if self.headers.defects:
            raise ApiError(400, "the headers can't be read")
        lengths = self.headers.get_all("Content-Length") or []
        if self.headers.get("Transfer-Encoding") is not None or len(lengths) > 1:
            raise ApiError(411, "a body needs one Content-Length, and no Transfer-Encoding")
        if not lengths:
            if self.command == "POST":
                raise ApiError(411, "a body needs a Content-Length")
            return None
        if not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 16):
            raise ApiError(400, "Content-Length is no number")
        length = int(lengths[0])
        if length > self.server.limits.body_bytes:
            self._unread = True
            raise ApiError(413, f"the body is larger than {self.server.limits.body_bytes:,} bytes")
        return length

    def _discard(self, length: int | None) -> None:
        """Read over a small body, so that its sender hears the answer."""
        if length and length <= SMALL_BYTES:
            self._reader.allow(DISCARD_S)
            with suppress(TimeoutError):
                self.rfile.read(length)

    def _drain(self) -> None:
        """Read over what its sender still sends after the answer: closed before, the answer may be lost to a reset."""
        self.connection.shutdown(socket.SHUT_WR)
        self._reader.allow(DISCARD_S)
        while self._buffered.read1():
            pass

    def _body(self, length: int | None) -> Any:
        """The body as JSON; None where there is none."""
        if length is None:
            return None
        self._reader.allow(self.server.limits.body_s)
        try:
            data = self.rfile.read(length)
        except TimeoutError:
            raise ApiError(408, "the body took too long") from None
        if len(data) < length:
            raise ApiError(400, "the body ends too early")
        try:
            return json.loads(data, parse_constant=_refuse) if data else None
        except (ValueError, RecursionError):
            raise ApiError(400, "the body is no JSON") from None

    def _send(self, response: ApiResponse) -> None:
        data = json.dumps(response.document, ensure_ascii=True, allow_nan=False).encode()
        self.send_response(response.status)
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **response.headers,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request of HTTP's, answered as JSON and without its words."""
        self.close_connection = True
        self.request_version = "HTTP/1.1"
        self._send(refused(ApiError(int(code), message if code != 400 and message else "this is no request")))

    def _flush(self) -> None:
        data = self.wfile.getvalue()  # type: ignore[attr-defined]
        self.wfile = io.BytesIO()
        if data:
            self.connection.settimeout(self.server.limits.send_s)  # of sendall as a whole
            self.connection.sendall(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are not logged line by line: commands and refusals are, by the API."""

    def address_string(self) -> str:
        """Who it is, for nobody: nothing is looked up."""
        return self.who


def _turn_away(request: socket.socket) -> None:
    with suppress(OSError):
        request.settimeout(1.0)
        request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")


def _refuse(word: str) -> Any:
    raise ValueError(word)
