"""What a framework gives to measure with. Each lives in its own module and imports its library only there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from chipwise.errors import ChipwiseError
from chipwise.ops.point import Point

GRADIENT_SLACK = 2.0  # gradients add up what each layer rounds, forward and backward


class Unsupported(ChipwiseError):
    """A point that this framework can't run on this device; the message says why, in one line."""


class OutOfMemory(ChipwiseError):
    """The device has too little memory for a point."""


@dataclass(frozen=True, slots=True)
class Device:
    """The device measured on."""

    platform: str  # cuda, rocm, tpu or cpu
    name: str  # as its driver calls it
    memory_bytes: float
    count: int  # devices of this kind on the machine
    index: int = 0
    uuid: str = ""
    cache_bytes: float = 0.0  # of the last-level cache: inputs are rotated past it


@dataclass(frozen=True, slots=True)
class Case:
    """A point made ready. `call(i)` enqueues the work, on the i-th set of inputs, and returns its output."""

    call: Callable[[int], object]
    flops: float = 0.0
    moved_bytes: float = 0.0
    items: float = 0.0
    params: int = 0
    # ||out - reference|| / ||reference|| against float64, for shapes small enough; None where nothing is checked
    check: Callable[[], float] | None = None
    unit: int = 1  # times the work is done in one call, as a captured graph of several does
    slack: float = 1.0  # times the tolerance of the precision


class Framework(Protocol):
    """A library that runs points on a device."""

    name: str
    device: Device

    def versions(self) -> Mapping[str, str]:
        """Packages, compilers and drivers, by name."""

    def build(self, point: Point) -> Case:
        """The point made ready; raises `Unsupported` or `OutOfMemory`."""

    def sample(self, call: Callable[[int], object], calls: int, first: int) -> float:
        """Seconds of `calls` calls enqueued back to back, from events on the device where it has them."""

    def peak_bytes(self) -> float | None:
        """The most memory the allocator held since `reset`."""

    def reset(self) -> None:
        """Free what earlier points held, and begin counting memory again."""

    def out_of_memory(self, error: Exception) -> bool:
        """Whether an exception means that memory ran out."""
