"""Engines of servers that a store has heard of, and the attempt of a ledger that each is of.

A server has one engine or several (data parallel ranks: the label `engine` of vLLM, `dp_rank` of SGLang), a host
several servers: their endpoints tell them apart.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from socket import gethostname

from chipwise.observe.exporters import INSTANCE_LABEL
from chipwise.observe.store.store import TelemetryStore
from chipwise.route.ledger.records import AttemptRow, JobRow

SERVING = "serving_"  # how names of their series begin
PARTS = frozenset({"le", "finished_reason", "is_streaming"})  # labels that divide what one engine counts
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_NODES = 10_000  # of one range
_PORT = re.compile(r"--port[= ](\d+)")
_RANGES = re.compile(r"([^\[\],\s]*)\[([\d,-]+)\]([^\[\],\s]*)|([^\[\],\s]+)")
_Numbered = tuple[int, Mapping[str, str]]  # of a series: its number, and all of its labels
_Place = tuple[str, tuple[tuple[str, str], ...]]  # an engine's device, and its labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine: its place, its labels and the numbers of its series by name."""

    host: str
    device: str
    labels: Mapping[str, str]
    series: Mapping[str, Sequence[_Numbered]]  # by name

    @property
    def port(self) -> str:
        """Of its endpoint; empty where it is not known."""
        port = self.labels.get(INSTANCE_LABEL, "").rpartition(":")[2]
        return port if port.isdigit() else ""


def engines_in(telemetry: TelemetryStore) -> list[Engine]:
    """All of them."""
    out = []
    for host in telemetry.hosts():
        groups: dict[_Place, dict[str, list[_Numbered]]] = defaultdict(lambda: defaultdict(list))
        for number, row in telemetry.series(host).items():
            if row.name.startswith(SERVING):
                labels = json.loads(row.labels)
                own = tuple(sorted((name, text) for name, text in labels.items() if name not in PARTS))
                groups[row.device, own][row.name].append((number, labels))
        for (device, own), series in groups.items():
            out.append(Engine(host=host, device=device, labels=dict(own), series=series))
    return out


def engines_of(
    engines: Sequence[Engine], attempt: AttemptRow, job: JobRow, rivals: Sequence[AttemptRow]
) -> list[Engine]:
    """The engines of an attempt: those whose labels name it, else those of its hosts.

    Where `rivals`, other attempts of the same time, have a host of it, an engine is its own by the port that its
    command names.
    """
    labeled = [engine for engine in engines if _names(engine, attempt)]
    if labeled:
        return labeled
    hosts = set(hosts_in(attempt.where))
    shared = {host for rival in rivals for host in hosts_in(rival.where)}
    port = _port(job, attempt)
    return [
        engine
        for engine in engines
        if not (engine.labels.get("attempt") or engine.labels.get("pod"))
        and (host := _host(engine, hosts)) is not None
        and (host not in shared or (port and port == engine.port))
    ]


def _names(engine: Engine, attempt: AttemptRow) -> bool:
    name = attempt.backend_id.rpartition("/")[2]
    pod = engine.labels.get("pod", "")
    return engine.labels.get("attempt") == attempt.id or bool(name and (pod == name or pod.startswith(f"{name}-")))


def _host(engine: Engine, hosts: set[str]) -> str | None:
    name = gethostname() if engine.host in LOOPBACK else engine.host
    return next((spelling for spelling in (name, name.partition(".")[0]) if spelling in hosts), None)


def _port(job: JobRow, attempt: AttemptRow) -> str:
    match = _PORT.search(" ".join(job.job.variant(attempt.variant).command))
    return match[1] if match else ""


def hosts_in(where: str) -> list[str]:
    """The hosts that a backend names.

    >>> hosts_in("gpu-[1-2,07],login"), hosts_in("tpu-a tpu-b")
    (['gpu-1', 'gpu-2', 'gpu-07', 'login'], ['tpu-a', 'tpu-b'])
    """
    out: list[str] = []
    for before, numbers, after, plain in _RANGES.findall(where):
        out += [plain] if plain else [f"{before}{number}{after}" for number in _numbers(numbers)]
    return out


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            for number in range(int(first), min(int(last or first), int(first) + MOST_NODES) + 1):
                yield str(number).zfill(len(first))
