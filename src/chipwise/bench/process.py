"""A worker process as the session hears it: one framework's messages, or how the process ended before its last."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chipwise.bench.worker import Job
from chipwise.errors import ChipwiseError
from chipwise.io.worker import Worker, signal_name, with_package

QUIET_SECONDS = 900.0  # a worker that says nothing for so long is stuck
_GRACE_SECONDS = 30.0  # to leave by itself, once it has said all


class Stopped(ChipwiseError):
    """A worker that ended before it had said all; the message says how, and the last line it printed."""


def environment(given: Mapping[str, str], platform: str) -> dict[str, str]:
    """The environment of a worker: JAX takes memory as it needs it, and looks for no other accelerator."""
    backends = {"cpu": "cpu", "cuda": "cuda,cpu", "rocm": "rocm,cpu", "tpu": "tpu,cpu"}
    return {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        **with_package(given),
        "JAX_PLATFORMS": backends[platform],
    }


def talk(job: Job) -> Iterator[dict[str, Any]]:
    """What a worker says, message by message, until it has done its job; `Stopped` where it ends before."""
    with tempfile.TemporaryDirectory(prefix="chipwise-bench-") as folder:
        job_file, log = Path(folder) / "job.json", Path(folder) / "log.txt"
        job_file.write_text(json.dumps(asdict(job)), encoding="utf-8")
        variables = environment(os.environ, job.platform)
        with Worker("chipwise.bench.worker", [str(job_file)], variables, log) as worker:
            yield from _messages(worker)
            status = worker.status
        if status:
            last = worker.last_lines(1).strip()
            raise Stopped(_how(status) + (f"; it last printed: {last[:200]}" if last else ""))


def _messages(worker: Worker) -> Iterator[dict[str, Any]]:
    """Messages until the process has ended, or hangs after its last; `Stopped` if it is quiet for too long."""
    heard, closed = time.monotonic(), False
    for message in worker.messages():
        if message is not None or worker.closed != closed:
            heard, closed = time.monotonic(), worker.closed
        if message is not None:
            yield message
        elif closed and time.monotonic() - heard > _GRACE_SECONDS:
            return
        elif not closed and time.monotonic() - heard > QUIET_SECONDS:
            raise Stopped(f"it gave no answer for {QUIET_SECONDS:.0f} s")


def _how(status: int) -> str:
    if status == -signal.SIGKILL:
        return "its process was killed (SIGKILL), as the system does when memory runs out"
    if status < 0:
        return f"its process was ended by {signal_name(-status)}"
    return f"its process left with status {status}"
