"""What a log says: steps of training, windows of serving, faults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(slots=True, kw_only=True)
class Step:
    """One step of training; None where the log does not say."""

    step: int | None = None
    step_seconds: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None
    mfu: float | None = None  # a share of one
    loss: float | None = None
    rank: str = ""  # who printed it, where the line says so
    at: float | None = None  # seconds since 1970, by the stamp of its line
    line: int = 0  # from 1


@dataclass(slots=True, kw_only=True)
class ServingWindow:
    """What a server says of the time since it last said something."""

    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None  # a share of one
    prompt_tokens_per_s: float | None = None
    generation_tokens_per_s: float | None = None
    engine: str = ""  # of the server, where its line says so: data parallel ranks, servers that print into one log
    at: float | None = None  # seconds since 1970, by the stamp of its line


class FaultClass(StrEnum):
    """What is at fault: a device's part, its driver, or what ran."""

    MEMORY = "memory"
    LINK = "link"
    BUS = "bus"
    THERMAL = "thermal"
    DRIVER = "driver"
    OOM = "oom"
    PREEMPTED = "preempted"
    HANG = "hang"
    PROGRAM = "program"


class Severity(StrEnum):
    """How soon somebody has to act."""

    CRITICAL = "critical"  # now: nothing goes on, or what runs there is lost
    WARNING = "warning"  # time and money are lost, or will be
    NOTICE = "notice"  # to be known


SEVERITIES = tuple(Severity)  # the gravest first


# what a device does to every process that waits for it: their time-outs and errors are not faults of their own
CAUSES = frozenset(
    {FaultClass.MEMORY, FaultClass.LINK, FaultClass.BUS, FaultClass.DRIVER, FaultClass.OOM, FaultClass.PREEMPTED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, with the first line that shows it."""

    kind: FaultClass
    device: str | None = None
    xid: int | None = None
    line: str = ""
    number: int = 0  # of the line, from 1
    at: float | None = None  # seconds since 1970, by the line's stamp or the last before it
