"""The precision that a Hugging Face config says its weights are stored in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# keys as transformers 4.57 and compressed-tensors 0.12 write them (their documentation, 2026-11)
_BY_METHOD = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "awq": "int4", "eetq": "int8w"}
_BY_ALGORITHM = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4", "W4A16": "int4", "INT8_SQ": "int8"}


def native_precision(config: Mapping[str, Any]) -> str:
    """The precision of `quantization_config`; bf16 where it names none that is served.

    >>> native_precision({"quantization_config": {"quant_method": "mxfp4"}})
    'mxfp4'
    >>> native_precision({"quantization_config": {"quant_method": "gptq", "bits": 8}})
    'int8w'
    >>> native_precision({"torch_dtype": "float16"})  # chips without bf16 are served in fp16 anyway
    'bf16'
    """
    quantized = config.get("quantization_config")
    if not isinstance(quantized, Mapping):
        return "bf16"
    method = str(quantized.get("quant_method", "")).lower()
    if method == "gptq":
        return _weights_alone(quantized.get("bits"))
    if method == "bitsandbytes":
        return "int4" if quantized.get("load_in_4bit") else "int8w" if quantized.get("load_in_8bit") else "bf16"
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed(quantized)
    if method == "modelopt":
        return _BY_ALGORITHM.get(str(quantized.get("quant_algo", "")).upper(), "bf16")
    return _BY_METHOD.get(method, "bf16")


def _compressed(quantized: Mapping[str, Any]) -> str:
    """Of compressed-tensors: the bits and type of the first group's weights, and whether activations follow."""
    groups = quantized.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if not isinstance(first, Mapping) or not isinstance(weights, Mapping):
        return "bf16"
    if weights.get("type") == "float":
        return {8: "fp8", 4: "nvfp4"}.get(weights.get("num_bits", 0), "bf16")
    if weights.get("num_bits") == 8 and first.get("input_activations") is not None:
        return "int8"
    return _weights_alone(weights.get("num_bits"))


def _weights_alone(bits: Any) -> str:
    return {4: "int4", 8: "int8w"}.get(bits, "bf16")
