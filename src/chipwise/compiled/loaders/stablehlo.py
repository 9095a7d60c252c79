"""StableHLO modules as JAX calls them: the module goes inside a ``jax.export.Exported`` of the same signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jax.extend.mlir import deserialize_portable_artifact, ir, serialize_portable_artifact
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.interpreters import mlir
from jax.sharding import PartitionSpec

from chipwise.compiled.loaders.placement import build_mesh, placed
from chipwise.errors import BrokenFile, InputError
from chipwise.programs.program import Program

_DTYPES = {
    "i1": "bool",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3": "float8_e4m3",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn",
}
_WIDE = ("int64", "uint64", "float64", "complex128")


def parse_module(name: str, content: bytes) -> Any:
    """The MLIR module in `content`: text, bytecode, or a portable artifact."""
    with mlir.make_ir_context():
        try:
            return deserialize_portable_artifact(content) if content[:2] == b"ML" else ir.Module.parse(content.decode())
        except UnicodeDecodeError as error:
            raise BrokenFile("program", name, "StableHLO as text or bytecode (this is neither)") from error
        except Exception as first:  # jaxlib raises its own MLIRError, ValueError or XlaRuntimeError by version
            if content[:2] == b"ML":
                try:
                    return ir.Module.parse(content)  # bytecode that is not a portable artifact
                except Exception as error:
                    raise BrokenFile("program", name, f"whole StableHLO bytecode ({_first_line(error)})") from error
            raise BrokenFile("program", name, f"a valid StableHLO module ({_first_line(first)})") from first


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines or [type(error).__name__])[0].removeprefix("error: ")[:200]


def load_module(name: str, content: bytes, devices: Sequence[Any]) -> Program:
    """A StableHLO module as a program on `devices`."""
    module = parse_module(name, content)
    main = _main(name, module)
    shapes = [_shape(name, tensor) for tensor in main.type.inputs]
    results = [_shape(name, tensor) for tensor in main.type.results]
    if needs_x64([*shapes, *results]):
        jax.config.update("jax_enable_x64", True)
    partitions = _attribute_int(module, "mhlo.num_partitions") * _attribute_int(module, "mhlo.num_replicas")
    notes: list[str] = []
    if partitions > 1 and partitions != len(devices):
        accepted = f"a target with {partitions} devices, which {Path(name).name} was partitioned for"
        raise InputError("devices", len(devices), accepted)
    if partitions < len(devices):
        notes.append(f"one of {len(devices)} devices used: the module is for one")
    args, mesh = _placed(name, module, main, shapes, partitions, devices)
    exported = _exported(module, shapes, results, partitions, devices)
    return Program(exported.call, args, donate=donated(module), mesh=mesh, notes=tuple(notes))


def donated(module: Any) -> tuple[int, ...]:
    """Arguments of @main whose memory the outputs may take, not counting JAX's own leading ones."""
    attributes = _argument_attributes(_find_main(module))
    own = [a for a in attributes if "jax.global_constant" not in a and "jax.token" not in a]
    return tuple(i for i, a in enumerate(own) if "jax.buffer_donor" in a or "tf.aliasing_output" in a)


def needs_x64(avals: Sequence[Any]) -> bool:
    """Whether any of the arrays is wider than JAX's default."""
    return any(str(aval.dtype) in _WIDE for aval in avals)


def _find_main(module: Any) -> Any:
    for operation in module.body.operations:
        if operation.operation.name == "func.func" and ir.StringAttr(operation.attributes["sym_name"]).value == "main":
            return operation
    return None


def _argument_attributes(main: Any) -> list[Any]:
    if "arg_attrs" not in main.attributes:
        return [{} for _ in main.type.inputs]
    return [ir.DictAttr(attribute) for attribute in main.arg_attrs]


def _main(name: str, module: Any) -> Any:
    main = _find_main(module)
    if main is None:
        raise BrokenFile("program", name, "a StableHLO module with a function @main")
    return main


def _shape(name: str, kind: Any) -> jax.ShapeDtypeStruct:
    try:
        tensor = ir.RankedTensorType(kind)
    except (ValueError, TypeError) as error:
        raise BrokenFile("program", name, f"a @main that takes and returns tensors, not {kind}") from error
    if not tensor.has_static_shape:
        accepted = "static shapes (open dimensions need jax.export with symbolic_shape, so that they have names)"
        raise InputError("program", f"{Path(name).name} takes {kind}", accepted)
    element = str(tensor.element_type)
    if element not in _DTYPES:
        raise InputError("program", f"{Path(name).name} takes {kind}", "element types that JAX has")
    return jax.ShapeDtypeStruct(tuple(tensor.shape), jnp.dtype(_DTYPES[element]))


def _attribute_int(module: Any, key: str) -> int:
    attributes = module.operation.attributes
    return int(ir.IntegerAttr(attributes[key]).value) if key in attributes else 1


def _placed(
    name: str, module: Any, main: Any, shapes: Sequence[Any], partitions: int, devices: Sequence[Any]
) -> tuple[tuple[Any, ...], Any]:
    if partitions == 1:
        return placed(tuple(shapes), None, None, devices), None
    attributes = _argument_attributes(main)
    if any("mhlo.sharding" in a for a in attributes) and not any("sdy.sharding" in a for a in attributes):
        raise InputError("program", f"{Path(name).name} with mhlo.sharding", "sdy.sharding: lower it with Shardy on")
    axes = _axes(module) or {"devices": partitions}
    mesh = build_mesh(axes, devices)
    specs = [_spec(a["sdy.sharding"]) if "sdy.sharding" in a else None for a in attributes]
    return placed(tuple(shapes), specs, mesh, devices), mesh


def _axes(module: Any) -> dict[str, int]:
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            axes = [sdy.MeshAxisAttr(axis) for axis in sdy.MeshAttr(operation.attributes["mesh"]).axes]
            return {axis.name: axis.size for axis in axes}
    return {}


def _spec(attribute: Any) -> PartitionSpec:
    dims = [sdy.DimensionShardingAttr(dimension) for dimension in sdy.TensorShardingAttr(attribute).dimension_shardings]
    names = [tuple(sdy.AxisRefAttr(axis).name for axis in dim.axes) for dim in dims]
    return PartitionSpec(*(dimension or None for dimension in names))


def _exported(
    module: Any, shapes: Sequence[Any], results: Sequence[Any], partitions: int, devices: Sequence[Any]
) -> Any:
    """An export of the same signature with its body replaced by `module`."""

    def signature(*_: Any) -> list[Any]:
        return [jnp.zeros(result.shape, result.dtype) for result in results]

    platform = "tpu" if devices[0].platform == "tpu" else "cuda"
    template = jax.export.export(jax.jit(signature, keep_unused=True), platforms=(platform,))(*shapes)
    version = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.NONE)
    with module.context:
        body = serialize_portable_artifact(module, version, True)
    return replace(template, fun_name="main", mlir_module_serialized=body, nr_devices=partitions)
