"""Compute capabilities of NVIDIA cards, and which of them XLA still compiles for."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.chip import Chip
from chipwise.errors import InputError


@dataclass(frozen=True, slots=True)
class Capability:
    """A compute capability and what CUDA fixes for one multiprocessor of it (bytes, counts)."""

    major: int
    minor: int
    threads: int  # resident at most
    shared: int  # bytes of shared memory
    shared_block: int  # bytes one block may ask for
    fp32_units: int
    accelerated: bool = False  # has instructions of its own (sm_90a): XLA uses them

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


KIB = 1024
# "Technical Specifications per Compute Capability" and "Arithmetic Instructions" in NVIDIA's CUDA C++ Programming
# Guide (13.0). The architecture is the catalog's; the longest beginning that matches wins.
_CAPABILITIES = {
    "Turing": Capability(7, 5, 1024, 64 * KIB, 64 * KIB, 64),
    "Ampere GA100": Capability(8, 0, 2048, 164 * KIB, 163 * KIB, 64),
    "Ampere GA102": Capability(8, 6, 1536, 100 * KIB, 99 * KIB, 128),
    "Ada": Capability(8, 9, 1536, 100 * KIB, 99 * KIB, 128),
    "Hopper": Capability(9, 0, 2048, 228 * KIB, 227 * KIB, 128, accelerated=True),
    "Blackwell": Capability(10, 0, 2048, 228 * KIB, 227 * KIB, 128, accelerated=True),
    "Blackwell Ultra": Capability(10, 3, 2048, 228 * KIB, 227 * KIB, 128, accelerated=True),
    "Blackwell GB202": Capability(12, 0, 1536, 100 * KIB, 99 * KIB, 128, accelerated=True),
}


def capability(chip: Chip) -> Capability:
    """The chip's compute capability; refuses cards that CUDA 13 no longer compiles for."""
    found = [name for name in _CAPABILITIES if chip.architecture.startswith(name)]
    if chip.vendor != "nvidia" or not found:
        accepted = "an NVIDIA card from Turing on (CUDA 13, which XLA uses, dropped Pascal and Volta)"
        raise InputError("on", chip.id, accepted)
    return _CAPABILITIES[max(found, key=len)]
