"""Measured kernels as calibration reads them: the published rows and NVIDIA's tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chipwise.catalog import Chip, load
from chipwise.predict.microbenchmark import Kernel
from chipwise.validate.kernel_rows import KernelRow, try_read
from chipwise.validate.serving_rows import SYSTEMS

TABLES = "ai-dynamo/aiconfigurator"  # the source of gemm, attention and collectives.csv (Apache-2.0)

GEMM_TYPES = {"bf16": "bf16", "fp8": "fp8", "nvfp4": "fp4", "sq": "int8"}
ROTATED = 5  # weights the tables' benchmark cycles through, so that few stay in the cache
QUANTIZE_SHARE = 0.6  # of the memory bandwidth, for the 4-bit quantize step the tables time with the product
QUANTIZE_LAUNCH_S = 1.5e-6


@dataclass(frozen=True, slots=True)
class Point:
    """One measured kernel with how far it is to be trusted."""

    row: KernelRow
    weight: float = 1.0
    rotated: float = 1.0

    @property
    def chip(self) -> Chip:
        """The chip it ran on."""
        return self.row.chip

    @property
    def kernel(self) -> Kernel:
        """What ran."""
        return self.row.kernel


def points(root: Path, without: str | None = None) -> list[Point]:
    """Every measured kernel under `root` (it holds ``rows`` and ``kernels``), less one source."""
    measured = [Point(row) for row in _published(root)]
    measured += [*_gemm(root), *_attention(root), *_collectives(root)]
    return [p for p in measured if p.row.source != without]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _published(root: Path) -> Iterator[KernelRow]:
    for raw in _rows(root / "rows" / "kernels.csv"):
        row = try_read(raw)
        if isinstance(row, KernelRow):
            yield row


def _point(chip: Chip, kernel: Kernel, seconds: float, weight: float = 1.0, rotated: float = 1.0) -> Point:
    return Point(KernelRow("", TABLES, chip, kernel, seconds, "|".join((TABLES, kernel.op, chip.id))), weight, rotated)


def _gemm(root: Path) -> Iterator[Point]:
    """Products; what the tables say or we reckon about quantizing the inputs is taken off."""
    for r in _rows(root / "kernels" / "gemm.csv"):
        if r["system"] not in SYSTEMS or r["dtype"] not in GEMM_TYPES:
            continue
        chip = load().chips[SYSTEMS[r["system"]]]
        m, n, k, seconds = float(r["m"]), float(r["n"]), float(r["k"]), float(r["time_us"]) * 1e-6
        quantize = float(r["quant_us"] or 0) * 1e-6
        if r["dtype"] == "nvfp4":
            quantize = 2.5625 * m * k / (chip.bandwidth * QUANTIZE_SHARE) + QUANTIZE_LAUNCH_S
        kernel = Kernel("gemm", GEMM_TYPES[r["dtype"]], m=m, n=n, k=k, bench="graph")
        rotated = 1.0 if r["dtype"] == "sq" else ROTATED
        yield _point(chip, kernel, max(seconds - quantize, 0.3 * seconds), 1.0, rotated)


def _attention(root: Path) -> Iterator[Point]:
    for r in _rows(root / "kernels" / "attention.csv"):
        if r["system"] not in SYSTEMS or r["phase"] != "prefill" or r["kind"] != "gqa" or r["dtype"] != r["kv_dtype"]:
            continue
        kernel = Kernel(
            "attention",
            r["dtype"],
            m=float(r["seq"]),
            batch=float(r["batch"]),
            heads=float(r["heads"]),
            kv_heads=float(r["kv_heads"]),
            head_dim=float(r["head_dim"]),
            causal=True,
            bench="graph",
        )
        yield _point(load().chips[SYSTEMS[r["system"]]], kernel, float(r["time_us"]) * 1e-6)


def _collectives(root: Path) -> Iterator[Point]:
    ops = {"all_reduce": "reduce", "all_gather": "gather", "reduce_scatter": "gather"}
    for r in _rows(root / "kernels" / "collectives.csv"):
        if r["system"] not in SYSTEMS or r["op"] not in ops or r["library"] != "NCCL" or r["dtype"] != "fp16":
            continue
        if r["system"] == "l40s" and r["ranks"] != "2":
            continue  # 4 and 8 reach 5 and 2 GB/s in every library: that machine's fault, not the chip's
        ranks, data = int(r["ranks"]), float(r["bytes"])
        received = data if ops[r["op"]] == "reduce" else data * (ranks - 1) / ranks
        kernel = Kernel(ops[r["op"]], "fp16", chips=ranks, data=received)
        yield _point(load().chips[SYSTEMS[r["system"]]], kernel, float(r["time_us"]) * 1e-6)
