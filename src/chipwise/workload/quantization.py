"""The precision that a Hugging Face config says its weights are stored in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.errors import InputError

# quant_method -> precision, where the method decides it
METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "finegrained_fp8": "fp8", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}
BITS = ("awq", "gptq", "auto-round", "hqq", "gguf", "bitsandbytes", "eetq", "aqlm", "quanto")  # weights of some bits
_DTYPES = {"float16": "fp16"}  # weights stored in 32 bits are served in 16
_TAKEN = (*METHODS, *BITS, "compressed-tensors", "modelopt", "quark")


def native_precision(config: Mapping[str, Any], where: str = "config.json") -> str:
    """What the weights are stored in: of `quantization_config`, else `torch_dtype`, else bf16.

    >>> native_precision({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "config.json")
    'int4'
    >>> native_precision({"torch_dtype": "float16"}, "config.json")
    'fp16'
    """
    quantized = config.get("quantization_config") or config.get("compression_config")
    if quantized is None:
        return _DTYPES.get(str(config.get("torch_dtype") or config.get("dtype")), "bf16")
    field = f"{where}: quantization_config"
    if not isinstance(quantized, Mapping):
        raise InputError(field, quantized, "a mapping with a quant_method")
    method = str(quantized.get("quant_method", "")).lower()
    if method in METHODS:
        return METHODS[method]
    if method in BITS:
        stored = _weights_alone(quantized)
        return "nf4" if (method, stored) == ("bitsandbytes", "int4") else stored
    if method == "modelopt":
        return _modelopt(quantized, field)
    if method in ("compressed-tensors", "quark"):
        return _groups(quantized, field)
    raise InputError(f"{field}.quant_method", method or "nothing", f"one of {', '.join(_TAKEN)}")


def _weights_alone(quantized: Mapping[str, Any]) -> str:
    """Weights of four or eight bits, products in 16."""
    eight = quantized.get("bits") == 8 or quantized.get("load_in_8bit") is True or quantized.get("weights") == "int8"
    return "int8w" if eight else "int4"


def _modelopt(quantized: Mapping[str, Any], field: str) -> str:
    """ModelOpt names its algorithm; a mixture is named after its smallest format."""
    inside = quantized.get("quantization")
    named = quantized.get("quant_algo") or (inside.get("quant_algo") if isinstance(inside, Mapping) else "")
    algorithm = str(named or "").upper()
    for part, precision in (("NVFP4", "nvfp4"), ("MXFP4", "mxfp4"), ("W4A16", "int4"), ("W4A8", "int4"), ("FP8", "fp8"),
                            ("INT8", "int8"), ("W8A8", "int8")):  # fmt: skip
        if part in algorithm:
            return precision
    if algorithm == "MIXED_PRECISION":
        return "nvfp4" if "NVFP4" in str(quantized).upper() else "fp8"
    raise InputError(f"{field}.quant_algo", algorithm or "nothing", "FP8, NVFP4, MXFP4, W4A16_AWQ or INT8")


def _groups(quantized: Mapping[str, Any], field: str) -> str:
    """compressed-tensors and Quark: bits and kind of the first group's weights, and whether inputs are, too."""
    groups = quantized.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, Mapping) else quantized.get("global_quant_config")
    weights = (group.get("weights") or group.get("weight")) if isinstance(group, Mapping) else None
    if not isinstance(group, Mapping) or not isinstance(weights, Mapping):
        raise InputError(field, "no group of weights", "config_groups with the weights' num_bits and type")
    kind = str(weights.get("type") or weights.get("dtype") or "")
    if kind == "fp4" or (weights.get("num_bits") == 4 and kind == "float"):
        return "mxfp4" if weights.get("group_size") == 32 else "nvfp4"
    if weights.get("num_bits") == 8 or kind.startswith(("fp8", "int8")):
        if kind.startswith(("float", "fp8")):
            return "fp8"
        return "int8" if group.get("input_activations") or group.get("input_tensors") else "int8w"
    return "int4"
