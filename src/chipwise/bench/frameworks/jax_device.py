"""JAX as a framework to measure with: opening a device, timing, memory, and which module builds which kind.

JAX has no events on the device, so `sample` reads the host's clock around many calls and waits for the last.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import platform as host
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chipwise.bench.frameworks.interface import Case, Device, Framework, OutOfMemory
from chipwise.bench.frameworks.jax_probe import installed, memory_stats, probe, runtime_version
from chipwise.errors import ChipwiseError, InputError
from chipwise.ops.point import KINDS, Point

if TYPE_CHECKING:
    from chipwise.bench.frameworks.jax_common import Context

PLATFORMS = ("cuda", "rocm", "tpu", "cpu")
_EXTRA = {"cuda": "'jax[cuda13]'", "tpu": "'jax[tpu]'", "rocm": "'jax[rocm]'", "cpu": "jax"}
_CLEAR_AFTER = 64  # points; JAX keeps every program it traced
_MEMORY_FRACTION = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")

# Where each kind is built: a module of this package, imported once JAX is configured, and a function in it.
_BUILDERS: Mapping[str, tuple[str, str]] = {
    "gemm": ("jax_kernels", "build_gemm"),
    "copy": ("jax_kernels", "build_stream"),
    "add": ("jax_kernels", "build_stream"),
    "rmsnorm": ("jax_kernels", "build_norm"),
    "softmax": ("jax_kernels", "build_norm"),
    "gather": ("jax_kernels", "build_gather"),
    "adamw": ("jax_kernels", "build_adamw"),
    "sdpa_fwd": ("jax_attention", "build_sdpa"),
    "sdpa_fwdbwd": ("jax_attention", "build_sdpa"),
    "train": ("jax_models", "build_training"),
    "prefill": ("jax_models", "build_inference"),
    "decode": ("jax_models", "build_inference"),
    "resnet50_train": ("jax_models", "build_training"),
    "resnet50_infer": ("jax_models", "build_inference"),
    "vit_train": ("jax_models", "build_training"),
    "vit_infer": ("jax_models", "build_inference"),
    "all_reduce": ("jax_collectives", "build_collective"),
    "all_gather": ("jax_collectives", "build_collective"),
    "reduce_scatter": ("jax_collectives", "build_collective"),
    "all_to_all": ("jax_collectives", "build_collective"),
}


def open_jax(platform: str) -> Framework:
    """JAX on the first device of a platform: cuda, rocm, tpu or cpu."""
    if platform not in PLATFORMS:
        raise InputError("device", platform, f"one of {', '.join(PLATFORMS)}")
    before = dict(os.environ)
    _configure(platform)
    try:
        jax = importlib.import_module("jax")
        return JaxFramework(jax, platform, _devices(jax, platform))
    except ImportError as error:
        _restore(before)
        raise ChipwiseError(f"JAX can't be used: {error}; install it with: pip install {_EXTRA[platform]}") from error
    except ChipwiseError:
        _restore(before)
        raise


def _configure(platform: str) -> None:
    """Set what JAX reads from the environment as it starts."""
    if "jax" not in sys.modules:
        os.environ["JAX_PLATFORMS"] = platform
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if not any(name in os.environ for name in _MEMORY_FRACTION):
        os.environ[_MEMORY_FRACTION[0]] = "0.95"  # by itself XLA takes three quarters of a GPU


def _restore(environment: Mapping[str, str]) -> None:
    """Take back what `_configure` set, so that another platform can be tried."""
    for name in ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE", *_MEMORY_FRACTION):
        if name in environment:
            os.environ[name] = environment[name]
        else:
            os.environ.pop(name, None)


def _devices(jax: Any, platform: str) -> list[Any]:
    """The devices of a platform; names what there is instead where there is none."""
    before = jax.config.jax_platforms
    with _collected_log("jax._src.xla_bridge") as log:
        try:
            jax.config.update("jax_platforms", platform)  # without effect once JAX has found its devices
            return list(jax.devices(platform))
        except (RuntimeError, AssertionError) as error:
            why, there = _reason(error, log), _anything(jax)
            jax.config.update("jax_platforms", before)
    advice = f"pip install {_EXTRA[platform]}" if platform != "cpu" else "JAX_PLATFORMS unset"
    raise InputError("device", platform, f"a device that JAX finds here: {there} ({why}; for {platform}: {advice})")


def _reason(error: BaseException, log: list[str]) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    text = text.partition(" (set JAX_PLATFORMS")[0].partition(" (you may need to")[0].rstrip(". ")
    return text or (log[-1].rstrip(". ") if log else "no driver answered")


def _anything(jax: Any) -> str:
    """The platforms JAX has devices of, after one failed; only the host is tried where it has found none yet."""
    try:
        jax.config.update("jax_platforms", "cpu")
        return ", ".join(sorted({str(device.platform) for device in jax.devices()}))
    except (RuntimeError, AssertionError):
        return "none"


@contextmanager
def _collected_log(name: str) -> Iterator[list[str]]:
    """Keep a logger's complaints for our own message instead of its pages of traceback."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            lines.append(str(error or record.getMessage()).partition("\n")[0])

    logger, handler = logging.getLogger(name), Keep(logging.WARNING)
    propagate, handlers = logger.propagate, logger.handlers
    logger.handlers, logger.propagate = [handler], False
    try:
        yield lines
    finally:
        logger.handlers, logger.propagate = handlers, propagate


class JaxFramework:
    """Points run by JAX on one device, or over several of a kind for collectives."""

    name = "jax"

    def __init__(self, jax: Any, platform: str, local: list[Any]) -> None:
        from chipwise.bench.frameworks.jax_common import Context

        self._jax, self._built, self._peak_before = jax, 0, 0
        index = int(getattr(local[0], "local_hardware_id", 0) or 0)
        self._probed = probe(platform, index)
        limit = float(memory_stats(local[0]).get("bytes_limit", 0))
        name = host.processor() or host.machine() if platform == "cpu" else str(local[0].device_kind)
        self.device = Device(
            platform,
            name,
            self._probed.memory_bytes or limit,
            len(local),
            index,
            self._probed.uuid,
            self._probed.cache_bytes,
        )
        self._context: Context = Context(self.device, local)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found while building: which attention ran, what fell back."""
        return tuple(self._context.notes)

    def versions(self) -> Mapping[str, str]:
        """Packages, the runtime, the driver and the flags given to XLA."""
        versions = {"python": host.python_version(), **installed(), "jax": self._jax.__version__}
        others = {
            "runtime": runtime_version(self._context.local[0].client),
            "driver": self._probed.driver,
            "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
        }
        return versions | {name: text for name, text in others.items() if text}

    def build(self, point: Point) -> Case:
        """The point compiled, with its inputs on the device."""
        if point.kind not in _BUILDERS:
            raise InputError("kind", point.kind, f"one of {', '.join(KINDS)}")
        module, function = _BUILDERS[point.kind]
        builder = getattr(importlib.import_module(f"chipwise.bench.frameworks.{module}"), function)
        self._context.planned_bytes = None
        self._built += 1
        try:
            with self._jax.default_device(self._context.local[0]):
                built: Case = builder(point, self._context)
                return built
        except Exception as error:
            if not self.out_of_memory(error):
                raise
            raise OutOfMemory(f"{point.kind} doesn't fit {self.device.name}: {_reason(error, [])}") from error

    def sample(self, call: Callable[[int], object], calls: int, first: int) -> float:
        """Seconds by the host's clock from the first call to the end of the last."""
        wait, one_by_one = self._jax.block_until_ready, self.device.platform == "cpu"
        out: object = None
        start = time.perf_counter()
        for i in range(first, first + calls):
            out = call(i)
            if one_by_one:  # on a CPU, programs enqueued together may run side by side
                wait(out)
        wait(out)
        return time.perf_counter() - start

    def peak_bytes(self) -> float | None:
        """The most the allocator held since `reset`.

        JAX can't count again: where an earlier point held more, what the compiler planned for the last program.
        """
        peak = memory_stats(self._context.local[0]).get("peak_bytes_in_use")
        if peak is None:
            return None
        return float(peak) if peak > self._peak_before else self._context.planned_bytes

    def reset(self) -> None:
        """Free what earlier points held; programs too, once there are many."""
        self._context.planned_bytes = None
        if self._built >= _CLEAR_AFTER:
            self._jax.clear_caches()
            self._built = 0
        gc.collect()
        self._peak_before = memory_stats(self._context.local[0]).get("peak_bytes_in_use", 0)

    def out_of_memory(self, error: Exception) -> bool:
        """Whether XLA says that memory ran out, while compiling or running."""
        from chipwise.bench.frameworks.jax_common import is_out_of_memory

        return is_out_of_memory(error)
