"""What Slurm says of its jobs and nodes, read from its JSON or from its tables; nonsense is never taken for an answer.

JSON differs from version to version: numbers became objects (`{"set": true, "number": 3}`) and states became lists in
23.02; `sinfo --json` says other things since 23.11. Tables by `--Format` have columns of fixed width, so that no name
of another user's job can move one. Slurm 22.05 answers an empty list with status 0 when its controller is away, and
says so under `errors` alone: that is no empty queue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, TypeVar

from chipwise.route.backend import CANCELLED, FAILED, LOST, PENDING, RUNNING, SUCCEEDED, BackendDown

T = TypeVar("T")

# states of Slurm (squeue(1), "JOB STATE CODES", 22.05 to 24.11): ours, and words for those that need them
STATES: dict[str, tuple[str, str]] = {
    "PENDING": (PENDING, ""),
    "CONFIGURING": (PENDING, "its nodes are getting ready"),
    "REQUEUED": (PENDING, "put back into the queue"),
    "REQUEUE_FED": (PENDING, "put back into the queue"),
    "REQUEUE_HOLD": (PENDING, "put back into the queue and held"),
    "SPECIAL_EXIT": (PENDING, "put back into the queue and held"),
    "RESV_DEL_HOLD": (PENDING, "held: its reservation is gone"),
    "RUNNING": (RUNNING, ""),
    "COMPLETING": (RUNNING, "ending"),
    "SIGNALING": (RUNNING, "being signalled"),
    "STAGE_OUT": (RUNNING, "moving files out"),
    "RESIZING": (RUNNING, "changing size"),
    "SUSPENDED": (RUNNING, "suspended"),
    "STOPPED": (RUNNING, "stopped"),
    "COMPLETED": (SUCCEEDED, ""),
    "FAILED": (FAILED, ""),
    "TIMEOUT": (FAILED, "ran past its time limit"),
    "DEADLINE": (FAILED, "ran past Slurm's deadline"),
    "OUT_OF_MEMORY": (FAILED, "ran out of memory"),
    "CANCELLED": (CANCELLED, "cancelled"),
    "NODE_FAIL": (LOST, "its node failed"),
    "BOOT_FAIL": (LOST, "its node did not boot"),
    "LAUNCH_FAILED": (LOST, "its node could not start it"),
    "RECONFIG_FAIL": (LOST, "its node could not be set up"),
    "PREEMPTED": (LOST, "preempted by Slurm"),
    "REVOKED": (LOST, "taken back by its cluster"),
}
# one of these among several says more than the others: it is back in the queue, or still ending
FIRST = ("REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "COMPLETING", "CONFIGURING")
UNUSABLE = re.compile(
    r"down|drain|fail|maint|not_?respond|power(ed|ing)?_?(down|off)|reboot|unknown|invalid|blocked", re.IGNORECASE
)
# of a node that saves power or of the cloud: Slurm starts it for the job that it gives it, and hears nothing of it
# until it is up (slurm.conf(5), "ResumeProgram"; tried on 22.05)
STARTABLE = frozenset({"powered_down", "powering_up"})
SILENT = re.compile(r"not_?respond", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as Slurm shows it."""

    id: str
    name: str
    user: str  # number of its user, or name where Slurm gives no number
    state: str  # one of STATES
    reason: str = ""
    exit_code: int | None = None  # as shells write it
    started: float | None = None
    ended: float | None = None
    nodes: str = ""
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as Slurm shows it."""

    name: str
    usable: bool
    state: str
    partitions: frozenset[str]
    features: frozenset[str]
    gres: Mapping[str, int] = field(default_factory=dict)  # gpu:h200 -> 8
    used: Mapping[str, int] = field(default_factory=dict)
    cpus: int = 0
    cpus_used: int = 0

    def chips(self, gres: str) -> tuple[int, int]:
        """Chips in all and in use, of `gpu` or `gpu:h200`; CPUs where `gres` is empty."""
        if not gres:
            return self.cpus, self.cpus_used
        return _sum(self.gres, gres), _sum(self.used, gres)


def _sum(counts: Mapping[str, int], gres: str) -> int:
    return sum(n for name, n in counts.items() if name == gres or name.startswith(gres + ":"))


def gres_counts(text: str) -> dict[str, int]:
    """Generic resources in Slurm's notation.

    >>> gres_counts("gpu:h200:8(S:0-1),tpu:v5e:4(IDX:0,2-3),shard:2")
    {'gpu:h200': 8, 'tpu:v5e': 4, 'shard': 2}
    >>> gres_counts("(null)"), gres_counts("N/A")
    ({}, {})
    """
    counts: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        name, colon, count = part.strip().rpartition(":")
        if colon and re.fullmatch(r"[0-9]+[KMG]?", count):
            scale = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(count[-1], 1)
            counts[name] = counts.get(name, 0) + int(count.rstrip("KMG")) * scale
    return counts


def exit_status(raw: object) -> int | None:
    """A status as shells write it, from the status of wait(2) or from newer Slurm's object.

    >>> exit_status(256), exit_status(9), exit_status({"return_code": {"set": True, "number": 3}})
    (1, 137, 3)
    """
    if isinstance(raw, dict):
        signal = raw.get("signal")
        number = _number(signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None)
        if number:
            return 128 + _code(number)
        code = _number(raw.get("return_code"))
        return None if code is None else _code(code)
    value = _number(raw)
    if value is None:
        return None
    status = int(value)
    if not 0 <= status < 2**32:  # wait(2) has 32 bits; Slurm's own "no value" is among them
        raise ValueError(value)
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8


def _code(number: float) -> int:
    if not -(2**31) <= number < 2**31 - 128:
        raise ValueError(number)
    return int(number)


def jobs_from_json(text: str, source: str) -> list[SlurmJob]:
    """The jobs in an answer of `squeue --json` or slurmrestd."""
    return _records(_part(text, "jobs", source), _job, source)


def nodes_from_json(text: str, source: str) -> list[SlurmNode] | None:
    """The nodes in an answer of `sinfo --json` or slurmrestd; None where this version lists no nodes there."""
    if "sinfo" in (answer := _answer(text, source)) and "nodes" not in answer:
        return None
    return _records(_part(text, "nodes", source), _node, source)


def _answer(text: str, source: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise nonsense(source, text) from None
    if not isinstance(answer, dict):
        raise nonsense(source, text)
    if errors := answer.get("errors"):
        raise BackendDown(f"slurm: {source}: {error_words(errors)}")
    return answer


def error_words(errors: object) -> str:
    """The first of the errors in an answer, in one line."""
    first = errors[0] if isinstance(errors, list) and errors else errors
    if isinstance(first, dict):
        parts = [str(first[k]) for k in ("error", "description", "source") if first.get(k)]
        first = ": ".join(parts) or json.dumps(first)
    return line(str(first))


def _part(text: str, key: str, source: str) -> list[Any]:
    part = _answer(text, source).get(key)
    if not isinstance(part, list):
        raise nonsense(source, text)
    return part


def _records(rows: Iterable[Any], read: Callable[[Any], T], source: str) -> list[T]:
    records = []
    for row in rows:
        try:
            records.append(read(row))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise nonsense(source, json.dumps(row)) from None
    return records


def nonsense(source: str, text: str) -> BackendDown:
    """The error for an answer that can't be read: its first line."""
    return BackendDown(f"slurm: {source} answered what can't be read: {line(text) or 'nothing'}")


def line(text: str, most: int = 200) -> str:
    """The first line that says anything, cut short, with nothing that a terminal would obey."""
    first = next((text_line.strip() for text_line in text.splitlines() if text_line.strip()), "")
    printable = "".join(c if c.isprintable() else "?" for c in first)
    return printable if len(printable) <= most else printable[:most] + "..."


def _number(value: object) -> float | None:
    """A number, an object for one that may be unset, or None."""
    if isinstance(value, dict):
        if value.get("infinite") or not value.get("set", True):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    number = float(value)
    if not isfinite(number):  # json reads NaN, Infinity and 1e999
        raise ValueError(value)
    return number


def _integer(value: object) -> int:
    number = _number(value)
    return 0 if number is None else int(number)


def _time(value: object) -> float | None:
    return _number(value) or None  # 0: never


def state_of(names: Iterable[str]) -> str:
    """The one state that counts. A state that we don't know is an error: guessing could run a job twice.

    >>> state_of(["NODE_FAIL", "COMPLETING"]), state_of(["running"])
    ('COMPLETING', 'RUNNING')
    """
    states = [name.upper().split(" ")[0] for name in names]  # "CANCELLED by 1000"
    for name in (*(f for f in FIRST if f in states), *states):
        if name in STATES:
            return name
    raise ValueError(states)


def _job(row: Any) -> SlurmJob:
    state = state_of([row["job_state"]] if isinstance(row["job_state"], str) else row["job_state"])
    waits = STATES[state][0] == PENDING
    user = row.get("user_id")
    return SlurmJob(
        id=str(_integer(row["job_id"])),
        name=str(row["name"] or ""),
        user=str(row.get("user_name", "")) if user is None else str(_integer(user)),
        state=state,
        reason=_reason(row.get("state_reason"), row.get("state_description")),
        exit_code=exit_status(row.get("exit_code")),
        started=None if waits else _time(row.get("start_time")),
        ended=_time(row.get("end_time")) if STATES[state][0] not in (PENDING, RUNNING) else None,
        nodes=str(row.get("nodes") or ""),
        restarts=max(0, _code(_number(row.get("restart_cnt")) or 0.0)),
    )


def _reason(*parts: object) -> str:
    return ": ".join(line(str(part)) for part in parts if part and str(part).lower() not in ("none", "(null)"))


def is_usable(state: str) -> bool:
    """Whether Slurm gives a node work: one that is powered down is started for it.

    >>> is_usable("idle+cloud+powered_down"), is_usable("idle+drain+powered_down"), is_usable("idle+powering_down")
    (True, False, False)
    """
    parts = state.split("+")
    if not STARTABLE.intersection(parts):
        return not UNUSABLE.search(state)
    return not any(UNUSABLE.search(part) and not SILENT.match(part) for part in parts if part not in STARTABLE)


def _names(value: Any) -> frozenset[str]:
    words = value.split(",") if isinstance(value, str) else value or ()
    return frozenset(str(word).strip().rstrip("*") for word in words if str(word).strip() not in ("", "(null)"))


def _node(row: Any) -> SlurmNode:
    states = [row["state"]] if isinstance(row["state"], str) else list(row["state"])
    state = "+".join(str(s).lower() for s in (*states, *row.get("state_flags", ())))
    return SlurmNode(
        name=str(row["name"]),
        usable=is_usable(state),
        state=state,
        partitions=_names(row["partitions"]),
        features=_names(row.get("active_features") or row.get("features")),
        gres=gres_counts(str(row["gres"] or "")),
        used=gres_counts(str(row.get("gres_used") or "")),
        cpus=_integer(row.get("cpus")),
        cpus_used=_integer(row.get("alloc_cpus")),
    )


# tables: field of --Format and width in bytes
JOB_COLUMNS = (
    ("JobID", 20),
    ("UserID", 16),
    ("Name", 200),
    ("State", 24),
    ("Reason", 128),
    ("exit_code", 16),
    ("RestartCnt", 16),
    ("StartTime", 24),
    ("EndTime", 24),
    ("NodeList", 256),
)
NODE_COLUMNS = (
    ("NodeList", 256),
    ("StateComplete", 128),
    ("Partition", 128),
    ("Features", 1024),
    ("Gres", 512),
    ("GresUsed", 512),
    ("CPUsState", 64),
)


def columns(columns_of_table: Iterable[tuple[str, int]]) -> str:
    """The argument of --Format.

    >>> columns((("JobID", 20), ("Name", 200)))
    'JobID:20,Name:200'
    """
    return ",".join(f"{name}:{width}" for name, width in columns_of_table)


def table(text: str, columns: tuple[tuple[str, int], ...], source: str) -> list[dict[str, str]]:
    """The rows of a table with columns of fixed width. `text` has one character a byte."""
    rows = []
    for text_line in text.split("\n"):
        if not text_line.strip():
            continue
        if len(text_line) < sum(width for _, width in columns[:-1]):
            raise nonsense(source, text_line)
        row, start = {}, 0
        for name, width in columns:
            row[name], start = text_line[start : start + width].strip(), start + width
        rows.append(row)
    return rows


def jobs_from_table(text: str, source: str) -> list[SlurmJob]:
    """The jobs in a table of `squeue --Format`, times being seconds since 1970."""
    return _records(table(text, JOB_COLUMNS, source), _table_job, source)


def _table_job(row: dict[str, str]) -> SlurmJob:
    state = state_of([row["State"]])
    ours = STATES[state][0]
    code = row["exit_code"].partition(":")[0]
    return SlurmJob(
        id=str(int(row["JobID"].partition("_")[0])),
        name=row["Name"],
        user=row["UserID"],
        state=state,
        reason=_reason(row["Reason"]),
        exit_code=exit_status(int(code)) if code.isdigit() else None,
        started=None if ours == PENDING else _epoch(row["StartTime"]),
        ended=_epoch(row["EndTime"]) if ours not in (PENDING, RUNNING) else None,
        nodes=row["NodeList"],
        restarts=_code(int(row["RestartCnt"])) if row["RestartCnt"].isdigit() else 0,
    )


def _epoch(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]+", text) and int(text) else None


def nodes_from_table(text: str, source: str) -> list[SlurmNode]:
    """The nodes in a table of `sinfo --Node --Format`: one row for each partition of a node."""
    nodes: dict[str, SlurmNode] = {}
    for node in _records(table(text, NODE_COLUMNS, source), _table_node, source):
        others = nodes[node.name].partitions if node.name in nodes else frozenset()
        nodes[node.name] = replace(node, partitions=node.partitions | others)
    return list(nodes.values())


def _table_node(row: dict[str, str]) -> SlurmNode:
    used, _, _, total = (int(number) for number in row["CPUsState"].split("/"))
    state = row["StateComplete"].lower()
    return SlurmNode(
        row["NodeList"],
        is_usable(state),
        state,
        _names(row["Partition"]),
        _names(row["Features"]),
        gres_counts(row["Gres"]),
        gres_counts(row["GresUsed"]),
        total,
        used,
    )
