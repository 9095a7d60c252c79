"""Compilers that run without the chip: libtpu's names and options of TPUs, and CUDA's compute capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from chipwise.catalog.files import rows, tables

Options = Mapping[str, str]  # of XLA, by name
FILE = "compilers.toml"
KIB = 1024
SPLASH_BLOCK = 512  # MaxText's default (2025-06)


@dataclass(frozen=True, slots=True)
class OptionSet:
    """Options of XLA that belong together."""

    id: str
    values: Options
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a TPU's compiler was seen to do with single products: calibration asks those that have one."""

    prefetch_bytes: float  # on-chip memory filled ahead of a product, at the compiler's defaults
    prefetch_bytes_recipe: float  # the same with the recipe's options
    ragged: Mapping[str, float]  # by precision, how much longer products take whose k is no multiple of 128
    clock_hz: float  # that the compiler counts with; 0: the data sheet's
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class TpuCompiler:
    """How libtpu is asked for one TPU generation."""

    chip_id: str
    libtpu: str  # its name in libtpu's topologies
    chip_config: str  # how libtpu groups its cores; "": as it does by default
    recipe: Options  # that people train the generation with
    splash_block: int
    search: tuple[Options, ...]  # sets of options worth a compile, those that gain most first
    sweep: Sweep | None
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Capability:
    """A CUDA compute capability and what it fixes for one multiprocessor (bytes, counts)."""

    major: int
    minor: int
    threads: int  # resident at most
    shared: int  # bytes of shared memory
    shared_block: int  # bytes one block may ask for
    fp32_units: int
    accelerated: bool  # has instructions of its own (sm_90a): XLA uses them
    source: str
    date: str

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@cache
def option_sets() -> Mapping[str, OptionSet]:
    """Sets of XLA options by name."""
    sets = (
        OptionSet(table["id"], MappingProxyType(dict(table["values"])), table["source"], table["date"])
        for table in tables(FILE, "options")
    )
    return MappingProxyType({options.id: options for options in sets})


@cache
def tpu_compilers() -> Mapping[str, TpuCompiler]:
    """How libtpu is asked, by chip.

    >>> tpu_compilers()["v7x"].libtpu, tpu_compilers()["v6e"].splash_block
    ('tpu7x', 2048)
    """
    return MappingProxyType({table["chip"]: _compiler(table, option_sets()) for table in tables(FILE, "tpu")})


@cache
def capabilities() -> Mapping[str, Capability]:
    """What CUDA fixes for each compute capability that XLA compiles for.

    >>> capabilities()["9.0"].accelerated, "7.0" in capabilities()
    (True, False)
    """
    return MappingProxyType({row["capability"]: _capability(row) for row in rows("capabilities.csv")})


def _compiler(table: Mapping[str, Any], sets: Mapping[str, OptionSet]) -> TpuCompiler:
    recipe = {name: value for options in table.get("recipe", ()) for name, value in sets[options].values.items()}
    return TpuCompiler(
        chip_id=table["chip"],
        libtpu=table["libtpu"],
        chip_config=table.get("chip_config", ""),
        recipe=MappingProxyType(recipe),
        splash_block=table.get("splash_block", SPLASH_BLOCK),
        search=tuple(sets[options].values for options in table.get("search", ())),
        sweep=_sweep(table["sweep"]) if "sweep" in table else None,
        source=table["source"],
        date=table["date"],
    )


def _sweep(table: Mapping[str, Any]) -> Sweep:
    return Sweep(
        prefetch_bytes=float(table["prefetch_bytes"]),
        prefetch_bytes_recipe=float(table["prefetch_bytes_recipe"]),
        ragged=MappingProxyType(dict(table.get("ragged", {}))),
        clock_hz=float(table.get("clock_hz", 0.0)),
        source=table["source"],
        date=table["date"],
    )


def _capability(row: Mapping[str, str]) -> Capability:
    major, minor = row["capability"].split(".")
    return Capability(
        major=int(major),
        minor=int(minor),
        threads=int(row["threads"]),
        shared=int(row["shared_kib"]) * KIB,
        shared_block=int(row["shared_block_kib"]) * KIB,
        fp32_units=int(row["fp32_units"]),
        accelerated=row["accelerated"] == "1",
        source=row["source"],
        date=row["date"],
    )
