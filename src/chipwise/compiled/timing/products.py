"""Products inside a module: rows, columns and contraction of every dot and convolution, and their arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from chipwise.compiled.hlo import Computation, Instruction

PRODUCTS = frozenset({"dot", "convolution", "ragged-dot"})


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product (or a convolution seen as one): `batch` times [m, k] x [k, n]."""

    m: int
    n: int
    k: int
    batch: int
    dtype: str
    flops: float
    is_conv: bool = False


def product_of(instruction: Instruction, computation: Computation) -> Product:
    """The product an instruction computes."""
    left, right = (computation[name].shape for name in instruction.operands[:2])
    out = instruction.shape
    if instruction.opcode == "convolution":
        return _convolution(instruction, left.dims, right.dims, out.dims, _wider(left.dtype, right.dtype))
    numbers = instruction.attributes
    contract = [left.dims[i] for i in _dims(numbers.get("lhs_contracting_dims"))]
    batch = prod(left.dims[i] for i in _dims(numbers.get("lhs_batch_dims")))
    k = prod(contract)
    m = prod(left.dims) // max(batch * k, 1)
    n = prod(out.dims) // max(batch * m, 1)
    return Product(m, n, k, batch, _wider(left.dtype, right.dtype), 2.0 * prod(out.dims) * k)


def _wider(a: str, b: str) -> str:
    """The type the array multiplies in: that of the wider operand."""
    return max(a, b, key=lambda t: int("".join(c for c in t.split("e")[0] if c.isdigit()) or 1))


def _dims(value: Any) -> list[int]:
    if isinstance(value, list | tuple):
        return [int(v) for v in value]
    return [int(v) for v in re.findall(r"\d+", str(value))] if value is not None else []


def _convolution(
    instruction: Instruction, left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...], dtype: str
) -> Product:
    """A convolution by its dimension labels; TPUs write every dot as one, a batch as a dilated window."""
    labels = str(instruction.raw.get("dim_labels", ""))
    lhs, rest = labels.split("_")
    rhs, result = rest.split("->")
    spatial = sorted(c for c in result if c.isdigit())
    window = _window(str(instruction.raw.get("window", "")), len(spatial))
    features, k = right[rhs.index("o")], right[rhs.index("i")]
    flops = 2.0 * out[result.index("b")] * features * k
    rows, batch, is_conv = out[result.index("b")], 1, False
    for i, axis in enumerate(spatial):
        size_in, size_out, size = left[lhs.index(axis)], out[result.index(axis)], window["size"][i]
        used = _valid(size_in, size_out, window, i)
        flops *= used
        if size == 1:
            rows *= size_out
        elif size_out == 1:
            k *= int(used)  # the window covers the whole dimension: it is summed over
        elif used == size_out and size_in == 1:
            features *= size_out  # the dimension is the weights' own
        elif used == size_out:
            batch *= size_out  # one tap an output: both have the dimension
        else:
            rows, k, is_conv = rows * size_out, max(round(k * used / size_out), 1), True
    return Product(rows, features, k, batch, dtype, flops, is_conv)


_WINDOW = re.compile(r"(\w+)=([0-9x_-]+)")


def _window(text: str, rank: int) -> dict[str, Any]:
    fields = dict(_WINDOW.findall(text))

    def numbers(key: str, default: int) -> list[int]:
        return [int(v) for v in fields[key].split("x")] if key in fields else [default] * rank

    pads = fields["pad"].split("x") if "pad" in fields else ["0_0"] * rank
    return {
        "size": numbers("size", 1),
        "stride": numbers("stride", 1),
        "low": [int(p.split("_")[0]) for p in pads],
        "lhs": numbers("lhs_dilate", 1),
        "rhs": numbers("rhs_dilate", 1),
    }


def _valid(size_in: int, size_out: int, window: dict[str, Any], i: int) -> float:
    """Pairs of output and tap, along one dimension, that meet a real input (not padding, not a dilation hole)."""
    taps, step, low = window["size"][i], window["stride"][i], window["low"][i]
    holes, spread = window["lhs"][i], window["rhs"][i]
    outputs = np.arange(size_out)[:, None] * step - low
    total = 0
    for start in range(0, taps, 4096):  # bounded memory for long windows
        inputs = outputs + np.arange(start, min(start + 4096, taps))[None, :] * spread
        total += int(np.count_nonzero((inputs >= 0) & (inputs % holes == 0) & (inputs // holes < size_in)))
    return float(total)
