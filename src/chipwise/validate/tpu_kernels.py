"""The published TPU kernels by what they measure: large products, memory, collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.validate import kernel_rows
from chipwise.validate.kernel_rows import KernelRow

SMALL = 1024.0**3  # m x n x k up to which products count as small

# name -> which rows
PARTS: Mapping[str, Callable[[KernelRow], bool]] = {
    "tpu_products_over_1024": lambda r: r.kernel.op == "gemm" and r.kernel.m * r.kernel.n * r.kernel.k > SMALL,
    "tpu_products_to_1024": lambda r: r.kernel.op == "gemm" and r.kernel.m * r.kernel.n * r.kernel.k <= SMALL,
    "tpu_memory": lambda r: r.kernel.op == "copy",
    "tpu_collectives": lambda r: r.kernel.op in ("gather", "reduce", "exchange") and not over_network(r),
    "tpu_over_slices": lambda r: over_network(r),
}


def over_network(row: KernelRow) -> bool:
    """Whether a row's collective joins slices over the data-center network.

    The one there is doesn't say how many slices: the calibration's share of the network is read off it, so that it
    is met by construction and stands apart from the collectives that test the model.
    """
    return row.kernel.over_slices


def parts(raw: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Ids of the TPU rows among `raw`, by part."""
    read = [kernel_rows.try_read(row) for row in raw]
    rows = [row for row in read if isinstance(row, KernelRow) and row.chip.family == "tpu"]
    return {name: [row.id for row in rows if belongs(row)] for name, belongs in PARTS.items()}


def split(raw: Sequence[Mapping[str, str]], summarize: Callable[[list[str]], dict[str, Any]]) -> dict[str, Any]:
    """Each part's summary, of those that have rows."""
    return {name: summarize(ids) for name, ids in parts(raw).items() if ids}
