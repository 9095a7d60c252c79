"""The kernel fits: every chip finds coefficients, leaving a source out works, published rows are met."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from chipwise.calibrate.kernel_fits import trial
from chipwise.calibrate.kernel_points import TABLES, points
from chipwise.calibrate.kernels import fit_kernels
from chipwise.catalog import Accelerators, load, scaled
from chipwise.catalog.calibration import Calibration
from chipwise.predict.microbenchmark import predict_kernel
from chipwise.predict.model.fabric import LinkCoefficients
from chipwise.predict.model.kernels import KernelCoefficients
from chipwise.predict.site import kernel_coefficients, slice_for, wires
from chipwise.validate.kernel_rows import KernelRow, try_read

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2] / "validation"


@pytest.fixture(scope="module")
def fitted() -> Calibration:
    return trial(*fit_kernels(ROOT))


@pytest.fixture(scope="module")
def rows() -> list[KernelRow]:
    with (ROOT / "rows" / "kernels.csv").open(encoding="utf-8", newline="") as file:
        return [r for r in map(try_read, csv.DictReader(file)) if isinstance(r, KernelRow)]


def test_the_result_is_plain_json(fitted: Calibration) -> None:
    text = json.dumps([fitted.training.kernels, fitted.training.links, fitted.training.kernel_residuals])
    assert len(text) < 250_000
    assert "NaN" not in text and "Infinity" not in text


def test_every_chip_finds_coefficients_for_all_it_computes_in(fitted: Calibration) -> None:
    plain = KernelCoefficients()
    for chip in load().chips.values():
        for dtype in set(chip.peak) - {"fp64"}:
            found = kernel_coefficients(chip, dtype, fitted)
            assert found != plain, (chip.id, dtype)
            assert 0.2 < found.matmul <= 1.0 and 0.3 <= found.memory <= 1.0, (chip.id, dtype)
            assert 0.1 < found.attention < 1.0, (chip.id, dtype)
        site = wires(slice_for(chip, 8) if chip.family == "tpu" else Accelerators(chip, 8), fitted)
        assert site.coefficients != LinkCoefficients(), chip.id


def test_published_rows_are_met_within_twelve_per_cent(fitted: Calibration, rows: list[KernelRow]) -> None:
    misses = [abs(predict_kernel(r.kernel, r.chip, fitted) / r.observed_s - 1) for r in rows if r.observed_s > 20e-6]
    assert len(misses) > 950
    assert mean(misses) <= 0.12


def test_a_chip_with_every_figure_doubled_is_never_slower(fitted: Calibration, rows: list[KernelRow]) -> None:
    for r in rows[::7]:
        slow, fast = (predict_kernel(r.kernel, chip, fitted) for chip in (r.chip, scaled(r.chip, 2.0)))
        assert fast <= slow * (1 + 1e-9), r.id


def test_more_memory_bandwidth_is_never_slower(fitted: Calibration, rows: list[KernelRow]) -> None:
    for r in rows[::7]:
        wider = replace(r.chip, bandwidth=1.5 * r.chip.bandwidth)
        assert predict_kernel(r.kernel, wider, fitted) <= predict_kernel(r.kernel, r.chip, fitted) * (1 + 1e-9), r.id


def test_a_source_left_out_is_not_read() -> None:
    assert {p.row.source for p in points(ROOT, TABLES)} == {p.row.source for p in points(ROOT)} - {TABLES}


def small(root: Path) -> Path:
    """A root with the published rows of two sources only."""
    (root / "rows").mkdir(parents=True)
    with (ROOT / "rows" / "kernels.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        kept = [r for r in reader if r["source_repo"] in ("sitar-lab/NeuSight", "microsoft/vidur")]
        with (root / "rows" / "kernels.csv").open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, reader.fieldnames or ())
            writer.writeheader()
            writer.writerows(kept)
    return root


def test_fits_are_deterministic_and_work_on_little_data(tmp_path: Path) -> None:
    root = small(tmp_path)
    first, second = (fit_kernels(root) for _ in range(2))
    assert first == second
    assert "h100" in first[0] and "arch:hopper" in first[0]


def test_without_any_data_the_assumptions_remain(tmp_path: Path) -> None:
    kernels, links, residuals = fit_kernels(tmp_path)
    assert kernels["v5p"]["bf16"]["matmul"] == 0.95
    assert residuals["shapes"] == {} and "family:tpu" in links


def test_points_take_the_quantize_time_off() -> None:
    def bare(p: Any) -> bool:
        return p.row.source == TABLES and p.kernel.op == "gemm" and p.kernel.dtype == "fp8"

    found = [p for p in points(ROOT) if bare(p)]
    assert found and np.isfinite([p.row.observed_s for p in found]).all()
