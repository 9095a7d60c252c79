"""From chips as people write them to what a compiler calls them: a libtpu topology, or GPUs by host."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from chipwise.catalog import load
from chipwise.catalog.chip import Chip
from chipwise.catalog.compilers import capabilities, tpu_compilers
from chipwise.catalog.names import Accelerators
from chipwise.compiled.compute_capability import capability
from chipwise.errors import InputError

TPU, CUDA = "tpu", "cuda"
FIELD = "on"


@dataclass(frozen=True, slots=True)
class Target:
    """What to compile for. `devices` counts JAX devices in one slice (two a chip on v2, v3 and v7x)."""

    chip: str  # catalog id
    platform: str  # "tpu" or "cuda"
    topology: str  # libtpu's "v5p:4x4x4"; for cuda domains x hosts x GPUs a host
    devices: int
    slices: int = 1
    chip_config: str = ""

    def __str__(self) -> str:
        """What a user would write.

        >>> str(Target("v5e", "tpu", "v5e:4x4", 16, slices=2)), str(Target("h100", "cuda", "1x1x8", 8))
        ('v5e:2*4x4', 'h100:8')
        """
        if self.platform == CUDA:
            return f"{self.chip}:{self.devices}"
        many = f"{self.slices}*" if self.slices > 1 else ""
        return f"{self.chip}:{many}{self.topology.partition(':')[2]}"


def target_of(accelerators: Accelerators) -> Target:
    """The compiler's target for these chips; refuses chips without an ahead-of-time compiler.

    >>> from chipwise.catalog.names import parse
    >>> target_of(parse("v5e:16")).topology, target_of(parse("v7x:4")).devices, target_of(parse("h100:16")).topology
    ('v5e:4x4', 8, '2x1x8')
    """
    chip = accelerators.chip
    compiler = tpu_compilers().get(chip.id)
    if compiler is not None:
        shape = "x".join(str(axis) for axis in accelerators.shape)
        return Target(
            chip=chip.id,
            platform=TPU,
            topology=f"{compiler.libtpu}:{shape}",
            devices=prod(accelerators.shape) * chip.devices,
            slices=accelerators.slices,
            chip_config=compiler.chip_config,
        )
    if chip.vendor == "nvidia":
        capability(chip)  # refuses cards that XLA no longer compiles for
        return Target(chip.id, CUDA, _gpus(accelerators), accelerators.count)
    raise InputError(FIELD, str(accelerators), _accepted(chip))


def topology_arguments(target: Target) -> dict[str, Any]:
    """Arguments of ``jax.experimental.topologies.get_topology_desc`` for a TPU target.

    libtpu's hosts hold 2x2 chips unless told otherwise, so that a single chip must say that its host holds one.

    >>> topology_arguments(Target("v5e", "tpu", "v5e:1x1", 1))["chips_per_host_bounds"]
    (1, 1, 1)
    """
    arguments: dict[str, Any] = {"topology_name": target.topology, "platform": TPU}
    axes = [int(axis) for axis in target.topology.partition(":")[2].split("x")]
    if prod(axes) == 1:
        arguments["chips_per_host_bounds"] = (1, 1, 1)
    if target.chip_config:
        arguments["chip_config_name"] = target.chip_config
    if target.slices > 1:
        arguments["num_slices"] = target.slices
    return arguments


def _gpus(accelerators: Accelerators) -> str:
    """XLA's topology: NVLink domains x hosts of a domain x GPUs of a host."""
    count, fabric = accelerators.count, accelerators.chip.fabric
    if count <= fabric.host_chips:
        return f"1x1x{count}"
    if count % fabric.host_chips:
        raise InputError(FIELD, str(accelerators), f"up to {fabric.host_chips} or a multiple of it: whole hosts")
    hosts = count // fabric.host_chips
    together = max(1, fabric.domain // fabric.host_chips)  # hosts that NVLink joins
    while hosts % together:
        together -= 1
    return f"{hosts // together}x{together}x{fabric.host_chips}"


def _accepted(chip: Chip) -> str:
    tpus = ", ".join(tpu_compilers())
    why = "XLA for ROCm needs the GPU itself" if chip.vendor == "amd" else "its compiler is not one chipwise can run"
    leaders = [load().chips[name] for design in load().designs.values() for name in design.leaders]
    examples = [leader.id for leader in leaders if leader.compute_capability in capabilities()]
    return (
        f"a chip with a compiler that runs without it: TPU {tpus}, or an NVIDIA GPU such as {', '.join(examples)} "
        f"({chip.name}: {why}; `chipwise predict` estimates it without one)"
    )
