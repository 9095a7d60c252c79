"""A worker process as the session sees it: started, listened to, and killed with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chipwise.bench.worker import Job
from chipwise.errors import ChipwiseError

QUIET_SECONDS = 900.0  # a worker that says nothing for so long is stuck
_TICK_SECONDS = 0.1
_GRACE_SECONDS = 30.0  # to leave by itself, once it has said all


class Stopped(ChipwiseError):
    """A worker that ended before it had said all; the message says how, and the last line it printed."""


def environment(given: Mapping[str, str], platform: str) -> dict[str, str]:
    """The environment of a worker: JAX takes memory as it needs it, and looks for no other accelerator."""
    package = str(Path(__file__).resolve().parents[2])
    path = [*filter(None, given.get("PYTHONPATH", "").split(os.pathsep)), package]
    backends = {"cpu": "cpu", "cuda": "cuda,cpu", "rocm": "rocm,cpu", "tpu": "tpu,cpu"}
    return {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        **given,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "JAX_PLATFORMS": backends[platform],
    }


def talk(job: Job) -> Iterator[dict[str, Any]]:
    """What a worker says, message by message, until it has done its job; `Stopped` where it ends before."""
    with tempfile.TemporaryDirectory(prefix="chipwise-bench-") as folder:
        job_file, log = Path(folder) / "job.json", Path(folder) / "log.txt"
        job_file.write_text(json.dumps(asdict(job)), encoding="utf-8")
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb", buffering=0) as told:
            try:
                with log.open("wb") as out:
                    process = subprocess.Popen(
                        [
                            sys.executable,
                            "-P",
                            "-m",
                            "chipwise.bench.worker",
                            str(job_file),
                            str(writer),
                            str(os.getpid()),
                        ],
                        env=environment(os.environ, job.platform),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        pass_fds=(writer,),
                        start_new_session=True,
                    )
            finally:
                os.close(writer)
            try:
                yield from _messages(told.fileno(), process)
                status = _left(process)
            finally:
                _kill(process)
        if status:
            raise Stopped(_how(status) + _last_line(log))


def _messages(pipe: int, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Messages until the pipe closes, the process is gone or has been quiet for too long."""
    buffer, heard = b"", time.monotonic()
    while True:
        if select.select([pipe], [], [], _TICK_SECONDS)[0]:
            said = os.read(pipe, 65536)
            if not said:
                return
            heard = time.monotonic()
            *lines, buffer = (buffer + said).split(b"\n")
            for line in lines:
                yield json.loads(line)
        elif process.poll() is not None:
            return
        elif time.monotonic() - heard > QUIET_SECONDS:
            raise Stopped(f"it gave no answer for {QUIET_SECONDS:.0f} s")


def _left(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:  # it said all, and hangs on its way out
        return 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the worker and what it started; it may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how(status: int) -> str:
    if status == -signal.SIGKILL:
        return "its process was killed (SIGKILL), as the system does when memory runs out"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process left with status {status}"


def _last_line(log: Path) -> str:
    try:
        lines = log.read_bytes()[-20_000:].decode(errors="replace").splitlines()
    except OSError:
        return ""
    kept = [line.strip() for line in lines if line.strip()]
    return f"; it last printed: {kept[-1][:200]}" if kept else ""
