"""AMD GPUs of this node: through amdsmi where it is installed, else through the kernel's own files of amdgpu."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.instrument import Instrument, Labels, Measurement
from chipwise.observe.agent.processes import labels_of_process, user_of

MIB = 2**20  # what amdsmi calls MB
RARELY_S = 30.0  # between two looks at what changes rarely
SENTINELS = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})  # amdsmi's for what a GPU does not tell
_AMD = "0x1002"  # the vendor in PCI's list


def amd_gpus() -> Instrument:
    """The better of the two ways that there are here."""
    try:
        library = import_module("amdsmi")
    except Exception as error:  # it loads AMD's own libraries: OSError, KeyError of a missing ROCM_PATH, and others
        reason = "not installed" if isinstance(error, ModuleNotFoundError) else f"{error}"
    else:
        try:
            return AmdSmi(library)
        except Unreadable as unreadable:
            reason = str(unreadable)
    try:
        return AmdFiles()
    except Unreadable as unreadable:
        raise Unreadable(f"{unreadable}; amdsmi: {reason}") from None


class AmdSmi:
    """Every GPU by amdsmi (rocm.docs.amd.com/projects/amdsmi, releases 6.1 to 7.1, read 2026-11-19)."""

    name = "amd"
    every_s = 1.0

    def __init__(self, library: Any, processes: Callable[[int], Labels] = labels_of_process) -> None:
        self._smi, self._processes = library, processes
        try:
            library.amdsmi_init()
            handles = library.amdsmi_get_processor_handles()
        except Exception as error:  # AmdSmiException, and what ctypes raises
            raise Unreadable(f"no amdsmi: {error}") from None
        if not handles:
            raise Unreadable("amdsmi counts no GPU here")
        self._gpus = [(handle, *self._identity(index, handle)) for index, handle in enumerate(handles)]
        self._rare: dict[str, tuple[list[tuple[str, float]], Labels]] = {}
        self._looked = float("-inf")

    def read(self) -> Sequence[Measurement]:
        """All GPUs, one after the other; one that answers nothing at all is lost."""
        now = time.monotonic()
        if now - self._looked >= RARELY_S:
            self._looked = now
            self._rare = {uuid: (list(self._rarely(handle)), self._users(handle)) for handle, uuid, _ in self._gpus}
        out = []
        for handle, uuid, labels in self._gpus:
            rare, users = self._rare.get(uuid, ([], ()))
            values = list(self._values(handle))
            values = [*values, *rare, ("device_lost", 0.0)] if values else [("device_lost", 1.0)]
            out += [Measurement(series, value, uuid, labels + users) for series, value in values]
        return out

    def close(self) -> None:
        """Let go of the driver."""
        with suppress(Exception):
            self._smi.amdsmi_shut_down()

    def _identity(self, index: int, handle: Any) -> tuple[str, Labels]:
        asic = self._ask("amdsmi_get_gpu_asic_info", handle) or {}
        uuid = self._ask("amdsmi_get_gpu_device_uuid", handle) or str(index)
        pci = self._ask("amdsmi_get_gpu_device_bdf", handle)
        labels = [("gpu", str(index)), ("model", str(asic.get("market_name") or "AMD GPU"))]
        return str(uuid), (*labels, *([("pci", str(pci).lower())] if pci else []))

    def _values(self, handle: Any) -> Iterator[tuple[str, float]]:
        smi = self._smi
        power = self._ask("amdsmi_get_power_info", handle) or {}
        activity = self._ask("amdsmi_get_gpu_activity", handle) or {}
        memory = self._ask("amdsmi_get_gpu_vram_usage", handle) or {}
        clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX) or {}
        energy = self._ask("amdsmi_get_energy_count", handle) or {}
        kinds, current = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        ticks = _number(energy, "energy_accumulator", "power")
        resolution = _number(energy, "counter_resolution")
        values = (
            ("device_power", _number(power, "current_socket_power", "average_socket_power"), 1.0),
            ("device_busy", _number(activity, "gfx_activity"), 0.01),
            ("device_memory_active", _number(activity, "umc_activity"), 0.01),
            ("device_memory_used", _number(memory, "vram_used"), MIB),
            ("device_clock", _number(clock, "clk", "cur_clk"), 1e6),
            ("device_temperature", _plain(self._ask("amdsmi_get_temp_metric", handle, kinds.HOTSPOT, current)), 1.0),
            (
                "device_memory_temperature",
                _plain(self._ask("amdsmi_get_temp_metric", handle, kinds.VRAM, current)),
                1.0,
            ),
            ("device_energy", None if ticks is None or resolution is None else ticks * resolution, 1e-6),
        )
        yield from ((series, value * scale) for series, value, scale in values if value is not None)

    def _rarely(self, handle: Any) -> Iterator[tuple[str, float]]:
        memory = self._ask("amdsmi_get_gpu_vram_usage", handle) or {}
        errors = self._ask("amdsmi_get_gpu_total_ecc_count", handle) or {}
        for series, value, scale in (
            ("device_memory_total", _number(memory, "vram_total"), MIB),
            ("device_uncorrected_errors", _number(errors, "uncorrectable_count"), 1.0),
        ):
            if value is not None:
                yield series, value * scale

    def _users(self, handle: Any) -> Labels:
        running = self._ask("amdsmi_get_gpu_process_list", handle) or ()
        pids = [process["pid"] for process in running if isinstance(process, Mapping) and "pid" in process]
        return user_of(pids, self._processes)

    def _ask(self, call: str, *arguments: Any) -> Any:
        """What a call says; None where this GPU, or this release of amdsmi, has no answer."""
        try:
            return getattr(self._smi, call)(*arguments)
        except Exception:  # AmdSmiException of many kinds; a call that came, or went, with a release
            return None


class AmdFiles:
    """Every GPU by the kernel's files (its Documentation/gpu/amdgpu: thermal.rst, driver-misc.rst; 2026-11-19)."""

    name = "amd"
    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        cards = sorted((root / "sys/class/drm").glob("card[0-9]*"), key=lambda card: (len(card.name), card.name))
        self._gpus = [card / "device" for card in cards if "-" not in card.name and _is_gpu(card / "device")]
        if not self._gpus:
            raise Unreadable(f"no AMD GPU: none in {root / 'sys/class/drm'}")
        self._names = [_identity(index, gpu) for index, gpu in enumerate(self._gpus)]

    def read(self) -> Sequence[Measurement]:
        """All GPUs, one after the other; one whose files are gone is lost."""
        out = []
        for gpu, (uuid, labels) in zip(self._gpus, self._names, strict=True):
            values = list(_file_values(gpu))
            values.append(("device_lost", float(not values)))
            out += [Measurement(series, value, uuid, labels) for series, value in values]
        return out

    def close(self) -> None:
        """Nothing is held."""


def _is_gpu(device: Path) -> bool:
    return _text(device / "vendor") == _AMD and (device / "mem_info_vram_total").exists()


def _identity(index: int, device: Path) -> tuple[str, Labels]:
    pci = device.resolve().name
    labels = (("gpu", str(index)), ("model", _text(device / "product_name") or "AMD GPU"), ("pci", pci))
    return _text(device / "unique_id") or pci, labels


def _file_values(device: Path) -> Iterator[tuple[str, float]]:
    monitor = next(iter(sorted((device / "hwmon").glob("hwmon*"))), device / "hwmon/none")
    sensors = {
        _text(path): path.with_name(path.name.replace("_label", "_input")) for path in monitor.glob("temp*_label")
    }
    figures = (
        ("device_busy", device / "gpu_busy_percent", 0.01),
        ("device_memory_active", device / "mem_busy_percent", 0.01),
        ("device_memory_used", device / "mem_info_vram_used", 1.0),
        ("device_memory_total", device / "mem_info_vram_total", 1.0),
        ("device_temperature", sensors.get("junction", sensors.get("edge", monitor / "temp1_input")), 1e-3),
        ("device_memory_temperature", sensors.get("mem", monitor / "none"), 1e-3),
        ("device_clock", monitor / "freq1_input", 1.0),
        ("device_pcie_replays", device / "pcie_replay_count", 1.0),
    )
    for series, path, scale in figures:
        value = _file_number(path)
        if value is not None:
            yield series, value * scale
    power = next((v for n in ("power1_average", "power1_input") if (v := _file_number(monitor / n)) is not None), None)
    if power is not None:
        yield "device_power", power * 1e-6
    errors = [_uncorrected(path) for path in (device / "ras").glob("*_err_count")]
    if any(count is not None for count in errors):
        yield "device_uncorrected_errors", float(sum(count or 0 for count in errors))


def _uncorrected(path: Path) -> int | None:
    """Lines are `ue: 0` and `ce: 0`."""
    for line in _text(path).splitlines():
        name, _, count = line.partition(":")
        if name.strip() == "ue" and count.strip().isdigit():
            return int(count)
    return None


def _file_number(path: Path) -> float | None:
    text = _text(path)
    return float(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(answer: Mapping[str, Any], *names: str) -> float | None:
    """The first of some figures that is one: releases differ in their names, GPUs in what they tell (`N/A`)."""
    return next((value for name in names if (value := _plain(answer.get(name))) is not None), None)


def _plain(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value in SENTINELS:
        return None
    return float(value)
