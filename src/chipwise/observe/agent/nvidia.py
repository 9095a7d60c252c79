"""NVIDIA GPUs of this node through NVML: all of them, whichever a program may see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from chipwise.bench.frameworks.interface import Device
from chipwise.bench.nvml import HEAT, Nvml, library_of_nvidia
from chipwise.bench.reading import Reading, Unreadable
from chipwise.observe.agent.instrument import Labels, Measurement
from chipwise.observe.agent.processes import labels_of_process, user_of

RARELY_S = 30.0  # between two looks at what changes rarely: errors, remapped rows, replays, whose processes they are
# Between two looks at the counter of energy, in whose call the driver waits: 4 ms of CPU on an H200 where all others
# take 0.3 together (benchmarks/agent.py's machine, driver 580.159, 2026-11-19)
ENERGY_S = 10.0
_SERIES: tuple[tuple[str, Callable[[Reading], float | None]], ...] = (
    ("device_power", lambda r: r.power_w),
    ("device_busy", lambda r: r.utilization),
    ("device_memory_used", lambda r: r.memory_bytes),
    ("device_temperature", lambda r: r.temperature_c),
    ("device_clock", lambda r: r.clock_hz),
)


class NvidiaGpus:
    """Every GPU of the node. One that is lost says so, and does not silence the others."""

    name = "nvidia"
    every_s = 1.0

    def __init__(self, library: Any = None, processes: Callable[[int], Labels] = labels_of_process) -> None:
        self._nv = library if library is not None else library_of_nvidia()
        try:
            self._nv.nvmlInit()
            count = self._nv.nvmlDeviceGetCount()
        except self._nv.NVMLError as error:
            raise Unreadable(f"no NVML: {error}") from None
        self._processes = processes
        self._gpus = [_Gpu(self._nv, index) for index in range(count)]
        if not self._gpus:
            raise Unreadable("NVML counts no GPU here")

    def read(self) -> Sequence[Measurement]:
        """All GPUs, one after the other."""
        out: list[Measurement] = []
        for gpu in self._gpus:
            try:
                out += gpu.read(self._processes)
            except self._nv.NVMLError:
                out.append(Measurement("device_lost", 1.0, gpu.uuid, gpu.labels))
            else:
                out.append(Measurement("device_lost", 0.0, gpu.uuid, gpu.labels))
        return out

    def close(self) -> None:
        """Let go of the driver, once for each time that it was taken."""
        for gpu in self._gpus:
            gpu.nvml.close()
        self._gpus.clear()
        with suppress(self._nv.NVMLError):
            self._nv.nvmlShutdown()


class _Gpu:
    def __init__(self, nv: Any, index: int) -> None:
        handle = nv.nvmlDeviceGetHandleByIndex(index)
        self._nv, self._handle = nv, handle
        self.uuid = _text(nv.nvmlDeviceGetUUID(handle))
        name = _text(nv.nvmlDeviceGetName(handle))
        self.labels: Labels = (
            ("gpu", str(index)),
            ("model", name),
            ("pci", _text(nv.nvmlDeviceGetPciInfo(handle).busId).lower()),
        )
        # looks a second apart would meet moments of a power that swings faster: the driver's mean holds all of it
        self.nvml = Nvml(Device("cuda", name, 0.0, 1, index, self.uuid), nv, often=False)
        self._users: Labels = ()
        self._rare: list[tuple[str, float]] = []
        self._looked = self._counted = float("-inf")
        self._energy: float | None = None

    def read(self, processes: Callable[[int], Labels]) -> Iterator[Measurement]:
        reading = self.nvml.read()
        if reading.time_s - self._looked >= RARELY_S:
            self._looked = reading.time_s
            self._rare = list(self._rarely())
            self._users = self._using(processes)
        if reading.time_s - self._counted >= ENERGY_S:
            self._counted, self._energy = reading.time_s, self.nvml.energy()
        labels = self.labels + self._users
        values = [*((series, figure(reading)) for series, figure in _SERIES), ("device_energy", self._energy)]
        if reading.throttled is not None:
            values.append(("device_throttled_by_heat", float(any(reason in HEAT for reason in reading.throttled))))
        for series, value in (*values, *self._rare):
            if value is not None:
                yield Measurement(series, value, self.uuid, labels)

    def _rarely(self) -> Iterator[tuple[str, float]]:
        nv, handle = self._nv, self._handle
        calls: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("device_memory_total", lambda: nv.nvmlDeviceGetMemoryInfo(handle).total),
            ("device_pcie_replays", lambda: nv.nvmlDeviceGetPcieReplayCounter(handle)),
            (
                "device_uncorrected_errors",
                lambda: nv.nvmlDeviceGetTotalEccErrors(
                    handle, nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nv.NVML_VOLATILE_ECC
                ),
            ),
            ("device_remap_failed", lambda: nv.nvmlDeviceGetRemappedRows(handle)[3]),
        )
        for series, call in calls:
            value = self.nvml.ask(series, call)
            if value is not None:
                yield series, float(value)

    def _using(self, processes: Callable[[int], Labels]) -> Labels:
        """Whose it is; nobody's where several jobs share it."""
        running = self.nvml.ask("processes", lambda: self._nv.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return user_of([process.pid for process in running or ()], processes)


def _text(value: str | bytes) -> str:
    """Releases of nvidia-ml-py differ in what they give."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
