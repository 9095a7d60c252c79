"""Slurm's REST daemon, by HTTP over a unix socket or TCP: the same requests, the same answers, as JSON.

Written for the API of Slurm 22.05 (v0.0.38), tried on 22.05.8. It has no `--test-only`, so no start is predicted. It
passes over `requeue: false`, so jobs that must not start again carry CHIPWISE_ONCE, which the shim obeys. It knows no
signal for the batch script alone: the shim keeps the time limit. `exclusive` is refused, `argv` makes it crash, and
`nodes` as a pair of numbers is passed over: it must be one number.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from chipwise.errors import InputError
from chipwise.io.deadline import in_time
from chipwise.route.backend import BackendDown, BackendRefused
from chipwise.route.backends.slurm.read import (
    SlurmJob,
    SlurmNode,
    error_words,
    jobs_from_json,
    line,
    nodes_from_json,
    nonsense,
)
from chipwise.route.backends.slurm.request import SCRIPT, Request

API = "/slurm/v0.0.38"
MOST = 256 * 2**20  # bytes of an answer; a job takes 3 kB, so this is a queue of 80,000
# slurmrestd's names for the options of sbatch
NAMES = {"constraint": "constraints", "memory": "memory_per_node"}
GONE = re.compile(r"invalid job id|already complet", re.IGNORECASE)
# errors of a submission that are Slurm's answer to this job (slurm_errno.h, ESLURM_*: 2000 to 2999 are of jobs and
# partitions); others say that it could not be asked
ANSWERS = range(2000, 3000)
UNREAD = 9001  # "Failure during parsing": this daemon has no such option


class UnixConnection(HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def owner(self) -> int:
        """The user of the process that listens."""
        size = struct.calcsize("3i")
        return int(struct.unpack("3i", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


class Rest:
    """A slurmrestd. Its token is the variable SLURM_JWT, if any; its user is whoever the daemon says jobs are of."""

    excludes = False  # v0.0.38 lists `excluded_nodes`, and refuses it as disabled

    def __init__(self, address: str, timeout: float, user: str = "") -> None:
        """`address` is unix:/path or http(s)://host:port; `user` owns the jobs, where the address doesn't tell."""
        parts = urlsplit(address)
        if not ((parts.scheme == "unix" and parts.path) or (parts.scheme in ("http", "https") and parts.hostname)):
            raise InputError("address.rest", address, "unix:/path or https://host:port")
        if parts.username or parts.password:
            raise InputError("address.rest", f"{parts.scheme}://...", "no secret in it; the token is SLURM_JWT")
        self.address, self.timeout, self.user = address, timeout, user
        self._parts, self._owner = parts, ""

    def jobs(self) -> Sequence[SlurmJob]:
        """The jobs of this user, in all states that Slurm remembers."""
        text = self._get("/jobs")
        owners = {self._owner, self._number(self.user), self.user} - {""}
        return [job for job in jobs_from_json(text, self._endpoint("/jobs")) if not owners or job.user in owners]

    def nodes(self) -> Sequence[SlurmNode]:
        """Every node."""
        nodes = nodes_from_json(self._get("/nodes"), self._endpoint("/nodes"))
        if nodes is None:
            raise BackendDown(f"slurm: {self._endpoint('/nodes')} lists no nodes")
        return nodes

    def submit(self, request: Request) -> str:
        """The job's id."""
        status, text = self._ask("POST", "/job/submit", {"script": SCRIPT, "job": job_of(request)})
        answer = self._object(text, "/job/submit")
        if answer.get("errors"):
            raise self._refusal(answer["errors"])
        if status != 200 or not isinstance(answer.get("job_id"), int) or answer["job_id"] <= 0:
            raise nonsense(self._endpoint("/job/submit"), text)
        return str(answer["job_id"])

    def start(self, request: Request) -> float | None:
        """It can't tell."""
        return None

    def cancel(self, job: str) -> None:
        """Stop a job; it is no error if it has ended."""
        status, text = self._ask("DELETE", f"/job/{job}")
        errors = self._object(text, "/job").get("errors") or ([] if status == 200 else [f"HTTP status {status}"])
        if errors and not GONE.search(json.dumps(errors)):
            raise BackendDown(f"slurm: {self._endpoint('/job')}: {error_words(errors)}")

    def _get(self, path: str) -> str:
        status, text = self._ask("GET", path)
        if status != 200:
            errors = self._object(text, path).get("errors")
            raise BackendDown(
                f"slurm: {self._endpoint(path)}: {error_words(errors) if errors else f'HTTP status {status}'}"
            )
        return text

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, str]:
        connection = self._connection()
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token := os.environ.get("SLURM_JWT"):
            headers["X-SLURM-USER-TOKEN"] = token
            headers["X-SLURM-USER-NAME"] = self.user or pwd.getpwuid(os.getuid()).pw_name

        def exchange() -> tuple[int, bytes]:
            try:
                connection.request(method, API + path, None if body is None else json.dumps(body), headers)
                if isinstance(connection, UnixConnection):
                    self._owner = str(connection.owner())
                with connection.getresponse() as answer:
                    return answer.status, answer.read(MOST + 1)
            finally:
                connection.close()

        try:
            status, data = in_time(exchange, self.timeout, lambda: _hang_up(connection))
        except (OSError, HTTPException, ValueError) as error:
            late = f"no whole answer within {self.timeout:g} s"
            words = late if isinstance(error, TimeoutError) else line(str(error)) or type(error).__name__
            raise BackendDown(f"slurm: {self._endpoint(path)}: {words}") from None
        if len(data) > MOST:
            raise BackendDown(f"slurm: {self._endpoint(path)} answered more than {MOST} bytes")
        return status, data.decode("utf-8", "replace")

    def _connection(self) -> HTTPConnection:
        if self._parts.scheme == "unix":
            return UnixConnection(self._parts.path, self.timeout)
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=self.timeout, context=ssl.create_default_context())
        return HTTPConnection(host, port, timeout=self.timeout)

    def _endpoint(self, path: str) -> str:
        return f"slurmrestd {self.address} {API}{path}"

    def _object(self, text: str, path: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise nonsense(self._endpoint(path), text)
        return document

    def _refusal(self, errors: Any) -> BackendDown | BackendRefused:
        numbers = {e.get("error_number", e.get("error_code")) for e in errors if isinstance(e, dict)}
        if any(isinstance(n, int) and (n in ANSWERS or n == UNREAD) for n in numbers):
            return BackendRefused(f"slurm: {error_words(errors)}")
        return BackendDown(f"slurm: {self._endpoint('/job/submit')}: {error_words(errors)}")

    @staticmethod
    def _number(user: str) -> str:
        try:
            return str(pwd.getpwnam(user).pw_uid) if user else ""
        except KeyError:
            return ""


def _hang_up(connection: HTTPConnection) -> None:
    """End a connection that another thread waits for."""
    with suppress(OSError):
        if connection.sock is not None:
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # below TLS, which the other thread is in


def job_of(request: Request) -> dict[str, Any]:
    """A request as the properties of a job."""
    if request.exclusive:
        raise BackendRefused("slurmrestd of Slurm 22.05 takes no exclusive jobs; use Slurm's commands for this pool")
    options: dict[str, Any] = {NAMES.get(key, key): value for key, value in request.options}
    if "memory_per_node" in options:
        options["memory_per_node"] = _megabytes(options["memory_per_node"])
    return {
        **options,
        "name": request.name,
        "comment": request.comment,
        "nodes": request.nodes,
        "tasks": request.nodes,
        "tasks_per_node": 1,
        "dependency": "singleton",
        "open_mode": "append",
        **({"gres": request.gres} if request.gres else {}),
        **({"cpus_per_task": request.cpus} if request.cpus else {}),
        **({"time_limit": ceil(request.seconds / 60)} if request.seconds is not None else {}),
        "requeue": request.requeue,
        "current_working_directory": request.folder,
        "standard_output": request.log,
        "environment": dict(request.environment),
    }


def _megabytes(text: str) -> int:
    """Memory in sbatch's notation.

    >>> _megabytes("2G"), _megabytes("512")
    (2048, 512)
    """
    match = re.fullmatch(r"([0-9]+)([KMGT]?)", text.upper())
    if match is None:
        raise BackendRefused(f"address: memory: {text!r} is not accepted; expected a number with K, M, G or T")
    return ceil(int(match[1]) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match[2]])
