"""What the device says of itself while points run: a thread that reads a source a few times a second.

A source reads one device: NVML on NVIDIA GPUs, libtpu's monitoring on TPUs, /proc and /sys on the CPU. Where there
is none, the reason is kept and every reading is empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, median

from chipwise.bench.frameworks.interface import Device
from chipwise.bench.measurement import Watched
from chipwise.bench.reading import Reading, Silent, Source, Unreadable

HZ = 10.0
MOST_READINGS = 20_000  # kept; a window longer than that forgets its beginning
# The energy counter of a GPU moves every 20 to 100 ms: over shorter windows power is the better witness, and over very
# short ones, with fewer readings than these, nothing is: the power read there is that of the moment before.
COUNTER_SECONDS = 0.2
FEWEST_READINGS = 3


def open_source(device: Device) -> Source:
    """The source for a device, or a silent one with the reason."""
    try:
        if device.platform == "cuda":
            from chipwise.bench.nvml import Nvml

            return Nvml(device)
        if device.platform == "tpu":
            from chipwise.bench.tpu import TpuMonitor

            return TpuMonitor(device.index)
        if device.platform == "cpu":
            from chipwise.bench.host import Host

            return Host()
    except Unreadable as reason:
        return Silent(str(reason))
    return Silent(f"nothing here reads a {device.platform} device")


class Sampler:
    """Reads a source in a thread of its own, and sums up windows of time."""

    def __init__(self, source: Source, hz: float = HZ) -> None:
        self.source, self.hz = source, hz
        self.reason = source.reason if isinstance(source, Silent) else ""
        self._readings: list[Reading] = []
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._silent = bool(self.reason)

    def __enter__(self) -> Sampler:
        """Begin to read."""
        if not self._silent:
            self._thread = threading.Thread(target=self._run, name="chipwise-sampler", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading and let go of the source."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        self.source.close()

    def _run(self) -> None:
        while not self._stop.wait(1.0 / self.hz):
            if self._read() is None:
                return

    def _read(self) -> Reading | None:
        """One more reading; a source that fails is not asked again."""
        with self._lock:
            if self._silent:
                return None
            try:
                reading = self.source.read()
            except Exception as error:  # whatever a driver's library raises: a run must not end over its telemetry
                self._silent, self.reason = True, f"{self.source.name} stopped answering: {error}"
                return None
            self._readings.append(reading)
            if len(self._readings) > 2 * MOST_READINGS:
                del self._readings[:MOST_READINGS]
            return reading

    @contextmanager
    def window(self) -> Iterator[Span]:
        """What is read while the context lasts; read once at its beginning and once at its end besides."""
        first = self._read()
        begin = first.time_s if first is not None else time.monotonic()
        span = Span(())
        yield span
        self._read()
        span.readings = tuple(reading for reading in tuple(self._readings) if reading.time_s >= begin)


@dataclass(slots=True)
class Span:
    """The readings of a window; the first was made before the work began."""

    readings: tuple[Reading, ...]

    def watched(self, calls: int, seconds: float) -> Watched:
        """The window summed up, with the energy of one of `calls` calls that took `seconds` each."""
        if not self.readings:
            return Watched()
        inside = self.readings[1:] or self.readings
        power = _mean([r.power_w for r in inside]) if len(inside) >= FEWEST_READINGS else None
        clocks = [r.clock_hz for r in inside if r.clock_hz is not None]
        return Watched(
            power_w=power if power is not None else self._counted_power(),
            energy_j=self._energy(calls, seconds, power),
            utilization=_mean([r.utilization for r in inside]),
            memory_bytes=_most([r.memory_bytes for r in inside]),
            temperature_c=_most([r.temperature_c for r in inside]),
            clock_hz=median(clocks) if clocks else None,
            throttled=tuple(sorted({word for r in inside for word in r.throttled or ()})),
            samples=len(inside),
        )

    def _counter(self) -> tuple[float, float] | None:
        """Joules and seconds by the energy counter, where it moved over a window long enough."""
        first, last = self.readings[0], self.readings[-1]
        if first.energy_j is None or last.energy_j is None or last.time_s - first.time_s < COUNTER_SECONDS:
            return None
        joules = last.energy_j - first.energy_j
        return (
            (joules, last.time_s - first.time_s) if joules > 0 else None
        )  # a counter that wrapped around says nothing

    def _counted_power(self) -> float | None:
        counted = self._counter()
        return counted[0] / counted[1] if counted else None

    def _energy(self, calls: int, seconds: float, power: float | None) -> float | None:
        counted = self._counter()
        if counted:
            return counted[0] / calls
        return power * seconds if power is not None else None


def _mean(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def _most(values: list[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
