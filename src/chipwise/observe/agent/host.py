"""The host through /proc: cores, memory, disks and network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from chipwise.bench.host import Host
from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.instrument import Measurement

SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own are (kernel: Documentation/admin-guide/iostats.rst)
_READ, _WRITTEN = 5, 9  # places of sectors in a line of /proc/diskstats
_RECEIVED, _SENT = 0, 8  # places of bytes in a line of /proc/net/dev


class HostLoad:
    """This machine, or a container's view of it."""

    name = "host"
    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._host = Host(root)
        self._disks = frozenset(_disks(root))
        self._total = _total_memory(root)

    def read(self) -> Sequence[Measurement]:
        """Shares of cores since the last look; bytes moved since the machine started."""
        reading = self._host.read()
        values = {
            "host_busy": reading.utilization,
            "host_memory_used": reading.memory_bytes,
            "host_memory_total": self._total,
            "host_temperature": reading.temperature_c,
            "host_energy": reading.energy_j,
            **self._disk(),
            **self._network(),
        }
        return [Measurement(series, value) for series, value in values.items() if value is not None]

    def close(self) -> None:
        """Nothing is held."""

    def _disk(self) -> dict[str, float]:
        read = written = 0
        for line in _lines(self._root / "proc/diskstats"):
            words = line.split()
            if len(words) > _WRITTEN and words[2] in self._disks:
                read += int(words[_READ])
                written += int(words[_WRITTEN])
        out = {}
        if self._disks:
            out = {"host_disk_read": float(read * SECTOR_BYTES), "host_disk_written": float(written * SECTOR_BYTES)}
        try:
            space = os.statvfs(self._root)
        except OSError:
            return out
        return out | {"host_disk_free": float(space.f_bavail * space.f_frsize)}

    def _network(self) -> dict[str, float]:
        links: dict[str, tuple[int, int]] = {}
        for line in _lines(self._root / "proc/net/dev"):
            name, colon, rest = line.partition(":")
            words = rest.split()
            if colon and name.strip() != "lo" and len(words) > _SENT:
                links[name.strip()] = int(words[_RECEIVED]), int(words[_SENT])
        # bonds, bridges and the pairs of containers would count what a card moves again; a container has no card
        cards = [name for name in links if (self._root / "sys/class/net" / name / "device").exists()]
        moved = [links[name] for name in cards or links]
        if not moved:
            return {}
        received, sent = (float(sum(octets)) for octets in zip(*moved, strict=True))
        return {"host_network_received": received, "host_network_sent": sent}


def _disks(root: Path) -> Iterator[str]:
    """Disks themselves: neither their partitions, which would count twice, nor files and memory that act as disks."""
    try:
        names = [path.name for path in (root / "sys/block").iterdir()]
    except OSError:
        return
    yield from (name for name in names if not name.startswith(("loop", "ram", "zram", "dm-", "md")))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _total_memory(root: Path) -> float:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemTotal:"):
            return float(line.split()[1]) * 1024
    raise Unreadable("/proc/meminfo does not say how much memory there is")
