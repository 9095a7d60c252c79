"""XLA for NVIDIA GPUs with no GPU present: a card described to the compiler, its options, and what it estimates.

XLA reads a card as a `GpuTargetConfigProto` in text form. Its fields are filled from the catalog's figures and from
what CUDA fixes for each compute capability.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.catalog import load
from chipwise.catalog.chip import Chip
from chipwise.catalog.compilers import KIB
from chipwise.compiled.compute_capability import capability
from chipwise.compiled.targets import CUDA, Target

_TENSOR_CORES = 4  # a multiprocessor has four from Volta's successors on
# Numbers of xla.PrimitiveType in xla_data.proto, and the catalog's name of the rate they run at.
_MATRIX_TYPES = {2: "int8", 6: "int8", 10: "fp16", 11: "tf32", 12: "fp64", 16: "bf16", 19: "fp8", 20: "fp8", 32: "fp4"}
_SCALAR_TYPES = {11: "fp32", 12: "fp64"}
_ESTIMATES = "xla_gpu_collect_cost_model_stats"
# cuDNN as of CUDA 13: no cuDNN is installed, but XLA picks its convolution and attention calls by this version.
_CUDNN = (9, 10, 0)


def target_config(chip_id: str) -> str:
    """The card as XLA's ``GpuTargetConfigProto``, in text form.

    >>> print(target_config("h100").splitlines()[1].strip())
    threads_per_block_limit: 1024
    """
    chip = load().chips[chip_id]
    cap = capability(chip)
    extension = "\n    feature_extension: ACCELERATED_FEATURES" if cap.accelerated else ""
    major, minor, patch = _CUDNN
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: {48 * KIB}
  shared_memory_per_core: {cap.shared}
  shared_memory_per_block_optin: {cap.shared_block}
  threads_per_core_limit: {cap.threads}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  core_count: {chip.cores}
  fpus_per_core: {cap.fp32_units}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {chip.bandwidth:.0f}
  l2_cache_size: {chip.onchip_bytes:.0f}
  clock_rate_ghz: {chip.clock_hz / 1e9:.4g}
  device_memory_size: {chip.usable_bytes:.0f}
  cuda_compute_capability {{
    major: {cap.major}
    minor: {cap.minor}{extension}
  }}
{_units("scalar_unit_description", _SCALAR_TYPES, chip, cap.fp32_units)}
{_units("matrix_unit_description", _MATRIX_TYPES, chip, _TENSOR_CORES)}
}}
platform_name: "CUDA"
dnn_version_info {{ major: {major} minor: {minor} patch: {patch} }}
device_description_str: "NVIDIA {chip.id.partition("-")[0].upper()}"
"""


def _units(field: str, types: dict[int, str], chip: Chip, units: int) -> str:
    """Rates by element type; XLA multiplies clock, cores, units and operations (one is a multiply and an add)."""
    entries = []
    for number, dtype in types.items():
        if dtype not in chip.peak:
            continue
        a_clock = chip.peak[dtype] / 2 / chip.cores / units / chip.clock_hz
        whole = max(1, round(a_clock))
        clock = chip.peak[dtype] / 2 / chip.cores / units / whole / 1e9  # the clock that gives the catalog's peak
        rate = f"clock_rate_ghz: {clock:.6g} units_per_core: {units} ops_per_clock: {whole}"
        entries.append(f"    rate_infos {{ key: {number} value {{ {rate} }} }}")
    return f"  {field} {{\n" + "\n".join(entries) + "\n  }"


def devices(target: Target) -> Sequence[Any]:
    """The target's devices, as JAX sees them; nothing is allocated on them."""
    from jax.experimental import topologies

    assert target.platform == CUDA
    config = target_config(target.chip)
    described = topologies.get_topology_desc("", platform=CUDA, target_config=config, topology=target.topology)
    return list(described.devices)


def options(target: Target) -> dict[str, bool]:
    """Compiler options for a target.

    Without a GPU nothing is autotuned, and untuned Triton matmuls are further from production than cuBLAS calls.
    """
    return {"xla_gpu_enable_triton_gemm": False}


def compiled_with(lowered: Any, given: Mapping[str, str | bool | int]) -> tuple[Any, tuple[str, ...]]:
    """The compiled program and notes, with XLA's own time estimates in the module where it can make them.

    XLA looks times up in tables measured on a few cards (with jax 0.10.2: H100 and B200). For another card, or a
    group of devices the table does not know, the whole compile fails; it is then done again without estimates.
    """
    import jax

    chosen = {name: as_option(value) for name, value in given.items()}
    if _ESTIMATES in chosen:
        return lowered.compile(compiler_options=chosen), ()
    try:
        return lowered.compile(compiler_options={**chosen, _ESTIMATES: True}), ()
    except jax.errors.JaxRuntimeError as error:
        compiled = lowered.compile(compiler_options=chosen)  # raises what is wrong with the program itself
        return compiled, (f"XLA has no time estimates of its own for this card ({_first_line(error)})",)


def as_option(value: str | bool | int) -> str | bool | int:
    """An option as XLA:GPU takes it: Python booleans and numbers, not their words.

    >>> as_option("true"), as_option("-3"), as_option("ring")
    (True, -3, 'ring')
    """
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return int(value) if re.fullmatch(r"-?\d+", value) else value


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:80]


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """XLA's own estimate for one instruction: what the card's rates allow."""

    instruction: str
    seconds: float


_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?(?P<name>[\w.\-]+) = .*backend_config=")
_COSTS = re.compile(r'"reification_cost":(?P<costs>\[[^\]]*\])')


def speed_of_light(module_text: str) -> list[SpeedOfLight]:
    """The `sol` estimates in an optimized module; empty if the compiler made none.

    >>> line = '%a.1 = f32[] add(%b, %c), backend_config={"reification_cost":[{"exec_time_us":2.0,"name":"sol"}]}'
    >>> speed_of_light(line)
    [SpeedOfLight(instruction='a.1', seconds=2e-06)]
    """
    products = []
    for line in module_text.splitlines():
        costs, instruction = _COSTS.search(line), _INSTRUCTION.match(line)
        if not costs or not instruction:
            continue
        for cost in json.loads(costs["costs"]):
            if cost.get("name") == "sol":
                products.append(SpeedOfLight(instruction["name"], float(cost["exec_time_us"]) * 1e-6))
    return products
