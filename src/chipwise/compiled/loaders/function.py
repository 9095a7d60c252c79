"""``package.module:function``: a factory of the user's own, imported and called in the worker."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from chipwise.compiled.loaders.placement import build_mesh, out_placed, placed, shapes_of
from chipwise.errors import InputError, NoSuchFile
from chipwise.programs.program import Program

_RETURNS = '(step, args) or {"step": ..., "args": (...)} with optional shardings, axes, donate, varies, choices'
_KEYS = {"step", "args", "shardings", "out_shardings", "donate", "axes", "varies", "choices"}
_WIDE = ("float64", "complex128", "int64", "uint64")
_NEEDS_SHAPES = (
    "a function without arguments that returns (step, args), "
    "or a step with its shapes attached: step.example_args = (jax.ShapeDtypeStruct(...), ...)"
)


class NeedsShapes(InputError):
    """A function of arguments whose shapes nobody knows."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.arguments = tuple(arguments)
        super().__init__("program", name, _NEEDS_SHAPES)

    def _line(self) -> str:
        arguments = ", ".join(self.arguments)
        return f"{self.value} takes {arguments}, whose shapes are not known; expected {self.accepted}"


def load_function(name: str, data: Mapping[str, Any], devices: Sequence[Any], mesh_axes: Mapping[str, int]) -> Program:
    """The program a factory (or a step with `example_args`) describes, placed on `devices`."""
    thing = imported(name, data)
    if hasattr(thing, "example_args"):
        described = _from_attributes(thing)
    elif callable(thing):
        described = _as_dict(name, called(name, thing, data, devices))
    else:
        described = _as_dict(name, thing)
    return _program(name, described, devices, mesh_axes)


def imported(name: str, data: Mapping[str, Any]) -> Any:
    """The object `package.module:attribute` or `file.py:attribute` names, imported with its folder on the path."""
    module_name, colon, attribute = name.rpartition(":")
    if not colon or not module_name or not attribute:
        raise InputError("program", name, "package.module:function")
    folder = Path(str(data.get("folder") or "."))
    if module_name.endswith(".py"):
        path = folder / module_name
        if not path.is_file():
            raise NoSuchFile("program", name, f"looked for {module_name} in {folder}")
        folder, module_name = path.parent, path.stem
    sys.path.insert(0, str(folder.resolve()))
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something the user's module imports
        raise InputError("program", name, f"a module that can be imported from {folder}") from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            public = (
                [member for member in vars(target) if not member.startswith("_")] if hasattr(target, "__dict__") else []
            )
            near = ", ".join(member for member in public if callable(getattr(target, member)))[:200]
            raise InputError("program", name, f"a name {module_name} defines, such as {near or 'a function'}")
        target = getattr(target, part)
    return target


def called(name: str, factory: Any, data: Mapping[str, Any], devices: Sequence[Any]) -> Any:
    """What the factory returns, given `devices` and the choices made if it takes them."""
    chosen: dict[str, Any] = dict(data.get("choices") or {})
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError) as error:  # builtins and C functions have no signature
        raise InputError("program", name, _NEEDS_SHAPES) from error
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for key in chosen:
        if key not in parameters and not takes_any:
            raise InputError(f"choices.{key}", chosen[key], f"a keyword that {name} takes")
    if "devices" in parameters:
        chosen["devices"] = list(devices)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        p.name for p in parameters.values() if p.default is p.empty and p.kind not in variadic and p.name not in chosen
    ]
    if missing:
        raise NeedsShapes(name, missing)
    return factory(**chosen)


def _from_attributes(step: Any) -> dict[str, Any]:
    args = step.example_args() if callable(step.example_args) else step.example_args
    described: dict[str, Any] = {"step": step, "args": args}
    for key in _KEYS - {"step", "args"}:
        if hasattr(step, key):
            described[key] = getattr(step, key)
    return described


def _as_dict(name: str, returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        unknown = [str(key) for key in returned if key not in _KEYS]
        if unknown or "step" not in returned or "args" not in returned:
            raise InputError(f"{name} returned", f"keys {', '.join(map(str, returned))}", _RETURNS)
        described = dict(returned)
    elif isinstance(returned, tuple | list) and len(returned) in (2, 3):
        described = dict(zip(("step", "args", "shardings"), returned, strict=False))
    else:
        raise InputError(f"{name} returned", f"{type(returned).__name__} {returned!r}", _RETURNS)
    if not callable(described["step"]):
        raise InputError(f"{name} returned", f"step {described['step']!r}", "a callable step")
    return described


def _program(name: str, described: Mapping[str, Any], devices: Sequence[Any], mesh_axes: Mapping[str, int]) -> Program:
    args = described["args"]
    if not isinstance(args, tuple | list):
        args = (args,)
    if not jax.tree.leaves(tuple(args)):
        raise InputError(f"{name} args", args, "at least one array or jax.ShapeDtypeStruct")
    axes = dict(mesh_axes) or dict(described.get("axes") or {})
    mesh = build_mesh(axes, devices) if axes else None
    shapes = placed(shapes_of(args), described.get("shardings"), mesh, devices)
    outs = described.get("out_shardings")
    return Program(
        fn=described["step"],
        args=shapes,
        donate=_donate(described.get("donate"), len(shapes)),
        mesh=mesh,
        out_shardings=None if outs is None else out_placed(outs, mesh),
        varies=_varies(described.get("varies")),
        notes=tuple(_notes(shapes, args, devices)),
        choices=_choices(described.get("choices")),
    )


def _donate(given: Any, count: int) -> tuple[int, ...]:
    donate = () if given is None else (given,) if isinstance(given, int) else tuple(given)
    for index in donate:
        if not isinstance(index, int) or not 0 <= index < count:
            raise InputError("donate", index, f"positions of arguments, 0 to {count - 1}")
    return donate


def _varies(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping):
        return tuple(f"{key}: {_listed(values)}" for key, values in given.items())
    return tuple(str(description) for description in given)


def _listed(values: Any) -> str:
    return ", ".join(map(str, values)) if isinstance(values, tuple | list | range) else str(values)


def _choices(given: Any) -> dict[str, tuple[Any, ...]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError("choices", given, 'names with their values, such as {"remat": ["none", "full"]}')
    return {str(key): tuple(values) for key, values in given.items()}


def _notes(shapes: tuple[Any, ...], args: Sequence[Any], devices: Sequence[Any]) -> list[str]:
    notes = []
    leaves = jax.tree.leaves(shapes)
    used = len({device for leaf in leaves for device in leaf.sharding.device_set})
    if used < len(devices):
        some = "one" if used == 1 else str(used)
        notes.append(f"{some} of {len(devices)} devices used: give axes and shardings to use all")
    elif len(devices) > 1 and all(leaf.sharding.is_fully_replicated for leaf in leaves):
        notes.append(f"every argument is replicated: all {len(devices)} devices do the same work")
    wide = [leaf for leaf in jax.tree.leaves(tuple(args)) if str(getattr(leaf, "dtype", "")) in _WIDE]
    if wide and not jax.config.read("jax_enable_x64"):
        notes.append(f"{len(wide)} arguments are 64 bit wide but jax_enable_x64 is off: JAX computes them in 32 bit")
    return notes
