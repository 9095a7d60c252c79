"""PyTorch on a CUDA or ROCm GPU, or on the CPU."""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chipwise.bench.frameworks.interface import Case, Device, Framework, Unsupported
from chipwise.errors import ChipwiseError, InputError
from chipwise.ops.point import Point

# The module that builds each kind; imported when the first point of it is
_BUILDERS = {
    **dict.fromkeys(
        ("gemm", "copy", "add", "rmsnorm", "softmax", "sdpa_fwd", "sdpa_fwdbwd", "gather", "adamw"), "torch_kernels"
    ),
    **dict.fromkeys(("train", "prefill", "decode"), "torch_models"),
    **dict.fromkeys(("resnet50_train", "resnet50_infer", "vit_train", "vit_infer"), "torch_vision"),
    **dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), "torch_collectives"),
}


def open_torch(platform: str) -> Framework:
    """PyTorch on `platform`: cuda, rocm or cpu."""
    if find_spec("torch") is None:
        raise ChipwiseError("PyTorch is not installed here; `pip install torch` gets it")
    import torch

    if platform == "cpu":
        return TorchFramework("cpu", _cpu(), _without_bf16())
    if platform not in ("cuda", "rocm"):
        raise InputError("device", platform, "cuda, rocm or cpu with PyTorch (a TPU is measured through JAX)")
    built = "rocm" if getattr(torch.version, "hip", None) else "cuda" if torch.version.cuda else ""
    if built != platform:
        build = f"made for {built}" if built else "made for the CPU alone"
        raise InputError("device", platform, f"a PyTorch made for it (this one, {torch.__version__}, is {build})")
    if not torch.cuda.is_available():
        raise InputError("device", platform, "a GPU whose driver PyTorch can use (none was found)")
    return TorchFramework(platform, _gpu(platform))


def _gpu(platform: str) -> Device:
    import torch

    index = torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(index)
    return Device(
        platform,
        properties.name,
        float(properties.total_memory),
        torch.cuda.device_count(),
        index,
        str(getattr(properties, "uuid", "")),
        float(getattr(properties, "L2_cache_size", 0)),
    )


def _cpu() -> Device:
    import os
    import platform

    words = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    sizes = [_size(path.read_text()) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return Device(
        "cpu",
        words[0] if words else platform.processor() or platform.machine(),
        kib * 1024.0,
        1,
        0,
        "",
        max(sizes, default=32.0 * 2**20) if os.cpu_count() else 0.0,
    )


@cache
def _without_bf16() -> tuple[str, ...]:
    """A note where PyTorch says of this CPU that it has no bf16, which it does once in a process and at length."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nn.functional.linear(*(torch.ones(rows, 48, dtype=torch.bfloat16) for rows in (24, 96)))
    lacks = any("bf16" in str(warning.message) for warning in caught)
    return ("this CPU has no bf16 instructions: PyTorch computes bf16 products without them",) if lacks else ()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).is_file() else []


def _size(text: str) -> float:
    """Bytes of a cache as Linux writes it.

    >>> _size("32768K")
    33554432.0
    """
    units = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30}
    word = text.strip()
    return float(word[:-1]) * units[word[-1]] if word[-1:] in units else float(word or 0)


class TorchFramework:
    """PyTorch behind the interface of `frameworks`."""

    name = "torch"

    def __init__(self, platform: str, device: Device, notes: tuple[str, ...] = ()) -> None:
        self.device, self.notes = device, notes
        self.on = "cpu" if platform == "cpu" else f"cuda:{device.index}"

    def versions(self) -> Mapping[str, str]:
        """Of PyTorch and what it was built with."""
        import torch

        versions = {"torch": str(torch.__version__)}
        if self.on != "cpu":
            versions["cuda"] = str(torch.version.cuda or getattr(torch.version, "hip", ""))
            versions["cudnn"] = str(torch.backends.cudnn.version())
        if find_spec("triton") is not None:
            versions["triton"] = str(import_module("triton").__version__)
        return versions

    def build(self, point: Point) -> Case:
        """The point made ready."""
        if point.kind not in _BUILDERS:
            raise Unsupported(f"{point.kind} has no PyTorch program")
        builder: Any = import_module(f"chipwise.bench.frameworks.{_BUILDERS[point.kind]}")
        case: Case = builder.build(point, self.on, self.device)
        return case

    def sample(self, call: Callable[[int], object], calls: int, first: int) -> float:
        """Seconds of `calls` calls: between two events on a GPU, on the host's clock otherwise."""
        if self.on == "cpu":
            start = time.perf_counter()
            for i in range(first, first + calls):
                call(i)
            return time.perf_counter() - start
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for i in range(first, first + calls):
            call(i)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def peak_bytes(self) -> float | None:
        """The most the caching allocator handed out since `reset`; nothing on the CPU."""
        if self.on == "cpu":
            return None
        import torch

        return float(torch.cuda.max_memory_allocated(self.on))

    def reset(self) -> None:
        """Drop what compiled models and earlier points held.

        What is left then is there for good, and is kept out of the collector's sight: its passes over the many objects
        of a compiler would be measured as the host's own time, and a tenth of a second goes by in each of them.
        """
        if "torch._dynamo" in sys.modules:
            import torch._dynamo

            torch._dynamo.reset()
        gc.collect()
        gc.freeze()
        if self.on != "cpu":
            import torch

            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.on)

    def out_of_memory(self, error: Exception) -> bool:
        """Whether an exception means that memory ran out."""
        import torch

        words = str(error).lower()
        return (
            isinstance(error, torch.OutOfMemoryError | MemoryError)
            or "out of memory" in words
            or ("can't allocate memory" in words)
        )
