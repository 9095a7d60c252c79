"""Whose process uses a device: the attempt, the job and the pod, by its environment and its cgroup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from chipwise.observe.agent.instrument import Labels

PROC = Path("/proc")
# the router's own name for what runs; what Slurm and Ray call it
_VARIABLES = ((b"CHIPWISE_ATTEMPT", "attempt"), (b"SLURM_JOB_ID", "job_id"), (b"RAY_JOB_ID", "job_id"))
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
MOST_BYTES = 1 << 20  # of an environment: Linux lets a program have more, and a hostile one would
_LONGEST = 200  # characters of a label


def user_of(pids: Iterable[int], labels: Callable[[int], Labels]) -> Labels:
    """Whose a device is: nobody's where processes of several use it, one of which may say nothing of whose it is.

    >>> user_of([1, 2], lambda pid: (("job_id", "7"),)), user_of([1, 2], lambda pid: (("job_id", "7"),) * (pid == 1))
    ((('job_id', '7'),), ())
    """
    users = {labels(pid) for pid in pids}
    return users.pop() if len(users) == 1 else ()


def labels_of_process(pid: int, proc: Path = PROC) -> Labels:
    """What a process says of whose it is; empty where it says nothing, is gone, or is another user's."""
    began = _started(pid, proc)
    return () if began is None else _labels(pid, began, proc)


@lru_cache(maxsize=4096)
def _labels(pid: int, began: str, proc: Path) -> Labels:
    """The labels of one process; `began` tells it from an earlier one of the same number."""
    out: dict[str, str] = {}
    variables = dict(part.partition(b"=")[::2] for part in _octets(proc / str(pid) / "environ").split(b"\0"))
    for variable, label in _VARIABLES:
        value = variables.get(variable, b"").decode("utf-8", "replace")
        if value and value.isprintable():
            out.setdefault(label, value[:_LONGEST])
    pod = _POD.search(_octets(proc / str(pid) / "cgroup").decode("utf-8", "replace"))
    if pod is not None:
        out["pod_uid"] = pod[1].replace("_", "-")
    return tuple(sorted(out.items()))


def _started(pid: int, proc: Path) -> str | None:
    """When a process began, in ticks since the machine did: the 22nd word of its stat, after a name in brackets."""
    words = _octets(proc / str(pid) / "stat").rpartition(b")")[2].split()
    return words[19].decode("ascii", "replace") if len(words) > 19 else None


def _octets(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
