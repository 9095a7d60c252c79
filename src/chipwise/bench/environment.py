"""The machine that measures: what a reader of a bench file must know, and nothing that says whose it is."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path

# Variables that change what is measured: recorded where they are set.
VARIABLES = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
)
PACKAGES = {"torch": "torch", "jax": "jax"}  # framework -> the package that must be there


def environment(host: bool = False) -> dict[str, str | float]:
    """System, kernel, processor, memory, Python, variables that matter; the machine's name only where asked for."""
    variables: dict[str, str | float] = {
        "os": _system(),
        "kernel": platform.release(),
        "cpu": processor(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": memory_bytes(),
        "python": platform.python_version(),
    }
    variables |= {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return variables | ({"host": platform.node()} if host else {})


def processor() -> str:
    """The processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[0] if names else platform.processor() or platform.machine()


def memory_bytes() -> float:
    """Memory of the machine, 0 where it can't be known."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return 0.0


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def installed() -> tuple[str, ...]:
    """The frameworks whose package is there; nothing is imported."""
    return tuple(name for name, package in PACKAGES.items() if importlib.util.find_spec(package) is not None)


def platforms(root: Path = Path("/")) -> tuple[str, ...]:
    """Platforms that this machine may have, by the device files its drivers make; the CPU is always last."""
    accelerators = []
    if (root / "dev/nvidiactl").exists() or (root / "dev/dxg").exists():  # dxg: Windows' Linux
        accelerators.append("cuda")
    if (root / "dev/kfd").exists():
        accelerators.append("rocm")
    vfio = [path for path in (root / "dev/vfio").glob("*") if path.name != "vfio"]
    if any((root / "dev").glob("accel[0-9]*")) or vfio or os.environ.get("TPU_ACCELERATOR_TYPE"):
        accelerators.append("tpu")
    return (*accelerators, "cpu")
