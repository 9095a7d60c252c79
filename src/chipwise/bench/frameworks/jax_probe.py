"""What JAX doesn't say of a device: its memory, last-level cache, identity and driver, asked of the driver itself."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

_L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_INFINITY_CACHE = 256 * 2**20  # of an MI300X, the largest of AMD's accelerators
_CPU_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
_PACKAGES = re.compile(
    r"(jax|jaxlib|numpy|libtpu|jax-(cuda|rocm)\d*-(plugin|pjrt)|nvidia-(cudnn|cublas|nccl)(-cu\d+)?)$"
)


@dataclass(frozen=True, slots=True)
class Probed:
    """What a driver says; zeros and nothing where it doesn't."""

    memory_bytes: float = 0.0
    cache_bytes: float = 0.0
    uuid: str = ""
    driver: str = ""


def probe(platform: str, index: int) -> Probed:
    """Ask the driver of a platform about its device `index`, counted as the process sees them."""
    if platform == "cuda":
        return _probe_cuda(index)
    if platform == "rocm":
        return Probed(cache_bytes=_INFINITY_CACHE, driver=_first_line(Path("/sys/module/amdgpu/version")))
    if platform == "cpu":
        return Probed(memory_bytes=_cpu_memory(), cache_bytes=_cpu_cache(_CPU_CACHE))
    return Probed()  # a TPU keeps nothing on the chip from one program to the next


def _probe_cuda(index: int) -> Probed:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Probed()
    device, memory, cache = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_int()
    uuid = (ctypes.c_ubyte * 16)()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), index):
        return Probed()
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    cuda.cuDeviceGetAttribute(ctypes.byref(cache), _L2_CACHE_SIZE, device)
    has_uuid = not cuda.cuDeviceGetUuid(ctypes.byref(uuid), device)
    version = re.search(r"\d+\.\d+[.\d]*", _first_line(Path("/proc/driver/nvidia/version")))
    return Probed(
        float(memory.value),
        float(cache.value),
        _gpu_uuid(bytes(uuid)) if has_uuid else "",
        version.group() if version else "",
    )


def _gpu_uuid(raw: bytes) -> str:
    """The identity as `nvidia-smi -L` prints it.

    >>> _gpu_uuid(bytes(range(16)))
    'GPU-00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    text = raw.hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _cpu_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        return 0.0


def _cpu_cache(folder: Path) -> float:
    """Bytes of the largest cache Linux lists for a core."""
    sizes = (re.fullmatch(r"(\d+)([KM]?)", _first_line(path)) for path in folder.glob("index*/size"))
    return max((float(s[1]) * {"K": 2**10, "M": 2**20}.get(s[2], 1) for s in sizes if s), default=0.0)


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def installed() -> dict[str, str]:
    """Versions of JAX and of the libraries it runs on, of those installed."""
    versions = {
        (package.metadata["Name"] or "").lower().replace("_", "-"): package.version
        for package in metadata.distributions()
    }
    return {name: versions[name] for name in sorted(versions) if _PACKAGES.match(name)}


def runtime_version(client: Any) -> str:
    """What the runtime says of itself, on one line."""
    return " ".join(str(getattr(client, "platform_version", "")).split())


def memory_stats(device: Any) -> Mapping[str, int]:
    """The allocator's counters; empty where the backend keeps none."""
    return device.memory_stats() or {}
