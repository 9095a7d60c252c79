"""The link to one Ray cluster: a process that holds Ray, asked in JSON, ended when it does not answer in time."""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from chipwise.io.deadline import in_time, kill_group
from chipwise.io.install import install_line
from chipwise.route.backend import BackendDown, BackendRefused

CONNECT_S = 60.0  # a busy head takes 16 s and more to take a driver on
ANSWER_S = 30.0
REACH_S = 3.0  # for the port of the head alone


class _Driver:
    """The process and what it prints; ended with the link, or with the router."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115  its last line explains a failure

    def end(self) -> None:
        """End the process. It holds nothing that would be lost."""
        process, self.process = self.process, None
        if process is None:
            return
        kill_group(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def close(self) -> None:
        """End it for good."""
        self.end()
        self.printed.close()


class RayLink:
    """One cluster. Calls are taken one at a time; a call that fails leaves no process behind."""

    def __init__(self, address: str, connect_s: float = CONNECT_S, answer_s: float = ANSWER_S) -> None:
        self.address, self.connect_s, self.answer_s = address, connect_s, answer_s
        self._driver = _Driver()
        self._heard = b""
        self._turn = threading.Lock()
        self.close = weakref.finalize(self, self._driver.close)  # also when nobody calls it

    def ask(self, op: str, **more: Any) -> Any:
        """The answer to one request: `BackendDown` when there is none in time, `BackendRefused` when it is no."""
        with self._turn:
            try:
                if self.driver is None or self.driver.poll() is not None:
                    self._connect()
                self._send({"op": op, "timeout": self.answer_s, **more})
                return self._read(self.answer_s, f"no answer within {self.answer_s:g} s")
            except BackendDown:
                self._driver.end()
                raise

    @property
    def driver(self) -> subprocess.Popen[bytes] | None:
        """The process that holds Ray, while there is one."""
        return self._driver.process

    def _connect(self) -> None:
        self._driver.end()
        if find_spec("ray") is None:
            raise BackendDown(f"ray: Ray is not installed here; {install_line('ray')}")
        self._reach()
        # a router started by `uv run` must not have its own environment sent to the cluster
        env = os.environ | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        if self.address.startswith(("127.", "localhost:", "[::1]")):
            env["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray would look for it at the machine's outer address
        self._driver.printed.seek(0)
        self._driver.printed.truncate()
        self._driver.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chipwise.route.backends.ray.driver", self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._driver.printed,
            env=env,
            start_new_session=True,
        )
        assert self._driver.process.stdin is not None
        os.set_blocking(self._driver.process.stdin.fileno(), False)
        self._heard = b""
        self._read(self.connect_s, f"not connected within {self.connect_s:g} s")

    def _reach(self) -> None:
        """Whether somebody listens there at all: Ray itself would try for long."""
        where = self.address.partition("://")[2] or self.address
        host, _, port = where.partition("/")[0].rpartition(":")
        if not host or not port.isdigit():  # auto, local, or a name that Ray resolves itself
            return
        try:
            # looking the name up has no time-out of its own
            in_time(lambda: socket.create_connection((host.strip("[]"), int(port)), REACH_S).close(), 2 * REACH_S)
        except (OSError, OverflowError) as error:
            raise self._down(str(error)) from None

    def _send(self, request: dict[str, Any]) -> None:
        process = self.driver
        assert process is not None and process.stdin is not None
        data, until = json.dumps(request).encode("ascii") + b"\n", time.monotonic() + self.answer_s
        try:
            with selectors.DefaultSelector() as selector:  # a driver that is stuck must not hold us either
                selector.register(process.stdin, selectors.EVENT_WRITE)
                while data:
                    left = until - time.monotonic()
                    if left <= 0 or not selector.select(left):
                        raise self._down(f"its driver takes no request within {self.answer_s:g} s")
                    data = data[os.write(process.stdin.fileno(), data) :]
        except OSError as error:
            raise self._down(f"its driver has ended ({error})") from None

    def _read(self, seconds: float, late: str) -> Any:
        process = self.driver
        assert process is not None and process.stdout is not None
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):  # also for one that says a little now and then
                    raise self._down(late)
                part = os.read(process.stdout.fileno(), 65_536)
                if not part:
                    raise self._down("its driver has ended" + self._last_words())
                self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        try:
            reply = json.loads(line)
        except ValueError:
            raise self._down(f"its driver said {line[:80]!r}") from None
        if "refused" in reply:
            raise BackendRefused(f"ray: {reply['refused']}")
        if "ok" not in reply:
            raise self._down(str(reply.get("down")))
        return reply["ok"]

    def _last_words(self) -> str:
        self._driver.printed.seek(0)
        lines = [line for line in self._driver.printed.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""

    def _down(self, why: str) -> BackendDown:
        return BackendDown(f"ray at {self.address}: {why}")
