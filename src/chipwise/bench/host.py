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
        self._packages = [_Package(path) for path in _readable(root / "sys/class/powercap", "intel-rapl:?/energy_uj")]
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
            energy_j=self._energy(),
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

    def _energy(self) -> float | None:
        """Joules of all packages since some moment; none where one of them no longer answers."""
        values = [package.microjoules() for package in self._packages]
        return sum(value for value in values if value is not None) * 1e-6 if values and None not in values else None

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


class _Package:
    """The energy of a package, whose counter begins again every few minutes (kernel: power/powercap/powercap.rst)."""

    def __init__(self, path: Path) -> None:
        self._path, self._range = path, _number(path.with_name("max_energy_range_uj")) or 0.0
        self._last = self._before = 0.0

    def microjoules(self) -> float | None:
        """Since some moment; never less than before."""
        value = _number(self._path)
        if value is None:
            return None
        if value < self._last:
            self._before += self._range or self._last
        self._last = value
        return self._before + value


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
