"""``package.module:factory`` of a PyTorch module: torch.export, then ATen operations as JAX.

The factory runs with meta tensors where it can, so a module of any size takes no memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax.sharding import Mesh
from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree

from chipwise.compiled.loaders.function import called, imported
from chipwise.compiled.loaders.placement import build_mesh, placed
from chipwise.compiled.loaders.torch_graph import Graph, UnsupportedOp, converted, raised_at
from chipwise.compiled.loaders.torch_train import optimizer_state, training_step
from chipwise.errors import InputError
from chipwise.programs.program import Program

_RETURNS = '(module, example_inputs) or {"module": ..., "args": (...)} with optional kwargs, train, loss, targets, ...'
_WIDE = (torch.float64, torch.complex128)
_KEYS = {"module", "args", "kwargs", "dynamic_shapes", "train", "loss", "targets", "optimizer", "axes", "shardings"}


@dataclass(frozen=True, slots=True)
class _Described:
    """What a factory returned."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    train: bool = False
    loss: Callable[..., Any] | None = None
    targets: tuple[Any, ...] = ()
    optimizer: str = "adamw"
    axes: Mapping[str, int] = field(default_factory=dict)
    shardings: Mapping[str, Any] | None = None


class _Loss(nn.Module):
    """A module with its loss, so that both are exported together."""

    def __init__(self, module: nn.Module, loss: Callable[..., Any], count: int) -> None:
        super().__init__()
        self.module = module
        self.loss = loss
        self.count = count

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        args, targets = inputs[: self.count], inputs[self.count :]
        return self.loss(self.module(*args, **kwargs), *targets)


def load_torch(name: str, data: Mapping[str, Any], devices: Sequence[Any], mesh_axes: Mapping[str, int]) -> Program:
    """The forward pass, or training step, of the module a factory returns."""
    factory = imported(name, data)
    notes: list[str] = []
    try:
        with torch.device("meta"):
            described, graph = _graph(name, factory, data, devices)
    except (InputError, UnsupportedOp):
        raise
    except Exception as error:  # a factory may need real values; its own error then comes from the second try
        described, graph = _graph(name, factory, data, devices)
        notes.append(f"weights took memory here: the factory does not run with meta tensors ({type(error).__name__})")
    axes = dict(mesh_axes) or dict(described.axes)
    mesh = build_mesh(axes, devices) if axes else None
    params, buffers, inputs = _shapes(described, graph, mesh, devices)
    seed = jax.ShapeDtypeStruct((2,), jnp.uint32) if graph.random else None
    (key,) = placed((seed,), None, mesh, devices)
    notes += _notes(described, mesh, devices)
    if described.train:
        (state,) = placed((optimizer_state(described.optimizer, params),), None, mesh, devices)
        step = training_step(graph, described.optimizer)
        kept = jax.tree.map(lambda leaf: leaf.sharding, (params, state, buffers))
        args = (params, state, buffers, key, *inputs)
        return Program(step, args, (0, 1, 2), mesh, (*kept, None), _varies(described), tuple(notes))

    def forward(params: Any, buffers: Any, key: Any, *inputs: Any) -> Any:
        written, outputs = graph.run(params, buffers, inputs, key)
        return outputs, written

    return Program(forward, (params, buffers, key, *inputs), (), mesh, None, _varies(described), tuple(notes))


def _graph(name: str, factory: Any, data: Mapping[str, Any], devices: Sequence[Any]) -> tuple[_Described, Graph]:
    described = _described(name, called(name, factory, data, devices) if callable(factory) else factory)
    module, args = described.module, described.args
    if described.train:
        module.train()
        if described.loss is not None:
            module, args = _Loss(module, described.loss, len(args)), (*args, *described.targets)
    with _quiet():
        try:
            exported = torch.export.export(module, args, described.kwargs or None, strict=False)
        except GuardOnDataDependentSymNode as error:
            hint = "XLA compiles one path: use torch.where, or decide outside the module"
            raise UnsupportedOp("a branch on a tensor's value", raised_at(error), hint) from error
        return described, converted(exported)


@contextmanager
def _quiet() -> Iterator[None]:
    """torch 2.13 copies its own deprecated tree specs; the warning is not about the user's program."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\).*", category=FutureWarning)
        yield


def _described(name: str, returned: Any) -> _Described:
    if isinstance(returned, Mapping):
        unknown = [str(key) for key in returned if key not in _KEYS]
        if unknown or "module" not in returned or "args" not in returned:
            raise InputError(f"{name} returned", f"keys {', '.join(map(str, returned))}", _RETURNS)
        fields = {key: value for key, value in returned.items() if value is not None}
    elif isinstance(returned, tuple | list) and len(returned) == 2:
        fields = {"module": returned[0], "args": returned[1]}
    else:
        raise InputError(f"{name} returned", type(returned).__name__, _RETURNS)
    if not isinstance(fields["module"], nn.Module):
        raise InputError(f"{name} returned", f"module {type(fields['module']).__name__}", "a torch.nn.Module")
    for key in ("args", "targets"):
        if key in fields:
            fields[key] = tuple(fields[key]) if isinstance(fields[key], tuple | list) else (fields[key],)
    return _Described(**fields)


def _shapes(
    described: _Described, graph: Graph, mesh: Mesh | None, devices: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, Any], tuple[Any, ...]]:
    """Parameters, buffers and flat inputs as placed shapes."""
    tensors = [*_flat(described.args), *(_flat(described.targets) if described.loss else []), *_flat(described.kwargs)]
    if any(tensor.dtype in _WIDE for tensor in [*tensors, *graph.params.values()] if _is_tensor(tensor)):
        jax.config.update("jax_enable_x64", True)
    params = {key: _shape(value) for key, value in graph.params.items()}
    buffers = {key: _shape(value) for key, value in graph.buffers.items()}
    inputs = tuple(_shape(tensor) for tensor in tensors)
    given = dict(described.shardings or {})
    rules = given.get("params")
    if rules == "fsdp":
        specs: dict[str, Any] = {key: _largest_dimension(value, mesh) for key, value in params.items()}
    else:
        specs = {key: _matching(key, rules or {}) for key in params}
    placed_params, placed_buffers = placed((params, buffers), (specs, None), mesh, devices)
    input_specs = _input_specs(described, given, len(inputs), inputs, mesh)
    return placed_params, placed_buffers, placed(inputs, input_specs, mesh, devices)


def _input_specs(
    described: _Described, given: Mapping[str, Any], count: int, inputs: Sequence[Any], mesh: Mesh | None
) -> list[Any]:
    if mesh is None:
        return [None] * count
    if described.shardings is None:  # plain data parallelism: the first axis splits every batch it can
        axis = mesh.axis_names[0]
        size = mesh.shape[axis]
        return [(axis,) if tensor.shape and tensor.shape[0] % size == 0 else None for tensor in inputs]
    specs = [*given.get("args", ()), *given.get("targets", ()), *given.get("kwargs", ())]
    return [*specs, *[None] * (count - len(specs))]


def _largest_dimension(shape: jax.ShapeDtypeStruct, mesh: Mesh | None) -> Any:
    """Split over the mesh's first axis along the largest dimension that divides, as FSDP does."""
    if mesh is None:
        return None
    axis = mesh.axis_names[0]
    size = mesh.shape[axis]
    dims = [(length, -i) for i, length in enumerate(shape.shape) if length % size == 0]
    if not dims:
        return None
    chosen = -max(dims)[1]
    return tuple(axis if i == chosen else None for i in range(len(shape.shape)))


def _matching(name: str, rules: Mapping[str, Any]) -> Any:
    return next((spec for pattern, spec in rules.items() if fnmatchcase(name, pattern)), None)


def _flat(tree: Any) -> list[Any]:
    return list(_pytree.tree_leaves(tree))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _shape(value: Any) -> jax.ShapeDtypeStruct:
    if not isinstance(value, torch.Tensor):
        number = isinstance(value, bool | int | float)  # anything else is fixed when exported and never read
        return jax.ShapeDtypeStruct((), jnp.asarray(value).dtype if number else jnp.int32)
    name = str(value.dtype).removeprefix("torch.")
    if name == "int64" and not jax.config.read("jax_enable_x64"):
        name = "int32"
    return jax.ShapeDtypeStruct(tuple(value.shape), jnp.dtype(name))


def _varies(described: _Described) -> tuple[str, ...]:
    """Dimensions declared dynamic, in words. The program is compiled at the example's sizes."""
    dimensions: list[str] = []

    def walk(where: str, spec: Any) -> None:
        if isinstance(spec, Mapping):
            for key, value in spec.items():
                walk(f"{where}.{key}" if where else str(key), value)
        elif isinstance(spec, tuple | list):
            for i, value in enumerate(spec):
                walk(f"{where}[{i}]" if where else f"input {i}", value)
        elif spec is not None and not isinstance(spec, int):
            dimensions.append(f"{where} ({getattr(spec, '__name__', None) or spec})")

    walk("", described.dynamic_shapes)
    return tuple(dimensions)


def _notes(described: _Described, mesh: Mesh | None, devices: Sequence[Any]) -> list[str]:
    notes = []
    if mesh is None and len(devices) > 1:
        notes.append(f"one of {len(devices)} devices used: give axes, such as data={len(devices)}, to use all")
    elif mesh is not None and described.shardings is None:
        notes.append(f"batch split over {mesh.axis_names[0]}, weights replicated: give shardings to change that")
    tensors = [tensor for tensor in _flat((described.args, described.targets)) if _is_tensor(tensor)]
    if any(tensor.dtype == torch.int64 for tensor in tensors) and not jax.config.read("jax_enable_x64"):
        notes.append("64-bit integers run as 32-bit ones")
    return notes
