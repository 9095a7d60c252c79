"""NVIDIA GPUs through NVML (the package nvidia-ml-py): power, energy, clocks, memory, temperature, throttling."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from typing import Any

from chipwise.bench.frameworks.interface import Device
from chipwise.bench.reading import Reading, Unreadable


class Throttle(StrEnum):
    """Why a GPU's clocks are lowered."""

    POWER_CAP = "power cap"
    HARDWARE = "hardware slowdown"
    SOFTWARE_HEAT = "thermal slowdown (software)"
    HARDWARE_HEAT = "thermal slowdown (hardware)"
    POWER_BRAKE = "power brake"


HEAT = frozenset({Throttle.SOFTWARE_HEAT, Throttle.HARDWARE_HEAT})
# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h, "Clocks Event Reasons"). An idle GPU (1), clocks set by the
# user (2), a display's clocks (0x100) and boost kept equal over GPUs (0x10) lower clocks too, but are no distress.
THROTTLING = {
    0x4: Throttle.POWER_CAP,
    0x8: Throttle.HARDWARE,
    0x20: Throttle.SOFTWARE_HEAT,
    0x40: Throttle.HARDWARE_HEAT,
    0x80: Throttle.POWER_BRAKE,
}
POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT; nvmlDeviceGetPowerUsage is a mean over a second from Ampere on


def reasons(bits: int) -> tuple[Throttle, ...]:
    """Why the clocks are lowered.

    >>> reasons(0x1), [str(reason) for reason in reasons(0x44)]
    ((), ['power cap', 'thermal slowdown (hardware)'])
    """
    return tuple(reason for bit, reason in THROTTLING.items() if bits & bit)


class Nvml:
    """One GPU. What a GPU doesn't support is asked once and then left alone."""

    name = "nvml"

    def __init__(self, device: Device, library: Any = None, often: bool = True) -> None:
        """`often`: for many looks a second, at power of the moment and the counter of energy in each.

        Else power is the driver's mean over the last second, and the counter is read where `energy` is asked.
        """
        self._often = often
        self._nv = library if library is not None else library_of_nvidia()
        try:
            self._nv.nvmlInit()
        except self._nv.NVMLError as error:
            raise Unreadable(f"no NVML: {error}") from None
        try:
            self._gpu = self._handle(device)
        except self._nv.NVMLError as error:
            raise Unreadable(f"NVML does not know this GPU: {error}") from None
        self._missing: set[str] = set()

    def _handle(self, device: Device) -> Any:
        uuid = device.uuid or _visible(device.index)
        if uuid.isdecimal():
            return self._nv.nvmlDeviceGetHandleByIndex(int(uuid))
        if uuid:
            name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            return self._nv.nvmlDeviceGetHandleByUUID(name)
        return self._nv.nvmlDeviceGetHandleByIndex(device.index)

    def read(self) -> Reading:
        """How the GPU is now."""
        nv, gpu = self._nv, self._gpu
        bits = self.ask("throttling", lambda: nv.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
        return Reading(
            time_s=time.monotonic(),
            power_w=self._power(),
            energy_j=self.energy() if self._often else None,
            utilization=_scaled(self.ask("utilization", lambda: nv.nvmlDeviceGetUtilizationRates(gpu).gpu), 1e-2),
            memory_bytes=_scaled(self.ask("memory", lambda: nv.nvmlDeviceGetMemoryInfo(gpu).used), 1.0),
            temperature_c=_scaled(
                self.ask("temperature", lambda: nv.nvmlDeviceGetTemperature(gpu, nv.NVML_TEMPERATURE_GPU)), 1.0
            ),
            clock_hz=_scaled(self.ask("clock", lambda: nv.nvmlDeviceGetClockInfo(gpu, nv.NVML_CLOCK_SM)), 1e6),
            throttled=reasons(int(bits)) if bits is not None else None,
        )

    def energy(self) -> float | None:
        """Joules since the driver was loaded."""
        return _scaled(self.ask("energy", lambda: self._nv.nvmlDeviceGetTotalEnergyConsumption(self._gpu)), 1e-3)

    def settings(self) -> Mapping[str, float | str]:
        """Limits, clocks and driver."""
        nv, gpu = self._nv, self._gpu
        settings = {
            "driver": self.ask("driver", nv.nvmlSystemGetDriverVersion),
            "power_limit_w": _scaled(self.ask("limit", lambda: nv.nvmlDeviceGetEnforcedPowerLimit(gpu)), 1e-3),
            "power_w": self._power(),
            "clock_hz": _scaled(self.ask("clock", lambda: nv.nvmlDeviceGetClockInfo(gpu, nv.NVML_CLOCK_SM)), 1e6),
            "max_clock_hz": _scaled(
                self.ask("max clock", lambda: nv.nvmlDeviceGetMaxClockInfo(gpu, nv.NVML_CLOCK_SM)), 1e6
            ),
            "memory_clock_hz": _scaled(
                self.ask("memory clock", lambda: nv.nvmlDeviceGetClockInfo(gpu, nv.NVML_CLOCK_MEM)), 1e6
            ),
            "temperature_c": _scaled(
                self.ask("temperature", lambda: nv.nvmlDeviceGetTemperature(gpu, nv.NVML_TEMPERATURE_GPU)), 1.0
            ),
        }
        return {name: value for name, value in settings.items() if value is not None}

    def close(self) -> None:
        """Let go of the driver."""
        with suppress(self._nv.NVMLError):
            self._nv.nvmlShutdown()

    def _power(self) -> float | None:
        """Watts at this moment where the driver tells, else its mean."""
        instant = self.ask("instant power", self._instant) if self._often else None
        if instant is not None:
            return float(instant) * 1e-3
        return _scaled(self.ask("power", lambda: self._nv.nvmlDeviceGetPowerUsage(self._gpu)), 1e-3)

    def _instant(self) -> float | None:
        value = self._nv.nvmlDeviceGetFieldValues(self._gpu, [POWER_INSTANT])[0]
        if value.nvmlReturn != 0 or not value.value.uiVal:
            self._missing.add("instant power")
            return None
        return float(value.value.uiVal)

    def ask(self, what: str, call: Callable[[], Any]) -> Any:
        """What the driver answers; None for what it can't, which is not asked again."""
        if what in self._missing:
            return None
        try:
            return call()
        except (self._nv.NVMLError, AttributeError) as error:
            if getattr(error, "value", None) == getattr(self._nv, "NVML_ERROR_GPU_IS_LOST", 15):
                raise
            self._missing.add(what)
            return None


def library_of_nvidia() -> Any:
    """The package nvidia-ml-py; `Unreadable` where it is not installed."""
    try:
        return import_module("pynvml")
    except ImportError:
        raise Unreadable("no NVML: nvidia-ml-py is not installed (pip install nvidia-ml-py)") from None


def _visible(index: int) -> str:
    """The index-th device that CUDA_VISIBLE_DEVICES lets through: NVML itself counts all."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return names[index] if index < len(names) else ""


def _scaled(value: Any, unit: float) -> float | None:
    return None if value is None else float(value) * unit
