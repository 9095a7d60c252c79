"""Which compilers are installed, in which versions, what each enables, and how to get the missing ones.

What a platform can have is not the same everywhere: libtpu has wheels for Linux on x86_64 alone.

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
from chipwise.io.install import install_line

# What the wheel's own metadata says under "License".
LIBTPU_LICENSE = "libtpu comes from Google under the Google Cloud Platform Terms of Service (about 590 MB)"
X86_64 = ("x86_64", "amd64")  # one machine, as Linux and as Windows name it
AARCH64 = ("aarch64", "arm64")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler made of packages, and the extra of chipwise that installs them."""

    id: str
    name: str
    packages: tuple[str, ...]
    enables: str
    extra: str
    license: str = ""
    systems: tuple[str, ...] = ("Linux", "Darwin", "Windows")
    machines: tuple[tuple[str, ...], ...] = (X86_64, AARCH64)  # the names of each
    limited_by: str = ""  # the package whose wheels are for those alone
    python: tuple[int, int] = (3, 11)  # the oldest the packages support

    def runs_here(self) -> bool:
        """Whether its packages are published for this system."""
        return platform.system() in self.systems and any(platform.machine().lower() in m for m in self.machines)

    def elsewhere(self) -> str:
        """Where to run it instead, if its packages are not published for this system; else ""."""
        if self.runs_here():
            return ""
        system, machine = self.systems[0], self.machines[0][0]
        return (
            f"run it on a {system} machine or VM with {machine}, in `docker run --platform "
            f"{system.lower()}/{self.machines[0][1]}` (emulated, so slow), or on a hosted "
            f"{machine} runner such as CI or Colab"
        )

    def command(self) -> str:
        """The exact line that installs what is missing."""
        return install_line(self.extra)


_CUDA_BITS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm")
TOOLCHAINS = (
    Toolchain(
        "tpu",
        "XLA for TPU",
        ("jax", "jaxlib", "libtpu"),
        "chipwise check on TPU v2 to v7x: compiles, memory, time",
        "tpu-compiler",
        LIBTPU_LICENSE,
        systems=("Linux",),
        machines=(X86_64,),
        limited_by="libtpu",
    ),
    Toolchain(
        "cuda",
        "XLA for NVIDIA GPUs",
        ("jax", "jaxlib", *_CUDA_BITS),
        "chipwise check on NVIDIA GPUs: compiles, memory, matmul times",
        "gpu-compiler",
        "the CUDA packages come from NVIDIA under its own license (about 350 MB)",
        systems=("Linux",),
        limited_by=_CUDA_BITS[0],
    ),
    Toolchain(
        "torch",
        "PyTorch into XLA",
        ("torch", "torchax", "jax", "jaxlib"),
        "chipwise check of a PyTorch module",
        "torch",
    ),
    Toolchain(
        "export",
        "jax.export files",
        ("jax", "jaxlib", "flatbuffers"),
        "chipwise check of a file written by jax.export",
        "tpu-compiler",
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

    @property
    def available(self) -> bool:
        """Whether this platform can have it."""
        return self.usable or self.toolchain.runs_here()

    def error(self) -> MissingCompiler:
        """Why it can't be used, with the command that installs it or where to run instead."""
        toolchain = self.toolchain
        command = toolchain.command() if toolchain.runs_here() else ""
        return MissingCompiler(toolchain.name, self.problem, command, toolchain.license, toolchain.elsewhere())


def installed() -> tuple[Installed, ...]:
    """Every toolchain with what is installed of it, for `chipwise doctor`."""
    return tuple(_inspect(toolchain) for toolchain in TOOLCHAINS)


def needed(platform_name: str, kind: str) -> tuple[Toolchain, ...]:
    """The toolchains a program of this kind takes to reach this platform.

    >>> [each.id for each in needed("tpu", "torch")]
    ['tpu', 'torch']
    """
    first = {TPU: "tpu", CUDA: "cuda"}[platform_name]
    more = {"torch": "torch", "file": "export"}.get(kind)
    return tuple(toolchain for toolchain in TOOLCHAINS if toolchain.id in (first, more))


def require(platform_name: str, kind: str) -> dict[str, str]:
    """Versions of all packages the job uses; raises `MissingCompiler` with the command that installs them."""
    versions: dict[str, str] = {}
    for toolchain in needed(platform_name, kind):
        state = _inspect(toolchain)
        if state.problem:
            raise state.error()
        versions |= state.versions
    return {**versions, "python": platform.python_version()}


def _inspect(toolchain: Toolchain) -> Installed:
    versions = {name: version for name in toolchain.packages if (version := package_version(name))}
    return Installed(toolchain, versions, _problem(toolchain, versions))


def _problem(toolchain: Toolchain, versions: Mapping[str, str]) -> str:
    missing = [name for name in toolchain.packages if name not in versions]
    if not missing:
        return _mismatch(versions)
    if not toolchain.runs_here():
        where = f"{'/'.join(toolchain.systems)} on {' and '.join(names[0] for names in toolchain.machines)}"
        what = toolchain.limited_by or missing[0]
        return f"{what} has wheels for {where} alone, this is {platform.system()} on {platform.machine()}"
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
