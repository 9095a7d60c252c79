"""An exported PyTorch graph as a JAX function, by torchax's translations of ATen operations."""

from __future__ import annotations

import importlib
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from chipwise.compiled.hlo.source_lines import scope_of

_CHIPWISE = Path(__file__).resolve().parents[2]
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in')
# Regions torch.export wraps around part of a graph; under XLA they are that part itself.
_WRAPPERS = ("wrap_with_set_grad_enabled", "wrap_with_autocast")


class UnsupportedOp(Exception):
    """An operation of the user's program that has no translation to XLA."""

    def __init__(self, op: str, source: str, hint: str) -> None:
        self.op, self.source, self.hint = op, source, hint
        location = f" at {source}" if source else ""
        super().__init__(f"{op}{location} has no translation to XLA; {hint}")


@dataclass(frozen=True, slots=True)
class Graph:
    """A PyTorch program as JAX sees it: state by name, and a function of state and flat inputs."""

    params: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]  # buffers and constants
    mutated: tuple[str, ...]  # buffers the program writes
    random: bool  # whether it draws random numbers (dropout), and so takes a key
    run: Callable[..., tuple[dict[str, Any], list[Any]]]
    # (params, buffers, flat inputs, key) -> (new values of mutated buffers, flat outputs)


class _Keys:
    """What torchax asks for random numbers: a new key each time."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def get_and_rotate_prng_key(self, generator: Any = None) -> Any:
        import jax

        self.key, drawn = jax.random.split(self.key)
        return drawn


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph of ATen operations on JAX arrays."""

    def __init__(self, module: torch.fx.GraphModule, ops: Mapping[Any, Any], keys: _Keys) -> None:
        super().__init__(module)
        self.ops, self.keys = ops, keys

    def run_node(self, n: torch.fx.Node) -> Any:
        import jax

        with jax.named_scope(scope_of(source_of(n))):  # the module's own line: JAX only sees this file's
            return super().run_node(n)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        op = _translation(self.ops, target)
        if op is None:  # operator.getitem and such
            return super().call_function(target, args, kwargs)
        extra = {"env": self.keys} if op.needs_env else {}
        return op.func(*args, **kwargs, **extra)


def _translation(ops: Mapping[Any, Any], target: Any) -> Any:
    if not isinstance(target, torch._ops.OpOverload):
        return None
    return ops.get(target) or ops.get(target.overloadpacket)


@contextmanager
def _named_tensor_overloads() -> Iterator[None]:
    """Let torchax name overloads torch has dropped.

    torchax 0.0.13 lists 22 overloads for named tensors (aten.prod.dim_Dimname, aten.norm.names_out...) in tables that
    are only looked up; torch 2.13 removed named tensors, so the attribute access fails while torchax is imported.
    """
    from torch._ops import OpOverloadPacket

    original = OpOverloadPacket.__getattr__

    def lenient(self: Any, key: str) -> Any:
        try:
            return original(self, key)
        except AttributeError:
            if "imname" in key or "names" in key:
                return object()  # a key that nothing looks up
            raise

    OpOverloadPacket.__getattr__ = lenient  # type: ignore[method-assign]
    try:
        yield
    finally:
        OpOverloadPacket.__getattr__ = original  # type: ignore[method-assign]


def _torchax() -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    """torchax's translations and its decompositions."""
    os.environ.setdefault("ENABLE_RUNTIME_UPTIME_TELEMETRY", "0")  # torchax turns it on otherwise
    with _named_tensor_overloads():
        importlib.import_module("torchax.ops.jaten")  # fills the registry
        from torchax import decompositions
        from torchax.ops import ops_registry
    return ops_registry.all_aten_ops, decompositions.DECOMPOSITIONS


def converted(exported: ExportedProgram) -> Graph:
    """The graph as a JAX function; an operation without a translation raises `UnsupportedOp`."""
    ops, decompositions = _torchax()
    table = torch.export.default_decompositions()
    table.update(decompositions)
    table[torch.ops.aten.rand_like.default] = _rand_like
    core = exported.run_decompositions(table)
    random = _check_ops(core.graph_module, ops)
    body = _inlined(core.graph_module)
    params, buffers = _state(core)
    outputs = core.graph_signature.output_specs
    mutated = tuple(
        str(spec.target) for spec in outputs if spec.kind is OutputKind.BUFFER_MUTATION and spec.target is not None
    )
    read_back = [i for i, spec in enumerate(outputs) if spec.kind is OutputKind.BUFFER_MUTATION]
    returned = [i for i, spec in enumerate(outputs) if spec.kind is OutputKind.USER_OUTPUT]

    def run(
        params: Mapping[str, Any], buffers: Mapping[str, Any], inputs: Sequence[Any], key: Any = None
    ) -> tuple[dict[str, Any], list[Any]]:
        placeholders = _placeholders(core, params, buffers, inputs)
        values = _Interpreter(body, ops, _Keys(key)).run(*placeholders, enable_io_processing=False)
        written = {name: values[i] for name, i in zip(mutated, read_back, strict=True)}
        return written, [values[i] for i in returned]

    return Graph(params, buffers, mutated, random, run)


def _rand_like(like: torch.Tensor, **options: Any) -> torch.Tensor:
    """As torchax 0.0.13 has it, but on the tensor's own device, which may be meta."""
    return torch.rand(like.shape, dtype=options.get("dtype") or like.dtype, device=like.device)


def _state(core: ExportedProgram) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    params: dict[str, torch.Tensor] = {}
    buffers: dict[str, torch.Tensor] = {}
    for spec in core.graph_signature.input_specs:
        if spec.target is None:
            continue
        value = core.state_dict.get(spec.target, core.constants.get(spec.target))
        if not isinstance(value, torch.Tensor):
            raise UnsupportedOp(f"object {spec.target}", "", "keep tensors only in the module's state")
        (params if spec.kind is InputKind.PARAMETER else buffers)[spec.target] = value
    return params, buffers


def _placeholders(
    core: ExportedProgram, params: Mapping[str, Any], buffers: Mapping[str, Any], inputs: Sequence[Any]
) -> list[Any]:
    remaining = iter(inputs)
    values = []
    for spec in core.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            given = next(remaining)
            values.append(getattr(spec.arg, "value", given))  # a number or string is fixed when exported
        else:
            values.append((params if spec.kind is InputKind.PARAMETER else buffers)[str(spec.target)])
    return values


def _check_ops(module: torch.fx.GraphModule, ops: Mapping[Any, Any]) -> bool:
    """Refuse what has no translation; whether anything draws random numbers."""
    random = False
    parts = [part for part in module.modules() if isinstance(part, torch.fx.GraphModule)]
    for node in (node for part in parts for node in part.graph.nodes if node.op == "call_function"):
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            if target.name() not in _WRAPPERS:
                hint = "write it as tensor operations (torch.where instead of a branch, no kernel of your own)"
                raise UnsupportedOp(f"higher_order.{target.name()}", source_of(node), hint)
        elif isinstance(target, torch._ops.OpOverload):
            translation = _translation(ops, target)
            if _open_shape(node.meta.get("val")):
                hint = "the size of its result depends on values, XLA needs fixed shapes: torch.where keeps the size"
                raise UnsupportedOp(_name(target), source_of(node), hint)
            if translation is None or not translation.is_jax_function:
                raise UnsupportedOp(_name(target), source_of(node), _hint(target))
            random = random or translation.needs_env
    return random


def _name(target: torch._ops.OpOverload) -> str:
    return str(target.name()).replace("::", ".")


def _open_shape(value: Any) -> bool:
    """Whether a shape holds a size known only when the program runs."""
    tensors = value if isinstance(value, tuple | list) else (value,)
    return any(not isinstance(size, int) for t in tensors if isinstance(t, torch.Tensor) for size in t.shape)


def _hint(target: torch._ops.OpOverload) -> str:
    if target.namespace in ("aten", "prims"):
        return "write it with other PyTorch operations"
    return "it is a custom operation: a CUDA or C++ kernel does not run under XLA; give a PyTorch version of it"


def _inlined(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with no_grad and autocast regions called as plain submodules."""
    for node in list(module.graph.nodes):
        target = node.target
        if not isinstance(target, torch._ops.HigherOrderOperator):
            continue
        index = next(i for i, arg in enumerate(node.args) if isinstance(arg, torch.fx.Node) and arg.op == "get_attr")
        inner = module.get_submodule(node.args[index].target)
        assert isinstance(inner, torch.fx.GraphModule)
        with module.graph.inserting_before(node):
            passed = dict(
                zip([n for n in inner.graph.nodes if n.op == "placeholder"], node.args[index + 1 :], strict=True)
            )
            result = module.graph.graph_copy(_inlined(inner).graph, passed)
        node.replace_all_uses_with(result)
        module.graph.erase_node(node)
    return module


def source_of(node: torch.fx.Node) -> str:
    """The user's innermost line behind a node, as ``file.py:12``."""
    return _own_line([(m["file"], m["line"]) for m in _FRAME.finditer(node.stack_trace or "")])


def raised_at(error: BaseException) -> str:
    """The user's innermost line on the way to an error, as ``file.py:12``."""
    return _own_line([(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)])


def _own_line(frames: Sequence[tuple[str, str]]) -> str:
    libraries = (*(sysconfig.get_paths()[key] for key in ("purelib", "platlib", "stdlib")), str(_CHIPWISE), "<")
    own = [(file, line) for file, line in frames if not file.startswith(libraries)]
    return f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""
