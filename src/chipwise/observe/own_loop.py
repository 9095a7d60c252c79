"""Steps that a loop of one's own tells: a line now and then, which `chipwise observe` reads as any trainer's.

Loads nothing but Python's own library, so that a program which trains loads no more for it.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import index
from typing import SupportsFloat, SupportsIndex, TextIO

from chipwise.errors import InputError

EVERY_S = 1.0
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID")  # as launchers set them
WORD = "chipwise"  # what a line begins with, behind its stamp and rank


@dataclass(slots=True)
class _Loop:
    """What has been counted since a line was last printed."""

    steps: int = 0  # of the whole run
    last_line: float = 0.0  # when it was printed
    since: int = 0  # steps after it
    tokens: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


_LOOP = _Loop()


def step(
    number: SupportsIndex | None = None,
    *,
    tokens: float | None = None,
    loss: SupportsFloat | None = None,
    tflops_per_device: float | None = None,
    mfu: float | None = None,
    every: float = EVERY_S,
    all_ranks: bool = False,
    to: TextIO | None = None,
) -> None:
    """Tell that a step has ended; call it once a step, last in the loop.

    A line is printed at most once in `every` seconds, with the mean time of the steps since the last one and the
    `tokens` a second of all devices. Only then a `loss` that is still on a device is fetched. Without a `number` steps
    are counted from 1. Of several processes the first tells, or `all_ranks`, for finding slow ones.

    >>> step(40, tokens=8192, loss=2.5, to=sys.stdout)  # doctest: +ELLIPSIS
    2... chipwise step=40 loss=2.5
    """
    now = time.monotonic()
    place = None if number is None else _whole(number)
    if every < 0 or not math.isfinite(every):
        raise InputError("every", every, "seconds, at least 0")
    if tokens is not None and not 0 <= tokens < math.inf:
        raise InputError("tokens", tokens, "a number, at least 0")
    rank = _rank()
    if rank not in ("", "0") and not all_ranks:
        return
    loop = _LOOP
    with loop.lock:
        began = loop.steps == 0
        loop.steps = loop.steps + 1
        loop.since, loop.tokens = loop.since + 1, loop.tokens + (tokens or 0.0)
        if not began and now - loop.last_line < every:
            return
        words = [f"step={loop.steps if place is None else place}"]
        seconds = now - loop.last_line
        if not began and seconds > 0:  # what came before the first step is no step's time
            words.append(f"step_seconds={seconds / loop.since:.6g}")
            if loop.tokens:
                words.append(f"tokens_per_s={loop.tokens / seconds:.6g}")
        for name, amount in (("loss", loss), ("tflops_per_device", tflops_per_device), ("mfu", mfu)):
            if amount is not None:
                words.append(f"{name}={_amount(amount):.6g}")
        loop.last_line, loop.since, loop.tokens = now, 0, 0.0
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    whose = f" [rank{rank}]:" if rank else ""
    print(f"{stamp}{whose} {WORD} {' '.join(words)}", file=to or sys.stdout, flush=True)


def _amount(value: SupportsFloat) -> float:
    """The number that a value is, also one that is on a device (PyTorch, JAX) or of NumPy."""
    item = getattr(value, "item", None)
    return float(value if item is None else item())


def _whole(number: SupportsIndex) -> int:
    try:
        if not isinstance(number, bool) and (whole := index(number)) >= 0:
            return whole
    except TypeError:
        pass
    raise InputError("number", str(number), "a whole number, at least 0")


def _rank() -> str:
    """The number of this process among those of the job, "" where nobody says."""
    return next((os.environ[name] for name in RANKS if os.environ.get(name, "").isdigit()), "")
