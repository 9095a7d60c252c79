"""Which compilers are installed, in which versions, what each enables, and how to get the missing ones.

Nothing is imported: versions come from the installed packages' metadata.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from chipwise.compiled.targets import CUDA, TPU
from chipwise.errors import MissingCompiler

# What the wheel's own metadata says under "License".
LIBTPU_LICENCE = "libtpu comes from Google under the Google Cloud Platform Terms of Service (about 590 MB)"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler made of packages, and the extra of chipwise that installs them."""

    id: str
    name: str
    packages: tuple[str, ...]
    enables: str
    extra: str
    licence: str = ""
    systems: tuple[str, ...] = ("Linux",)
    machines: tuple[str, ...] = ("x86_64", "amd64")
    python: tuple[int, int] = (3, 11)  # the oldest the packages support

    def runs_here(self) -> bool:
        """Whether its packages are published for this system."""
        return platform.system() in self.systems and platform.machine().lower() in self.machines

    def command(self) -> str:
        """The exact line that installs what is missing."""
        return f"pip install 'chipwise[{self.extra}]'"


_CUDA_BITS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm")
TOOLCHAINS = (
    Toolchain(
        "tpu",
        "XLA for TPU",
        ("jax", "jaxlib", "libtpu"),
        "chipwise check on TPU v2 to v7x: compiles, memory, time",
        "tpu-compiler",
        LIBTPU_LICENCE,
    ),
    Toolchain(
        "cuda",
        "XLA for NVIDIA GPUs",
        ("jax", "jaxlib", *_CUDA_BITS),
        "chipwise check on NVIDIA GPUs: compiles, memory, matmul times",
        "gpu-compiler",
        "the CUDA packages come from NVIDIA under its own licence (about 350 MB)",
        machines=("x86_64", "amd64", "aarch64"),
    ),
    Toolchain(
        "torch",
        "PyTorch into XLA",
        ("torch", "torchax", "jax", "jaxlib"),
        "chipwise check of a PyTorch module",
        "torch",
        systems=("Linux", "Darwin", "Windows"),
        machines=("x86_64", "amd64", "aarch64", "arm64"),
    ),
    Toolchain(
        "export",
        "jax.export files",
        ("jax", "jaxlib", "flatbuffers"),
        "chipwise check of a file written by jax.export",
        "tpu-compiler",
        systems=("Linux", "Darwin", "Windows"),
        machines=("x86_64", "amd64", "aarch64", "arm64"),
    ),
)


@dataclass(frozen=True, slots=True)
class Installed:
    """What is there of a toolchain on this machine."""

    toolchain: Toolchain
    versions: Mapping[str, str]  # package -> version; absent packages are left out
    problem: str  # why it can't be used, or ""

    @property
    def usable(self) -> bool:
        """Whether a compile can be tried."""
        return not self.problem

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(name for name in self.toolchain.packages if name not in self.versions)


def installed() -> tuple[Installed, ...]:
    """Every toolchain with what is installed of it, for `chipwise doctor`."""
    return tuple(_inspect(toolchain) for toolchain in TOOLCHAINS)


def needed(platform_name: str, kind: str) -> tuple[Toolchain, ...]:
    """The toolchains a program of this kind takes to reach this platform.

    >>> [each.id for each in needed("tpu", "torch")]
    ['tpu', 'torch']
    """
    wanted = {TPU: "tpu", CUDA: "cuda"}[platform_name]
    more = {"torch": "torch", "file": "export"}.get(kind)
    return tuple(each for each in TOOLCHAINS if each.id in (wanted, more))


def require(platform_name: str, kind: str) -> dict[str, str]:
    """Versions of all packages the job uses; raises `MissingCompiler` with the command that installs them."""
    found: dict[str, str] = {}
    for toolchain in needed(platform_name, kind):
        state = _inspect(toolchain)
        if state.problem:
            command = toolchain.command() if toolchain.runs_here() else ""
            raise MissingCompiler(toolchain.name, state.problem, command, toolchain.licence)
        found |= state.versions
    return {**found, "python": platform.python_version()}


def _inspect(toolchain: Toolchain) -> Installed:
    versions = {name: version for name in toolchain.packages if (version := package_version(name))}
    return Installed(toolchain, versions, _problem(toolchain, versions))


def _problem(toolchain: Toolchain, versions: Mapping[str, str]) -> str:
    missing = [name for name in toolchain.packages if name not in versions]
    if not missing:
        return _mismatch(versions)
    if not toolchain.runs_here():
        where = f"{'/'.join(toolchain.systems)} on {'/'.join(toolchain.machines)}"
        return f"it is published for {where} only, this is {platform.system()} on {platform.machine()}"
    if sys.version_info[:2] < toolchain.python:
        oldest = ".".join(map(str, toolchain.python))
        return f"it needs Python {oldest} or newer, this is {platform.python_version()}"
    return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"


def _mismatch(versions: Mapping[str, str]) -> str:
    """JAX ignores a CUDA plugin that was not made for its jaxlib."""
    wrong = [name for name in _CUDA_BITS[:2] if name in versions and versions[name] != versions["jaxlib"]]
    return f"{wrong[0]} {versions[wrong[0]]} does not match jaxlib {versions['jaxlib']}" if wrong else ""


def package_version(name: str) -> str:
    """The installed version of a package, or ""."""
    return _version(name, tuple(sys.path))


@cache
def _version(name: str, path: tuple[str, ...]) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""

