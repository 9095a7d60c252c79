"""What an accelerator is: one chip, its figures, and the wires around it. SI units throughout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with where it comes from and when."""

    value: float
    unit: str
    source: str
    date: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fabric:
    """The wires around a chip. Bandwidths are bytes/s, one way, per chip.

    `kind` is ``switch`` (NVLink/NVSwitch), ``mesh`` (Infinity Fabric), ``pcie`` or ``torus`` (ICI).
    `domain` is how many chips the fast wires join (8, 72, or a TPU pod).
    """

    kind: str
    domain: int
    scale_up: float  # all fast links of a chip together, one way
    link: float  # one link, one way (torus); equals scale_up elsewhere
    dims: int  # torus dimensions; 0 elsewhere
    wrap: int  # a torus axis wraps around when its length is a multiple of this; 0 elsewhere
    host_chips: int
    scale_out: float  # network (NICs, data-center network) per chip
    host_link: float  # PCIe or C2C to host memory, per chip
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Chip:
    """One accelerator chip as people buy it (a TPU7x or MI250X is one chip with two devices)."""

    id: str
    name: str
    vendor: str
    family: str  # "gpu", "tpu" or "other"
    architecture: str
    launched: str
    aliases: tuple[str, ...]
    peak: Mapping[str, float]  # dense FLOP/s by dtype, matrix units where the chip has them
    memory_bytes: float  # datasheet
    usable_bytes: float  # what software can allocate
    bandwidth: float  # bytes/s
    onchip_bytes: float  # L2 on GPUs, VMEM on TPUs
    cores: int  # SMs or CUs on GPUs; MXUs on TPUs
    mxu: int  # width of the systolic array; 0 on GPUs
    clock_hz: float
    tdp_w: float
    idle_w: float
    devices: int  # devices a runtime shows per chip
    fabric: Fabric
    frameworks: tuple[str, ...]  # "pytorch", "jax", "tensorflow"
    programming: tuple[str, ...]  # "cuda", "rocm", "xla", "pallas", "triton"...
    limits: tuple[str, ...]  # known limits in words (dynamic shapes, custom kernels...)
    figures: Mapping[str, Figure]  # every figure above under its field name ("peak.bf16")
    trains: bool = True  # its software trains models, not only serves them
    design: str = ""  # chips of one design share calibration; its own id where it has no relative
    compute_capability: str = ""  # CUDA's ("9.0"); "" for chips that are not NVIDIA's
    device_kinds: tuple[str, ...] = ()  # what a runtime calls it where that says less than its names
    like: str = ""  # of a chip of one's own: the chip whose figures it takes where its file has none
    described_in: str = ""  # of a chip of one's own: its file

    def __repr__(self) -> str:
        return f"<Chip {self.id}>"

    def runs(self, dtype: str) -> bool:
        """Whether the chip computes in `dtype` at a rate of its own."""
        return dtype in self.peak


_RATES = ("memory_bytes", "usable_bytes", "bandwidth", "onchip_bytes", "clock_hz")
_FABRIC_RATES = ("scale_up", "link", "scale_out", "host_link")


def scaled(chip: Chip, factor: float) -> Chip:
    """A chip with every rate, size and watt multiplied; counts stay. For tests and what-ifs.

    >>> from chipwise.catalog import load
    >>> twice = scaled(load().chips["h100"], 2.0)
    >>> twice.bandwidth / load().chips["h100"].bandwidth, twice.cores
    (2.0, 132)
    """
    changes: dict[str, Any] = {name: getattr(chip, name) * factor for name in (*_RATES, "tdp_w", "idle_w")}
    changes["peak"] = MappingProxyType({dtype: rate * factor for dtype, rate in chip.peak.items()})
    links = {name: getattr(chip.fabric, name) * factor for name in _FABRIC_RATES}
    changes["fabric"] = replace(chip.fabric, **links)
    return replace(chip, **changes)


def with_figures(chip: Chip, **changes: Any) -> Chip:
    """A chip with some fields replaced; `figures` keeps what the sources say.

    >>> from chipwise.catalog import load
    >>> with_figures(load().chips["h100"], bandwidth=4.0e12).bandwidth
    4000000000000.0
    """
    return replace(chip, **changes)
