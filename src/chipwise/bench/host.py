"""The CPU through /proc and /sys: utilization, memory, and where readable temperature, clock and RAPL energy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from chipwise.bench.reading import Reading, Unreadable

_IDLE = (3, 4)  # idle and iowait of the first line of /proc/stat


class Host:
    """This machine. Files that can't be read are left alone."""

    name = "proc"

    def __init__(self, root: Path = Path("/")) -> None:
        self._stat, self._meminfo = root / "proc/stat", root / "proc/meminfo"
        if not self._stat.is_file():
            raise Unreadable("no /proc on this machine")
        self._zones = _readable(root / "sys/class/thermal", "thermal_zone*/temp")
        self._energy = _readable(root / "sys/class/powercap", "intel-rapl:?/energy_uj")
        self._clock = _readable(root / "sys/devices/system/cpu/cpu0/cpufreq", "scaling_cur_freq")
        self._limit = _readable(root / "sys/devices/system/cpu/cpu0/cpufreq", "scaling_max_freq")
        self._cap = _readable(root / "sys/class/powercap", "intel-rapl:?/constraint_0_power_limit_uw")
        self._ticks = self._times()

    def read(self) -> Reading:
        """How the machine is now; utilization since the last look."""
        busy, total = self._times()
        busy_before, total_before = self._ticks
        passed = total - total_before
        if passed:
            self._ticks = (busy, total)
        return Reading(
            time_s=time.monotonic(),
            energy_j=_sum(self._energy, 1e-6),
            utilization=(busy - busy_before) / passed if passed else None,
            memory_bytes=self._memory(),
            temperature_c=max((_number(zone) or 0.0 for zone in self._zones), default=0.0) / 1000 or None,
            clock_hz=_sum(self._clock, 1e3),
        )

    def settings(self) -> Mapping[str, float | str]:
        """The clock and the power limit, where they can be read."""
        settings = {
            "power_limit_w": _sum(self._cap, 1e-6),
            "clock_hz": _sum(self._clock, 1e3),
            "max_clock_hz": _sum(self._limit, 1e3),
        }
        return {name: value for name, value in settings.items() if value is not None}

    def close(self) -> None:
        """Nothing is held."""

    def _times(self) -> tuple[int, int]:
        """Busy and all ticks of all cores since the machine started."""
        with self._stat.open() as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return sum(ticks) - sum(ticks[i] for i in _IDLE), sum(ticks)

    def _memory(self) -> float | None:
        """Bytes in use on the whole machine."""
        try:
            lines = self._meminfo.read_text().splitlines()
        except OSError:
            return None
        kib = {line.split(":")[0]: float(line.split()[1]) for line in lines if len(line.split()) > 1}
        if "MemTotal" not in kib or "MemAvailable" not in kib:
            return None
        return (kib["MemTotal"] - kib["MemAvailable"]) * 1024


def _readable(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted(folder.glob(pattern)) if _number(path) is not None)


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None


def _sum(paths: tuple[Path, ...], unit: float) -> float | None:
    values = [value for value in map(_number, paths) if value is not None]
    return sum(values) * unit if values else None
