"""Which NVIDIA cards XLA compiles for, by their compute capability."""

from __future__ import annotations

from chipwise.catalog.chip import Chip
from chipwise.catalog.compilers import Capability, capabilities
from chipwise.errors import InputError


def capability(chip: Chip) -> Capability:
    """What CUDA fixes for the chip's compute capability; refuses cards that CUDA 13 no longer compiles for."""
    fixed = capabilities().get(chip.compute_capability)
    if fixed is None:
        accepted = "an NVIDIA card from Turing on (CUDA 13, which XLA uses, dropped Pascal and Volta)"
        raise InputError("on", chip.id, accepted)
    return fixed
