"""Files: a function serialized by ``jax.export``, or a StableHLO module as text or bytecode."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export

from chipwise.compiled.job import MAX_PROGRAM_BYTES
from chipwise.compiled.loaders.placement import build_mesh, placed
from chipwise.compiled.loaders.stablehlo import donated, load_module, needs_x64, parse_module
from chipwise.errors import BrokenFile, InputError
from chipwise.io.regular_file import read_bytes
from chipwise.programs.program import Program

_BYTECODE = b"ML\xefR"  # how MLIR bytecode begins
_TEXT_SUFFIXES = (".mlir", ".stablehlo", ".mlirbc")


def load_file(name: str, data: Mapping[str, Any], devices: Sequence[Any], mesh_axes: Mapping[str, int]) -> Program:
    """The program in a file; `data["sizes"]` gives the sizes of its open dimensions."""
    path = Path(name)
    content = read_bytes(path, MAX_PROGRAM_BYTES, "program")
    if not content:
        raise BrokenFile("program", name, "a jax.export or StableHLO file (this one is empty)")
    if content.startswith(b"HloModule"):
        raise BrokenFile("program", name, "StableHLO or jax.export (this is HLO text, a compiler's output)")
    if mesh_axes:
        raise InputError("axes", dict(mesh_axes), "none: an exported file carries its own mesh")
    if path.suffix in _TEXT_SUFFIXES or content.startswith(_BYTECODE) or content.lstrip()[:6] in (b"module", b"#loc ="):
        return load_module(name, content, devices)
    return _load_export(name, content, data.get("sizes") or {}, devices)


def _load_export(name: str, content: bytes, sizes: Mapping[str, int], devices: Sequence[Any]) -> Program:
    try:
        exported = jax.export.deserialize(bytearray(content))
    # A flatbuffer that is cut short or not one fails inside struct, or as whatever the garbage decodes to.
    except (struct.error, ValueError, KeyError, IndexError, TypeError, AssertionError, OverflowError) as error:
        accepted = f"a file written by jax.export...serialize() ({type(error).__name__}: {error})"
        raise BrokenFile("program", name, accepted) from error
    module = parse_module(name, exported.mlir_module_serialized)
    if needs_x64(exported.in_avals):
        jax.config.update("jax_enable_x64", True)
    notes = []
    exported, note = _for_platform(exported, devices)
    notes += [note] if note else []
    shapes, varies = _sized(name, exported, sizes)
    args, mesh = _placed(name, exported, shapes, devices)
    used = exported.nr_devices
    if used < len(devices):
        notes.append(f"{'one' if used == 1 else used} of {len(devices)} devices used: the file was exported for {used}")
    kept = exported.module_kept_var_idx

    def call(*flat: Any) -> Any:
        positional, keywords = jax.tree.unflatten(exported.in_tree, flat)
        return exported.call(*positional, **keywords)

    call.__name__ = exported.fun_name
    donate = tuple(kept[index] for index in donated(module) if index < len(kept))
    return Program(call, args, donate=donate, mesh=mesh, varies=varies, notes=tuple(notes))


def _for_platform(exported: Any, devices: Sequence[Any]) -> tuple[Any, str]:
    platform = lowering_platform(devices)
    if platform in exported.platforms:
        return exported, ""
    if len(exported.platforms) > 1:
        given = ", ".join(exported.platforms)
        raise InputError("program", f"exported for {given}", f'an export with platforms=["{platform}"] among them')
    made_for = exported.platforms[0]
    note = f'exported for {made_for}, compiled for {platform} as it stands: export with platforms=["{platform}"]'
    return replace(exported, platforms=(platform,)), note


def lowering_platform(devices: Sequence[Any]) -> str:
    """The name JAX lowers under for these devices."""
    return "tpu" if devices[0].platform == "tpu" else "cuda"


def _sized(name: str, exported: Any, sizes: Mapping[str, int]) -> tuple[list[jax.ShapeDtypeStruct], tuple[str, ...]]:
    """Input shapes with open dimensions filled in, and the names of those dimensions."""
    is_open = jax.export.is_symbolic_dim
    names = sorted({var for aval in exported.in_avals for dim in aval.shape if is_open(dim) for var in dim._get_vars()})
    missing = [dim_name for dim_name in names if dim_name not in sizes]
    if missing:
        accepted = f"a size for each dimension {Path(name).name} leaves open: {', '.join(names)}"
        raise InputError("sizes", ", ".join(missing) + " missing", accepted)
    for dim_name in names:
        if not isinstance(sizes[dim_name], int) or sizes[dim_name] < 1:
            raise InputError(f"sizes.{dim_name}", sizes[dim_name], "a whole number of at least 1")
    env: dict[str, Any] = {dim_name: sizes[dim_name] for dim_name in names}
    shapes = [
        jax.ShapeDtypeStruct(tuple(int(d._evaluate(env)) if is_open(d) else d for d in aval.shape), aval.dtype)
        for aval in exported.in_avals
    ]
    varies = tuple(f"{dim_name} (compiled at {sizes[dim_name]}; every other size compiles again)" for dim_name in names)
    return shapes, varies


def _placed(
    name: str, exported: Any, shapes: Sequence[jax.ShapeDtypeStruct], devices: Sequence[Any]
) -> tuple[tuple[Any, ...], Any]:
    if exported.nr_devices == 1:
        return placed(tuple(shapes), None, None, devices), None
    check_devices(name, exported.nr_devices, devices)
    meshes = [s.mesh for s in exported._in_named_shardings if s is not None]
    axes = dict(meshes[0].shape) if meshes else {"devices": exported.nr_devices}
    mesh = build_mesh(axes, devices)
    return placed(tuple(shapes), exported.in_shardings_jax(mesh), mesh, devices), mesh


def check_devices(name: str, count: int, devices: Sequence[Any]) -> None:
    """Refuse a module partitioned for another number of devices than the target has."""
    if count != len(devices):
        accepted = f"a target with {count} devices, which {Path(name).name} was partitioned for"
        raise InputError("devices", len(devices), accepted)
